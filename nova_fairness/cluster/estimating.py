# SPDX-License-Identifier: Apache-2.0

"""Estimates of starts, made in the pauses between cycles."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import math

import numpy as np

from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import estimates

EVERY_S = 60.0
"""From the begin of some estimates to that of the next."""

PART = 0.2
"""Of a pause that is spent on them."""


@dataclasses.dataclass(frozen=True)
class Last:
    """What the last cycle saw and wanted.

    :ivar at: when it began, seconds of the epoch.
    :ivar records: requests that had not ended.
    :ivar estimates: of starts, by UUID of those of which one is known.
    """

    snapshot: cluster.ClusterSnapshot
    plan: cluster.Plan
    at: float
    records: tuple[records.Record, ...]
    estimates: Mapping[str, cluster.Estimate]


class Estimating:
    """Makes estimates anew again and again, each time in many pauses.

    :param planner: that is run forward.
    :param kept: how use fades.
    :param monotonic: seconds that never go back.
    """

    def __init__(
        self,
        planner: estimates.Planner,
        kept: estimates.Kept,
        monotonic: Callable[[], float],
    ) -> None:
        self._planner = planner
        self._kept = kept
        self._monotonic = monotonic
        self.forget()

    def forget(self) -> None:
        """Forget all: another process leads."""
        self._steps: estimates.Steps | None = None
        self._began_s = -math.inf
        self._made: Mapping[str, cluster.Estimate] = {}

    def made(self, now: float) -> Mapping[str, cluster.Estimate]:
        """Estimates by UUID, but those that have not come true by now.

        :param now: seconds of the epoch.
        """
        return {
            uuid: each for uuid, each in self._made.items() if each.p50 >= now
        }

    def work(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        now: float,
        pause_s: float,
    ) -> None:
        """Go on for :data:`PART` of a pause, or begin anew if it is time to.

        :param snapshot: of the cloud; what was begun goes on with its own.
        :param plan: of that.
        :param now: seconds of the epoch, of both.
        :raises PluginMisbehaved: as the planner does; what was begun is
            given up.
        """
        begin_s = self._monotonic()
        steps, self._steps = self._steps, None
        if steps is None:
            if begin_s - self._began_s < EVERY_S:
                return
            self._began_s = begin_s
            steps = estimates.forward(
                snapshot,
                plan,
                now,
                self._planner,
                self._kept,
                # The same cloud has the same estimates.
                np.random.default_rng(0),
            )
        while self._monotonic() - begin_s <= PART * pause_s:
            try:
                next(steps)
            except StopIteration as done:
                self._made = done.value
                return
        self._steps = steps
