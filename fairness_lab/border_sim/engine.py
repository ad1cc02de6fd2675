# SPDX-License-Identifier: Apache-2.0

"""Simulate a batch system and a cloud with a border that moves.

Nodes take the steps of :data:`.partition.STEPS`, and the planner of the
service says which; here they are done at once, and a host that is opened
takes work when it has booted.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math

import numpy as np

from fairness_lab.border_sim import batch as batch_module
from fairness_lab.border_sim import border_policies
from fairness_lab.border_sim import cloud as cloud_module
from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import workload
from nova_fairness.model import border
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.shares import batch_correction

_V = border.BorderVerb
_Side = border.BorderSide


@dataclasses.dataclass(frozen=True, eq=False)
class BorderMoment:
    """Both sides at one moment.

    :ivar at_s: when.
    :ivar hosts: number that work for each side, those that leave it among
        them.
    :ivar moving: number on their way.
    :ivar used: cores of what runs, by side.
    :ivar waiting: cores of what waits, by side.
    :ivar use_by_group: (g, 2) decayed use by each group of batch
        and cloud.
    """

    at_s: float
    hosts: dict[_Side, int]
    moving: int
    used: dict[_Side, int]
    waiting: dict[_Side, float]
    use_by_group: workload.Floats


class BorderRun:
    """One run of both sides.

    :param world: what is simulated.
    :param mover: moves the border; ``None`` for a fixed one.
    :param order: of the queue.

    :ivar batch: one side.
    :ivar cloud: the other.
    :ivar arrived: host and moment of each move that ended.
    :ivar hosts_on_both_sides: number of times a host was on both sides.
    """

    def __init__(
        self,
        world: world_module.World,
        mover: border_policies.Mover | None,
        order: order_module.Order,
    ) -> None:
        self._world, self._mover = world, mover
        self.batch = batch_module.BatchSide(world)
        self.cloud = cloud_module.SimulatedCloudSide(world, order)
        self.groups = _group_names(world)
        self.pledges = _pledges(world, self.groups)
        self.arrived: list[tuple[int, float]] = []
        self.hosts_on_both_sides = 0
        self._opening_s: dict[tuple[_Side, int], float] = {}
        cores = world.cloud.hosts[:, world_module.VCPU].tolist()
        self._nodes = [
            border.BorderHost(
                border.SharedHost(name, name, name, float(cores[row])),
                border.HostState.CLOUD
                if row < world.cloud_hosts_at_start
                else border.HostState.BATCH,
                since=-math.inf,
            )
            for row, name in enumerate(_host_names(len(cores)))
        ]
        for row, node in enumerate(self._nodes):
            side = border.only_user(node.state)
            self._side(side).set_open(row, True)
        self._adjusted_s = 0.0

    def moments(self, every_s: float = 0.0) -> Iterator[BorderMoment]:
        """Simulate cycle by cycle; yield the state of both sides.

        :param every_s: seconds between two states that are yielded. The first
            and the last state are always yielded.
        """
        next_s = 0.0
        cycle_s = self._world.cloud.cycle_s
        for seen in self.cloud.moments(cycle_s):
            now_s = seen.at_s
            self.batch.advance(now_s)
            self.cloud.evict_after_notice(now_s)
            self._open_booted_hosts(now_s)
            self._move_border(now_s)
            self._adjust_shares(now_s)
            self.batch.schedule(now_s)
            if now_s >= min(next_s, self._world.cloud.duration_s):
                next_s += every_s
                yield self._moment(now_s)

    def _side(
        self, side: _Side | None
    ) -> batch_module.BatchSide | cloud_module.SimulatedCloudSide:
        return self.batch if side is _Side.BATCH else self.cloud

    def _open_booted_hosts(self, now_s: float) -> None:
        for (side, row), at_s in list(self._opening_s.items()):
            if at_s <= now_s:
                del self._opening_s[side, row]
                self._side(side).set_open(row, True)

    def _move_border(self, now_s: float) -> None:
        if self._mover is None:
            return
        snapshot = self._snapshot(now_s)
        self.hosts_on_both_sides += _count_hosts_on_both_sides(snapshot)
        plan = self._mover.plan(snapshot, now_s)
        rows = {node.host.name: row for row, node in enumerate(self._nodes)}
        for action in plan.actions:
            self._apply_action(action, rows[action.host], now_s)

    def _snapshot(self, now_s: float) -> border.Snapshot:
        work = self.cloud.work(now_s)
        batch, cloud = {}, {}
        for row, node in enumerate(self._nodes):
            batch[node.host.batch] = _side_status(
                self.batch.is_open(row), self.batch.work(row)
            )
            cloud[node.host.cloud] = _side_status(
                self.cloud.is_open(row), tuple(work.get(row, ()))
            )
        return border.Snapshot(
            tuple(self._nodes),
            border.SideSnapshot(batch, self.batch.pending_work()),
            border.SideSnapshot(cloud, self.cloud.pending_work()),
        )

    def _apply_action(
        self, action: border.BorderAction, row: int, now_s: float
    ) -> None:
        if action.step is not None:
            self._nodes[row] = self._nodes[row].stepped(
                action.step, now_s, action.cause, action.text, action.until
            )
            if action.step is border.HostEvent.ARRIVE:
                self.arrived.append((row, now_s))
        elif action.verb is _V.OPEN and action.side is not None:
            self._open_host(action.side, row, now_s)
        elif action.verb is _V.CLOSE and action.side is not None:
            self._opening_s.pop((action.side, row), None)
            self._side(action.side).set_open(row, False)
        elif action.verb is _V.CLEAR:
            self.cloud.move_or_notify(row, action.work, now_s)
        else:
            self.cloud.kill(action.work, now_s)

    def _open_host(self, side: _Side, row: int, now_s: float) -> None:
        """Open a host for a side, after a boot if it has just arrived."""
        came = self._nodes[row].history[-1:]
        boots = bool(came) and came[0].event is border.HostEvent.ARRIVE
        boot_s = self._world.boot_s if boots else 0.0
        if boot_s:
            self._opening_s.setdefault((side, row), now_s + boot_s)
        else:
            self._side(side).set_open(row, True)

    def _adjust_shares(self, now_s: float) -> None:
        """Correct the shares of each side by use of the other side."""
        every_s = self._world.adjust_s
        if every_s is None or now_s - self._adjusted_s < every_s:
            return
        self._adjusted_s = now_s
        batch, cloud = self.use_by_group(now_s).T
        self.batch.shares = self._shares_of_batch_groups(
            batch_correction.adjusted_parts(self.pledges, batch, cloud)
        )
        lacks = self._sum_by_group(self.batch.granted(now_s))
        known = set(self._world.cloud.owners.projects)
        self.cloud.batch_use = {
            name: (used, lacks.get(name, 0.0))
            for name, used in zip(self.groups, batch.tolist(), strict=True)
            if name in known
        }

    def _sum_by_group(self, amounts: workload.Floats) -> Mapping[str, float]:
        return batch_module.by_group(self._world.jobs.owners, amounts)

    def use_by_group(self, now_s: float) -> workload.Floats:
        """(g, 2) decayed batch and cloud use, as a fraction of all hosts."""
        batch = self._sum_by_group(self.batch.use)
        cloud = self.cloud.use_by_project(now_s)
        return np.array(
            [
                [batch.get(name, 0.0), cloud.get(name, 0.0)]
                for name in self.groups
            ]
        )

    def _shares_of_batch_groups(
        self, shares: workload.Floats
    ) -> workload.Floats:
        found = dict(zip(self.groups, shares.tolist(), strict=True))
        return np.array(
            [found[name] for name in self._world.jobs.owners.projects]
        )

    def _moment(self, now_s: float) -> BorderMoment:
        owners = [border.only_user(node.state) for node in self._nodes]
        return BorderMoment(
            now_s,
            {side: owners.count(side) for side in _Side},
            sum(node.state in border.MOVING for node in self._nodes),
            {side: self._side(side).used_cores for side in _Side},
            {
                side: sum(
                    each.cores for each in self._side(side).pending_work()
                )
                for side in _Side
            },
            self.use_by_group(now_s),
        )


def _host_names(count: int) -> list[str]:
    return [f'host-{row:04d}' for row in range(count)]


def _side_status(
    is_open: bool, work: tuple[border.RunningWork, ...]
) -> border.SideStatus:
    reason = '' if is_open else border.MARK
    return border.SideStatus(is_open, True, not is_open, reason, work)


def _count_hosts_on_both_sides(snapshot: border.Snapshot) -> int:
    found = 0
    for node in snapshot.nodes:
        side = border.only_user(node.state)
        place = snapshot.place(node, side.other) if side else None
        found += place is not None and place.used
    return found


def _group_names(world: world_module.World) -> tuple[str, ...]:
    return tuple(
        sorted({*world.jobs.owners.projects, *world.cloud.owners.projects})
    )


def _pledges(
    world: world_module.World, groups: tuple[str, ...]
) -> workload.Floats:
    """(g,) pledges of the groups on both sides; they add up to 1."""
    shares = {
        name: share
        for owners in (world.jobs.owners, world.cloud.owners)
        for name, share in zip(owners.projects, owners.shares, strict=True)
    }
    found: workload.Floats = np.array([shares[name] for name in groups])
    found /= max(found.sum(), 1e-12)
    return found
