# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
