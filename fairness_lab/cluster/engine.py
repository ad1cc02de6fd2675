# SPDX-License-Identifier: Apache-2.0

"""A cloud at discrete events, with the queue's own planner, order and ledger.

Requests are asked for, start, end and are deleted at their moments. Plans are
made at cycles, as the service makes them; a cycle is left out if nothing
happened since the last one that could start somebody: a good state plans
nothing. What users have allocated is charged exactly.
"""

from collections.abc import Iterator
import dataclasses
import enum
import functools
import heapq
import itertools
import math

import numpy as np

from fairness_lab.cluster import promising
from fairness_lab.cluster import workload
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import ledger as ledger_module

Floats = workload.Floats

_ALL = ''
"""Under which the ledger has all accounts, side by side in one row: the same
arithmetic, at the speed of an array."""


class Fate(enum.IntEnum):
    """What became of a request."""

    COMING = 0
    WAITING = 1
    RUNNING = 2
    ENDED = 3
    EXPIRED = 4
    DELETED = 5
    """Its user took it back while it waited."""


class _Event(enum.IntEnum):
    """What can happen, in the order in which it does if it is at once."""

    END = 0
    DELETE = 1
    EXPIRE = 2
    RESIZE = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Moment:
    """The cloud at one moment.

    :ivar at_s: when.
    :ivar used: (u, c) allocated by user.
    :ivar wanted: (u, c) what waits, by user.
    :ivar area: (u, c) allocated amount times seconds, since the begin.
    """

    at_s: float
    used: cluster.Amounts
    wanted: cluster.Amounts
    area: Floats


