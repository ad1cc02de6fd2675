# SPDX-License-Identifier: Apache-2.0

"""A request: what a user asked Nova for at once, with all its states.

The states are one table, :data:`STEPS`; nothing else says which state may
follow which. A request is never sent to Nova while another sending of it may
have an effect: the only way back from ``sending`` and ``starting`` is the
proof that Nova does not have its message.
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
"""The largest amount of one resource class that Placement knows."""


class State(enum.Enum):
    """Where a request is on its way, in the order of that way."""

    WAITING = 'waiting'
    """It waits; nothing is kept for it."""

    RESERVED = 'reserved'
    """Room is kept for it in Placement; nothing was sent."""

    SENDING = 'sending'
    """Its message may have left or not: it is not sent again."""

    STARTING = 'starting'
    """The broker has its message; Nova builds it."""

    ACTIVE = 'active'
    """All of its servers run or ran."""

    ENDED = 'ended'
    """Its servers are gone."""

    CANCELLED = 'cancelled'
    """Its user or an operator took it back before it was sent."""

    EXPIRED = 'expired'
    """It waited longer than it, or its token, may."""

    FAILED = 'failed'
    """It cannot be started, or Nova could not start it."""


class Event(enum.Enum):
    """The events of a request."""

    RESERVE = 'reserve'
    """Room was found and kept."""

    LOSE = 'lose'
    """The room that was kept is gone."""

    SEND = 'send'
    """Its message leaves next."""

    RETURN = 'return'
    """It is proven that Nova does not have its message."""

    SENT = 'sent'
    """The broker confirmed its message, or Nova is seen to work on it."""

    START = 'start'
    """All of its servers are seen to run."""

    END = 'end'
    """Its servers are seen to be gone."""

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
    # What may have been sent cannot be taken back: it ends as Nova ends it.
    State.SENDING: {
        Event.SENT: State.STARTING,
        Event.RETURN: State.RESERVED,
    },
    State.STARTING: {
        Event.START: State.ACTIVE,
        Event.END: State.ENDED,
        Event.FAIL: State.FAILED,
        # A broker that dies may lose what it confirmed.
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
"""States that nothing leads out of."""

UNSENT = frozenset({State.WAITING, State.RESERVED})
"""States in which Nova knows nothing of the request yet."""


def after(state: State, event: Event) -> State:
    """The state that an event leads to.

    :raises IllegalStep: if it leads nowhere from this state.
    """
    return _TABLE.after(state, event)


class Origin(enum.Enum):
    """The message of Nova that a request was made of."""

    BUILD = 'schedule_and_build_instances'
    UNSHELVE = 'unshelve_instance'


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """The needs of one server; equal demands are interchangeable.

    :ivar amounts: resource class of Placement and how much of it, > 0;
        sorted, each class once.
    :ivar required: traits that a host must have.
    :ivar forbidden: traits that a host must not have.
    :ivar zone: availability zone; '' for any.
    :ivar aggregates: a host must be in at least one of every set.
    :ivar host: name of the only host that is wanted; '' for any.
    :ivar without: resource classes that a host must not have.
    :ivar fallbacks: demands that Nova asks for in its place next, in order;
        ``None`` if not known: then as :attr:`alternatives` says.
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
        """Ways in which a host may hold the server, in Nova's order.

        Of one that says nothing of fallbacks, dedicated CPUs alone may be
        shared ones, on hosts that have no dedicated ones.
        """
        if not self.is_open:
            return (self,)
        fallbacks = self.fallbacks or (_unpinned(self),)
        return dataclasses.replace(self, fallbacks=()), *fallbacks

    @property
    def is_open(self) -> bool:
        """Whether there is more than one way."""
        if self.fallbacks is not None:
            return bool(self.fallbacks)
        names = [name for name, _ in self.amounts]
        return DEDICATED in names and SHARED not in names

    def beside(self, classes: Collection[str]) -> 'Demand':
        """The same without some classes."""
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
        """Whether it asks for nothing beyond some classes."""
        return all(name in classes for name, _ in self.amounts)

    def on(self, classes: Container[str]) -> 'Demand':
        """The first way in which a host could hold it that has some classes.

        Without any such way, the first.
        """
        ways = self.alternatives
        for each in ways:
            is_kept_out = any(name in classes for name in each.without)
            if each.is_of(classes) and not is_kept_out:
                return each
        return ways[0]


DEDICATED, SHARED = 'PCPU', 'VCPU'
"""Resource classes of CPUs that servers are pinned to, and of others."""

HYPERTHREADING = 'HW_CPU_HYPERTHREADING'
"""Trait that thread policies of pinned servers ask for, or forbid."""


