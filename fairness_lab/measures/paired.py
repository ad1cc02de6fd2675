# SPDX-License-Identifier: Apache-2.0

"""Differences of pairs, and whether they are more than the noise of seeds.

Two things are compared with the same seeds, so that a pair has the same
requests. The interval of their mean difference is that of Student's t over
the differences of pairs.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

CONFIDENCE = 0.95
"""Probability with which an interval has the difference in it."""

FEWEST = 2
"""Pairs without which there is no interval."""


@dataclasses.dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference of pairs, with its interval.

    :ivar mean: of the differences.
    :ivar low: lower end of the interval.
    :ivar high: its upper end.
    """

    mean: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether zero is in the interval; its ends belong to it."""
        return self.low <= 0 <= self.high


def difference(
    values: Sequence[float], reference: Sequence[float]
) -> PairedDifference:
    """Compare values with those of a reference, pair by pair.

    :param values: one for each seed, at least :data:`FEWEST`.
    :param reference: of the same seeds.
    :raises ValueError: if a seed has no number, or there are too few.
    """
    # scipy takes long to load, and only comparisons need it.
    from scipy import stats

    pair = np.array([[*values], [*reference]], dtype=np.float64)
    if pair.shape[1] < FEWEST or not np.isfinite(pair).all():
        raise ValueError(
            f'expected {FEWEST} or more pairs of numbers, got'
            f' {[*values]} and {[*reference]}'
        )
    apart = pair[0] - pair[1]
    mean = float(apart.mean())
    if np.ptp(apart) == 0:
        return PairedDifference(mean, mean, mean)
    low, high = stats.t.interval(
        CONFIDENCE, len(apart) - 1, loc=mean, scale=stats.sem(apart)
    )
    return PairedDifference(mean, float(low), float(high))
