# SPDX-License-Identifier: Apache-2.0

"""Estimates of starts in a simulated cloud, and their outcomes."""

import dataclasses
from typing import Any

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import calibration
from nova_fairness.planners.fairqueue import estimates

Json = dict[str, Any]


class EstimateJudge:
    """Estimates again and again, as the service does, and judges it.

    :param planner: that is run forward.
    :param kept: how use fades.
    :param every_s: from some estimates to the next, > 0.
    """

    def __init__(
        self,
        planner: estimates.Planner,
        kept: estimates.Kept,
        every_s: float,
    ) -> None:
        self._planner = planner
        self._kept = kept
        self._every_s = every_s
        self._next_s = 0.0
        self._calibration = calibration.Calibration()

    def observe_plan(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        now_s: float,
    ) -> None:
        """Estimate starts of those that a plan lets wait, if it is time."""
        if plan.waiting and now_s >= self._next_s:
            self._next_s = now_s + self._every_s
            made = self._estimate_starts(snapshot, plan, now_s)
            self._calibration = self._calibration.promised(made, now_s)

    def leave(self, uuid: str, at_s: float, is_started: bool) -> None:
        """Note that a request does not wait any longer."""
        gone, nobody = {uuid: at_s}, dict[str, float]()
        self._calibration = (
            self._calibration.settled(gone, nobody)
            if is_started
            else self._calibration.settled(nobody, gone)
        )

    def result(self) -> Json | None:
        """How good estimates were; ``None`` if nothing is known.

        ``by_p50_alone`` and ``by_p90_alone`` are what it had been if they had
        not been corrected.
        """
        judged = self._calibration.judged()
        if judged is None:
            return None
        past = self._calibration.past
        return {
            **dataclasses.asdict(judged),
            'by_p50_alone': _fraction(e.took_s <= e.raw_p50_s for e in past),
            'by_p90_alone': _fraction(e.took_s <= e.raw_p90_s for e in past),
        }

    def _estimate_starts(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        now_s: float,
    ) -> dict[str, cluster.Estimate]:
        steps = estimates.estimate_starts(
            snapshot,
            plan,
            now_s,
            self._planner,
            self._kept,
            np.random.default_rng(0),
        )
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return dict(done.value)


def _fraction(kept: Any) -> float:
    return float(np.mean(list(kept)))
