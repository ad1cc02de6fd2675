# SPDX-License-Identifier: Apache-2.0

"""A request: the servers that a user requested in one message, and its states.

:data:`STEPS` contains all allowed transitions. A request is never sent to Nova
while an earlier message of it may still have an effect. It returns from
``sending`` and ``starting`` only after the proof that Nova does not have its
message.
"""

from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
import dataclasses
import enum

from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import transitions

LARGEST = 2**31 - 1
"""Largest amount of one resource class that Placement can store."""


class State(enum.Enum):
    """State of a request, in chronological order."""

    WAITING = 'waiting'
    """The request waits; no room is reserved for it."""

    RESERVED = 'reserved'
    """Room is reserved for the request in Placement; no message was sent."""

    SENDING = 'sending'
    """The message of the request may have been sent; it is not sent again."""

    STARTING = 'starting'
    """The broker has the message; Nova builds the servers."""

    ACTIVE = 'active'
    """All servers of the request run or ran."""

    ENDED = 'ended'
    """The servers of the request are deleted."""

    CANCELLED = 'cancelled'
    """The user or an operator cancelled the request before it was sent."""

    EXPIRED = 'expired'
    """The request waited too long, or its token expired."""

    FAILED = 'failed'
    """The request cannot be started, or Nova failed to start it."""


class Event(enum.Enum):
    """Event that changes the state of a request."""

    RESERVE = 'reserve'
    """Room was found and reserved."""

    LOSE = 'lose'
    """The reserved room is not available any more."""

    SEND = 'send'
    """The message of the request is sent next."""

    RETURN = 'return'
    """It is proven that Nova does not have its message."""

    SENT = 'sent'
    """The broker confirmed the message, or Nova works on the request."""

    START = 'start'
    """All servers of the request run."""

    END = 'end'
    """The servers of the request are deleted."""

    CANCEL = 'cancel'
    EXPIRE = 'expire'
    FAIL = 'fail'


_GIVING_UP = {
    Event.CANCEL: State.CANCELLED,
    Event.EXPIRE: State.EXPIRED,
    Event.FAIL: State.FAILED,
}

STEPS: dict[State, dict[Event, State]] = {
    State.WAITING: {Event.RESERVE: State.RESERVED, **_GIVING_UP},
    State.RESERVED: {
        Event.SEND: State.SENDING,
        Event.LOSE: State.WAITING,
        **_GIVING_UP,
    },
    # A message that may have been sent cannot be taken back.
    State.SENDING: {
        Event.SENT: State.STARTING,
        Event.RETURN: State.RESERVED,
    },
    State.STARTING: {
        Event.START: State.ACTIVE,
        Event.END: State.ENDED,
        Event.FAIL: State.FAILED,
        # A broker that fails may lose a message that it confirmed.
        Event.RETURN: State.RESERVED,
    },
    State.ACTIVE: {Event.END: State.ENDED},
    State.ENDED: {},
    State.CANCELLED: {},
    State.EXPIRED: {},
    State.FAILED: {},
}
"""Transitions: state, event, next state; there are no others."""

_TABLE = transitions.TransitionTable('request', STEPS)

FINAL = _TABLE.final
"""Final states."""

UNSENT = frozenset({State.WAITING, State.RESERVED})
"""States in which Nova has not received the request."""


def state_after(state: State, event: Event) -> State:
    """Return the state after an event.

    :raises IllegalStep: if the event is not allowed in this state.
    """
    return _TABLE.after(state, event)


