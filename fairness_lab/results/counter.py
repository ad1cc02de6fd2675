# SPDX-License-Identifier: Apache-2.0

"""A cumulative counter that was read now and then."""

import bisect
from collections.abc import Iterable


class Counter:
    """A cumulative counter that was read now and then.

    Between two readings it grows evenly; where it falls, the VM was started
    anew and counts on from zero.

    :param points: time in seconds and value, in the order of time.
    """

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        self._times: list[float] = []
        self._totals: list[float] = []
        total, last = 0.0, 0.0
        for t_s, value in points:
            if self._times and value >= last:
                total += value - last
            elif self._times:
                total += value
            last = value
            self._times.append(t_s)
            self._totals.append(total)

    def at(self, t_s: float) -> float:
        """Growth since the first reading."""
        if not self._times:
            return 0.0
        place = bisect.bisect_right(self._times, t_s)
        if place == 0:
            return 0.0
        if place == len(self._times):
            return self._totals[-1]
        before, after = self._times[place - 1], self._times[place]
        part = (t_s - before) / (after - before)
        first, second = self._totals[place - 1], self._totals[place]
        return first + part * (second - first)

    def over(self, from_s: float, to_s: float) -> float:
        """Growth between two moments."""
        return self.at(to_s) - self.at(from_s)
