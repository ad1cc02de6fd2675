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

"""What nodes said that have fallen silent.

Their VMs go on wanting what they wanted: an agent that starts anew, or a
report that got lost, changes nothing about that. Whoever looks ahead without
them would move all weights there and back.
"""

from nova_fairness.model import outlook
from nova_fairness.model import report


class Recall:
    """Remembers the last report of every node for a while."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[report.NodeReport, float]] = {}

    def extended(self, view: report.View, now_s: float) -> report.View:
        """Remember a view, and add those who are silent.

        :param now_s: seconds of a monotonic clock.
        :returns: the same view if nobody is.
        """
        for host, item in view.reports.items():
            self._heard[host] = (item, now_s)
        self._heard = {
            host: (item, heard_s)
            for host, (item, heard_s) in self._heard.items()
            if now_s - heard_s <= outlook.HELD * item.interval_s
        }
        if len(self._heard) == len(view.reports):
            return view
        every = {host: item for host, (item, _) in self._heard.items()}
        return report.View(
            dict(sorted(every.items())), view.age_s, view.left_out
        )
