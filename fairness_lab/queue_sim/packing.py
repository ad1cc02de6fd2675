# SPDX-License-Identifier: Apache-2.0

"""Servers that start, change their size and stop on few hosts.

The experiments of Baadal (Kumar and Dalal 2014) with the planners of this
product: requests are drawn, a strategy says where servers start, and plans
move them.
"""

from collections.abc import Iterator
import dataclasses
import enum

import numpy as np

from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import columns
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules
from nova_fairness.planners.consolidation import waves
from nova_fairness.shares import programs

_KIND, _WHICH, _MEMORY, _VCPU = range(4)
_DEPTH = displacement.Depth()


class PackedKind(enum.IntEnum):
    """The kind of a request."""

    START = 0
    RESIZE = 1
    STOP = 2


class Sizes(enum.Enum):
    """Sizes of servers, each class for itself, of hosts of 16 and 16."""

    POWERS = 'powers'
    """1, 2, 4 or 8, all as often: a half of a host at most."""

    FLOATS = 'floats'
    """Any amount up to a half of a host, equally spread."""


HOST = 16_000
"""Amount of each class that a host has: thousandths of GB and of cores."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mix:
    """Requests of an experiment.

    Of those that change no size, ``servers`` start one for every so many that
    stop one as there are servers: as many start as stop once so many run.

    :ivar count: of requests.
    :ivar servers: that run on average, once there are so many.
    :ivar resize: part of requests that change the size of one, 0 to 1.
    :ivar sizes: what servers ask for.
    """

    count: int
    servers: int
    resize: float
    sizes: Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Strategy:
    """Where servers start, and what moves them.

    :ivar rule: of placement.
    :ivar every: requests after which hosts are emptied; 0 for never.
    :ivar has_rescue: whether room is made for servers that fit nowhere.
    :ivar has_repack: whether all is packed again besides, each time.
    :ivar depth: how far room is made.
    :ivar is_one: whether all hosts count as one: then nothing is refused
        because of where servers are.
    """

    rule: str = 'fullest'
    every: int = 0
    has_rescue: bool = False
    has_repack: bool = False
    depth: displacement.Depth = _DEPTH
    is_one: bool = False


@dataclasses.dataclass(slots=True)
class PackingOutcome:
    """Results of a strategy.

    :ivar busy: hosts in use after each request.
    :ivar refused: starts and changes of size that found no room.
    :ivar moves: of servers.
    """

    busy: list[int]
    refused: int = 0
    moves: int = 0

    @property
    def mean_busy(self) -> float:
        """Hosts in use on average."""
        return float(np.mean(self.busy))


class Packing:
    """One run.

    :param mix: of requests.
    :param strategy: what is done.
    :param hosts: that there are.
    :param seed: of all that is drawn, >= 0.

    :ivar outcome: so far.
    """

    def __init__(
        self, mix: Mix, strategy: Strategy, hosts: int, seed: int
    ) -> None:
        self._mix, self._strategy, self._seed = mix, strategy, seed
        names = [f'host-{n:04}' for n in range(hosts)]
        self._providers = tuple(cluster.Provider(each, each) for each in names)
        self._running: dict[str, cluster.Running] = {}
        empty = np.zeros((hosts, len(workload.CLASSES)), dtype=np.int64)
        self._inventory = cluster.Inventory(
            empty + HOST, empty, empty + HOST, empty + 1
        )
        self._hosts = hosts_module.Hosts(self.snapshot())
        self._rule = weighers.RULES[strategy.rule]
        self._rules = rules.ConsolidationRules(
            rule=self._rule,
            depth=strategy.depth,
            concurrency=waves.MoveConcurrency(1000, 1000),
        )
        self.outcome = PackingOutcome([])

    def snapshot(self) -> cluster.ClusterSnapshot:
        """The cloud now."""
        return cluster.ClusterSnapshot(
            workload.CLASSES,
            self._providers,
            dataclasses.replace(
                self._inventory, used=self._inventory.used.copy()
            ),
            running=tuple(self._running.values()),
        )

    def run(self) -> Iterator[int]:
        """Go through the requests; gives the number of servers after each."""
        mix, every = self._mix, self._strategy.every
        rows = np.arange(mix.count)
        kinds = chance.uniform(self._seed, _KIND, rows)
        which = chance.uniform(self._seed, _WHICH, rows)
        for n in range(mix.count):
            self._process_request(
                n, self._choose_kind(float(kinds[n])), float(which[n])
            )
            if every and (n + 1) % every == 0:
                self.plan()
            self.outcome.busy.append(self.busy)
            yield len(self._running)

    @property
    def busy(self) -> int:
        """Hosts in use."""
        return int(self._inventory.used.any(axis=1).sum())

    @property
    def bound(self) -> int:
        """Hosts that all together fill, class by class."""
        used = self._inventory.used.sum(axis=0)
        return int(-(-used // HOST).max())

    def start(self, uuid: str, demand: request_model.Demand) -> None:
        """Start a server, or refuse it."""
        if not self._try_to_place(uuid, demand):
            self.outcome.refused += 1

    def stop(self, uuid: str) -> None:
        """Stop a server, if it was not refused."""
        if (server := self._running.pop(uuid, None)) is not None:
            self._change_allocation(server, -1)

    def plan(self) -> None:
        """Move servers as the strategy says."""
        strategy = self._strategy
        self._move(planner.consolidate(self.snapshot(), self._rules))
        if strategy.has_repack:
            self._move(repack.repack(self.snapshot(), self._rules))

    def _choose_kind(self, drawn: float) -> PackedKind:
        mix, count = self._mix, len(self._running)
        start = (1.0 - mix.resize) * mix.servers / (mix.servers + count)
        if not count or drawn < start:
            return PackedKind.START
        return (
            PackedKind.RESIZE
            if drawn < start + mix.resize
            else PackedKind.STOP
        )

    def _process_request(self, n: int, kind: PackedKind, which: float) -> None:
        uuid = f'{n:08}'
        if kind is not PackedKind.START:
            uuid = list(self._running)[int(which * len(self._running))]
            before = self._running.pop(uuid)
            self._change_allocation(before, -1)
        if kind is not PackedKind.STOP and not self._try_to_place(
            uuid, self._size(n)
        ):
            self.outcome.refused += 1
            # A change that finds no room leaves the server as it is.
            if kind is PackedKind.RESIZE:
                self._running[uuid] = before
                self._change_allocation(before, 1)

    def _size(self, n: int) -> request_model.Demand:
        drawn = [
            float(chance.uniform(self._seed, key, n))
            for key in (_MEMORY, _VCPU)
        ]
        if self._mix.sizes is Sizes.POWERS:
            amounts = [HOST // 16 << int(4 * each) for each in drawn]
        else:
            amounts = [1 + int(each * HOST / 2) for each in drawn]
        return request_model.Demand(
            tuple(zip(workload.CLASSES, amounts, strict=True))
        )

    def _try_to_place(self, uuid: str, demand: request_model.Demand) -> bool:
        row = self._find_row(uuid, demand)
        if row is None and self._strategy.has_rescue:
            asked = request_model.Request(uuid, '', '', (uuid,), demand, 0.0)
            plan = planner.rescue(self.snapshot(), asked, self._rules)
            if plan is not None:
                self._move(plan)
                row = self._find_row(uuid, demand)
        if row is None:
            return False
        self._running[uuid] = cluster.Running(
            self._hosts.names[row],
            '',
            demand.amounts,
            0.0,
            uuid=uuid,
            demand=demand,
        )
        self._change_allocation(self._running[uuid], 1)
        return True

    def fewest_hosts_needed(self) -> int:
        """Hosts that are needed at least, as patterns prove."""
        sizes, counts = np.unique(
            [
                cluster.amounts_vector(dict(each.amounts), workload.CLASSES)
                for each in self._running.values()
            ],
            axis=0,
            return_counts=True,
        )
        hosts = np.array([len(self._hosts.names)])
        found = columns.pack(
            columns.PackingTask(
                sizes,
                counts,
                np.full((1, len(workload.CLASSES)), HOST),
                counts[np.newaxis],
                programs.Sorts(hosts, np.ones(1)),
            )
        )
        return 0 if found is None else found.bound

    def _find_row(self, uuid: str, demand: request_model.Demand) -> int | None:
        """The row of a host in use, or else of an empty one."""
        used = self._inventory.used
        if self._strategy.is_one:
            left = (self._inventory.capacity - used).sum(axis=0)
            asked = cluster.amounts_vector(
                dict(demand.amounts), workload.CLASSES
            )
            return 0 if (asked <= left).all() else None
        busy = np.asarray(used.any(axis=1))
        for allowed in (busy, ~busy):
            rows = weighers.choose_host(
                self._hosts,
                (self._inventory.capacity - used).T,
                self._hosts.shape(demand),
                self._rule,
                weighers.salt_of(uuid, self._seed),
                allowed,
            )
            if len(rows):
                return int(rows[0])
        return None

    def _move(self, plan: rules.ConsolidationPlan) -> None:
        for move in plan.moves:
            server = self._running[move.server]
            self._change_allocation(server, -1)
            there = dataclasses.replace(server, host=move.target)
            self._running[move.server] = there
            self._change_allocation(there, 1)
        self.outcome.moves += len(plan.moves)

    def _change_allocation(self, server: cluster.Running, sign: int) -> None:
        [row] = self._hosts.rows([server.host])
        amounts = cluster.amounts_vector(
            dict(server.amounts), workload.CLASSES
        )
        self._inventory.used[row] += sign * amounts
