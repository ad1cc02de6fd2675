# SPDX-License-Identifier: Apache-2.0

"""Hosts that work either for a batch system or for the cloud.

The states are those of Dal Pra's partition driver (Partition Director, INDIGO,
section 3.1.1); each state's description begins with its letters there. The
additional state ``UNCLEAR`` is for contradictory observations. :data:`STEPS`
contains all allowed transitions.
"""

from collections.abc import Mapping
import dataclasses
import enum
import types

from nova_fairness import exception
from nova_fairness.model import transitions


class BorderSide(enum.Enum):
    """The system for which a host works."""

    BATCH = 'batch'
    CLOUD = 'cloud'

    @property
    def other(self) -> 'BorderSide':
        """The other system."""
        return (
            BorderSide.CLOUD if self is BorderSide.BATCH else BorderSide.BATCH
        )


class HostState(enum.Enum):
    """State of a host that moves between batch system and cloud."""

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
    """Observations of the host fit no other state; no action is taken."""


class HostEvent(enum.Enum):
    """Event that changes the state of a host."""

    ASK = 'ask'
    """The host is to move to the other system."""

    ACCEPT = 'accept'
    """Both systems list the host, and nothing prevents its move."""

    REFUSE = 'refuse'
    """Something prevents the move of the host."""

    ARRIVE = 'arrive'
    """The old system is closed on the host, and has no work on it."""

    CANCEL = 'cancel'
    """The move of the host is cancelled."""

    EXPIRE = 'expire'
    """Work on the host did not end in time."""

    LOSE = 'lose'
    """The system to which the host does not belong uses it."""

    FIND_IN_BATCH = 'find_in_batch'
    """Only the batch system uses the host."""

    FIND_IN_CLOUD = 'find_in_cloud'
    """Only the cloud uses the host."""