def _unpinned(demand: Demand) -> Demand:
    """The same on CPUs that are not dedicated."""
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
    """How servers of one group want to lie. Soft rules do not bind."""

    TOGETHER = 'affinity'
    APART = 'anti-affinity'


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A server group of Nova with a rule that binds.

    :ivar uuid: of the group.
    :ivar rule: how its servers lie.
    :ivar per_host: most servers of it on one host with ``APART``, >= 1.
    """

    uuid: str
    rule: Rule
    per_host: int = 1


class Band(enum.Enum):
    """Bands of priority, the first one first.

    Requests of a band come before those of the next one, and servers of the
    last may be taken their room by all before it.
    """

    NORMAL = 'normal'
    """Its servers stay until their owners end them."""

    PREEMPTIBLE = 'preemptible'
    """Its servers run in what others leave, and make room for them."""


class Holder(enum.Enum):
    """The role of a person that holds a request."""

    OPERATOR = 'operator'
    """Only an operator ends the hold, and no wait is too long meanwhile."""

    OWNER = 'owner'
    """A member of its project or an operator ends the hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """A request does not start, whatever the order is.

    :ivar by: whose hold it is.
    :ivar since: seconds of the epoch.
    :ivar text: why, in the words of the holder; '' if they said nothing.
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

    :ivar uuid: of the request; of a build its first server's.
    :ivar project: who pays.
    :ivar user: who asked.
    :ivar servers: UUIDs, at least one, all with the same demand.
    :ivar demand: of each server.
    :ivar asked_at: when Nova took it, seconds of the epoch.
    :ivar origin: build or unshelve.
    :ivar group: server group with a rule that binds; ``None`` without.
    :ivar expires_at: when it stops waiting, seconds of the epoch; ``None``
        for never.
    :ivar band: of priority, as it was when Nova took it.
    :ivar leaves_by: what its owner wants to be done first if its servers have
        to make room; ``None`` if they did not say.
    :ivar time_limit_s: seconds that its servers may run, > 0, before they
        leave; ``None`` without an end.
    :ivar extended_s: seconds by which that was extended, >= 0.
    :ivar hold: keeps it from starting; ``None`` without.
    :ivar first: number among those that operators put before all others of
        their band, the smallest is next; ``None`` if it is none of them.
    :ivar flavor: name of the flavor of its servers; '' if it is not known, or
        they have their room already.
    :ivar names: that its servers had when Nova took it, in the order of
        ``servers``; empty if they are not known.
    :ivar state: where it is on its way.
    :ivar version: number of writes to its row; a write names the version
        that it was decided on.
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
        """Whether its servers make room for others."""
        return self.band is Band.PREEMPTIBLE

    @property
    def keeps_room(self) -> bool:
        """Whether its servers have their room: they were not offloaded.

        Nothing is planned for it, so that it changes nothing of what they
        are: neither their band nor their end.
        """
        return self.origin is Origin.UNSHELVE and not self.demand.amounts

    @property
    def is_unread(self) -> bool:
        """Whether its message could not be read: its servers are unknown."""
        return self.origin is Origin.BUILD and not self.demand.amounts

    def ends_at(self, since: float) -> float | None:
        """When its servers leave; ``None`` for never.

        :param since: when they started, seconds of the epoch.
        """
        if self.time_limit_s is None:
            return None
        return since + self.time_limit_s + self.extended_s


@dataclasses.dataclass(frozen=True, slots=True)
class RequestFilter:
    """Requests that are looked for.

    :ivar states: in one of these.
    :ivar user: who asked; ``None`` for all.
    :ivar since: when they were asked for, seconds of the epoch, or later;
        ``None`` for any time.
    :ivar server: UUID of one of their servers; ``None`` for any.
    :ivar host: name of one to which they were sent; ``None`` for any.
    :ivar preemptible: whether they are; ``None`` for both.
    :ivar unsettled: whether requests whose servers just run are left out.
    :ivar running: UUIDs of those that are found though they run; ``None`` for
        all.
    """

    states: frozenset[State] = frozenset(State) - FINAL
    user: str | None = None
    since: float | None = None
    server: str | None = None
    host: str | None = None
    preemptible: bool | None = None
    unsettled: bool = False
    running: frozenset[str] | None = None


def newest(found: Iterable[Request]) -> dict[str, Request]:
    """The request that each server runs by, by UUID of the server.

    One that was unshelved goes by its newest request, unless that found it
    where it was.

    :param found: the oldest first.
    """
    return {
        server: each
        for each in found
        if not each.keeps_room
        for server in each.servers
    }


def account_of(project: str, user: str) -> str:
    """Name of a user's account in the share tree, below the project.

    An id that is not known is '': ``None`` as text would be the name of a
    possible account.
    """
    return f'{project or ""}/{user or ""}'