class Simulation:
    """One run.

    :param cloud: what is simulated.
    :param order: says who is next.

    :ivar fate: (n,) of each request, :class:`Fate`.
    :ivar started_s: (n,) when each started; NaN for those that did not.
    :ivar left_s: (n,) when each stopped waiting without a start; NaN for all
        others.
    :ivar plans: number of plans that were made.
    :ivar promising: estimates starts; ``None`` if the cloud has none.
    """

    def __init__(
        self, cloud: workload.Cloud, order: order_module.Order
    ) -> None:
        self._cloud = cloud
        self._planner: estimates.Planner = functools.partial(
            planner.plan,
            order=order,
            backfill=planner.Backfill(patience_s=cloud.patience_s),
        )
        stream, owners = cloud.stream, cloud.owners
        self._demands = [size.demand for size in stream.sizes]
        self._amounts = np.array([size.amounts for size in stream.sizes])
        self._size = stream.size.copy()
        self._resized = np.full(len(stream), -1)
        if stream.resized is not None:
            self._resized = stream.resized
        self._accounts = owners.accounts
        self._project = np.array(owners.project, dtype=np.int64)
        self._hosts = _Hosts(cloud.hosts)
        users, classes = len(owners.users), len(workload.CLASSES)
        self._used = np.zeros((users, classes), dtype=np.int64)
        self._wanted = np.zeros((users, classes), dtype=np.int64)
        self._area = np.zeros((users, classes))
        self._charged = np.zeros((users, classes))
        self._at = 0.0
        self._capacity = np.tile(
            cloud.capacity.astype(float), len(self._accounts)
        )
        self._ledger = ledger_module.Ledger(
            cloud.half_life_s, 0.0, {_ALL: np.zeros_like(self._capacity)}
        )
        self._events: list[tuple[float, _Event, int]] = []
        self._asked = 0
        self._waiting: dict[int, request_model.Request] = {}
        self._placed: dict[int, list[int]] = {}
        self._running: dict[int, list[cluster.Running]] = {}
        self._lifetimes = cluster.Lifetimes()
        # What users have and the ledger lacks, as it was at that time.
        self._fresh = np.zeros((users, classes))
        self._fresh_at = 0.0
        self._unplanned_s = math.inf
        self.fate = np.full(len(stream), Fate.COMING, dtype=np.int8)
        self.started_s = np.full(len(stream), np.nan)
        self.left_s = np.full(len(stream), np.nan)
        self.plans = 0
        self.promising = None
        if cloud.estimates_s is not None:
            self.promising = promising.Promising(
                self._planner, self._ledger.kept, cloud.estimates_s
            )

    def moments(self, every_s: float) -> Iterator[Moment]:
        """Go through the time, and stop every so many seconds.

        :param every_s: seconds, > 0; the last moment is the end.
        :raises PluginMisbehaved: if the order fails.
        """
        end_s = self._cloud.duration_s
        for n in range(1, math.ceil(end_s / every_s) + 1):
            until_s = min(n * every_s, end_s)
            while (due_s := self._due()) <= until_s:
                self._happen(due_s)
                self._charge(due_s)
                self._plan(due_s)
            self._happen(until_s)
            yield Moment(
                until_s,
                self._used.copy(),
                self._wanted.copy(),
                self._area.copy(),
            )

    def _due(self) -> float:
        """When the next plan is to be made."""
        event_s = min(self._unplanned_s, self._next_event())
        if math.isinf(event_s):
            return event_s
        return math.ceil(event_s / self._cloud.cycle_s) * self._cloud.cycle_s

    def _next_event(self) -> float:
        stream = self._cloud.stream
        asked_s = math.inf
        if self._asked < len(stream):
            asked_s = float(stream.asked_s[self._asked])
        return min(asked_s, self._events[0][0] if self._events else math.inf)

    def _happen(self, until_s: float) -> None:
        """Let everything happen up to a moment."""
        asked_s = self._cloud.stream.asked_s
        while (at_s := self._next_event()) <= until_s:
            self._pass(at_s)
            if self._events and self._events[0][0] <= at_s:
                _, event, n = heapq.heappop(self._events)
                self._ended(event, n, at_s)
            else:
                while (
                    self._asked < len(asked_s) and asked_s[self._asked] == at_s
                ):
                    self._ask(self._asked)
                    self._asked += 1
            if self._waiting:
                self._unplanned_s = min(self._unplanned_s, at_s)
        self._pass(until_s)

    def _pass(self, until_s: float) -> None:
        self._area += self._used * (until_s - self._at)
        self._at = until_s

    def _ask(self, n: int) -> None:
        stream, owners = self._cloud.stream, self._cloud.owners
        user, size = int(stream.user[n]), int(self._size[n])
        asked_s = float(stream.asked_s[n])
        uuid, expires_s = f'{n:08d}', None
        if self._cloud.longest_wait_s is not None:
            expires_s = asked_s + self._cloud.longest_wait_s
            heapq.heappush(self._events, (expires_s, _Event.EXPIRE, n))
        servers = stream.sizes[size].servers
        self._waiting[n] = request_model.Request(
            uuid,
            owners.projects[owners.project[user]],
            owners.users[user],
            tuple(f'{uuid}-{m}' for m in range(servers)),
            self._demands[size],
            asked_s,
            expires_at=expires_s,
        )
        self.fate[n] = Fate.WAITING
        self._wanted[user] += self._amounts[size]
        if math.isfinite(stream.deleted_s[n]):
            when_s = float(stream.deleted_s[n])
            heapq.heappush(self._events, (when_s, _Event.DELETE, n))

    def _ended(self, event: _Event, n: int, at_s: float) -> None:
        if event is _Event.RESIZE:
            self._resize(n, at_s)
        elif n in self._placed and event is not _Event.EXPIRE:
            stream = self._cloud.stream
            user, size = int(stream.user[n]), int(self._size[n])
            self._hosts.free(self._placed.pop(n), self._cloud, size)
            self._used[user] -= self._amounts[size]
            self._learn(n, user, at_s)
            self.fate[n] = Fate.ENDED
        elif n in self._waiting:
            is_late = event is _Event.EXPIRE
            self._leave(n, at_s, Fate.EXPIRED if is_late else Fate.DELETED)

    def _resize(self, n: int, at_s: float) -> None:
        """Resize where its servers are; try again later if hosts are full."""
        if n not in self._placed:
            return
        stream, cloud = self._cloud.stream, self._cloud
        old, new = int(self._size[n]), int(self._resized[n])
        rows = self._placed[n]
        self._hosts.free(rows, cloud, old)
        self._hosts.take(rows, cloud, new)
        if self._hosts.over():
            self._hosts.free(rows, cloud, new)
            self._hosts.take(rows, cloud, old)
            later_s = at_s + cloud.cycle_s
            heapq.heappush(self._events, (later_s, _Event.RESIZE, n))
            return
        self._size[n] = new
        user, more = (
            int(stream.user[n]),
            self._amounts[new] - self._amounts[old],
        )
        self._used[user] += more
        self._fade(at_s)
        lasted_s = at_s - float(self.started_s[n])
        self._fresh[user] += self._ledger.kept(lasted_s) * more
        amounts = self._demands[new].amounts
        self._running[n] = [
            dataclasses.replace(each, amounts=amounts)
            for each in self._running[n]
        ]

    def _learn(self, n: int, user: int, at_s: float) -> None:
        """Servers of a request of a user have ended."""
        lasted_s = at_s - float(self.started_s[n])
        for m, each in enumerate(self._running.pop(n)):
            kind = cluster.kind_of(each.project, each.amounts)
            self._lifetimes.learn(kind, f'{n}-{m}', lasted_s)
        amounts = self._amounts[self._size[n]]
        self._fade(at_s)
        self._fresh[user] -= self._ledger.kept(lasted_s) * amounts
        # What is left beside nothing is an error of rounding.
        self._fresh[user] *= self._used[user] > 0

    def _fade(self, now_s: float) -> None:
        self._fresh *= self._ledger.kept(now_s - self._fresh_at)
        self._fresh_at = now_s

    def _leave(self, n: int, at_s: float, fate: Fate) -> None:
        """Let a request wait no more."""
        del self._waiting[n]
        stream = self._cloud.stream
        self._wanted[stream.user[n]] -= self._amounts[self._size[n]]
        self.fate[n] = fate
        if fate is not Fate.RUNNING:
            self.left_s[n] = at_s
        if self.promising:
            self.promising.leave(f'{n:08d}', at_s, fate is Fate.RUNNING)

    def _charge(self, now_s: float) -> None:
        elapsed_s = now_s - self._ledger.at
        if elapsed_s <= 0:
            return
        mean = (self._area - self._charged) / elapsed_s
        self._charged = self._area.copy()
        self._ledger = self._ledger.advanced(
            now_s, {_ALL: self._of_all(mean)}, self._capacity
        )

    def _plan(self, now_s: float) -> None:
        self._unplanned_s = math.inf
        if not self._waiting:
            return
        self.plans += 1
        snapshot = self._snapshot(now_s)
        plan = self._planner(snapshot, now_s)
        if self.promising:
            self.promising.see(snapshot, plan, now_s)
        for action in plan.actions:
            self._start(int(action.request), now_s, action.hosts)

    def _start(self, n: int, now_s: float, hosts: tuple[str, ...]) -> None:
        self._leave(n, now_s, Fate.RUNNING)
        stream = self._cloud.stream
        size = int(self._size[n])
        self._placed[n] = self._hosts.rows(hosts)
        self._hosts.take(self._placed[n], self._cloud, size)
        self._used[stream.user[n]] += self._amounts[size]
        owners, user = self._cloud.owners, int(stream.user[n])
        project = owners.projects[owners.project[user]]
        amounts = self._demands[size].amounts
        self._running[n] = [
            cluster.Running(
                host,
                project,
                amounts,
                now_s,
                owners.users[user],
                f'{n:08d}-{m}',
            )
            for m, host in enumerate(hosts)
        ]
        self._fade(now_s)
        self._fresh[user] += self._amounts[size]
        self.started_s[n] = now_s
        end_s = now_s + float(stream.lifetime_s[n])
        heapq.heappush(self._events, (end_s, _Event.END, n))
        if self._resized[n] >= 0:
            resized_s = now_s + workload.RESIZED_AFTER_S
            heapq.heappush(self._events, (resized_s, _Event.RESIZE, n))

    def _snapshot(self, now_s: float) -> cluster.ClusterSnapshot:
        owners = self._cloud.owners
        used = np.zeros(
            (len(owners.projects), len(workload.CLASSES)), dtype=np.int64
        )
        np.add.at(used, self._project, self._used)
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
            history=self._by_account(self._ledger.use[_ALL]),
            granted=self._by_account(self._granted(now_s)),
            running=tuple(itertools.chain(*self._running.values())),
            lifetimes=self._lifetimes.by_kind(),
        )

    def _granted(self, now_s: float) -> Floats:
        """Parts of the cloud that the ledger lacks, one row of all."""
        self._fade(now_s)
        return ledger_module.parts(self._of_all(self._fresh), self._capacity)

    def _of_all(self, by_user: Floats) -> Floats:
        """Amounts of projects, then those of users, in one row."""
        size = (len(self._cloud.owners.projects), by_user.shape[1])
        projects = np.zeros(size)
        np.add.at(projects, self._project, by_user)
        return np.concatenate([projects, by_user]).ravel()

    def _by_account(self, row: Floats) -> dict[str, Floats]:
        table = row.reshape(len(self._accounts), -1)
        return {
            self._accounts[a].name: table[a]
            for a in np.flatnonzero(table.any(axis=1)).tolist()
        }