def _events_without_move(stays: HostState) -> dict[HostEvent, HostState]:
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
                **_events_without_move(HostState.BATCH),
            },
            HostState.LEAVING_BATCH: {
                HostEvent.ARRIVE: HostState.CLOUD,
                HostEvent.EXPIRE: HostState.BATCH,
                **_events_without_move(HostState.BATCH),
            },
            HostState.CLOUD: {
                HostEvent.ASK: HostState.BATCH_ASKED,
                HostEvent.LOSE: HostState.UNCLEAR,
            },
            HostState.BATCH_ASKED: {
                HostEvent.ACCEPT: HostState.LEAVING_CLOUD,
                HostEvent.REFUSE: HostState.CLOUD,
                **_events_without_move(HostState.CLOUD),
            },
            HostState.LEAVING_CLOUD: {
                HostEvent.ARRIVE: HostState.BATCH,
                HostEvent.EXPIRE: HostState.CLOUD,
                **_events_without_move(HostState.CLOUD),
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
"""States of hosts that move to the other system; each move can be
cancelled.
"""

_OWNER = {
    HostState.BATCH: BorderSide.BATCH,
    HostState.CLOUD_ASKED: BorderSide.BATCH,
    HostState.LEAVING_BATCH: BorderSide.BATCH,
    HostState.CLOUD: BorderSide.CLOUD,
    HostState.BATCH_ASKED: BorderSide.CLOUD,
    HostState.LEAVING_CLOUD: BorderSide.CLOUD,
}


def state_after(state: HostState, event: HostEvent) -> HostState:
    """Return the state after an event.

    :raises IllegalStep: if the event is not allowed in this state.
    """
    return _TABLE.after(state, event)


def only_user(state: HostState) -> BorderSide | None:
    """Return the only system that may use a host; ``None`` if that is
    unclear.
    """
    return _OWNER.get(state)


def future_system(state: HostState) -> BorderSide | None:
    """Return the system for which a host will work; ``None`` if that is
    unclear.
    """
    side = only_user(state)
    return side.other if side and state in MOVING else side


class HostCause(enum.Enum):
    """Why a host changes its state. The values are part of the API: do not
    change them.
    """

    DEMAND = 'demand'
    """The other system needs more hosts."""

    CALENDAR = 'calendar'
    """A window of the calendar sets the number of hosts of the cloud."""

    TARGET = 'target'
    """An operator set the number of hosts of the cloud."""

    OPERATOR = 'operator'
    """An operator requested the move of this host."""

    CHECKED = 'checked'
    """Both systems list the host, and nothing prevents its move."""

    OBSTACLE = 'obstacle'
    """The host is fixed, or one system cannot use it."""

    EMPTY = 'empty'
    """No work is left on the host."""

    LATE = 'late'
    """The time to live of work on the host has passed."""

    BOTH_SIDES = 'both_sides'
    """The system to which the host does not belong uses it."""

    SEEN = 'seen'
    """Only one system uses the host."""


@dataclasses.dataclass(frozen=True, slots=True)
class SharedHost:
    """A machine that both systems can use, as configured by an operator.

    :ivar name: name of the machine.
    :ivar batch: its name in the batch system.
    :ivar cloud: its name in Nova.
    :ivar cores: CPUs that either system can use, > 0.
    :ivar fixed: whether the host never moves. A host that was removed from the
        configuration is fixed, too.
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
"""Largest number of steps in the history of a host."""


@dataclasses.dataclass(frozen=True, slots=True)
class BorderHost:
    """A host that moves between batch system and cloud, with its state.

    :ivar host: the machine.
    :ivar state: state of the host.
    :ivar since: time at which it entered this state, seconds of the epoch.
    :ivar until: time at which the work on it must have ended, seconds of the
        epoch; ``None`` unless its system is closed.
    :ivar history: the newest steps, the last one last.
    :ivar version: number of its steps. An action contains the version for
        which it was decided.
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
        """Return the host after a step.

        :param now: seconds of the epoch.
        :param until: see :attr:`until`.
        :raises IllegalStep: if the event is not allowed in its state.
        """
        state = state_after(self.state, event)
        step = HostStep(now, event, state, cause, text)
        return dataclasses.replace(
            self,
            state=state,
            since=now,
            until=until,
            history=(*self.history, step)[-REMEMBERED:],
            version=self.version + 1,
        )


class WorkEnd(enum.Enum):
    """How work disappears from a host."""

    ENDS = 'ends'
    """The work ends without an action; the host waits for its end."""

    MOVES = 'moves'
    """The work is a VM that can be migrated live to another host."""

    YIELDS = 'yields'
    """The work is a VM that is evicted after a notice."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunningWork:
    """A VM, or the part of a job, on one host.

    :ivar name: number of the job or UUID of the VM.
    :ivar cores: cores that it uses on this host, >= 0.
    :ivar gone_at: latest time at which it ends or moves away if its host is
        drained from now on, seconds of the epoch; ``None`` if unknown.
    :ivar way: how it disappears from the host.
    """

    name: str
    cores: float
    gone_at: float | None = None
    way: WorkEnd = WorkEnd.ENDS


@dataclasses.dataclass(frozen=True, slots=True)
class SideStatus:
    """State of a host, as one system reports it.

    :ivar takes: whether work may start on the host.
    :ivar up: whether the system's own service on the host answers.
    :ivar ours: whether this product closed the host: the reason begins with
        :data:`MARK`.
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
        """Whether this system uses the host."""
        return self.takes or bool(self.work)


MARK = 'nova-fairness'
"""Beginning of the reasons with which this product closes hosts. This product
may open a host that an operator closed with such a reason.
"""


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
    """State of one system at one time.

    :ivar places: status of hosts, by the system's own name of the host; it may
        contain more hosts than an operator configured.
    :ivar wants: waiting work that could start if there were room.
    :ivar unclear: names of hosts whose entries cannot be parsed; '' for an
        entry whose name cannot be parsed. These hosts have no status, and must
        not count as empty.
    :ivar faults: sentences about entries that cannot be parsed.
    """

    places: Mapping[str, SideStatus] = dataclasses.field(default_factory=dict)
    wants: tuple[PendingWork, ...] = ()
    unclear: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()

    def is_unclear(self, name: str) -> bool:
        """Whether the entry of a host may be one that cannot be parsed."""
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
    """State of both systems at one time.

    :ivar nodes: hosts and their states.
    :ivar batch: state of the batch system; ``None`` if it does not answer, or
        its answer cannot be parsed.
    :ivar cloud: state of Nova; ``None`` if it does not answer, or its answer
        cannot be parsed.
    :ivar target: target set by an operator; ``None`` if calendar and demand
        decide.
    :raises BadPartition: if two hosts have one name, or a host has no cores;
        the error describes all faults.
    """

    nodes: tuple[BorderHost, ...]
    batch: SideSnapshot | None
    cloud: SideSnapshot | None
    target: CloudTarget | None = None

    def __post_init__(self) -> None:
        hosts = [node.host for node in self.nodes]
        wrong = [
            f'the {of} name {name!r} is used by more than one host'
            for of in ('name', 'batch', 'cloud')
            for name in _duplicates([getattr(host, of) for host in hosts])
        ]
        wrong += [
            f'host {host.name!r} must have cores, got {host.cores!r}'
            for host in hosts
            if not 0 < host.cores < float('inf')
        ]
        if wrong:
            raise exception.BadPartition('; '.join(wrong))

    def place(self, node: BorderHost, side: BorderSide) -> SideStatus | None:
        """Return the state of a host in a system; ``None`` if the system does
        not list it.
        """
        seen = self.side(side)
        return seen.places.get(_name_in_system(node, side)) if seen else None

    def is_unclear(self, node: BorderHost, side: BorderSide) -> bool:
        """Whether a system's entry of a host cannot be parsed."""
        seen = self.side(side)
        return seen is not None and seen.is_unclear(
            _name_in_system(node, side)
        )

    def side(self, side: BorderSide) -> SideSnapshot | None:
        """Return the state of a system."""
        return self.batch if side is BorderSide.BATCH else self.cloud


def _name_in_system(node: BorderHost, side: BorderSide) -> str:
    return node.host.batch if side is BorderSide.BATCH else node.host.cloud


def _duplicates(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


class BorderVerb(enum.Enum):
    """Kind of an action on a host."""

    STEP = 'step'
    """Write the next state of the host."""

    OPEN = 'open'
    """Let a system start work on the host."""

    CLOSE = 'close'
    """Prevent new work of a system on the host; running work continues."""

    CLEAR = 'clear'
    """Migrate VMs to other hosts, and send notices to VMs that will be
    evicted.
    """

    END = 'end'
    """Delete VMs whose time to live has passed."""


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
    """Actions on hosts, and faults that an operator should know.

    :ivar actions: actions in the order in which they are to be executed, at
        most one per host.
    :ivar faults: sentences about faults that prevent moves of hosts.
    """

    actions: tuple[BorderAction, ...] = ()
    faults: tuple[str, ...] = ()
