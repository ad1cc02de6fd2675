# SPDX-License-Identifier: Apache-2.0

"""What nodes said whose reports are missing by chance.

Their VMs go on wanting what they wanted. Whoever looked ahead without them
would move all weights there and back whenever some reports get lost.
"""

import dataclasses

import numpy as np

from nova_fairness.measure import patience
from nova_fairness.model import report


@dataclasses.dataclass
class _Heard:
    """The newest report of a node.

    :ivar arrived_s: when, monotonic clock.
    :ivar part: of its reports that was missing, 0..1.
    """

    said: report.NodeReport
    arrived_s: float
    part: float = 0.0

    def hear(
        self, said: report.NodeReport, arrived_s: float, interval_s: float
    ) -> None:
        if said is self.said:
            return
        gap = (arrived_s - self.arrived_s) / interval_s
        self.part = float(patience.heard(np.array(self.part), np.array(gap)))
        self.said, self.arrived_s = said, arrived_s

    def silent(self, now_s: float, interval_s: float) -> float:
        """Intervals since it came."""
        return (now_s - self.arrived_s) / max(interval_s, self.said.interval_s)

    def patience(self) -> float:
        return float(patience.patience(np.array(self.part)))


class Recall:
    """Remembers the last report of every node for a while."""

    def __init__(self) -> None:
        self._heard: dict[str, _Heard] = {}

    def extended(
        self, view: report.View, now_s: float, interval_s: float
    ) -> report.View:
        """Remember a view, and add those who are silent by chance.

        :param now_s: seconds of a monotonic clock.
        :param interval_s: of the own rounds: more often no report is seen.
        :returns: the same view if nobody is.
        """
        for host, said in view.reports.items():
            arrived_s = now_s - view.age_s.get(host, 0.0)
            known = self._heard.setdefault(host, _Heard(said, arrived_s))
            known.hear(said, arrived_s, max(interval_s, said.interval_s))
        self._heard = {
            host: known
            for host, known in self._heard.items()
            if known.silent(now_s, interval_s) <= patience.MOST
        }
        by_chance = {
            host: known.said
            for host, known in self._heard.items()
            if host not in view.reports
            and known.silent(now_s, interval_s) <= known.patience()
        }
        if not by_chance:
            return view
        every = {**view.reports, **by_chance}
        return report.View(
            dict(sorted(every.items())), view.age_s, view.left_out
        )
