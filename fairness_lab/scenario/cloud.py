# SPDX-License-Identifier: Apache-2.0

"""A scenario as arrays: the cloud that is simulated.

n VMs that ever exist, m nodes, u users, r resources. Everything changes at
the begin of a round only. Rates are per second.
"""

from collections.abc import Sequence
import dataclasses
import functools
import math

import numpy as np
import numpy.typing as npt

from fairness_lab.scenario import chance
from fairness_lab.scenario import demand
from fairness_lab.scenario import values
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Indices = usage_model.Indices

ABSENT = -1
"""Node of a VM that does not exist."""

IDLE_MEMORY_MIB = 64.0
"""Memory of a guest that was not told to use memory."""

_PHASE = 3


@dataclasses.dataclass(frozen=True, eq=False)
class VmChanges:
    """Where VMs are and what they want, from a round on.

    :ivar round: (k,) ascending, 0 is the first round.
    :ivar vm: (k,) which VM.
    :ivar node: (k,) on which node it is from then on, or :data:`ABSENT`.
    :ivar demand: (k, r) >= 0, what it wants from then on: CPUs for
        ``cpu_time``, bytes per second, bytes of memory; infinite for as much
        as there is.
    """

    round: Indices
    vm: Indices
    node: Indices
    demand: resources.Vector


