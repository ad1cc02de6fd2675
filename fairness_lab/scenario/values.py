# SPDX-License-Identifier: Apache-2.0

"""What a scenario says: frozen values, no effects."""

from collections.abc import Mapping
import dataclasses
import enum
from typing import Any

from fairness_lab.results import checks
from fairness_lab.scenario import demand
from fairness_lab.testbed.guests import domain


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSpec:
    """A compute node.

    :ivar name: host name.
    :ivar cpus: numbers of the machine's CPUs that it has, not empty.
    :ivar memory_mib: memory that its VMs may use, MiB.
    :ivar disk_mib_s: rate of its disk, each direction, MiB/s.
    :ivar disk_scheduler: of a disk of its own that has this rate, reading
        and writing together; empty lets it use the machine's.
    :ivar network_mbit_s: rate of its network, each direction, Mbit/s.
    :ivar uplink: whether its guests reach a far end through an uplink.
    """

    name: str
    cpus: tuple[int, ...] = (0,)
    memory_mib: int = 4096
    disk_mib_s: float = 200.0
    disk_scheduler: str = ''
    network_mbit_s: float = 1000.0
    uplink: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Somebody who has VMs.

    :ivar name: of the user, and of the project.
    :ivar weight: part of the supply that the user is entitled to, relative
        to the others, > 0.
    """

    name: str
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Vm:
    """A virtual machine.

    :ivar guest: what it is and whose.
    :ivar node: on which node it runs.
    :ivar group: name that it shares with its copies.
    """

    guest: domain.GuestSpec
    node: str
    group: str

    @property
    def name(self) -> str:
        """Its own name."""
        return self.guest.name


class Action(enum.Enum):
    """What can happen during a run."""

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
        """The VM, node or agent that it happens to."""
        if self.value.endswith('-redis'):
            return Subject.REDIS
        if self.value.endswith('-agent'):
            return Subject.AGENT
        if self in {Action.CUT, Action.HEAL}:
            return Subject.NODE
        return Subject.VM


class Subject(enum.Enum):
    """Kinds of things that an event can happen to."""

    VM = 'vm'
    NODE = 'node'
    AGENT = 'agent'
    REDIS = 'redis'


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happens.

    :ivar at_s: seconds since the load began.
    :ivar action: what.
    :ivar subject: name of the VM or of the node; empty for Redis.
    :ivar to: name of the node to which a VM is moved.
    """

    at_s: float
    action: Action
    subject: str
    to: str = ''


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One experiment.

    :ivar name: its identifier.
    :ivar description: what it shows, for people.
    :ivar duration_s: how long the load lasts, seconds.
    :ivar interval_s: of the agents' rounds, seconds.
    :ivar settle_s: seconds of rest between boot and load.
    :ivar metric: of the agents.
    :ivar policy: of the agents.
    :ivar max_weight_ratio: of the agents; ``None`` for their default.
    :ivar pairs: when > 0, the run is cut into so many pairs of windows, the
        first of each without and the second with agents.
    :ivar nodes: by name.
    :ivar users: by name.
    :ivar vms: by name.
    :ivar load: steps by name of the VM, in the order of time.
    :ivar events: in the order of time.
    :ivar agent: more options of the agents: section, option, value.
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
    settle_s: float
    metric: str
    policy: str
    max_weight_ratio: float | None
    pairs: int
    nodes: Mapping[str, NodeSpec]
    users: Mapping[str, User]
    vms: Mapping[str, Vm]
    load: Mapping[str, tuple[demand.Step, ...]]
    events: tuple[Event, ...]
    agent: Mapping[str, Mapping[str, str]]
    redis: bool = False
    keys: bool = False
    fio_s: float = 0.0
    expect: tuple[checks.Expectation, ...] = ()

    def starts_late(self, vm: str) -> bool:
        """Whether the first thing that happens to a VM is its start."""
        return self._first(vm, Subject.VM) is Action.START

    def joins_late(self, node: str) -> bool:
        """Whether the first thing that happens to an agent is its start."""
        return self._first(node, Subject.AGENT) is Action.START_AGENT

    def _first(self, subject: str, kind: Subject) -> Action | None:
        found = (
            event.action
            for event in self.events
            if event.subject == subject and event.action.concerns is kind
        )
        return next(found, None)

    def stretched(self, duration_s: float) -> 'Scenario':
        """The same scenario over another time.

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
        """What ``meta.json`` keeps of the scenario."""
        return {
            'name': self.name,
            'description': self.description,
            'nodes': {
                node.name: {
                    'cpus': list(node.cpus),
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
        'user': vm.guest.user,
        'node': vm.node,
        'vcpus': vm.guest.vcpus,
        'memory_mib': vm.guest.memory_mib,
        'disks': len(vm.guest.disks),
        'nics': vm.guest.nics,
    }