class _Hosts:
    """What hosts have, and what is allocated on them."""

    def __init__(self, capacity: cluster.Amounts) -> None:
        self._capacity = capacity
        self._used = np.zeros_like(capacity)
        names = [f'host-{n:04d}' for n in range(len(capacity))]
        self.providers = tuple(cluster.Provider(name, name) for name in names)
        self._row = {name: row for row, name in enumerate(names)}

    def inventory(self) -> cluster.Inventory:
        """Of this moment."""
        return cluster.Inventory(
            self._capacity,
            self._used.copy(),
            self._capacity,
            np.ones_like(self._capacity),
        )

    def rows(self, names: tuple[str, ...]) -> list[int]:
        """Where hosts stand."""
        return [self._row[name] for name in names]

    def take(self, rows: list[int], cloud: workload.Cloud, size: int) -> None:
        """Allocate a request's servers."""
        self._change(rows, cloud.stream.sizes[size], 1)

    def over(self) -> bool:
        """Whether some host has more allocated than it has."""
        return bool((self._used > self._capacity).any())

    def free(self, rows: list[int], cloud: workload.Cloud, size: int) -> None:
        """Free the room that a request's servers had."""
        self._change(rows, cloud.stream.sizes[size], -1)

    def _change(self, rows: list[int], size: workload.Size, sign: int) -> None:
        one = sign * size.amounts // size.servers
        for row in rows:
            self._used[row] += one
