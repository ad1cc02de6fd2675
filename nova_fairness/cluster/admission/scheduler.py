# SPDX-License-Identifier: Apache-2.0

"""Scheduler that makes full plans, and partial plans in the cycles between
them.

A full plan covers all waiting requests. With many requests, most of a full
plan stays the same from one cycle to the next. So the cycles in between plan
only requests that may start now:

* the first requests of the last full plan that lack only room,
* requests that have a reservation,
* requests that are owed room that other projects borrowed,
* requests that arrived or changed since the full plan,
* the first requests of projects whose use has decreased, or is below their
  guarantee,
* all other requests of the server groups of these requests.

The remaining requests retain their reasons from the last full plan. A partial
plan counts running servers, reservations, and the use and limits of accounts
like a full plan. Orders read all requests.

A partial plan is valid only if no remaining request could start before the
requests that it starts. It is valid if it has a reservation for one of the
first requests, or if limits block all remaining requests. Otherwise a full
plan is made at once. A full plan is also made if hosts, limits or accounts
changed. So a remaining request waits at most :data:`EVERY_S` for a full plan,
and no reservation is delayed.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math
import time

import numpy as np

from nova_fairness import exception
from nova_fairness.cluster import quarantine as quarantine_module
from nova_fairness.cluster.admission import decisions
from nova_fairness.cluster.admission import isolation
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model

Planner = Callable[[cluster.ClusterSnapshot, float], cluster.Plan]

MANY = 500
"""Number of waiting requests from which partial plans are made."""

EVERY_S = 60.0
"""Longest time between two full plans, in seconds."""

AHEAD = 300
"""Number of requests from the top of the last full plan that a partial plan
includes.
"""

OF_PROJECT = 10
"""Number of requests of one project that may start more servers."""

TOLD_AT_ONCE = 100
"""Largest number of new reasons that are written in one cycle. With many
waiting requests, the number of requests before each one changes all the time.
"""


class Scheduler:
    """Makes full or partial plans, and selects the new reasons that owners can
    read.

    :param plan: the planner.
    :param quarantine: quarantine of inputs on which the planner fails.
    :param monotonic: returns seconds that never go back.
    """

    def __init__(
        self,
        plan: Planner,
        quarantine: quarantine_module.Quarantine | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._quarantine = quarantine or quarantine_module.Quarantine(
            monotonic
        )
        self._isolation = isolation.PlannerIsolation(
            plan, self._quarantine, monotonic
        )
        self._decisions = decisions.DecisionLog()
        self._full_plan: _FullPlan | None = None
        self._is_partial = False

    def begin_cycle(self, waiting_count: int, now: float) -> bool:
        """Begin a cycle, and decide whether it makes a full plan.

        :param waiting_count: number of waiting requests.
        :param now: seconds of the epoch.
        :returns: whether the cycle makes a full plan, and so needs all
            requests.
        """
        self._is_partial = (
            self._full_plan is not None
            and waiting_count >= MANY
            and 0 <= now - self._full_plan.at < EVERY_S
        )
        self._isolation.begin_cycle()
        return not self._is_partial

    def plan(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Plan which requests start now, and why all others wait.

        Inputs on which the planner fails are quarantined, and so is a plugin
        that fails on all inputs. Everything else is planned.

        :param snapshot: snapshot of the cloud, with all requests.
        :param now: seconds of the epoch.
        :raises Exception: the planner's error, if no input causes it.
        """
        found = self._without_faulty_plugins(snapshot, now)
        self._decisions.log(found)
        return found

    def _without_faulty_plugins(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Make a plan; quarantine each plugin that fails although no input
        causes its failure.
        """
        kind = quarantine_module.InputKind.PLUGIN
        while True:
            try:
                return self._plan_isolated(snapshot, now)
            except exception.PluginMisbehaved as error:
                name = error.plugin
                if not name or self._quarantine.holds(kind, name):
                    raise
                self._quarantine.put(kind, name, error)

    def _plan_isolated(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Make a plan; quarantine the inputs on which the planner fails, and
        plan again.
        """
        sound = self._isolation.without_quarantined(snapshot)
        try:
            found = self._full_or_partial(sound, now)
        except Exception as error:  # noqa: BLE001 - one input of many raised
            self._full_plan = None
            self._isolation.quarantine_culprits(sound, now, error)
            sound = self._isolation.without_quarantined(sound)
            found = self._full_or_partial(sound, now)
        if sound is snapshot:
            return found
        return self._isolation.with_reasons_for_all(found, snapshot, now)

    def without_quarantined(
        self, snapshot: cluster.ClusterSnapshot
    ) -> cluster.ClusterSnapshot:
        """Return the snapshot that the planner uses: all inputs except
        quarantined ones.
        """
        return self._isolation.without_quarantined(snapshot)

    def _full_or_partial(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> cluster.Plan:
        """Make a partial plan if the cycle allows it and it is valid;
        otherwise a full plan.
        """
        if self._is_partial and self._full_plan is not None:
            found = self._partial_plan(self._full_plan, snapshot, now)
            if found is not None:
                return found
        found = self._plan(snapshot, now)
        self._full_plan = _FullPlan(snapshot, found, now)
        return found

    def require_full_plan(self) -> None:
        """Make the next plan a full plan."""
        self._full_plan = None

    def changed_reasons(
        self,
        plan: cluster.Plan,
        stored_requests: Mapping[str, records.RequestRecord],
    ) -> list[tuple[request_model.Request, reason.Why]]:
        """Return requests with the new reasons that this cycle writes for
        their owners.

        :param plan: plan with the reasons why requests wait.
        :param stored_requests: requests by UUID, with the reasons that were
            written before.
        """
        news = [
            (stored_requests[uuid], each.why)
            for uuid, each in plan.waiting.items()
            if stored_requests[uuid].why != each.why
        ]
        # A new reason comes first; a new number in the same reason can wait.
        news.sort(key=lambda pair: pair[0].why.reason is pair[1].reason)
        return [(each.request, why) for each, why in news[:TOLD_AT_ONCE]]

    def _partial_plan(
        self,
        full_plan: '_FullPlan',
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> cluster.Plan | None:
        """Return a partial plan for the requests that may start; ``None`` if a
        full plan is needed.
        """
        if full_plan.has_other_inputs(snapshot):
            return None
        ahead, left = full_plan.split_requests(snapshot, now)
        if len(ahead) > len(left):
            return None
        kept = tuple(
            each for each in snapshot.requests if not _is_waiting(each)
        )
        wanting = frozenset(
            (each.project, each.user, each.band) for each in left
        )
        few = dataclasses.replace(
            snapshot, requests=(*kept, *ahead), wanting=wanting
        )
        found = self._plan(few, now)
        if not full_plan.allows_partial_plan(found, snapshot, left):
            return None
        return _merged_plans(
            found, full_plan.waiting, [each.uuid for each in left]
        )


class _FullPlan:
    """The last full plan; selects the requests of later partial plans.

    :param snapshot: snapshot of the cloud.
    :param plan: full plan of that snapshot.
    :param now: time of the plan, in seconds of the epoch.
    :ivar at: equal to ``now``.
    :ivar waiting: waiting requests of the plan.
    """

    def __init__(
        self, snapshot: cluster.ClusterSnapshot, plan: cluster.Plan, now: float
    ) -> None:
        self.at = now
        self.waiting = plan.waiting
        self._inputs_of_limits = _inputs_of_limits(snapshot)
        self._used = snapshot.used
        self._known = {
            each.uuid: each.version
            for each in snapshot.requests
            if each.uuid in plan.waiting
        }
        by_room = [
            uuid
            for uuid, each in plan.waiting.items()
            if each.why.reason not in reason.LIMITED
        ]
        self._first = frozenset(by_room[:AHEAD])
        self._may_start = frozenset(by_room)
        self._kept = frozenset(
            uuid for uuid, each in plan.waiting.items() if each.reserved
        ) | _requests_owed_borrowed_room(snapshot, plan)

    def has_other_inputs(self, snapshot: cluster.ClusterSnapshot) -> bool:
        """Return whether limits, hosts or accounts changed since the full
        plan.
        """
        return _inputs_of_limits(snapshot) != self._inputs_of_limits

    def split_requests(
        self, snapshot: cluster.ClusterSnapshot, now: float
    ) -> tuple[list[request_model.Request], list[request_model.Request]]:
        """Return the requests that a partial plan includes, and all other
        waiting requests.

        :param snapshot: the newest snapshot.
        :param now: seconds of the epoch.
        """
        ahead: set[str] = {*self._first, *self._kept, *snapshot.promised}
        held = [each for each in snapshot.requests if _is_waiting(each)]
        ahead.update(
            each.uuid
            for each in held
            if self._known.get(each.uuid) != each.version
            or (each.expires_at is not None and each.expires_at <= now)
        )
        ahead.update(self._first_of_projects(held, snapshot))
        groups = {_group_key(each) for each in held if each.uuid in ahead} - {
            None
        }
        few: list[request_model.Request] = []
        left: list[request_model.Request] = []
        for each in held:
            is_ahead = each.uuid in ahead or _group_key(each) in groups
            (few if is_ahead else left).append(each)
        return few, left

    def allows_partial_plan(
        self,
        plan: cluster.Plan,
        snapshot: cluster.ClusterSnapshot,
        left_out: Iterable[request_model.Request],
    ) -> bool:
        """Return whether a partial plan is valid: no request that was left out
        may start before its requests.

        :param plan: the partial plan.
        :param snapshot: the newest snapshot.
        :param left_out: requests that the partial plan does not include.
        """
        if not any(each.uuid in self._may_start for each in left_out):
            return True
        made = {
            each.request
            for each in plan.actions
            if each.verb is cluster.Verb.MAKE_ROOM
        }
        behind = self._first - made - snapshot.promised.keys()
        return made <= self._first and any(
            uuid in behind and each.reserved is not None
            for uuid, each in plan.waiting.items()
        )

    def _first_of_projects(
        self,
        waiting_requests: Iterable[request_model.Request],
        snapshot: cluster.ClusterSnapshot,
    ) -> list[str]:
        """Return UUIDs of the first requests of projects whose use decreased
        or is below their guarantee.
        """
        less = {
            project
            for project, had in self._used.items()
            if (snapshot.used.get(project, 0) < had).any()
        }
        unused = _unused_guarantees(snapshot)
        by_project: dict[str, list[str]] = {}
        for each in waiting_requests:
            if each.uuid in self.waiting and (
                each.project in less
                or (
                    each.project in unused
                    and _fits_unused_guarantee(each, unused)
                )
            ):
                by_project.setdefault(each.project, []).append(each.uuid)
        return [
            uuid
            for uuids in by_project.values()
            for uuid in sorted(
                uuids, key=lambda each: self.waiting[each].position
            )[:OF_PROJECT]
        ]


def _requests_owed_borrowed_room(
    snapshot: cluster.ClusterSnapshot, plan: cluster.Plan
) -> set[str]:
    """Return the UUID of the first request of each project and demand that is
    owed borrowed room.
    """
    known = {each.uuid: each for each in snapshot.requests}
    kinds: dict[tuple[object, ...], str] = {}
    for uuid, waits in plan.waiting.items():
        if waits.why.reason is reason.Reason.OVER_BORROWING_LIMIT:
            each = known[uuid]
            one = each.demand, len(each.servers), each.group
            kinds.setdefault((each.project, *one), uuid)
    return set(kinds.values())


def _inputs_of_limits(snapshot: cluster.ClusterSnapshot) -> tuple[object, ...]:
    """Return all inputs that determine limits, except the amounts in use."""
    return (
        snapshot.classes,
        snapshot.providers,
        snapshot.limits,
        snapshot.accounts,
        snapshot.weights,
        snapshot.budgets and snapshot.budgets.ends,
    )


def _unused_guarantees(
    snapshot: cluster.ClusterSnapshot,
) -> dict[str, dict[str, int]]:
    """Return the guaranteed amounts that projects do not use, by project and
    resource class.
    """
    found = {}
    for project, limits in snapshot.limits.items():
        guaranteed = cluster.amounts_vector(
            limits.guaranteed, snapshot.classes
        )
        rest = guaranteed - snapshot.used.get(project, 0)
        if (rest > 0).any():
            found[project] = dict(
                zip(snapshot.classes, np.maximum(rest, 0), strict=True)
            )
    return found


def _fits_unused_guarantee(
    request: request_model.Request, unused: Mapping[str, Mapping[str, int]]
) -> bool:
    """Return whether a normal request fits into the unused guarantee of its
    project.
    """
    rest, count = unused[request.project], len(request.servers)
    return not request.is_preemptible and all(
        amount * count <= rest.get(name, 0)
        for name, amount in request.demand.amounts
    )


def _is_waiting(request: request_model.Request) -> bool:
    """Return whether a request is in the state ``waiting``."""
    return request.state is request_model.State.WAITING


def _group_key(request: request_model.Request) -> tuple[object, ...] | None:
    """Return the key of requests that start together; ``None`` without a
    server group.
    """
    if request.group is None:
        return None
    return request.project, request.group.uuid, request.band


def _merged_plans(
    plan: cluster.Plan,
    waiting_before: Mapping[str, cluster.Waiting],
    left_out: Iterable[str],
) -> cluster.Plan:
    """Return a partial plan that also has the last full plan's reasons for all
    other requests.

    Old requests share the positions that they had. A new request gets a
    position just before the next old request that the partial plan puts behind
    it. Without such a request, it gets the last position.

    :param plan: the partial plan.
    :param waiting_before: waiting requests of the last full plan.
    :param left_out: UUIDs of the requests that the partial plan does not
        include.
    """
    places = sorted(
        waiting_before[uuid].position
        for uuid in plan.waiting
        if uuid in waiting_before
    )
    stands: list[tuple[float, int, str]] = [
        (waiting_before[uuid].position, 0, uuid) for uuid in left_out
    ]
    place = math.inf
    for number, uuid in reversed(list(enumerate(plan.waiting))):
        place = places.pop() if uuid in waiting_before else place
        stands.append((place, number, uuid))
    waiting = {}
    for position, (_, _, uuid) in enumerate(sorted(stands), 1):
        found = plan.waiting.get(uuid)
        if found is None:
            was = waiting_before[uuid]
            waiting[uuid] = cluster.Waiting(
                position, was.why, was.factors, was.reserved
            )
        else:
            waiting[uuid] = _at_position(found, position)
    return cluster.Plan(plan.actions, waiting)


def _at_position(waiting: cluster.Waiting, position: int) -> cluster.Waiting:
    """Return a waiting request with a new position, also in the numbers of its
    reason.
    """
    why = waiting.why
    if 'before' in reason.NUMBERS.get(why.reason, ()):
        numbers = {**dict(why.numbers), 'before': position - 1}
        why = reason.why(why.reason, why.subject, **numbers)
    return waiting._replace(why=why, position=position)