class Origin(enum.Enum):
    """Message of Nova from which a request was created."""

    BUILD = 'schedule_and_build_instances'
    UNSHELVE = 'unshelve_instance'


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """The needs of one server; equal demands are interchangeable.

    :ivar amounts: pairs of a resource class of Placement and an amount > 0;
        sorted, each class once.
    :ivar required: traits that a host must have.
    :ivar forbidden: traits that a host must not have.
    :ivar zone: availability zone; '' for any.
    :ivar aggregates: sets of aggregates; a host must be in at least one
        aggregate of every set.
    :ivar host: name of the only possible host; '' for any.
    :ivar without: resource classes that a host must not have.
    :ivar fallbacks: demands for which Nova asks next instead, in order;
        ``None`` if they are not known: see :attr:`alternatives`.
    """

    amounts: tuple[tuple[str, int], ...]
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    zone: str = ''
    aggregates: tuple[frozenset[str], ...] = ()
    host: str = ''
    without: frozenset[str] = frozenset()
    fallbacks: 'tuple[Demand, ...] | None' = None

    @property
    def alternatives(self) -> 'tuple[Demand, ...]':
        """Alternative demands of the server, in Nova's order.

        If the fallbacks are unknown, a server with dedicated CPUs only may
        have shared CPUs instead, on hosts without dedicated CPUs.
        """
        if not self.is_open:
            return (self,)
        fallbacks = self.fallbacks or (_with_shared_cpus(self),)
        return dataclasses.replace(self, fallbacks=()), *fallbacks

    @property
    def is_open(self) -> bool:
        """Whether the demand has more than one alternative."""
        if self.fallbacks is not None:
            return bool(self.fallbacks)
        names = [name for name, _ in self.amounts]
        return DEDICATED in names and SHARED not in names

    def beside(self, classes: Collection[str]) -> 'Demand':
        """Return the demand without some resource classes."""
        if not classes:
            return self
        amounts = [each for each in self.amounts if each[0] not in classes]
        fallbacks = self.fallbacks
        if fallbacks is not None:
            fallbacks = tuple(each.beside(classes) for each in fallbacks)
        return dataclasses.replace(
            self, amounts=tuple(amounts), fallbacks=fallbacks
        )

    def is_of(self, classes: Container[str]) -> bool:
        """Return whether the demand contains only classes of a given set."""
        return all(name in classes for name, _ in self.amounts)

    def on(self, classes: Container[str]) -> 'Demand':
        """Return the first alternative for a host with the given resource
        classes.

        If no alternative is possible on the host, the result is the first one.
        """
        ways = self.alternatives
        for each in ways:
            is_kept_out = any(name in classes for name in each.without)
            if each.is_of(classes) and not is_kept_out:
                return each
        return ways[0]


DEDICATED, SHARED = 'PCPU', 'VCPU'
"""Resource classes of dedicated CPUs, and of shared ones."""

HYPERTHREADING = 'HW_CPU_HYPERTHREADING'
"""Trait that thread policies of pinned servers ask for, or forbid."""


def _with_shared_cpus(demand: Demand) -> Demand:
    """Return the demand with shared CPUs instead of dedicated ones."""
    named = dict(demand.amounts)
    named[SHARED] = named.pop(DEDICATED)
    return dataclasses.replace(
        demand,
        amounts=tuple(sorted(named.items())),
        required=demand.required - {HYPERTHREADING},
        forbidden=demand.forbidden - {HYPERTHREADING},
        without=frozenset({DEDICATED}),
        fallbacks=(),
    )


class Rule(enum.Enum):
    """Rule for the hosts of servers of a group; soft rules are ignored."""

    TOGETHER = 'affinity'
    APART = 'anti-affinity'


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A server group of Nova with a rule that binds.

    :ivar uuid: UUID of the group.
    :ivar rule: rule for the hosts of its servers.
    :ivar per_host: most servers of the group on one host with ``APART``, >= 1.
    """

    uuid: str
    rule: Rule
    per_host: int = 1


class Band(enum.Enum):
    """Priority classes, the first one first.

    Requests of a class come before those of the next one. Servers of the last
    class can be evicted for requests of all classes before it.
    """

    NORMAL = 'normal'
    """Its servers run until their owners end them."""

    PREEMPTIBLE = 'preemptible'
    """Its servers use room that other users do not need, and can be
    evicted.
    """


class Holder(enum.Enum):
    """Role of the person who holds a request."""

    OPERATOR = 'operator'
    """Only an operator can end the hold, and the request does not expire
    during it.
    """

    OWNER = 'owner'
    """A member of the project or an operator can end the hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """A hold: the request does not start, regardless of the order.

    :ivar by: role of the person who holds the request.
    :ivar since: start of the hold, seconds of the epoch.
    :ivar text: reason in the words of this person; '' without one.
    """

    by: Holder
    since: float
    text: str = ''

    @property
    def why(self) -> reason.Why:
        """The reason that the owner of the request reads."""
        return reason.why(_HELD_BY[self.by], self.text or _UNSAID)


