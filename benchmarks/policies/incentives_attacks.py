# SPDX-License-Identifier: Apache-2.0

"""Attacks of users who want more than their part, as pairs of clouds.

Each attack changes the VMs of one user in a small random cloud and leaves all
others as they are. A cloud is a list of VMs: the CPU that programs want of
each, and the CPU that the VM burns beyond that to look busy.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import math

import numpy as np

from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import demand as demand_module
from fairness_lab.scenario import values as scenario_module
from nova_fairness.model import resources

ATTACKER = 0
"""Index of the user who attacks."""

QUARTERS = 4
"""Parts of an interval in which something else can be wanted, where phases
follow the rounds."""

INTERVAL_S = 10.0
ROUNDS = 24
"""Of the agents."""

BUSY = 1.1
"""On one node of the attacker's at least so many times what it has is
wanted."""

IDLE = 0.02
"""CPUs that an idle VM uses, for no work."""

MANY = 64
"""Threads of one vCPU; some kernels count the time in which any waits."""

_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Vm:
    """A virtual machine and what it does.

    :ivar node: index.
    :ivar user: index.
    :ivar vcpus: >= 1.
    :ivar works: CPUs that its programs want.
    :ivar spins: CPUs that it burns beyond that. Programs go first: what the
        VM gets is theirs up to what they want.
    :ivar loop: how work comes.
    :ivar threads: that seem to wait at once.
    :ivar phases: factors of ``works`` in successive parts, again and again.
    """

    node: int
    user: int
    vcpus: int
    works: float
    spins: float = 0.0
    loop: demand_module.CpuLoad = demand_module.CpuLoad.CLOSED
    threads: int = 1
    phases: tuple[float, ...] = (1.0,)


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A small cloud.

    :ivar cpus: of each node.
    :ivar users: how many.
    :ivar vms: on these nodes.
    :ivar attackers: indices of the users that are one person.
    :ivar parts: of an interval, in which something else can be wanted.
    :ivar quotas: of users, relative to each other; 1 beyond these.
    """

    cpus: tuple[float, ...]
    users: int
    vms: tuple[Vm, ...]
    attackers: tuple[int, ...] = (ATTACKER,)
    parts: int = 1
    quotas: tuple[float, ...] = ()

    def attacker_vms(self) -> list[Vm]:
        """The attacker's VMs."""
        return [vm for vm in self.vms if vm.user in self.attackers]

    def with_attacker_vms(self, vms: list[Vm]) -> 'Cloud':
        """Replace the attacker's VMs."""
        others = [vm for vm in self.vms if vm.user not in self.attackers]
        return dataclasses.replace(self, vms=(*vms, *others))

    def with_each_changed(self, change: Callable[[Vm], Vm]) -> 'Cloud':
        """Change each of the attacker's VMs."""
        return self.with_attacker_vms(
            [change(vm) for vm in self.attacker_vms()]
        )

    def does_attacker_lack_cpus(self) -> bool:
        """Tell whether the attacker's work lacks CPUs somewhere."""
        asked = np.zeros(len(self.cpus))
        for vm in self.vms:
            asked[vm.node] += vm.works
        short = asked > BUSY * np.array(self.cpus)
        return any(short[vm.node] for vm in self.attacker_vms())


Pair = tuple[Cloud, Cloud]
"""The honest one, and the one with the attack."""


def draw_cloud(seed: int, number: int, mine: int, vcpus: int) -> Cloud:
    """Draw a cloud in which the attacker competes with others.

    :param mine: VMs of the attacker.
    :param vcpus: of each of these.
    """
    chance = np.random.default_rng([seed, number])
    while True:
        nodes = int(chance.integers(2, 5))
        cpus = tuple(float(size) for size in chance.choice([4, 8], nodes))
        users = int(chance.integers(3, 7))
        own = [
            Vm(
                node=int(chance.integers(nodes)),
                user=ATTACKER,
                vcpus=vcpus,
                works=vcpus * float(chance.uniform(0.1, 1.0)),
            )
            for _ in range(mine)
        ]
        found = Cloud(cpus, users, (*own, *_others(chance, nodes, users)))
        if found.does_attacker_lack_cpus():
            return found


