# SPDX-License-Identifier: Apache-2.0

"""Random numbers by key: the same keys always give the same number.

The engine is pure and draws nothing. Whether the report of one node reaches
another is a question with a number (SplitMix64, Steele et al. 2014), so that
it needs no memory and no order.
"""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def uniform(
    seed: int, *keys: npt.NDArray[np.int64] | int
) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1), one for each combination of keys.

    :param seed: >= 0.
    :param keys: >= 0, arrays that broadcast.
    :returns: as equally spread as 53 bits allow.
    """
    mixed = _mixed(np.asarray(seed, dtype=np.uint64))
    with np.errstate(over='ignore'):
        for key in keys:
            mixed = _mixed(mixed ^ np.asarray(key, dtype=np.uint64))
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def _mixed(numbers: Numbers) -> Numbers:
    with np.errstate(over='ignore'):
        state = np.asarray(numbers + _STEP)
        state = (state ^ (state >> np.uint64(30))) * _FIRST
        state = (state ^ (state >> np.uint64(27))) * _SECOND
        return np.asarray(state ^ (state >> np.uint64(31)))
