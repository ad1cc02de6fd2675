# SPDX-License-Identifier: Apache-2.0

"""The cloud's side: the simulated queue, on hosts that come and go."""

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

_W = border.WorkEnd


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class _OldHostRoom:
    """Room that a server has on its old host until its migration ends.

    :ivar at_s: end of the migration, seconds.
    :ivar row: index of the old host.
    :ivar uuid: UUID of the server.
    :ivar size: index of the server's size.
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
    :ivar lost_core_seconds: (u,) work of servers until they were killed.
    :ivar batch_use: parts of all hosts by account that count besides: what it
        used of batch, and what it has there and that lacks.
    """

    def __init__(
        self, world: world_module.World, order: order_module.Order
    ) -> None:
        super().__init__(world.cloud, order)
        self._migrate_s = world.migrate_s
        self._host_capacity = world.cloud.hosts
        self._cores_of_sizes: list[float] = [
            self._scarcest_as_cores(size) for size in world.cloud.stream.sizes
        ]
        self._old_rooms: list[_OldHostRoom] = []
        self._notice_end_s: dict[int, float] = {}
        self.moved = self.killed = 0
        self.lost_core_seconds = np.zeros(len(world.cloud.owners.users))
        self.batch_use: Mapping[str, tuple[float, float]] = {}
        for row in range(len(self._host_capacity)):
            self._hosts.set_accepts_servers(row, False)

    def set_open(self, row: int, is_open: bool) -> None:
        """Set whether servers may start on a host."""
        self._hosts.set_accepts_servers(row, is_open)
        if is_open and self._waiting:
            self._unplanned_s = min(self._unplanned_s, self._use.at_s)

    def is_open(self, row: int) -> bool:
        """Whether servers start on a host."""
        return self._hosts.providers[row].takes

    @property
    def used_cores(self) -> int:
        """Number of cores that running servers use."""
        return int(self._use.used[:, world_module.VCPU].sum())

    @property
    def core_seconds(self) -> float:
        """Core-seconds of all servers until now."""
        return float(self._use.area[:, world_module.VCPU].sum())

    def work(self, now_s: float) -> dict[int, list[border.RunningWork]]:
        """Servers that run or migrate, by index of the host."""
        found: dict[int, list[border.RunningWork]] = {}
        for n, running in self._running.items():
            cores = self._cores_per_server(n)
            for row, each in zip(self._placed[n], running, strict=True):
                gone_at, way = now_s + self._migrate_s, _W.MOVES
                if each.band is request_model.Band.PREEMPTIBLE:
                    usual = now_s + self._cloud.notice_s
                    gone_at, way = self._notice_end_s.get(n, usual), _W.YIELDS
                work = border.RunningWork(each.uuid, cores, gone_at, way)
                found.setdefault(row, []).append(work)
        for moving in self._old_rooms:
            work = border.RunningWork(moving.uuid, 0.0, moving.at_s)
            found.setdefault(moving.row, []).append(work)
        return found

    def pending_work(self) -> tuple[border.PendingWork, ...]:
        """Requests that wait, without requests for preemptible servers."""
        return tuple(
            border.PendingWork(
                each.uuid,
                self._cores_per_server(n) * len(each.servers),
                each.asked_at,
                self._cores_per_server(n),
            )
            for n, each in self._waiting.items()
            if not each.is_preemptible
        )

    def move_or_notify(
        self, row: int, uuids: Collection[str], now_s: float
    ) -> None:
        """Migrate normal servers, and give preemptible ones notice.

        Servers without room elsewhere stay.
        """
        done_s = max(
            [
                now_s,
                *(each.at_s for each in self._old_rooms if each.row == row),
            ]
        )
        for uuid in uuids:
            n, m = _parse_server_uuid(uuid)
            if n not in self._running:
                continue
            if self._preemptible[n]:
                self._notice_end_s.setdefault(n, now_s + self._cloud.notice_s)
            elif (to := self._other_host(n)) is not None:
                done_s += self._migrate_s
                self._move_server(n, m, row, to, done_s)

    def kill(self, uuids: Collection[str], now_s: float) -> None:
        """Kill servers before their end."""
        for n in sorted({_parse_server_uuid(uuid)[0] for uuid in uuids}):
            if n in self._running:
                self.killed += len(self._running[n])
                self._count_lost_work(n, now_s)
                self._vacate(n, now_s)
                self.fate[n] = engine.Fate.ENDED

    def use_by_project(self, now_s: float) -> dict[str, float]:
        """Decayed use of projects, as a fraction of all hosts.

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

    def evict_after_notice(self, now_s: float) -> None:
        """Evict the preemptible servers whose notice has ended.

        They lose what they had done and wait again. One whose host takes
        servers again stays.
        """
        self._free_old_hosts(now_s)
        for n, at_s in list(self._notice_end_s.items()):
            rows = self._placed.get(n, [])
            if all(self.is_open(row) for row in rows):
                del self._notice_end_s[n]
            elif at_s <= now_s:
                del self._notice_end_s[n]
                self._count_lost_work(n, now_s)
                self.leaving.left[n] += 1
                self._vacate(n, now_s)
                self._wait(n, None)

    def _count_lost_work(self, n: int, at_s: float) -> None:
        user = int(self._cloud.stream.user[n])
        cores = self._amounts[self._size[n]][world_module.VCPU]
        self.lost_core_seconds[user] += cores * (
            at_s - self._running[n][0].since
        )

    def _other_host(self, n: int) -> int | None:
        """Find the fullest open host with room for one server of a request."""
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

    def _move_server(
        self, n: int, m: int, row: int, to: int, done_s: float
    ) -> None:
        size = int(self._size[n])
        self._hosts.allocate([to], self._cloud, size)
        self._placed[n][m] = to
        host = self._hosts.providers[to].name
        running = self._running[n]
        running[m] = dataclasses.replace(running[m], host=host)
        self._old_rooms.append(
            _OldHostRoom(done_s, row, running[m].uuid, size)
        )
        self.moved += 1

    def _free_old_hosts(self, now_s: float) -> None:
        """Free the old hosts of servers whose migration has ended."""
        for each in sorted(self._old_rooms):
            if each.at_s <= now_s:
                self._hosts.free([each.row], self._cloud, each.size)
                self._old_rooms.remove(each)

    def _cores_per_server(self, n: int) -> float:
        """Scarcest resource of one server of a request, as cores."""
        return self._cores_of_sizes[int(self._size[n])]

    def _scarcest_as_cores(self, size: workload.Size) -> float:
        part = (size.amounts / size.servers / self._host_capacity[0]).max()
        return float(part * self._host_capacity[0][world_module.VCPU])

    def _snapshot(self, now_s: float) -> cluster.ClusterSnapshot:
        found = super()._snapshot(now_s)
        if not self.batch_use:
            return found
        history, granted = dict(found.history), dict(found.granted)
        none = np.zeros(len(found.classes))
        for name, (used, lacks) in self.batch_use.items():
            history[name] = history.get(name, none) + used
            granted[name] = granted.get(name, none) + lacks
        return dataclasses.replace(found, history=history, granted=granted)


def _parse_server_uuid(uuid: str) -> tuple[int, int]:
    """Read the numbers of the request and of its server from a UUID."""
    n, _, m = uuid.partition('-')
    return int(n), int(m)