def _others(
    chance: np.random.Generator, nodes: int, users: int
) -> Iterator[Vm]:
    for user in range(1, users):
        for _ in range(int(chance.integers(2, 8))):
            vcpus = int(chance.choice([1, 2, 4]))
            yield Vm(
                node=int(chance.integers(nodes)),
                user=user,
                vcpus=vcpus,
                works=vcpus * float(chance.uniform(0.1, 1.0)),
            )


def idle_spin(cloud: Cloud) -> Pair:
    """Idle VMs, one beside each busy one and one on each node, burn CPU."""
    mine = cloud.attacker_vms()
    nodes = [vm.node for vm in mine] + list(range(len(cloud.cpus)))
    idle = [_idle(node) for node in nodes]
    burning = [dataclasses.replace(vm, spins=2.0) for vm in idle]
    return cloud.with_attacker_vms(mine + idle), cloud.with_attacker_vms(
        mine + burning
    )


def _idle(node: int) -> Vm:
    return Vm(node, ATTACKER, 2, works=0.0, spins=IDLE)


def idle_everywhere(cloud: Cloud) -> Pair:
    """An idle VM more on each node."""
    idle = [_idle(node) for node in range(len(cloud.cpus))]
    return cloud, cloud.with_attacker_vms(cloud.attacker_vms() + idle)


def busy_spin(cloud: Cloud) -> Pair:
    """Busy VMs burn what their programs leave of their vCPUs."""
    return cloud, cloud.with_each_changed(_spinning)


def _spinning(vm: Vm) -> Vm:
    return dataclasses.replace(vm, spins=vm.vcpus - vm.works)


def many_threads(cloud: Cloud) -> Pair:
    """Of each vCPU, many threads seem to wait."""
    return cloud, cloud.with_each_changed(_with_many_threads)


def _with_many_threads(vm: Vm) -> Vm:
    return dataclasses.replace(
        vm, loop=demand_module.CpuLoad.POOL, threads=MANY
    )


def split(cloud: Cloud) -> Pair:
    """Large VMs become VMs of one vCPU each, which do as much together."""
    return cloud, cloud.with_attacker_vms(
        [
            dataclasses.replace(vm, vcpus=1, works=vm.works / vm.vcpus)
            for vm in cloud.attacker_vms()
            for _ in range(vm.vcpus)
        ]
    )


def split_uneven(cloud: Cloud) -> Pair:
    """Large VMs become small ones; as few as possible do all the work."""
    return cloud, cloud.with_attacker_vms(
        [
            dataclasses.replace(
                vm, vcpus=1, works=min(1.0, max(vm.works - done, 0.0))
            )
            for vm in cloud.attacker_vms()
            for done in range(vm.vcpus)
        ]
    )


def merged(cloud: Cloud) -> Pair:
    """VMs of one vCPU each become large ones."""
    large, small = split(cloud)
    return small, large


def sybil(ids: int, whole: float = 0.0) -> Callable[[Cloud], Pair]:
    """VMs are started by turns by several users that are one person.

    :param whole: quota of all of them together; 0 where each has one.
    """

    def made(cloud: Cloud) -> Pair:
        names = (ATTACKER, *range(cloud.users, cloud.users + ids - 1))
        vms = [
            dataclasses.replace(vm, user=names[place % ids])
            for place, vm in enumerate(cloud.attacker_vms())
        ]
        part = whole / ids if whole else 1.0
        old = (1.0,) * (cloud.users - 1)
        attacked = dataclasses.replace(
            cloud.with_attacker_vms(vms),
            users=cloud.users + ids - 1,
            attackers=names,
            quotas=(part, *old, *(part,) * (ids - 1)),
        )
        return cloud, attacked

    return made


def spread(cloud: Cloud) -> Pair:
    """VMs of one node go to all nodes by turns."""
    home = max(
        range(len(cloud.cpus)),
        key=lambda node: sum(vm.works for vm in cloud.vms if vm.node == node),
    )
    honest = cloud.with_each_changed(
        lambda vm: dataclasses.replace(vm, node=home)
    )
    return honest, cloud.with_attacker_vms(
        [
            dataclasses.replace(vm, node=place % len(cloud.cpus))
            for place, vm in enumerate(cloud.attacker_vms())
        ]
    )


