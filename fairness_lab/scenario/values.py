# SPDX-License-Identifier: Apache-2.0

"""Contents of a scenario: frozen values, no effects."""

from collections.abc import Mapping
import dataclasses
import enum
import pathlib
from typing import Any

from fairness_lab.results import checks
from fairness_lab.scenario import demand
from fairness_lab.scenario import recipes
from nova_fairness.model import defaults
from nova_fairness.model import resources

MIB = float(1 << 20)
MBIT = 1e6 / 8

SPEED = 1000.0
"""Weighted seconds per second of a CPU of speed 1."""

SMALLEST_MEMORY_MIB = 96
"""A real guest does not boot reliably with less."""

CACHE_MODES = ('none', 'writethrough', 'writeback', 'directsync', 'unsafe')

IO_MODES = ('native', 'threads', 'io_uring')
"""How QEMU hands requests to the kernel."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSpec:
    """A compute node.

    :ivar name: host name.
    :ivar cpus: number of CPUs, > 0.
    :ivar cpu_numbers: which CPUs of the machine a real node has; empty where
        that is not said.
    :ivar speed: of a simulated CPU, relative to an ordinary one, > 0.
    :ivar memory_mib: memory that its VMs may use, MiB; whole for real nodes.
    :ivar disk_mib_s: rate of its disk, each direction, MiB/s.
    :ivar disk_scheduler: of a disk of its own that has this rate, reading
        and writing together: ``bfq``, ``mq-deadline``, ``kyber`` or
        ``none``; empty lets it use the machine's.
    :ivar network_mbit_s: rate of its network, each direction, Mbit/s.
    :ivar uplink: whether its bridge has an uplink, ``uplink0``, to a machine
        at its far end; without, guests reach the node.
    """

    name: str
    cpus: float = 1.0
    cpu_numbers: tuple[int, ...] = ()
    speed: float = 1.0
    memory_mib: float = 4096
    disk_mib_s: float = 200.0
    disk_scheduler: str = ''
    network_mbit_s: float = 1000.0
    uplink: bool = False

    def capacity(self) -> resources.Vector:
        """Capacity of the node per second, (r,)."""
        return resources.RESOURCES.vector(
            cpu_time=self.cpus * self.speed * SPEED,
            disk_read=self.disk_mib_s * MIB,
            disk_written=self.disk_mib_s * MIB,
            net_received=self.network_mbit_s * MBIT,
            net_sent=self.network_mbit_s * MBIT,
            memory=self.memory_mib * MIB,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """An owner of VMs.

    :ivar name: of the user, and of the project.
    :ivar weight: part of the supply that the user is entitled to, relative
        to the others, > 0.
    """

    name: str
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class GuestDisk:
    """One disk of a real guest.

    :ivar size_mib: MiB.
    :ivar cache: one of :data:`CACHE_MODES`.
    :ivar io: one of :data:`IO_MODES`; empty leaves the choice to QEMU.
    """

    size_mib: int = 64
    cache: str = 'none'
    io: str = ''


@dataclasses.dataclass(frozen=True)
class Vm:
    """A virtual machine.

    :ivar name: as its user calls it.
    :ivar user: name of its owner; the project is called the same. Needed.
    :ivar node: on which node it is at first; needed if there are several.
    :ivar group: name that it shares with its copies.
    :ivar vcpus: number of vCPUs, > 0.
    :ivar memory_mib: of its flavor, MiB; whole, and at least 96, for a real
        guest.
    :ivar disks: of a real guest, ``/dev/vda`` first.
    :ivar nics: number of network interfaces of a real guest, 0 to 4.
    :ivar coupled: names of the resources that a simulated VM uses together.
    :ivar loop: way of a simulated VM's work if its load does not say.
    :ivar threads: that do this work, in a pool.
    :ivar extra_specs: of its flavor.
    :ivar cputune: elements of ``<cputune>``, such as ``shares``.
    """

    name: str
    user: str
    node: str = ''
    group: str = ''
    _: dataclasses.KW_ONLY
    vcpus: int = 1
    memory_mib: float = SMALLEST_MEMORY_MIB
    disks: tuple[GuestDisk, ...] = ()
    nics: int = 0
    coupled: tuple[str, ...] = ()
    loop: demand.CpuLoad = demand.CpuLoad.CLOSED
    threads: int = 1
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cputune: Mapping[str, str] = dataclasses.field(default_factory=dict)


class ScenarioAction(enum.Enum):
    """Events during a run."""

    START = 'start'
    DESTROY = 'destroy'
    FREEZE = 'freeze'
    THAW = 'thaw'
    MOVE = 'move'
    KILL_AGENT = 'kill-agent'
    START_AGENT = 'start-agent'
    RESTART_AGENT = 'restart-agent'
    FREEZE_AGENT = 'freeze-agent'
    THAW_AGENT = 'thaw-agent'
    CUT = 'cut'
    HEAL = 'heal'
    FREEZE_REDIS = 'freeze-redis'
    THAW_REDIS = 'thaw-redis'
    KILL_REDIS = 'kill-redis'
    START_REDIS = 'start-redis'
    FLUSH_REDIS = 'flush-redis'

    @property
    def concerns(self) -> 'Subject':
        """The kind of subject of the event: a VM, a node or an agent."""
        if self.value.endswith('-redis'):
            return Subject.REDIS
        if self.value.endswith('-agent'):
            return Subject.AGENT
        if self in {ScenarioAction.CUT, ScenarioAction.HEAL}:
            return Subject.NODE
        return Subject.VM


class Subject(enum.Enum):
    """Kinds of things that an event can happen to."""

    VM = 'vm'
    NODE = 'node'
    AGENT = 'agent'
    REDIS = 'redis'


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioEvent:
    """An event during a run.

    :ivar at_s: seconds since the load began.
    :ivar action: what.
    :ivar subject: name of the VM or of the node; empty for Redis.
    :ivar to: name of the node to which a VM is moved.
    """

    at_s: float
    action: ScenarioAction
    subject: str
    to: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class LinkSpec:
    """How simulated reports travel.

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
    """Settings of the agents.

    :ivar metric: name of their metric.
    :ivar policy: name of their policy, or of a reference of the simulator.
    :ivar max_weight_ratio: >= 1; ``None`` for their default.
    :ivar options: more of them, for real agents: section, option, value.
    :ivar decay_factor: part of the newest interval, in (0, 1]; like all that
        follows, this is for simulated agents.
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
    max_weight_ratio: float | None = None
    options: Mapping[str, Mapping[str, str]] = dataclasses.field(
        default_factory=dict
    )
    decay_factor: float = 0.5
    largest_step: float = 4.0
    weight_tolerance: float = 0.01
    view_max_age: float = 3.0
    controls: tuple[resources.ResourceControl, ...] = resources.CONTROLS
    ticks: int = 1
    spread: bool = False
    links: LinkSpec | None = None
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One experiment.

    :ivar name: its identifier.
    :ivar description: what it shows, for people.
    :ivar duration_s: how long the load lasts, seconds.
    :ivar interval_s: of the agents' rounds, seconds.
    :ivar agents: who steers.
    :ivar nodes: by name.
    :ivar users: by name.
    :ivar vms: by name.
    :ivar load: steps by name of the VM, in the order of time.
    :ivar events: in the order of time.
    :ivar drawn: from what nodes, users, VMs and load are drawn, instead of
        those that are told.
    :ivar trace: file that tells VMs and load instead.
    :ivar settle_s: seconds of rest between boot and load.
    :ivar pairs: when > 0, the run is cut into so many pairs of windows, the
        first of each without and the second with agents.
    :ivar redis: whether there is a Redis through which agents find each
        other.
    :ivar keys: whether agents prove who they are and encrypt what they say.
    :ivar fio_s: seconds for which fio repeats the disk load after the run,
        with the weights that the VMs had at its end; 0 for not at all.
    :ivar expect: what its runs must show.
    """

    name: str
    description: str
    duration_s: float
    interval_s: float
    agents: AgentSpec
    nodes: Mapping[str, NodeSpec]
    users: Mapping[str, User]
    vms: Mapping[str, Vm]
    load: Mapping[str, tuple[demand.DemandStep, ...]]
    events: tuple[ScenarioEvent, ...]
    drawn: recipes.CloudRecipe | None = None
    trace: pathlib.Path | None = None
    settle_s: float = 2.0
    pairs: int = 0
    redis: bool = False
    keys: bool = False
    fio_s: float = 0.0
    expect: tuple[checks.Expectation, ...] = ()

    def starts_late(self, vm: str) -> bool:
        """Whether the first event of a VM is its start."""
        return self._first_action(vm, Subject.VM) is ScenarioAction.START

    def joins_late(self, node: str) -> bool:
        """Whether the first event of an agent is its start."""
        return (
            self._first_action(node, Subject.AGENT)
            is ScenarioAction.START_AGENT
        )

    def _first_action(
        self, subject: str, kind: Subject
    ) -> ScenarioAction | None:
        found = (
            event.action
            for event in self.events
            if event.subject == subject and event.action.concerns is kind
        )
        return next(found, None)

    def with_duration(self, duration_s: float) -> 'Scenario':
        """The same scenario with another duration.

        :param duration_s: seconds; load and events move in proportion.
        """
        factor = duration_s / self.duration_s
        load = {
            vm: tuple(
                dataclasses.replace(step, at_s=step.at_s * factor)
                for step in steps
            )
            for vm, steps in self.load.items()
        }
        events = tuple(
            dataclasses.replace(event, at_s=event.at_s * factor)
            for event in self.events
        )
        return dataclasses.replace(
            self, duration_s=duration_s, load=load, events=events
        )

    def _network_changes_s(self) -> list[float]:
        steps = [step for steps in self.load.values() for step in steps]
        return sorted({step.at_s for step in steps if step.loads_network})

    def to_json(self) -> dict[str, Any]:
        """Content of ``meta.json`` about the scenario."""
        return {
            'name': self.name,
            'description': self.description,
            'nodes': {
                node.name: {
                    'cpus': list(node.cpu_numbers),
                    'memory_mib': node.memory_mib,
                    'disk_mib_s': node.disk_mib_s,
                    'disk_scheduler': node.disk_scheduler,
                    'network_mbit_s': node.network_mbit_s,
                }
                for node in self.nodes.values()
            },
            'network_changes_s': self._network_changes_s(),
            'users': {
                user.name: {'weight': user.weight}
                for user in self.users.values()
            },
            'vms': {vm.name: _vm_json(vm) for vm in self.vms.values()},
            'expect': [dataclasses.asdict(item) for item in self.expect],
        }


def _vm_json(vm: Vm) -> dict[str, Any]:
    return {
        'user': vm.user,
        'node': vm.node,
        'vcpus': vm.vcpus,
        'memory_mib': vm.memory_mib,
        'disks': len(vm.disks),
        'nics': vm.nics,
    }