@dataclasses.dataclass(frozen=True, eq=False)
class Loops:
    """Open or closed loop of each VM; see :mod:`fairness_lab.node_sim.loops`.

    :ivar open: (n,) whether work arrives at a rate of its own (open loop).
    :ivar threads: (n,) number of threads that can run at the same time, each
        on a vCPU, >= 1.
    """

    open: resources.Mask
    threads: Scalars

    def of_rows(self, rows: Indices) -> 'Loops':
        """Return the loops of some VMs."""
        return Loops(self.open[rows], self.threads[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class Cloud:
    """A scenario: wants of VMs on nodes; no agents in it.

    :ivar name: identifier.
    :ivar description: what it shows, for people.
    :ivar interval_s: length of a round, seconds, > 0.
    :ivar rounds: how many.
    :ivar nodes: (m) names.
    :ivar cpus: (m,) CPUs, > 0.
    :ivar speed: (m,) weighted seconds per second of one CPU, > 0.
    :ivar capacity: (m, r) >= 0, per second where time-shared; ``cpu_time`` is
        CPUs x speed.
    :ivar users: (u) names, sorted.
    :ivar user_weight: (u,) > 0, parts of the supply that they may expect.
    :ivar vms: (n) names, sorted.
    :ivar user_of_vm: (n,) index of the owner.
    :ivar vcpus: (n,) >= 1.
    :ivar memory_bytes: (n,) > 0, of the flavor.
    :ivar coupled: (n, r) resources that a VM uses in the proportion of its
        demand only (Leontief); a VM without any uses each for itself.
    :ivar changes: what happens.
    :ivar silent: (rounds, m) whether a node's agent is down in that round;
        ``None`` if none ever is.
    :ivar cut: (rounds, m) whether a node neither hears others nor is heard;
        ``None`` if none ever is.
    :ivar loops: of the VMs; ``None`` if all are closed loops of one thread.
    :ivar exempt: (n,) VMs that agents do not steer; ``None``: there are none.
    """

    name: str
    description: str
    interval_s: float
    rounds: int
    nodes: tuple[str, ...]
    cpus: Scalars
    speed: Scalars
    capacity: resources.Vector
    users: tuple[str, ...]
    user_weight: Scalars
    vms: tuple[str, ...]
    user_of_vm: Indices
    vcpus: npt.NDArray[np.int64]
    memory_bytes: Scalars
    coupled: resources.Mask
    changes: VmChanges
    silent: resources.Mask | None = None
    cut: resources.Mask | None = None
    loops: Loops | None = None
    exempt: resources.Mask | None = None

    @functools.cached_property
    def exempt_vms(self) -> resources.Mask:
        """(n,) whether each VM is exempt."""
        if self.exempt is None:
            return np.zeros(len(self.vms), dtype=np.bool_)
        return self.exempt


@dataclasses.dataclass(frozen=True, eq=False)
class Links:
    """How reports travel from node to node.

    :ivar delay: (m, m) ticks from sender (column) to receiver (row), >= 0.
    :ivar loss: (m, m) probability that one report does not arrive, 0..1.
    :ivar jitter: largest extra delay, ticks, each as likely.
    :ivar seed: of the chance that decides.
    """

    delay: npt.NDArray[np.int64]
    loss: npt.NDArray[np.float64]
    jitter: int = 0
    seed: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Experiment:
    """A cloud and its agents.

    :ivar cloud: who wants what where.
    :ivar agents: who steers.
    """

    cloud: Cloud
    agents: values.AgentSpec

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.cloud.name


def phases(agents: values.AgentSpec, nodes: int) -> Indices | None:
    """Draw the tick at which each node's agent acts."""
    if not agents.spread:
        return None
    drawn = chance.uniform(agents.seed, _PHASE, np.arange(nodes))
    return np.asarray((drawn * agents.ticks).astype(np.intp))


def links(agents: values.AgentSpec, nodes: Sequence[str]) -> Links | None:
    """How reports travel between all pairs of nodes, in ticks."""
    spec = agents.links
    if spec is None:
        return None
    shape = (len(nodes), len(nodes))
    delay = np.full(
        shape, _ticks_of_rounds(agents, spec.delay), dtype=np.int64
    )
    loss = np.full(shape, spec.loss)
    for name, sender_delay, sender_loss in spec.of:
        sender = nodes.index(name)
        delay[:, sender] = _ticks_of_rounds(agents, sender_delay)
        loss[:, sender] = sender_loss
    jitter = _ticks_of_rounds(agents, spec.jitter)
    return Links(delay, loss, jitter, spec.seed)


def _ticks_of_rounds(agents: values.AgentSpec, rounds: float) -> int:
    return math.ceil(rounds * agents.ticks - 1e-9)


@dataclasses.dataclass(frozen=True, eq=False)
class VmChange:
    """Where a VM is and what it wants, from a round on.

    :ivar round: 0 for the first.
    :ivar vm: its name.
    :ivar node: name; empty if it does not exist.
    :ivar demand: (r,) as in :class:`VmChanges`.
    """

    round: int
    vm: str
    node: str
    demand: resources.Vector


def changes(
    entries: Sequence[VmChange], vms: Sequence[str], nodes: Sequence[str]
) -> VmChanges:
    """Put changes into arrays, in the order of time.

    :param vms: all names, in the order of the arrays.
    :param nodes: all names, in the order of the arrays.
    """
    ordered = sorted(entries, key=lambda entry: entry.round)
    vm_at = {name: place for place, name in enumerate(vms)}
    node_at = {name: place for place, name in enumerate(nodes)}
    node_at[''] = ABSENT
    demand = np.zeros((len(ordered), len(resources.RESOURCES)))
    for place, entry in enumerate(ordered):
        demand[place] = entry.demand
    return VmChanges(
        round=np.array([item.round for item in ordered], dtype=np.intp),
        vm=np.array([vm_at[item.vm] for item in ordered], dtype=np.intp),
        node=np.array([node_at[item.node] for item in ordered], dtype=np.intp),
        demand=demand,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class ScenarioDraft:
    """A scenario as objects, before it becomes arrays.

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
    nodes: tuple[values.NodeSpec, ...]
    user_weight: dict[str, float]
    vms: tuple[values.Vm, ...]
    changes: tuple[VmChange, ...]
    silent: resources.Mask | None = None
    cut: resources.Mask | None = None

    def cloud(self) -> Cloud:
        """The cloud as arrays; users and VMs are sorted by name."""
        vms = sorted(self.vms, key=lambda vm: vm.name)
        users = tuple(sorted({vm.user for vm in vms} | set(self.user_weight)))
        user_at = {name: place for place, name in enumerate(users)}
        nodes = tuple(node.name for node in self.nodes)
        names = tuple(vm.name for vm in vms)
        return Cloud(
            name=self.name,
            description=self.description,
            interval_s=self.interval_s,
            rounds=self.rounds,
            nodes=nodes,
            cpus=np.array([node.cpus for node in self.nodes], dtype=float),
            speed=np.array([node.speed * values.SPEED for node in self.nodes]),
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
            memory_bytes=np.array([vm.memory_mib * values.MIB for vm in vms]),
            coupled=np.array(
                [_coupled_resources(vm) for vm in vms], dtype=np.bool_
            ),
            changes=changes(self.changes, names, nodes),
            silent=self.silent,
            cut=self.cut,
            loops=_loops_of_vms(vms),
        )


def loops(
    kinds: Sequence[demand.CpuLoad], threads: Indices, vcpus: Indices
) -> Loops | None:
    """Put the loops of VMs into arrays.

    :param threads: (n,) of pools, >= 1.
    :param vcpus: (n,).
    :returns: ``None`` if all are closed loops.
    """
    if all(kind is demand.CpuLoad.CLOSED for kind in kinds):
        return None
    pool = np.array([kind is demand.CpuLoad.POOL for kind in kinds])
    return Loops(
        open=np.array([kind is demand.CpuLoad.OPEN for kind in kinds]),
        threads=np.where(pool, np.minimum(threads, vcpus), 1).astype(float),
    )


def _loops_of_vms(vms: Sequence[values.Vm]) -> Loops | None:
    return loops(
        [vm.loop for vm in vms],
        np.array([vm.threads for vm in vms]),
        np.array([vm.vcpus for vm in vms]),
    )


def _coupled_resources(vm: values.Vm) -> list[bool]:
    return [name in vm.coupled for name in resources.RESOURCES.names]
