# SPDX-License-Identifier: Apache-2.0

"""The cloud's side: the queue's own simulation, on hosts that come and go."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

import numpy as np

from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import workload
from nova_fairness.model import border
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import order as order_module

_W = border.Way


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class _Moving:
    """Room that a server has on its old host until it has moved.

    :ivar at_s: until when.
    :ivar row: of the host.
    :ivar uuid: of the server.
    :ivar size: of it.
    """

    at_s: float
    row: int
    uuid: str
    size: int


class SimulatedCloudSide(engine.Simulation):
    """The cloud's side of all hosts; all are closed at first.

    :param world: what is simulated.
    :param order: of the queue.

    :ivar moved: number of live migrations.
    :ivar killed: number of servers that were killed.
    :ivar wasted: (u,) core-seconds of those until then.
    :ivar beside: parts of all hosts by account that count besides: what it
        used of batch, and what it has there and that lacks.
    """

    def __init__(
        self, world: world_module.World, order: order_module.Order
    ) -> None:
        super().__init__(world.cloud, order)
        self._migrate_s = world.migrate_s
        self._have = world.cloud.hosts
        self._of_size: list[float] = [
            self._cores_of(size) for size in world.cloud.stream.sizes
        ]
        self._moving: list[_Moving] = []
        self._told: dict[int, float] = {}
        self.moved = self.killed = 0
        self.wasted = np.zeros(len(world.cloud.owners.users))
        self.beside: Mapping[str, tuple[float, float]] = {}
        for row in range(len(self._have)):
            self._hosts.set_takes(row, False)

    def set_open(self, row: int, is_open: bool) -> None:
        """Set whether servers may start on a host."""
        self._hosts.set_takes(row, is_open)
        if is_open and self._waiting:
            self._unplanned_s = min(self._unplanned_s, self._use.at_s)

    def is_open(self, row: int) -> bool:
        """Whether servers start on a host."""
        return self._hosts.providers[row].takes

    @property
    def used(self) -> int:
        """Cores of all that runs."""
        return int(self._use.used[:, world_module.VCPU].sum())

    @property
    def core_seconds(self) -> float:
        """Of all that ran until now."""
        return float(self._use.area[:, world_module.VCPU].sum())

    def work(self, now_s: float) -> dict[int, list[border.RunningWork]]:
        """Work that runs, by host."""
        found: dict[int, list[border.RunningWork]] = {}
        for n, running in self._running.items():
            cores = self._cores(n)
            for row, each in zip(self._placed[n], running, strict=True):
                gone_at, way = now_s + self._migrate_s, _W.MOVES
                if each.band is request_model.Band.PREEMPTIBLE:
                    usual = now_s + self._cloud.notice_s
                    gone_at, way = self._told.get(n, usual), _W.YIELDS
                work = border.RunningWork(each.uuid, cores, gone_at, way)
                found.setdefault(row, []).append(work)
        for moving in self._moving:
            work = border.RunningWork(moving.uuid, 0.0, moving.at_s)
            found.setdefault(moving.row, []).append(work)
        return found

    def wants(self) -> tuple[border.PendingWork, ...]:
        """Requests that wait; preemptible ones use what is left."""
        return tuple(
            border.PendingWork(
                each.uuid,
                self._cores(n) * len(each.servers),
                each.asked_at,
                self._cores(n),
            )
            for n, each in self._waiting.items()
            if not each.is_preemptible
        )

    def clear(self, row: int, uuids: Collection[str], now_s: float) -> None:
        """Move servers to other hosts, one after the other, or tell them.

        Servers without room elsewhere stay.
        """
        done_s = max(
            [now_s, *(each.at_s for each in self._moving if each.row == row)]
        )
        for uuid in uuids:
            n, m = _place(uuid)
            if n not in self._running:
                continue
            if self._preemptible[n]:
                self._told.setdefault(n, now_s + self._cloud.notice_s)
            elif (to := self._other_host(n)) is not None:
                done_s += self._migrate_s
                self._move(n, m, row, to, done_s)

    def kill(self, uuids: Collection[str], now_s: float) -> None:
        """End servers before they are done."""
        for n in sorted({_place(uuid)[0] for uuid in uuids}):
            if n in self._running:
                self.killed += len(self._running[n])
                self._waste(n, now_s)
                self._vacate(n, now_s)
                self.fate[n] = engine.Fate.ENDED

    def use_by_project(self, now_s: float) -> dict[str, float]:
        """Decayed parts of all hosts, in the class with the most use.

        :param now_s: up to which everything has happened.
        """
        self._charge(now_s)
        owners = self._cloud.owners
        row = self._ledger.use[engine.ALL]
        table = row.reshape(len(owners.projects) + len(owners.users), -1)
        largest = table.max(axis=1)
        return {
            name: float(largest[at]) for at, name in enumerate(owners.projects)
        }

    def leave(self, now_s: float) -> None:
        """Let those preemptible servers go whose notice is over.

        They lose what they had done and wait again. One whose host takes
        servers again stays.
        """
        self._arrive(now_s)
        for n, at_s in list(self._told.items()):
            rows = self._placed.get(n, [])
            if all(self.is_open(row) for row in rows):
                del self._told[n]
            elif at_s <= now_s:
                del self._told[n]
                self._waste(n, now_s)
                self.leaving.left[n] += 1
                self._vacate(n, now_s)
                self._wait(n, None)

    def _waste(self, n: int, at_s: float) -> None:
        user = int(self._cloud.stream.user[n])
        cores = self._amounts[self._size[n]][world_module.VCPU]
        self.wasted[user] += cores * (at_s - self._running[n][0].since)

    def _other_host(self, n: int) -> int | None:
        """The fullest open host that has room for one server of a request."""
        free = self._hosts.free_amounts()
        one = self._cloud.stream.sizes[int(self._size[n])]
        fits = (free >= one.amounts // one.servers).all(axis=1)
        rows = [
            row
            for row in np.flatnonzero(fits).tolist()
            if self.is_open(row) and row not in self._placed[n]
        ]
        cores = free[:, world_module.VCPU]
        return min(rows, key=lambda row: (cores[row], row), default=None)

    def _move(self, n: int, m: int, row: int, to: int, done_s: float) -> None:
        size = int(self._size[n])
        self._hosts.take([to], self._cloud, size)
        self._placed[n][m] = to
        host = self._hosts.providers[to].name
        running = self._running[n]
        running[m] = dataclasses.replace(running[m], host=host)
        self._moving.append(_Moving(done_s, row, running[m].uuid, size))
        self.moved += 1

    def _arrive(self, now_s: float) -> None:
        """Free the old hosts of those that have moved."""
        for each in sorted(self._moving):
            if each.at_s <= now_s:
                self._hosts.free([each.row], self._cloud, each.size)
                self._moving.remove(each)

    def _cores(self, n: int) -> float:
        """Cores of a host that one server has: what is scarcest counts."""
        return self._of_size[int(self._size[n])]

    def _cores_of(self, size: workload.Size) -> float:
        part = (size.amounts / size.servers / self._have[0]).max()
        return float(part * self._have[0][world_module.VCPU])

    def _snapshot(self, now_s: float) -> cluster.ClusterSnapshot:
        found = super()._snapshot(now_s)
        if not self.beside:
            return found
        history, granted = dict(found.history), dict(found.granted)
        none = np.zeros(len(found.classes))
        for name, (used, lacks) in self.beside.items():
            history[name] = history.get(name, none) + used
            granted[name] = granted.get(name, none) + lacks
        return dataclasses.replace(found, history=history, granted=granted)


def _place(uuid: str) -> tuple[int, int]:
    """Numbers of the request and of the server in it."""
    n, _, m = uuid.partition('-')
    return int(n), int(m)
