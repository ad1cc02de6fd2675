# SPDX-License-Identifier: Apache-2.0

"""Jain's fairness index."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def jain_index(values: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """Measure how equal values are: ``(sum x)^2 / (n * sum x^2)``.

    :param values: finite, >= 0, at least one.
    :returns: 1 if all values are equal (also if all are 0), 1/n if only one
        is above 0.
    :raises ValueError: if there is no value, or a value is out of range.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f'one list of at least one value is needed, got {values!r}'
        )
    bad = array[~(np.isfinite(array) & (array >= 0))]
    if bad.size:
        raise ValueError(f'values must be finite and >= 0, got {bad[0]}')
    largest = array.max()
    if largest == 0:
        return 1.0
    # Relative to the largest, because squares of bytes would lose digits.
    part = array / largest
    return float(part.sum() ** 2 / (array.size * (part @ part)))
