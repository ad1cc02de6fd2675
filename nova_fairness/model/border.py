# SPDX-License-Identifier: Apache-2.0

"""Hosts that work for a batch system or for the cloud, one at a time.

The states are those of Dal Pra's partition driver (Partition Director, INDIGO,
section 3.1.1), whose letters are given with each state. One more state,
``UNCLEAR``, is for contradictory observations. :data:`STEPS` has all allowed
transitions.
"""

from collections.abc import Mapping
import dataclasses
import enum
import types

from nova_fairness import exception
from nova_fairness.model import transitions


class BorderSide(enum.Enum):
    """A side of the border: hosts work for one of both."""

    BATCH = 'batch'
    CLOUD = 'cloud'

    @property
    def other(self) -> 'BorderSide':
        """The side across the border."""
        return (
            BorderSide.CLOUD if self is BorderSide.BATCH else BorderSide.BATCH
        )


class HostState(enum.Enum):
    """State of a host at the border."""

    BATCH = 'batch'
    """B: jobs start on the host."""

    CLOUD_ASKED = 'cloud_asked'
    """B2CR: the host is to go to the cloud; jobs still start on it."""

    LEAVING_BATCH = 'leaving_batch'
    """B2C: no job starts on the host; running jobs continue."""

    CLOUD = 'cloud'
    """C: VMs start on the host."""

    BATCH_ASKED = 'batch_asked'
    """C2BR: the host is to go to the batch system; VMs still start on it."""

    LEAVING_CLOUD = 'leaving_cloud'
    """C2B: no VM starts on the host; running VMs move or end."""

    UNCLEAR = 'unclear'
    """Observations of the host fit no other state: no action is taken."""


class HostEvent(enum.Enum):
    """The events of a host."""

    ASK = 'ask'
    """The host is to go to the other side."""

    ACCEPT = 'accept'
    """Both sides know the host, and its move has no obstacle."""

    REFUSE = 'refuse'
    """The move of the host has an obstacle."""

    ARRIVE = 'arrive'
    """The old side has closed the host, and has no work left on it."""

    CANCEL = 'cancel'
    """The host is to stay on its side after all."""

    EXPIRE = 'expire'
    """Work on the host did not end in time."""

    LOSE = 'lose'
    """The side to which the host does not belong uses it."""

    FIND_IN_BATCH = 'find_in_batch'
    """Only the batch system uses the host."""

    FIND_IN_CLOUD = 'find_in_cloud'
    """Only the cloud uses the host."""


def _staying(stays: HostState) -> dict[HostEvent, HostState]:
    return {HostEvent.CANCEL: stays, HostEvent.LOSE: HostState.UNCLEAR}


STEPS: Mapping[HostState, Mapping[HostEvent, HostState]] = (
    types.MappingProxyType(
        {
            HostState.BATCH: {
                HostEvent.ASK: HostState.CLOUD_ASKED,
                HostEvent.LOSE: HostState.UNCLEAR,
            },
            HostState.CLOUD_ASKED: {
                HostEvent.ACCEPT: HostState.LEAVING_BATCH,
                HostEvent.REFUSE: HostState.BATCH,
                **_staying(HostState.BATCH),
            },
            HostState.LEAVING_BATCH: {
                HostEvent.ARRIVE: HostState.CLOUD,
                HostEvent.EXPIRE: HostState.BATCH,
                **_staying(HostState.BATCH),
            },
            HostState.CLOUD: {
                HostEvent.ASK: HostState.BATCH_ASKED,
                HostEvent.LOSE: HostState.UNCLEAR,
            },
            HostState.BATCH_ASKED: {
                HostEvent.ACCEPT: HostState.LEAVING_CLOUD,
                HostEvent.REFUSE: HostState.CLOUD,
                **_staying(HostState.CLOUD),
            },
            HostState.LEAVING_CLOUD: {
                HostEvent.ARRIVE: HostState.BATCH,
                HostEvent.EXPIRE: HostState.CLOUD,
                **_staying(HostState.CLOUD),
            },
            HostState.UNCLEAR: {
                HostEvent.FIND_IN_BATCH: HostState.BATCH,
                HostEvent.FIND_IN_CLOUD: HostState.CLOUD,
            },
        }
    )
)
"""Transitions: state, event, next state; there are no others."""

_TABLE = transitions.TransitionTable('host', STEPS)

ASKED = frozenset({HostState.CLOUD_ASKED, HostState.BATCH_ASKED})
LEAVING = frozenset({HostState.LEAVING_BATCH, HostState.LEAVING_CLOUD})
MOVING = ASKED | LEAVING
"""States of hosts that go to the other side; each can be cancelled."""

_OWNER = {
    HostState.BATCH: BorderSide.BATCH,
    HostState.CLOUD_ASKED: BorderSide.BATCH,
    HostState.LEAVING_BATCH: BorderSide.BATCH,
    HostState.CLOUD: BorderSide.CLOUD,
    HostState.BATCH_ASKED: BorderSide.CLOUD,
    HostState.LEAVING_CLOUD: BorderSide.CLOUD,
}


