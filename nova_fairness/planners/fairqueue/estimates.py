# SPDX-License-Identifier: Apache-2.0

"""Estimated starts of requests, from simulations with the planner.

Every sample simulates one possible future of the cloud. The remaining time of
running and started servers is drawn from the lifetimes of their kind that are
longer than their age (:mod:`.expected_ends`); servers without an expectation
stay. Whenever servers end, the planner plans starts. A request has an estimate
if it started in nine of ten samples.

Later events are not foreseen: new requests, and changes of limits. A start
counts as use at once, and its use still counts after it ended; earlier use
does not fade, as half-lives are longer than most waits.
"""

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import math

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import expected_ends
from nova_fairness.shares import budgets
from nova_fairness.shares import ledger
from nova_fairness.shares import tree as tree_module

SAMPLES = 20
"""Number of simulated futures of the cloud."""

FOLLOWED = 50
"""Largest number of requests with estimates, from the front of the queue."""

PLANS = 100
"""Largest number of plans in one sample; a request that none of them starts
counts as not started in this sample.
"""

Planner = Callable[[cluster.ClusterSnapshot, float], cluster.Plan]

Kept = Callable[[float], float]
"""Returns the part of use that still counts after a number of seconds, 0 to
1.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Delays:
    """Time between the end of a server and the start of the next one.

    :ivar seen_s: seconds from an end to the next plan that knows it, >= 0.
    :ivar build_s: seconds from a plan until the new server runs, >= 0.
    """

    seen_s: float = 0.0
    build_s: float = 0.0


_NONE = Delays()

Steps = Generator[None, None, Mapping[str, cluster.Estimate]]
"""Yields after every plan; returns estimates by UUID of the request."""

_EXPIRY = -1
"""Represents the number of a server in events in which a request expires."""

_HOPELESS = frozenset(
    {
        reason.Reason.HELD_BY_OPERATOR,
        reason.Reason.HELD_BY_OWNER,
        reason.Reason.NO_HOST_MATCHES,
        reason.Reason.TOO_LARGE,
        reason.Reason.GROUP_TOO_LARGE,
        reason.Reason.BUDGET_SPENT,
        reason.Reason.ACCOUNT_SET_ASIDE,
        reason.Reason.WINDOW_CLOSED,
        reason.Reason.QUARANTINED,
    }
)
"""Reasons that the end of a server does not change. It may change a budget,
which gets back the rest of the charge of a server that ends early, but the
simulation does not model this. The reason of a closed window says itself when
the window opens."""


def estimate_starts(
    snapshot: cluster.ClusterSnapshot,
    plan: cluster.Plan,
    now: float,
    planner: Planner,
    kept: Kept,
    chance: np.random.Generator,
    delays: Delays = _NONE,
    samples: int = SAMPLES,
) -> Steps:
    """Estimate starts, in steps between which other work may run.

    :param snapshot: state of the cloud.
    :param plan: the plan of the planner for the snapshot.
    :param now: seconds of the epoch.
    :param planner: makes the plans that follow.
    :param kept: decay of use.
    :param chance: random generator of lifetimes; everything else is
        deterministic.
    :param delays: delays that are added to lifetimes.
    :param samples: number of simulated futures, >= 1.
    :raises PluginMisbehaved: if the planner raises it.
    """
    followed = _front_requests(snapshot, plan)
    began: dict[str, list[float]] = {each.uuid: [] for each in followed}
    for _ in range(samples if followed else 0):
        course = _SimulatedFuture(
            snapshot, followed, now, kept, chance, delays
        )
        course.carry_out(plan, now)
        yield from course.run(planner)
        for uuid, at in course.began.items():
            began[uuid].append(at)
    late = {
        uuid: _quantile(at, expected_ends.LATE) for uuid, at in began.items()
    }
    return {
        uuid: cluster.Estimate(
            _quantile(began[uuid], expected_ends.MEDIAN), late[uuid]
        )
        for uuid in late
        if math.isfinite(late[uuid])
    }


def _front_requests(
    snapshot: cluster.ClusterSnapshot, plan: cluster.Plan
) -> list[request_model.Request]:
    """Return the requests at the front of the queue.

    They have either all waiting requests of a server group, or none.
    """
    known = {each.uuid: each for each in snapshot.requests}
    waiting = [
        known[uuid]
        for uuid, each in plan.waiting.items()
        if each.why.reason not in _HOPELESS
    ]
    cut = {
        (each.project, each.group) for each in waiting[FOLLOWED:] if each.group
    }
    return [
        each
        for each in waiting[:FOLLOWED]
        if (each.project, each.group) not in cut
    ]


def _quantile(times: Sequence[float], part: float) -> float:
    """Return the time by which the request had started in a part of the
    samples.
    """
    return sorted(times)[math.ceil(part * len(times)) - 1]


class _SimulatedFuture:
    """One simulated future of the cloud.

    :param snapshot: state of the cloud.
    :param followed: waiting requests that get estimates.
    :param now: seconds of the epoch.
    :param kept: decay of use.
    :param chance: random generator of lifetimes.
    :param delays: delays that are added to lifetimes.

    :ivar began: start times of followed requests, seconds of the epoch, by
        UUID; infinite for requests that did not start.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        followed: Sequence[request_model.Request],
        now: float,
        kept: Kept,
        chance: np.random.Generator,
        delays: Delays,
    ) -> None:
        self._snapshot = snapshot
        self._delays = delays
        self._known = {each.uuid: each for each in snapshot.requests}
        self._held = {each.uuid: each for each in followed}
        self._kept = kept
        self._chance = chance
        self._rows = {
            each.name: row for row, each in enumerate(snapshot.providers)
        }
        self._used = snapshot.inventory.used.copy()
        self._capacity = snapshot.inventory.capacity.sum(
            axis=0, dtype=np.float64
        )
        self._projects = dict(snapshot.used)
        self._granted = dict(snapshot.granted)
        self._members = dict(snapshot.member_hosts)
        self._spending = budgets.BudgetUse(snapshot.budgets, snapshot.accounts)
        users = {(each.project, each.user) for each in snapshot.running}
        users |= {(each.project, each.user) for each in snapshot.requests}
        self._parents = {
            each.name: each.parent
            for each in tree_module.with_missing_accounts(
                snapshot.accounts, (), users
            )
        }
        self._running: dict[int, cluster.Running] = {}
        self._count = 0
        self._ends = [
            (each.expires_at, _EXPIRY)
            for each in followed
            if each.expires_at is not None
        ]
        heapq.heapify(self._ends)
        self.began = dict.fromkeys(self._held, math.inf)
        for each in snapshot.running:
            self._add_running(each, now)

    def run(self, planner: Planner) -> Generator[None, None, None]:
        """Simulate at most :data:`PLANS` plans, until all requests have
        started.
        """
        for _ in range(PLANS):
            at = self._advance_to_next_end()
            if at is None:
                return
            self.carry_out(planner(self._current_snapshot(), at), at)
            yield

    def carry_out(self, plan: cluster.Plan, at: float) -> None:
        """Apply the actions of a plan at once."""
        for action in plan.actions:
            if action.verb is cluster.Verb.MAKE_ROOM:
                # Its victims have known ends in the snapshot.
                continue
            request = self._known[action.request]
            if self._held.pop(request.uuid, None) and action.hosts:
                self.began[request.uuid] = at + self._delays.build_s
                self._spending.take(request, at)
            for host in action.hosts:
                self._start_server(request, host, at)

    def _advance_to_next_end(self) -> float | None:
        """Let servers end until a request may start.

        :returns: seconds of the epoch; ``None`` if no further server ends.
        """
        while self._held and self._ends:
            at = self._ends[0][0]
            while self._ends and self._ends[0][0] == at:
                _, number = heapq.heappop(self._ends)
                if number != _EXPIRY:
                    ended = self._running.pop(number)
                    # Only the part of its charge that has not become history
                    # is given back.
                    self._change_free(ended, -1, self._kept(at - ended.since))
            if self._has_room():
                return at
        return None

    def _has_room(self) -> bool:
        """Whether a host has room for a server of a waiting request."""
        free = np.maximum(self._snapshot.inventory.capacity - self._used, 0)
        wanted = {each.demand.amounts for each in self._held.values()}
        return any(
            bool((free >= self._vector(each)).all(axis=1).any())
            for each in wanted
        )

    def _current_snapshot(self) -> cluster.ClusterSnapshot:
        inventory = self._snapshot.inventory
        return dataclasses.replace(
            self._snapshot,
            inventory=dataclasses.replace(inventory, used=self._used.copy()),
            requests=tuple(self._held.values()),
            used=dict(self._projects),
            member_hosts=dict(self._members),
            granted=dict(self._granted),
            running=tuple(self._running.values()),
            budgets=self._spending.left(),
        )

    def _start_server(
        self, request: request_model.Request, host: str, at: float
    ) -> None:
        begin = at + self._delays.build_s
        started = expected_ends.started_server(request, host, begin)
        self._change_free(started, 1, 1.0)
        self._add_running(started, at)
        if request.group:
            group = request.group.uuid
            self._members[group] = (*self._members.get(group, ()), host)

    def _add_running(self, each: cluster.Running, now: float) -> None:
        """Add a running server, and draw its end."""
        number, self._count = self._count, self._count + 1
        self._running[number] = each
        quantile = 1.0 - self._chance.random()
        at = expected_ends.expected_end(
            each, self._snapshot.lifetimes, now, quantile
        )
        if at is not None and each.host in self._rows:
            heapq.heappush(self._ends, (at + self._delays.seen_s, number))

    def _change_free(
        self, each: cluster.Running, sign: int, counts: float
    ) -> None:
        """Subtract the amounts of a server from the free amounts, or add them
        back.

        :param sign: 1 or -1.
        :param counts: part of the amounts that changes the use of accounts.
        """
        amounts = sign * self._vector(each.amounts)
        row = self._rows[each.host]
        # The flavor of a server with a volume has more disk than is allocated.
        self._used[row] = np.maximum(self._used[row] + amounts, 0)
        if each.band is request_model.Band.PREEMPTIBLE:
            return
        used = self._projects.get(each.project, np.zeros_like(amounts))
        self._projects[each.project] = np.maximum(used + amounts, 0)
        part = ledger.parts_of_capacity(
            counts * amounts.astype(np.float64), self._capacity
        )
        name: str | None
        name = request_model.account_of(each.project, each.user)
        while name is not None:
            granted = self._granted.get(name, np.zeros_like(part))
            self._granted[name] = np.maximum(granted + part, 0.0)
            name = self._parents[name]

    def _vector(self, amounts: tuple[tuple[str, int], ...]) -> cluster.Amounts:
        return cluster.amounts_vector(dict(amounts), self._snapshot.classes)
