# SPDX-License-Identifier: Apache-2.0

"""Estimates of start times: computed in the pauses between cycles, and later
compared with the real starts.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import itertools
import math
import statistics

import numpy as np

from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import calibration
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.runtime import heap

EVERY_S = 60.0
"""Seconds from the begin of one set of estimates to the begin of the next set.
"""

PART = 0.2
"""Fraction of a pause that is used for estimates."""

_REMEMBERED = 100
"""Number of latest builds, and of latest cycles, from which delays are
computed.
"""


@dataclasses.dataclass(frozen=True)
class LastCycle:
    """State and plan of the last cycle.

    :ivar at: begin of the cycle, in seconds of the epoch.
    :ivar records: requests that had not ended.
    :ivar estimates: estimated starts, by UUID of the request.
    :ivar calibrated: quality of past estimates; ``None`` if it is unknown.
    """

    snapshot: cluster.ClusterSnapshot
    plan: cluster.Plan
    at: float
    records: tuple[records.RequestRecord, ...]
    estimates: Mapping[str, cluster.Estimate]
    calibrated: cluster.EstimateQuality | None

    @functools.cached_property
    def _first_by_uuid(self) -> Mapping[str, int | None]:
        return {each.request.uuid: each.request.first for each in self.records}

    def is_valid_for(self, request: request_model.Request) -> bool:
        """Return whether the plan of the cycle is valid for a request: it was
        not put first since then.
        """
        return (
            self._first_by_uuid.get(request.uuid, request.first)
            == request.first
        )


class StartEstimates:
    """Computes estimates repeatedly, each set over several pauses.

    :param store: stores estimates and their outcomes.
    :param planner: planner that the simulation executes.
    :param decay: computes how past use decays.
    :param monotonic: returns seconds that never go back.
    """

    def __init__(
        self,
        store: store_module.Store,
        planner: estimates.Planner,
        decay: estimates.Kept,
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._planner = planner
        self._kept = decay
        self._monotonic = monotonic
        self.reset()

    def reset(self) -> None:
        """Delete all state, because another process is the leader."""
        self._steps: estimates.Steps | None = None
        self._began_s, self._begun_at = -math.inf, 0.0
        self._raw: tuple[Mapping[str, cluster.Estimate], float] | None = None
        self._made: Mapping[str, cluster.Estimate] = {}
        self._known: tuple[calibration.Calibration, int] | None = None
        self._sent: dict[str, float] = {}
        self._built_s = collections.deque[float](maxlen=_REMEMBERED)
        self._cycles = collections.deque[float](maxlen=_REMEMBERED)

    def record_delays(
        self,
        open_requests: Iterable[records.RequestRecord],
        servers: Mapping[str, nova.Server],
        now: float,
    ) -> None:
        """Record the durations of builds and of cycles.

        :param open_requests: requests that have not ended.
        :param servers: servers by UUID.
        :param now: seconds of the epoch.
        """
        self._cycles.append(now)
        sent, self._sent = self._sent, {}
        for record in open_requests:
            request = record.request
            first = servers.get(request.servers[0])
            launched_at = first.launched_at if first else None
            if request.state is request_model.State.STARTING:
                self._sent[request.uuid] = record.changed_at
            elif request.uuid in sent and launched_at is not None:
                took_s = launched_at - sent[request.uuid]
                self._built_s.append(max(took_s, 0.0))

    def _delays(self) -> estimates.Delays:
        """Return the median delays of ends and builds; an end is noticed half
        a cycle late on average.
        """
        apart = [b - a for a, b in itertools.pairwise(self._cycles)]
        if not apart or not self._built_s:
            return estimates.Delays()
        return estimates.Delays(
            max(statistics.median(apart), 0.0) / 2,
            statistics.median(self._built_s),
        )

    def compare_with_outcomes(
        self,
        open_requests: Collection[records.RequestRecord],
        waiting: Collection[str],
        epoch: int,
    ) -> cluster.EstimateQuality | None:
        """Compare estimates with real starts, and store new estimates.

        :param open_requests: requests that have not ended.
        :param waiting: UUIDs of requests that continue to wait.
        :param epoch: epoch of the leader.
        :returns: quality of estimates; ``None`` without any comparison.
        :raises Deposed: if that leader no longer leads.
        """
        if self._known is None:
            kept = self._store.read_estimated_starts()
            self._known = _calibration(kept), kept.version
        before, version = self._known
        after = before.settled(*self._outcomes(before.promises, open_requests))
        if self._raw is not None:
            raw, made_at = self._raw
            self._made = after.told(raw, made_at)
            after = after.promised(
                {uuid: each for uuid, each in raw.items() if uuid in waiting},
                made_at,
            )
        if after is not before:
            # If it is not known whether the write succeeded, the next call
            # reads again.
            self._known = None
            kept = records.PromisedStarts(after.promises, after.past, version)
            self._store.write_estimated_starts(kept, epoch)
            self._known = after, version + 1
        self._raw = None
        return after.judged()

    def _outcomes(
        self,
        estimated_requests: Collection[str],
        open_requests: Collection[records.RequestRecord],
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the start times of requests with estimates, and the times at
        which others stopped waiting.
        """
        open_ = {each.request.uuid: each for each in open_requests}
        started, gave_up = {}, {}
        for uuid in estimated_requests:
            record = open_.get(uuid)
            if record is None:
                ended = self._store.request(uuid)
                # The request was removed long ago: its outcome is not known.
                gave_up[uuid] = ended.changed_at if ended else 0.0
            elif record.request.state is request_model.State.ACTIVE:
                started[uuid] = record.changed_at
        return started, gave_up

    def current_estimates(self, now: float) -> Mapping[str, cluster.Estimate]:
        """Return estimates by UUID, without those whose time has passed.

        :param now: seconds of the epoch.
        """
        return {
            uuid: each for uuid, each in self._made.items() if each.p50 >= now
        }

    def compute(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        now: float,
        pause_s: float,
    ) -> None:
        """Use :data:`PART` of a pause to compute estimates; begin a new set
        when it is due.

        :param snapshot: snapshot of the cloud; a started computation continues
            with its own snapshot.
        :param plan: plan of that snapshot.
        :param now: time of both, in seconds of the epoch.
        :param pause_s: length of the pause, in seconds.
        :raises PluginMisbehaved: the planner's error; the computation ends.
        """
        begin_s = self._monotonic()
        steps, self._steps = self._steps, None
        if steps is None:
            if begin_s - self._began_s < EVERY_S:
                return
            self._began_s, self._begun_at = begin_s, now
            # Collect garbage in a pause, so that cycles need not.
            heap.collect()
            steps = estimates.estimate_starts(
                snapshot,
                plan,
                now,
                self._planner,
                self._kept,
                # A fixed seed: the same cloud gets the same estimates.
                np.random.default_rng(0),
                self._delays(),
            )
        while self._monotonic() - begin_s <= PART * pause_s:
            try:
                next(steps)
            except StopIteration as done:
                self._raw = done.value, self._begun_at
                return
        self._steps = steps


def _calibration(kept: records.PromisedStarts) -> calibration.Calibration:
    """Return the calibration that continues from stored estimates and
    outcomes.
    """
    return calibration.Calibration(
        {
            uuid: calibration.Promise(*each)
            for uuid, each in kept.promises.items()
        },
        tuple(calibration.PromiseOutcome(*each) for each in kept.past),
    )
