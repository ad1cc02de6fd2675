# SPDX-License-Identifier: Apache-2.0

"""A cloud at discrete events, with the queue's own planner, order and ledger.

Requests are asked for, start, end and are deleted at their moments. Plans are
made at cycles, as the service makes them; a cycle is left out if nothing
happened since the last one that could start a request: a good state plans
nothing. Allocations of users are charged exactly, except those of preemptible
servers. Those are told, leave after the notice without what they had done, and
wait again with their age.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import enum
import functools
import heapq
import itertools
import math

import numpy as np

from fairness_lab.queue_sim import estimate_quality
from fairness_lab.queue_sim import evictions
from fairness_lab.queue_sim import hosts as hosts_module
from fairness_lab.queue_sim import usage_now
from fairness_lab.queue_sim import workload
from nova_fairness.model import cluster
from nova_fairness.model import lifetimes
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import planner
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import victims as victims_module
from nova_fairness.planners.preemption import watermark
from nova_fairness.shares import ledger as ledger_module

Floats = workload.Floats

ALL = ''
"""Under which the ledger has all accounts, side by side in one row: the same
arithmetic, at the speed of an array."""


class Fate(enum.IntEnum):
    """The fate of a request."""

    COMING = 0
    WAITING = 1
    RUNNING = 2
    ENDED = 3
    EXPIRED = 4
    DELETED = 5
    """Its user took it back while it waited."""


class _Event(enum.IntEnum):
    """Events, in their order if they are at once."""

    END = 0
    LEAVE = 1
    DELETE = 2
    EXPIRE = 3
    RESIZE = 4


def _resized(stream: workload.Stream) -> workload.Indices:
    """Sizes to which requests are resized; preemptible ones never are."""
    if stream.resized is None:
        return np.full(len(stream), -1)
    return np.where(stream.is_preemptible, -1, stream.resized)


def _with_watermark(
    cloud: workload.QueuedCloud, queue: estimates.Planner
) -> preemption.Planner:
    upper = cloud.marks.upper
    return functools.partial(watermark.plan, queue=queue, upper=upper)


def _create_planner(
    cloud: workload.QueuedCloud, order: order_module.Order
) -> estimates.Planner:
    return functools.partial(
        planner.plan,
        order=order,
        backfill=planner.Backfill(patience_s=cloud.patience_s),
        tells=False,
    )


class Simulation:
    """One run.

    :param cloud: what is simulated.
    :param order: says who is next.
    :param victims: says who makes room.

    :ivar fate: (n,) of each request, :class:`Fate`.
    :ivar started_s: (n,) when each started first; NaN for those that did not.
    :ivar left_s: (n,) when each stopped waiting without a start; NaN for all
        others.
    :ivar leaving: who left for others, and what they lost.
    :ivar plans: number of plans that were made.
    :ivar estimate_judge: estimates starts; ``None`` if the cloud has none.
    """

    def __init__(
        self,
        cloud: workload.QueuedCloud,
        order: order_module.Order,
        victims: victims_module.Victims = preemption.LEAST,
    ) -> None:
        self._cloud = cloud
        queue = _create_planner(cloud, order)
        stream, owners = cloud.stream, cloud.owners
        self._preemptible = stream.is_preemptible
        self._planner = functools.partial(
            preemption.plan,
            queue=_with_watermark(cloud, queue),
            victims=victims,
        )
        self._remaining_life_s = stream.lifetime_s.copy()
        self._saves_work = evictions.saves(cloud)
        self._demands = [size.demand for size in stream.sizes]
        self._amounts = np.array([size.amounts for size in stream.sizes])
        self._size = stream.size.copy()
        self._new_sizes = _resized(stream)
        self._accounts = owners.accounts
        self._project = np.array(owners.project, dtype=np.int64)
        self._hosts = hosts_module.SimulatedHosts(cloud.hosts)
        users, classes = len(owners.users), len(workload.CLASSES)
        self._use = usage_now.UserAmounts(users, classes)
        self._charged = np.zeros((users, classes))
        self._capacity = np.tile(
            cloud.capacity.astype(float), len(self._accounts)
        )
        self._ledger = ledger_module.UseLedger(
            cloud.half_life_s, 0.0, {ALL: np.zeros_like(self._capacity)}
        )
        self._events: list[tuple[float, _Event, int]] = []
        self._asked, self._unplanned_s = 0, math.inf
        self._waiting: dict[int, request_model.Request] = {}
        self._placed: dict[int, list[int]] = {}
        self._running: dict[int, list[cluster.Running]] = {}
        self._ends_s: dict[int, float] = {}
        self.leaving = evictions.SimulatedEvictions(len(stream))
        self._lifetimes = lifetimes.Lifetimes()
        # What users have and the ledger lacks, as it was at that time.
        self._uncharged, self._uncharged_at_s = np.zeros((users, classes)), 0.0
        self.fate = np.full(len(stream), Fate.COMING, dtype=np.int8)
        self.started_s = np.full(len(stream), np.nan)
        self.left_s = np.full(len(stream), np.nan)
        self.plans = 0
        self.estimate_judge = None
        if cloud.estimates_s is not None:
            self.estimate_judge = estimate_quality.EstimateJudge(
                queue, self._ledger.kept, cloud.estimates_s
            )

    def moments(self, every_s: float) -> Iterator[usage_now.QueueMoment]:
        """Go through the time, and stop every so many seconds.

        :param every_s: seconds, > 0; the last moment is the end.
        :raises PluginMisbehaved: if the order fails.
        """
        end_s = self._cloud.duration_s
        for n in range(1, math.ceil(end_s / every_s) + 1):
            until_s = min(n * every_s, end_s)
            while (due_s := self._next_plan_s()) <= until_s:
                self._process_events(due_s)
                self._charge(due_s)
                self._plan(due_s)
            self._process_events(until_s)
            yield usage_now.QueueMoment(
                until_s,
                self._use.used.copy(),
                self._use.wanted.copy(),
                self._use.area.copy(),
            )

    def _next_plan_s(self) -> float:
        """When the next plan is to be made."""
        event_s = min(self._unplanned_s, self._next_event_s())
        if math.isinf(event_s):
            return event_s
        return math.ceil(event_s / self._cloud.cycle_s) * self._cloud.cycle_s

    def _next_event_s(self) -> float:
        stream = self._cloud.stream
        asked_s = math.inf
        if self._asked < len(stream):
            asked_s = float(stream.asked_s[self._asked])
        return min(asked_s, self._events[0][0] if self._events else math.inf)

    def _process_events(self, until_s: float) -> None:
        """Let everything happen up to a moment."""
        asked_s = self._cloud.stream.asked_s
        while (at_s := self._next_event_s()) <= until_s:
            self._use.advance_to(at_s)
            if self._events and self._events[0][0] <= at_s:
                _, event, n = heapq.heappop(self._events)
                self._process_event(event, n, at_s)
            else:
                while (
                    self._asked < len(asked_s) and asked_s[self._asked] == at_s
                ):
                    self._receive_request(self._asked)
                    self._asked += 1
            if self._needs_plans():
                self._unplanned_s = min(self._unplanned_s, at_s)
        self._use.advance_to(until_s)

    def _receive_request(self, n: int) -> None:
        stream = self._cloud.stream
        expires_s = None
        if self._cloud.longest_wait_s is not None:
            expires_s = float(stream.asked_s[n]) + self._cloud.longest_wait_s
            heapq.heappush(self._events, (expires_s, _Event.EXPIRE, n))
        self._wait(n, expires_s)
        if math.isfinite(stream.deleted_s[n]):
            when_s = float(stream.deleted_s[n])
            heapq.heappush(self._events, (when_s, _Event.DELETE, n))

    def _wait(self, n: int, expires_s: float | None) -> None:
        stream, owners = self._cloud.stream, self._cloud.owners
        user, size = int(stream.user[n]), int(self._size[n])
        uuid, band = f'{n:08d}', request_model.Band.NORMAL
        if self._preemptible[n]:
            band = request_model.Band.PREEMPTIBLE
        servers = stream.sizes[size].servers
        self._waiting[n] = request_model.Request(
            uuid,
            owners.projects[owners.project[user]],
            owners.users[user],
            tuple(f'{uuid}-{m}' for m in range(servers)),
            self._demands[size],
            float(stream.asked_s[n]),
            expires_at=expires_s,
            band=band,
            time_limit_s=stream.time_limit_s(n),
        )
        self.fate[n] = Fate.WAITING
        self._use.wanted[user] += self._amounts[size]

    def _process_event(self, event: _Event, n: int, at_s: float) -> None:
        if event is _Event.RESIZE:
            self._resize(n, at_s)
        elif event is _Event.LEAVE:
            self._evict_servers(n, at_s)
        elif event is _Event.END and self._ends_s.get(n) != at_s:
            # It left before, and has begun again or waits.
            return
        elif n in self._placed and event is not _Event.EXPIRE:
            self._record_lifetimes(n, at_s)
            self._vacate(n, at_s)
            self.fate[n] = Fate.ENDED
        elif n in self._waiting and not (
            event is _Event.EXPIRE and np.isfinite(self.started_s[n])
        ):
            is_late = event is _Event.EXPIRE
            self._end_wait(n, at_s, Fate.EXPIRED if is_late else Fate.DELETED)

    def _vacate(self, n: int, at_s: float) -> None:
        """Free what servers of a request have."""
        user = int(self._cloud.stream.user[n])
        size, amounts = int(self._size[n]), self._amounts[self._size[n]]
        self._hosts.free(self._placed.pop(n), self._cloud, size)
        self._use.used[user] -= amounts
        running = self._running.pop(n)
        for each in running:
            self.leaving.end_notice(each.uuid)
        del self._ends_s[n]
        if self._preemptible[n]:
            self._use.lent[user] -= amounts
            return
        self._decay_uncharged_use(at_s)
        kept = self._ledger.kept(at_s - running[0].since)
        self._uncharged[user] -= kept * amounts
        # What is left beside nothing is an error of rounding.
        self._uncharged[user] *= (
            self._use.used[user] - self._use.lent[user] > 0
        )

    def _evict_servers(self, n: int, at_s: float) -> None:
        """Let a request's servers leave, if their room is still wanted."""
        if n not in self._placed:
            return
        running = self._running[n]
        told = [self.leaving.end_notice(each.uuid) for each in running]
        if not any(told):
            return
        lasted_s = at_s - running[0].since
        self.leaving.left[n] += 1
        if self._saves_work[n]:
            self._remaining_life_s[n] -= lasted_s
        else:
            self.leaving.lost[n] += self._amounts[self._size[n]] * lasted_s
        self._vacate(n, at_s)
        self._wait(n, None)

    def _resize(self, n: int, at_s: float) -> None:
        """Resize where its servers are; try again later if hosts are full."""
        if n not in self._placed:
            return
        stream, cloud = self._cloud.stream, self._cloud
        old, new = int(self._size[n]), int(self._new_sizes[n])
        rows = self._placed[n]
        self._hosts.free(rows, cloud, old)
        self._hosts.allocate(rows, cloud, new)
        if self._hosts.is_overallocated():
            self._hosts.free(rows, cloud, new)
            self._hosts.allocate(rows, cloud, old)
            later_s = at_s + cloud.cycle_s
            heapq.heappush(self._events, (later_s, _Event.RESIZE, n))
            return
        self._size[n] = new
        user, more = (
            int(stream.user[n]),
            self._amounts[new] - self._amounts[old],
        )
        self._use.used[user] += more
        self._decay_uncharged_use(at_s)
        lasted_s = at_s - float(self.started_s[n])
        self._uncharged[user] += self._ledger.kept(lasted_s) * more
        amounts = self._demands[new].amounts
        self._running[n] = [
            dataclasses.replace(each, amounts=amounts)
            for each in self._running[n]
        ]

    def _record_lifetimes(self, n: int, at_s: float) -> None:
        """Servers of a request have ended."""
        for m, each in enumerate(self._running[n]):
            kind = cluster.kind_of(each.project, each.amounts)
            self._lifetimes.learn(kind, f'{n}-{m}', at_s - each.since)

    def _decay_uncharged_use(self, now_s: float) -> None:
        self._uncharged *= self._ledger.kept(now_s - self._uncharged_at_s)
        self._uncharged_at_s = now_s

    def _end_wait(self, n: int, at_s: float, fate: Fate) -> None:
        """End the wait of a request."""
        del self._waiting[n]
        self.leaving.promised.pop(f'{n:08d}', None)
        stream = self._cloud.stream
        self._use.wanted[stream.user[n]] -= self._amounts[self._size[n]]
        self.fate[n] = fate
        if fate is not Fate.RUNNING:
            self.left_s[n] = at_s
        if self.estimate_judge:
            self.estimate_judge.leave(f'{n:08d}', at_s, fate is Fate.RUNNING)

    def _charge(self, now_s: float) -> None:
        elapsed_s = now_s - self._ledger.at
        if elapsed_s <= 0:
            return
        paid = self._use.area - self._use.lent_area
        mean = (paid - self._charged) / elapsed_s
        self._charged = paid
        self._ledger = self._ledger.advanced(
            now_s, {ALL: self._join_projects_and_users(mean)}, self._capacity
        )

    def _plan(self, now_s: float) -> None:
        self._unplanned_s = math.inf
        if not self._needs_plans():
            return
        self.plans += 1
        snapshot = self._snapshot(now_s)
        plan = self._planner(snapshot, now_s)
        if self.estimate_judge:
            self.estimate_judge.observe_plan(snapshot, plan, now_s)
        for action in plan.actions:
            if action.verb is cluster.Verb.MAKE_ROOM:
                self._make_room(action, now_s)
            else:
                self._start(int(action.request), now_s, action.hosts)
        self._free_for_watermark(snapshot, plan, now_s)
        if self._needs_plans() and self._use.lent.any():
            # Who waited too short, or ran too short, is looked at again.
            self._unplanned_s = now_s + self._cloud.cycle_s / 2

    def _needs_plans(self) -> bool:
        """Whether a request waits, or a server may have to leave before."""
        return bool(self._waiting) or self._cloud.marks.lower > 0

    def _make_room(self, action: cluster.Action, now_s: float) -> None:
        self.leaving.notify_victims(action, now_s)
        self._schedule_evictions(action.leaving, now_s)

    def _free_for_watermark(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        now_s: float,
    ) -> None:
        """Let servers leave so that a part of the cloud is free."""
        lower = self._cloud.marks.lower
        told = watermark.servers_to_evict(
            snapshot, plan, now_s, preemption.USUAL, lower
        )
        self.leaving.free(told, now_s)
        self._schedule_evictions(told, now_s)

    def _schedule_evictions(
        self, servers: Iterable[str], now_s: float
    ) -> None:
        at_s = now_s + self._cloud.notice_s
        for n in sorted({int(each[:8]) for each in servers}):
            heapq.heappush(self._events, (at_s, _Event.LEAVE, n))

    def _start(self, n: int, now_s: float, hosts: tuple[str, ...]) -> None:
        self._end_wait(n, now_s, Fate.RUNNING)
        stream = self._cloud.stream
        size = int(self._size[n])
        self._placed[n] = self._hosts.rows(hosts)
        self._hosts.allocate(self._placed[n], self._cloud, size)
        owners, user = self._cloud.owners, int(stream.user[n])
        self._use.used[user] += self._amounts[size]
        band = request_model.Band.NORMAL
        if self._preemptible[n]:
            band = request_model.Band.PREEMPTIBLE
        project = owners.projects[owners.project[user]]
        amounts = self._demands[size].amounts
        limit_s = stream.time_limit_s(n)
        self._running[n] = [
            cluster.Running(
                host,
                project,
                amounts,
                now_s,
                owners.users[user],
                f'{n:08d}-{m}',
                band=band,
                ends_at=None if limit_s is None else now_s + limit_s,
                # All of them leave, or none.
                group=f'{n:08d}' if self._preemptible[n] else '',
            )
            for m, host in enumerate(hosts)
        ]
        if self._preemptible[n]:
            self._use.lent[user] += self._amounts[size]
        else:
            self._decay_uncharged_use(now_s)
            self._uncharged[user] += self._amounts[size]
        if np.isnan(self.started_s[n]):
            self.started_s[n] = now_s
        end_s = now_s + float(self._remaining_life_s[n])
        self._ends_s[n] = end_s
        heapq.heappush(self._events, (end_s, _Event.END, n))
        if self._new_sizes[n] >= 0:
            resized_s = now_s + workload.RESIZED_AFTER_S
            heapq.heappush(self._events, (resized_s, _Event.RESIZE, n))

    def _snapshot(self, now_s: float) -> cluster.ClusterSnapshot:
        owners = self._cloud.owners
        used = np.zeros(
            (len(owners.projects), len(workload.CLASSES)), dtype=np.int64
        )
        np.add.at(used, self._project, self._use.used - self._use.lent)
        return cluster.ClusterSnapshot(
            workload.CLASSES,
            self._hosts.providers,
            self._hosts.inventory(),
            tuple(self._waiting.values()),
            used={
                owners.projects[p]: used[p]
                for p in np.flatnonzero(used.any(axis=1)).tolist()
            },
            accounts=self._accounts,
            history=self._split_by_account(self._ledger.use[ALL]),
            granted=self._split_by_account(self._uncharged_use(now_s)),
            running=tuple(itertools.chain(*self._running.values())),
            lifetimes=self._lifetimes.by_kind(),
            promised=dict(self.leaving.promised),
            leaving=self.leaving.servers,
            evicted=self.leaving.count_in_last_hour(now_s),
        )

    def _uncharged_use(self, now_s: float) -> Floats:
        """Parts of the cloud that the ledger lacks, one row of all."""
        self._decay_uncharged_use(now_s)
        return ledger_module.parts_of_capacity(
            self._join_projects_and_users(self._uncharged), self._capacity
        )

    def _join_projects_and_users(self, by_user: Floats) -> Floats:
        """Amounts of projects, then those of users, in one row."""
        size = (len(self._cloud.owners.projects), by_user.shape[1])
        projects = np.zeros(size)
        np.add.at(projects, self._project, by_user)
        return np.concatenate([projects, by_user]).ravel()

    def _split_by_account(self, row: Floats) -> dict[str, Floats]:
        table = row.reshape(len(self._accounts), -1)
        return {
            self._accounts[a].name: table[a]
            for a in np.flatnonzero(table.any(axis=1)).tolist()
        }
