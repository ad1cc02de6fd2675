# SPDX-License-Identifier: Apache-2.0

"""When rounds begin."""

import math


class Pace:
    """Says when rounds begin; a late one never makes others pile up.

    :param interval_s: from one round to the next, > 0.
    :param now_s: the first round begins now, monotonic seconds.
    """

    def __init__(self, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self.next_s = now_s

    def advance(self, now_s: float) -> int:
        """Set the time of the next round.

        :returns: how many rounds are left out because their time is over.
        """
        self.next_s += self._interval_s
        late_s = now_s - self.next_s
        if late_s <= 0:
            return 0
        missed = math.ceil(late_s / self._interval_s)
        self.next_s += missed * self._interval_s
        return missed
