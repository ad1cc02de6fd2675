# SPDX-License-Identifier: Apache-2.0


"""What a scenario of the simulator says: a cloud and its agents."""

from collections.abc import Sequence
import dataclasses
import math

import numpy as np

from fairness_lab.scenario import chance
from fairness_lab.simulator import loops
from fairness_lab.simulator import model
from nova_fairness.model import defaults
from nova_fairness.model import resources

MIB = float(1 << 20)
MBIT = 1e6 / 8
IDLE_MEMORY_MIB = 64.0
"""What a guest occupies that was not told to use memory."""

SPEED = 1000.0
"""Weighted seconds per second of a CPU of speed 1."""

_PHASE = 3


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSpec:
    """A compute node.

    :ivar name: its own.
    :ivar cpus: number of CPUs, > 0.
    :ivar speed: of a CPU, relative to an ordinary one, > 0.
    :ivar memory_mib: memory that its VMs may use, MiB.
    :ivar disk_mib_s: rate of its disk, each direction, MiB/s.
    :ivar network_mbit_s: rate of its network, each direction, Mbit/s.
    """

    name: str
    cpus: float = 1.0
    speed: float = 1.0
    memory_mib: float = 4096.0
    disk_mib_s: float = 200.0
    network_mbit_s: float = 1000.0

    def capacity(self) -> resources.Vector:
        """Its capacity per second, (r,)."""
        return resources.RESOURCES.vector(
            cpu_time=self.cpus * self.speed * SPEED,
            disk_read=self.disk_mib_s * MIB,
            disk_written=self.disk_mib_s * MIB,
            net_received=self.network_mbit_s * MBIT,
            net_sent=self.network_mbit_s * MBIT,
            memory=self.memory_mib * MIB,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class VmSpec:
    """A virtual machine.

    :ivar name: its own.
    :ivar user: whose it is.
    :ivar vcpus: number of virtual CPUs, >= 1.
    :ivar memory_mib: of its flavor, MiB.
    :ivar coupled: names of the resources that it uses together.
    :ivar loop: how work comes to it.
    :ivar threads: that do it; more than one in a pool only.
    """

    name: str
    user: str
    vcpus: int = 1
    memory_mib: float = 128.0
    coupled: tuple[str, ...] = ()
    loop: loops.Loop = loops.Loop.CLOSED
    threads: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """Where a VM is and what it wants, from a round on.

    :ivar round: 0 for the first.
    :ivar vm: its name.
    :ivar node: name; empty if it does not exist.
    :ivar demand: (r,) as in :class:`.model.Changes`.
    """

    round: int
    vm: str
    node: str
    demand: resources.Vector


@dataclasses.dataclass(frozen=True, slots=True)
class LinkSpec:
    """How reports travel.

    :ivar delay: rounds, >= 0.
    :ivar jitter: largest extra delay, rounds, >= 0.
    :ivar loss: probability that one does not arrive, 0..1.
    :ivar of: delay and loss of the reports of some nodes, by their names.
    :ivar seed: of the chance.
    """

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    of: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class AgentSpec:
    """What the agents are.

    :ivar metric: name of their metric.
    :ivar policy: name of their policy, or of a reference.
    :ivar decay_factor: part of the newest interval, in (0, 1].
    :ivar max_weight_ratio: >= 1.
    :ivar largest_step: factor per round, >= 1.
    :ivar weight_tolerance: relative change that is worth a write.
    :ivar view_max_age: rounds after which a report does not count.
    :ivar controls: that are steered.
    :ivar ticks: parts of a round at which agents can act.
    :ivar spread: whether each acts at a tick drawn for it, else all together.
    :ivar links: how reports travel; ``None``: at once.
    :ivar seed: of the chance.
    """

    metric: str = defaults.METRIC
    policy: str = defaults.POLICY
    decay_factor: float = 0.5
    max_weight_ratio: float = 20.0
    largest_step: float = 4.0
    weight_tolerance: float = 0.01
    view_max_age: float = 3.0
    controls: tuple[resources.Control, ...] = resources.CONTROLS
    ticks: int = 1
    spread: bool = False
    links: LinkSpec | None = None
    seed: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Scenario:
    """One experiment.

    :ivar cloud: who wants what where.
    :ivar agents: who steers.
    """

    cloud: model.Cloud
    agents: AgentSpec

    @property
    def name(self) -> str:
        """Its identifier."""
        return self.cloud.name


def phases(agents: AgentSpec, nodes: int) -> model.Indices | None:
    """Draw the tick at which each node's agent acts."""
    if not agents.spread:
        return None
    drawn = chance.uniform(agents.seed, _PHASE, np.arange(nodes))
    return np.asarray((drawn * agents.ticks).astype(np.intp))


def links(agents: AgentSpec, nodes: Sequence[str]) -> model.Links | None:
    """How reports travel between all pairs of nodes, in ticks."""
    spec = agents.links
    if spec is None:
        return None
    shape = (len(nodes), len(nodes))
    delay = np.full(shape, _ticks(agents, spec.delay), dtype=np.int64)
    loss = np.full(shape, spec.loss)
    for name, sender_delay, sender_loss in spec.of:
        sender = nodes.index(name)
        delay[:, sender] = _ticks(agents, sender_delay)
        loss[:, sender] = sender_loss
    jitter = _ticks(agents, spec.jitter)
    return model.Links(delay, loss, jitter, spec.seed)


def _ticks(agents: AgentSpec, rounds: float) -> int:
    return math.ceil(rounds * agents.ticks - 1e-9)


def changes(
    entries: Sequence[Change], vms: Sequence[str], nodes: Sequence[str]
) -> model.Changes:
    """Bring what happens into arrays, in the order of time.

    :param vms: all names, in the order of the arrays.
    :param nodes: likewise.
    """
    ordered = sorted(entries, key=lambda entry: entry.round)
    vm_at = {name: place for place, name in enumerate(vms)}
    node_at = {name: place for place, name in enumerate(nodes)}
    node_at[''] = model.ABSENT
    demand = np.zeros((len(ordered), len(resources.RESOURCES)))
    for place, entry in enumerate(ordered):
        demand[place] = entry.demand
    return model.Changes(
        round=np.array([item.round for item in ordered], dtype=np.intp),
        vm=np.array([vm_at[item.vm] for item in ordered], dtype=np.intp),
        node=np.array([node_at[item.node] for item in ordered], dtype=np.intp),
        demand=demand,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Story:
    """A scenario in words, before it becomes arrays.

    :ivar name: identifier.
    :ivar description: for people.
    :ivar interval_s: of a round, seconds.
    :ivar rounds: how many.
    :ivar nodes: in the order of the arrays.
    :ivar user_weight: by name of the user.
    :ivar vms: any order.
    :ivar changes: any order; those of one VM and round in theirs.
    :ivar silent: (rounds, m) or ``None``.
    :ivar cut: (rounds, m) or ``None``.
    """

    name: str
    description: str
    interval_s: float
    rounds: int
    nodes: tuple[NodeSpec, ...]
    user_weight: dict[str, float]
    vms: tuple[VmSpec, ...]
    changes: tuple[Change, ...]
    silent: resources.Mask | None = None
    cut: resources.Mask | None = None

    def cloud(self) -> model.Cloud:
        """The cloud as arrays; users and VMs are sorted by name."""
        vms = sorted(self.vms, key=lambda vm: vm.name)
        users = tuple(sorted({vm.user for vm in vms} | set(self.user_weight)))
        user_at = {name: place for place, name in enumerate(users)}
        nodes = tuple(node.name for node in self.nodes)
        names = tuple(vm.name for vm in vms)
        return model.Cloud(
            name=self.name,
            description=self.description,
            interval_s=self.interval_s,
            rounds=self.rounds,
            nodes=nodes,
            cpus=np.array([node.cpus for node in self.nodes], dtype=float),
            speed=np.array([node.speed * SPEED for node in self.nodes]),
            capacity=np.array([node.capacity() for node in self.nodes]),
            users=users,
            user_weight=np.array(
                [self.user_weight.get(user, 1.0) for user in users]
            ),
            vms=names,
            user_of_vm=np.array(
                [user_at[vm.user] for vm in vms], dtype=np.intp
            ),
            vcpus=np.array([vm.vcpus for vm in vms], dtype=np.int64),
            memory_bytes=np.array([vm.memory_mib * MIB for vm in vms]),
            coupled=np.array([_coupled(vm) for vm in vms], dtype=np.bool_),
            changes=changes(self.changes, names, nodes),
            silent=self.silent,
            cut=self.cut,
            loops=_loops(vms),
        )


def _loops(vms: Sequence[VmSpec]) -> model.Loops | None:
    return loops.of(
        [vm.loop for vm in vms],
        np.array([vm.threads for vm in vms]),
        np.array([vm.vcpus for vm in vms]),
    )


def _coupled(vm: VmSpec) -> list[bool]:
    return [name in vm.coupled for name in resources.RESOURCES.names]