def after(state: HostState, event: HostEvent) -> HostState:
    """The state that an event leads to.

    :raises IllegalStep: if it leads nowhere from this state.
    """
    return _TABLE.after(state, event)


def owner(state: HostState) -> BorderSide | None:
    """The only side that may use a host; ``None`` if that is unclear."""
    return _OWNER.get(state)


def bound_for(state: HostState) -> BorderSide | None:
    """The side that a host will work for; ``None`` if that is unclear."""
    side = owner(state)
    return side.other if side and state in MOVING else side


class HostCause(enum.Enum):
    """Why a host took a step. The tokens are an interface."""

    DEMAND = 'demand'
    """The other side lacks hosts."""

    CALENDAR = 'calendar'
    """A window of the calendar says how many hosts the cloud has."""

    TARGET = 'target'
    """An operator said how many hosts the cloud has."""

    OPERATOR = 'operator'
    """An operator named this host."""

    CHECKED = 'checked'
    """Both sides know it, and nothing stands against it."""

    OBSTACLE = 'obstacle'
    """It is fixed, or one side cannot have it."""

    EMPTY = 'empty'
    """Nothing is left on it."""

    LATE = 'late'
    """Its time to live is over."""

    BOTH_SIDES = 'both_sides'
    """The side that it does not belong to uses it."""

    SEEN = 'seen'
    """One side alone uses it."""


@dataclasses.dataclass(frozen=True, slots=True)
class SharedHost:
    """A machine that both sides know, as an operator configured it.

    :ivar name: name of the machine.
    :ivar batch: its name in the batch system.
    :ivar cloud: its name in Nova.
    :ivar cores: CPUs that either side can give to work, > 0.
    :ivar fixed: whether it stays on its side. A host that was removed from
        the configuration is fixed, too.
    """

    name: str
    batch: str
    cloud: str
    cores: float
    fixed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class HostStep:
    """One step of a host's history.

    :ivar at: seconds of the epoch.
    :ivar event: the event.
    :ivar state: state after the event.
    :ivar cause: cause of the event.
    :ivar text: the cause for people, with names and numbers.
    """

    at: float
    event: HostEvent
    state: HostState
    cause: HostCause
    text: str = ''


REMEMBERED = 64
"""Most steps that are stored in the history of a host."""


@dataclasses.dataclass(frozen=True, slots=True)
class BorderHost:
    """A host and its state.

    :ivar host: the machine.
    :ivar state: state of the host.
    :ivar since: time at which it entered this state, seconds of the epoch.
    :ivar until: time at which the work on it must be gone, seconds of the
        epoch; ``None`` unless it is leaving a side.
    :ivar history: the newest steps, the last one last.
    :ivar version: number of its steps. An action names the version for which
        it was decided.
    """

    host: SharedHost
    state: HostState = HostState.UNCLEAR
    since: float = 0.0
    until: float | None = None
    history: tuple[HostStep, ...] = ()
    version: int = 0

    def stepped(
        self,
        event: HostEvent,
        now: float,
        cause: HostCause,
        text: str = '',
        until: float | None = None,
    ) -> 'BorderHost':
        """The node after a step.

        :param now: seconds of the epoch.
        :param until: see :attr:`until`.
        :raises IllegalStep: if the event leads nowhere from its state.
        """
        state = after(self.state, event)
        step = HostStep(now, event, state, cause, text)
        return dataclasses.replace(
            self,
            state=state,
            since=now,
            until=until,
            history=(*self.history, step)[-REMEMBERED:],
            version=self.version + 1,
        )