def phased(*phases: float) -> Callable[[Cloud], Pair]:
    """The same work comes in phases that follow the rounds.

    :param phases: what is wanted in successive quarters of an interval,
        relative to each other.
    """

    def made(cloud: Cloud) -> Pair:
        honest = dataclasses.replace(
            cloud.with_each_changed(_with_room_for_phases), parts=QUARTERS
        )
        mean = sum(phases) / len(phases)
        factors = tuple(each / mean for each in phases)
        return honest, honest.with_each_changed(
            lambda vm: dataclasses.replace(vm, phases=factors)
        )

    return made


def _with_room_for_phases(vm: Vm) -> Vm:
    """Leave room for phases of twice the work."""
    return dataclasses.replace(vm, works=vm.works / 2)


def resting(*phases: float) -> Callable[[Cloud], Pair]:
    """Users who want all the time want nothing in some quarters."""

    def made(cloud: Cloud) -> Pair:
        busy = cloud.with_each_changed(
            lambda vm: dataclasses.replace(vm, works=vm.vcpus)
        )
        honest = dataclasses.replace(busy, parts=QUARTERS)
        return honest, honest.with_each_changed(
            lambda vm: dataclasses.replace(vm, phases=phases)
        )

    return made


def oversized(cloud: Cloud) -> Pair:
    """VMs ask for four times the vCPUs that their work needs."""
    honest = cloud.with_each_changed(
        lambda vm: dataclasses.replace(vm, vcpus=math.ceil(vm.works))
    )
    return honest, honest.with_each_changed(_larger)


def _larger(vm: Vm) -> Vm:
    return dataclasses.replace(vm, vcpus=4 * vm.vcpus)


def oversized_spin(cloud: Cloud) -> Pair:
    """VMs ask for four times the vCPUs and burn what their work leaves."""
    honest, attacked = oversized(cloud)
    return honest, attacked.with_each_changed(_spinning)


def open_loop(cloud: Cloud) -> Pair:
    """Work comes at a rate of its own, and what is not done is done later."""
    return cloud, cloud.with_each_changed(
        lambda vm: dataclasses.replace(vm, loop=demand_module.CpuLoad.OPEN)
    )


def alternating(quarters: int) -> Callable[[Cloud], Pair]:
    """Of VMs that work all the time, one works for all by turns.

    :param quarters: of an interval for which one works.
    """

    def made(cloud: Cloud) -> Pair:
        count = len(cloud.attacker_vms())
        calm = [
            dataclasses.replace(vm, works=vm.works / count)
            for vm in cloud.attacker_vms()
        ]
        honest = dataclasses.replace(
            cloud.with_attacker_vms(calm), parts=QUARTERS
        )
        return honest, honest.with_attacker_vms(
            [
                dataclasses.replace(vm, phases=_turn(place, count, quarters))
                for place, vm in enumerate(calm)
            ]
        )

    return made


def _turn(place: int, count: int, quarters: int) -> tuple[float, ...]:
    own = [float(count) if turn == place else 0.0 for turn in range(count)]
    return tuple(factor for factor in own for _ in range(quarters))


ATTACKS: Mapping[str, tuple[int, int, Callable[[Cloud], Pair]]] = {
    'idle VMs burn CPU': (2, 2, idle_spin),
    'idle VMs on all nodes': (3, 2, idle_everywhere),
    'busy VMs burn what they leave': (3, 2, busy_spin),
    'many threads on one vCPU, which work': (3, 1, busy_spin),
    'many threads on one vCPU, which seem to wait': (3, 1, many_threads),
    'one large VM as many small ones': (2, 4, split),
    'one large VM as small ones, few of them busy': (2, 4, split_uneven),
    'many small VMs as one large': (2, 4, merged),
    'two user ids': (4, 2, sybil(2)),
    'two user ids, half a quota each': (4, 2, sybil(2, 1.0)),
    'four user ids': (4, 2, sybil(4)),
    'spread': (4, 2, spread),
    'phases of half an interval': (3, 2, phased(1, 0)),
    'phases of an interval': (3, 2, phased(1, 1, 0, 0)),
    'phases of two intervals': (3, 2, phased(1, 1, 1, 1, 0, 0, 0, 0)),
    'phases of two intervals, shifted': (
        3,
        2,
        phased(0, 0, 1, 1, 1, 1, 0, 0),
    ),
    'rest a quarter of each interval': (3, 2, resting(1, 1, 1, 0)),
    'rest half of an interval in four': (
        3,
        2,
        resting(*[1] * 14, *[0] * 2),
    ),
    'rest an interval in four': (3, 2, resting(*[1] * 12, *[0] * 4)),
    'rest every other interval': (3, 2, resting(1, 1, 1, 1, 0, 0, 0, 0)),
    'four times the vCPUs': (3, 2, oversized),
    'four times the vCPUs, burning': (3, 2, oversized_spin),
    'open instead of closed loops': (3, 2, open_loop),
    'VMs by turns, in each interval': (4, 2, alternating(1)),
    'VMs by turns, an interval each': (4, 2, alternating(4)),
    'VMs by turns, two intervals each': (4, 2, alternating(8)),
}
"""How many VMs of how many vCPUs the attacker has, and what makes a pair."""