_HELD_BY = {
    Holder.OPERATOR: reason.Reason.HELD_BY_OPERATOR,
    Holder.OWNER: reason.Reason.HELD_BY_OWNER,
}
_UNSAID = 'no reason is given'


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request: all of it starts, or nothing.

    :ivar uuid: UUID of the request; for a build that of its first server.
    :ivar project: project that pays.
    :ivar user: user who asked.
    :ivar servers: UUIDs, at least one, all with the same demand.
    :ivar demand: demand of each server.
    :ivar asked_at: time at which Nova took it, seconds of the epoch.
    :ivar origin: build or unshelve.
    :ivar group: server group with a rule that binds; ``None`` without one.
    :ivar expires_at: time at which it stops waiting, seconds of the epoch;
        ``None`` for never.
    :ivar band: its priority class when Nova took it.
    :ivar leaves_by: first eviction action that its owner wants; ``None`` if
        the owner did not choose one.
    :ivar time_limit_s: seconds that its servers may run, > 0, before they
        leave; ``None`` for no limit.
    :ivar extended_s: seconds by which this limit was extended, >= 0.
    :ivar hold: hold that keeps it from starting; ``None`` without one.
    :ivar first: rank among requests that operators put before all others of
        their class, the smallest is next; ``None`` if it is not among these.
    :ivar flavor: name of the flavor of its servers; '' if it is not known, or
        if they have their room already.
    :ivar names: names of its servers when Nova took it, in the order of
        ``servers``; empty if they are not known.
    :ivar state: state of the request.
    :ivar version: number of writes to its row. A write names the version for
        which it was decided.
    """

    uuid: str
    project: str
    user: str
    servers: tuple[str, ...]
    demand: Demand
    asked_at: float
    origin: Origin = Origin.BUILD
    group: Group | None = None
    expires_at: float | None = None
    band: Band = Band.NORMAL
    leaves_by: eviction.EvictionAction | None = None
    time_limit_s: float | None = None
    extended_s: float = 0.0
    hold: Hold | None = None
    first: int | None = None
    flavor: str = ''
    names: tuple[str, ...] = ()
    state: State = State.WAITING
    version: int = 0

    @property
    def account(self) -> str:
        """Name of the user's account in the share tree, below the project."""
        return account_of(self.project, self.user)

    @property
    def is_preemptible(self) -> bool:
        """Whether its servers can be evicted for other requests."""
        return self.band is Band.PREEMPTIBLE

    @property
    def keeps_room(self) -> bool:
        """Whether its shelved servers still have their room, because they were
        not offloaded.

        The planner ignores such a request, so that the priority class and the
        end of the servers do not change.
        """
        return self.origin is Origin.UNSHELVE and not self.demand.amounts

    @property
    def is_unread(self) -> bool:
        """Whether its message could not be parsed, so that its servers are
        unknown.
        """
        return self.origin is Origin.BUILD and not self.demand.amounts

    def ends_at(self, since: float) -> float | None:
        """Return the end of its servers, seconds of the epoch; ``None`` for
        never.

        :param since: start of the servers, seconds of the epoch.
        """
        if self.time_limit_s is None:
            return None
        return since + self.time_limit_s + self.extended_s


@dataclasses.dataclass(frozen=True, slots=True)
class RequestFilter:
    """Conditions of a search for requests; all must hold.

    :ivar states: allowed states.
    :ivar user: user who asked; ``None`` for all.
    :ivar since: earliest time of the request, seconds of the epoch; ``None``
        for any.
    :ivar server: UUID of one of its servers; ``None`` for any.
    :ivar host: name of a host to which it was sent; ``None`` for any.
    :ivar preemptible: whether it is preemptible; ``None`` for both.
    :ivar unsettled: whether requests whose servers just run are left out.
    :ivar running: UUIDs of the running requests that may be found; ``None``
        for all.
    """

    states: frozenset[State] = frozenset(State) - FINAL
    user: str | None = None
    since: float | None = None
    server: str | None = None
    host: str | None = None
    preemptible: bool | None = None
    unsettled: bool = False
    running: frozenset[str] | None = None


def newest_by_server(found: Iterable[Request]) -> dict[str, Request]:
    """Return the newest request of each server, by UUID of the server.

    Requests to unshelve servers that still had their room do not count.

    :param found: requests, the oldest first.
    """
    return {
        server: each
        for each in found
        if not each.keeps_room
        for server in each.servers
    }


def account_of(project: str, user: str) -> str:
    """Return the name of a user's account in the share tree, below the
    project.

    A missing ID becomes '', because the text ``None`` could be the name of an
    account.
    """
    return f'{project or ""}/{user or ""}'
