# SPDX-License-Identifier: Apache-2.0

"""Interleaved comparison of a guest's work without and with the agent."""

from collections.abc import Sequence
import dataclasses
import math
import statistics

T_975 = (
    (1, 12.706),
    (2, 4.303),
    (3, 3.182),
    (4, 2.776),
    (5, 2.571),
    (6, 2.447),
    (7, 2.365),
    (8, 2.306),
    (9, 2.262),
    (10, 2.228),
    (11, 2.201),
    (12, 2.179),
    (13, 2.160),
    (14, 2.145),
    (15, 2.131),
    (16, 2.120),
    (17, 2.110),
    (18, 2.101),
    (19, 2.093),
    (20, 2.086),
    (25, 2.060),
    (30, 2.042),
    (40, 2.021),
    (60, 2.000),
    (120, 1.980),
)
"""0.975 quantile of Student's t distribution by degrees of freedom."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """Work per second in two neighbouring phases.

    :ivar without: without the agent, > 0.
    :ivar with_agent: with the agent.
    """

    without: float
    with_agent: float

    @property
    def difference(self) -> float:
        """Relative change that came with the agent; -0.01 is 1 % less."""
        return self.with_agent / self.without - 1.0


def quantile(freedom: int) -> float:
    """0.975 quantile of the t distribution.

    :param freedom: degrees of freedom, >= 1; between two rows of the table
        the one with fewer counts, which makes an interval wider, never
        narrower.
    """
    return max(
        (row for row in T_975 if row[0] <= freedom), key=lambda row: row[0]
    )[1]


def confidence(differences: Sequence[float]) -> tuple[float, float] | None:
    """95 % confidence interval of a mean.

    :returns: both ends, or ``None`` for fewer than two values.
    """
    count = len(differences)
    if count < 2:
        return None
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(count)
    reach = quantile(count - 1) * error
    return mean - reach, mean + reach