def pair(name: str, seed: int, number: int) -> Pair:
    """Draw a cloud and the same with an attack."""
    mine, vcpus, made = ATTACKS[name]
    return made(draw_cloud(seed, number, mine, vcpus))


def scenario(cloud: Cloud) -> cloud_module.Experiment:
    """Put a cloud into the simulator.

    Agents act once in an interval; where it has parts, not all in the same.
    """
    nodes = [
        scenario_module.NodeSpec(
            f'node{place}', cpus=cpus, memory_mib=2**18, disk_mib_s=200.0
        )
        for place, cpus in enumerate(cloud.cpus)
    ]
    count, rounds = len(cloud.vms), ROUNDS * cloud.parts
    silent = np.subtract.outer(np.arange(rounds), np.arange(len(nodes)))
    quotas = np.ones(cloud.users)
    quotas[: len(cloud.quotas)] = cloud.quotas
    made = cloud_module.Cloud(
        name='attack',
        description='drawn',
        interval_s=INTERVAL_S / cloud.parts,
        rounds=rounds,
        nodes=tuple(spec.name for spec in nodes),
        cpus=np.array(cloud.cpus),
        speed=np.full(len(nodes), scenario_module.SPEED),
        capacity=np.array([spec.capacity() for spec in nodes]),
        users=tuple(f'user{place}' for place in range(cloud.users)),
        user_weight=quotas,
        vms=tuple(f'vm{place:03d}' for place in range(count)),
        user_of_vm=np.array([vm.user for vm in cloud.vms]),
        vcpus=np.array([vm.vcpus for vm in cloud.vms]),
        memory_bytes=np.full(count, 512.0 * _MIB),
        coupled=np.zeros((count, len(resources.RESOURCES)), dtype=np.bool_),
        changes=_changes(cloud, rounds),
        silent=silent % cloud.parts != cloud.parts - 1,
        loops=cloud_module.Loops(
            open=np.array(
                [vm.loop is demand_module.CpuLoad.OPEN for vm in cloud.vms]
            ),
            threads=np.array([float(vm.threads) for vm in cloud.vms]),
        ),
    )
    agents = scenario_module.AgentSpec(view_max_age=3.0 * cloud.parts)
    return cloud_module.Experiment(made, agents)


def works(cloud: Cloud, part: int) -> np.ndarray:
    """CPUs that the programs of each VM want in a part, (n,)."""
    return np.array(
        [vm.works * vm.phases[part % len(vm.phases)] for vm in cloud.vms]
    )


def _changes(cloud: Cloud, rounds: int) -> cloud_module.VmChanges:
    count = len(cloud.vms)
    steady = all(len(vm.phases) == 1 for vm in cloud.vms)
    begins = 1 if steady else rounds
    spins = np.array([vm.spins for vm in cloud.vms])
    demand = np.zeros((begins, count, len(resources.RESOURCES)))
    for part in range(begins):
        cpu = resources.RESOURCES.index('cpu_time')
        demand[part, :, cpu] = works(cloud, part) + spins
    demand[:, :, resources.RESOURCES.index('memory')] = 64 * _MIB
    return cloud_module.VmChanges(
        np.repeat(np.arange(begins), count),
        np.tile(np.arange(count), begins),
        np.tile(np.array([vm.node for vm in cloud.vms]), begins),
        demand.reshape(begins * count, -1),
    )