class Way(enum.Enum):
    """How work leaves a host."""

    ENDS = 'ends'
    """The work ends by itself; the host waits for this."""

    MOVES = 'moves'
    """The work is a VM that can move to another host while it runs."""

    YIELDS = 'yields'
    """The work leaves after it gets notice."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunningWork:
    """The part of a job on one host, or a VM.

    :ivar name: number of the job or UUID of the VM.
    :ivar cores: cores that it has on this host, >= 0.
    :ivar gone_at: latest time at which it is gone if its host is drained from
        now on, seconds of the epoch; ``None`` if that is not known.
    :ivar way: how it leaves.
    """

    name: str
    cores: float
    gone_at: float | None = None
    way: Way = Way.ENDS


@dataclasses.dataclass(frozen=True, slots=True)
class SideStatus:
    """State of a host, as one side reports it.

    :ivar takes: whether work may start on the host.
    :ivar up: whether the side's own service on the host answers.
    :ivar ours: whether this product closed the host: then the reason begins
        with :data:`MARK`.
    :ivar reason: reason for which the host is closed.
    :ivar work: work that runs on the host.
    """

    takes: bool
    up: bool = True
    ours: bool = False
    reason: str = ''
    work: tuple[RunningWork, ...] = ()

    @property
    def used(self) -> bool:
        """Whether its side uses the host."""
        return self.takes or bool(self.work)


MARK = 'nova-fairness'
"""Beginning of the reasons with which this product closes hosts. If an
operator closes a host with such a reason, this product may open it."""


@dataclasses.dataclass(frozen=True, slots=True)
class PendingWork:
    """A job or a request that waits for room.

    :ivar name: number of the job or UUID of the request.
    :ivar cores: all cores that it needs at the same time, > 0; a host that it
        needs exclusively counts with all its cores.
    :ivar since: time from which it waits, seconds of the epoch; work that is
        to begin later waits only from then on.
    :ivar part: cores that it needs on one host at the same time, above 0 to
        :attr:`cores`; ``None`` if that is not known.
    """

    name: str
    cores: float
    since: float
    part: float | None = None


@dataclasses.dataclass(frozen=True)
class SideSnapshot:
    """One side at one time.

    :ivar places: status of hosts, by the side's own name of the host; there
        may be more hosts than an operator configured.
    :ivar wants: waiting work that could start if there were room.
    :ivar unclear: names of hosts whose entries cannot be read; '' for an
        entry whose name cannot be read. These hosts have no status, and must
        not count as empty.
    :ivar faults: sentences about entries that cannot be read.
    """

    places: Mapping[str, SideStatus] = dataclasses.field(default_factory=dict)
    wants: tuple[PendingWork, ...] = ()
    unclear: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()

    def is_unclear(self, name: str) -> bool:
        """Whether a host may be listed in an entry that cannot be read."""
        is_absent = name not in self.places
        return is_absent and not self.unclear.isdisjoint({name, ''})


@dataclasses.dataclass(frozen=True, slots=True)
class CloudTarget:
    """The number of hosts for the cloud, regardless of demand.

    :ivar hosts: number of hosts, >= 0.
    :ivar cause: cause of the target.
    """

    hosts: int
    cause: HostCause = HostCause.TARGET


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Both sides at one time.

    :ivar nodes: hosts and their states.
    :ivar batch: report of the batch system; ``None`` if it gives no answer
        that can be read.
    :ivar cloud: report of Nova; ``None`` if it gives no answer that can be
        read.
    :ivar target: target set by an operator; ``None`` to follow calendar and
        demand.
    :raises BadPartition: if two hosts have one name, or a host has no cores;
        the error names all faults.
    """

    nodes: tuple[BorderHost, ...]
    batch: SideSnapshot | None
    cloud: SideSnapshot | None
    target: CloudTarget | None = None

    def __post_init__(self) -> None:
        hosts = [node.host for node in self.nodes]
        wrong = [
            f'the {of} name {name!r} stands for more than one host'
            for of in ('name', 'batch', 'cloud')
            for name in _twice([getattr(host, of) for host in hosts])
        ]
        wrong += [
            f'host {host.name!r} must have cores, got {host.cores!r}'
            for host in hosts
            if not 0 < host.cores < float('inf')
        ]
        if wrong:
            raise exception.BadPartition('; '.join(wrong))

    def place(self, node: BorderHost, side: BorderSide) -> SideStatus | None:
        """State of a host on a side; ``None`` if the side does not know it."""
        seen = self.side(side)
        return seen.places.get(_name(node, side)) if seen else None

    def is_unclear(self, node: BorderHost, side: BorderSide) -> bool:
        """Whether a side lists a host in a form that cannot be read."""
        seen = self.side(side)
        return seen is not None and seen.is_unclear(_name(node, side))

    def side(self, side: BorderSide) -> SideSnapshot | None:
        """The report of a side."""
        return self.batch if side is BorderSide.BATCH else self.cloud


def _name(node: BorderHost, side: BorderSide) -> str:
    return node.host.batch if side is BorderSide.BATCH else node.host.cloud


def _twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


class BorderVerb(enum.Enum):
    """The kind of an action."""

    STEP = 'step'
    """Write the node's next state."""

    OPEN = 'open'
    """Let a side start work on the host."""

    CLOSE = 'close'
    """Let a side start no new work on the host; its work goes on."""

    CLEAR = 'clear'
    """Move VMs to other hosts, and give notice to VMs that leave after it."""

    END = 'end'
    """Delete VMs whose time to live is over."""


@dataclasses.dataclass(frozen=True, slots=True)
class BorderAction:
    """An action to be done once, unless its host has changed since.

    :ivar verb: kind of the action.
    :ivar host: name of the machine.
    :ivar version: version of the host for which the action was decided.
    :ivar side: side on which the host is opened or closed; ``None`` for a
        step.
    :ivar step: event of a step; ``None`` for other actions.
    :ivar cause: cause of the action.
    :ivar text: the cause for people.
    :ivar until: ``until`` of the host after a step, seconds of the epoch.
    :ivar work: names of the VMs that move, get notice or are deleted.
    """

    verb: BorderVerb
    host: str
    version: int
    side: BorderSide | None
    step: HostEvent | None
    cause: HostCause
    text: str = ''
    until: float | None = None
    work: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class BorderPlan:
    """Actions to be done, and faults that an operator should know.

    :ivar actions: actions in the order in which they are to be done, at most
        one for a host.
    :ivar faults: sentences about faults that keep hosts from moving.
    """

    actions: tuple[BorderAction, ...] = ()
    faults: tuple[str, ...] = ()
