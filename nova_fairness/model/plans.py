# SPDX-License-Identifier: Apache-2.0

"""Migration plans and their moves, with their states.

:data:`STEPS` and :data:`MOVE_STEPS` contain all allowed transitions. Nova gets
the request for a move only once: a move returns from ``moving`` only after the
proof that Nova has no record of it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import types

from nova_fairness.model import transitions


class Goal(enum.Enum):
    """The goal of a plan."""

    CONSOLIDATE = 'consolidate'
    """Fewer hosts are in use."""

    REPACK = 'repack'
    """All servers are distributed again, on fewer hosts."""

    BALANCE = 'balance'
    """No host is much fuller than others."""

    RESCUE = 'rescue'
    """A request that fits on no host gets room."""

    HELP = 'help'
    """The owner with the smallest part of its entitlement gets more."""

    MARKET = 'market'
    """A spending rate buys the same amount on every host."""

    EMPTY = 'empty'
    """A host is emptied at the request of an operator."""


CHOICES = tuple(each for each in Goal if each is not Goal.EMPTY)
"""Goals that can be configured. A host is emptied only at the request of an
operator.
"""


class PlanState(enum.Enum):
    """State of a plan."""

    PROPOSED = 'proposed'
    """The plan is shown; none of its moves begins."""

    APPROVED = 'approved'
    """The plan begins next."""

    RUNNING = 'running'
    """The moves of the plan are executed."""

    PARTIAL = 'partial'
    """The moves of the plan have ended, and its host is not empty: the host
    stays disabled.
    """

    DONE = 'done'
    """The moves of the plan were executed, or skipped for a reason."""

    STOPPED = 'stopped'
    """An operator stopped the plan: no further moves begin."""

    EXPIRED = 'expired'
    """The plan was not approved or completed in time, or is not useful any
    more.
    """

    FAILED = 'failed'
    """Too many moves of the plan failed."""


class PlanEvent(enum.Enum):
    """Event that changes the state of a plan."""

    APPROVE = 'approve'
    BEGIN = 'begin'
    FINISH = 'finish'
    REMAIN = 'remain'
    """The moves have ended, and the host of the plan is not empty."""

    STOP = 'stop'
    EXPIRE = 'expire'
    FAIL = 'fail'


_ENDING = {
    PlanEvent.STOP: PlanState.STOPPED,
    PlanEvent.EXPIRE: PlanState.EXPIRED,
}

STEPS: Mapping[PlanState, Mapping[PlanEvent, PlanState]] = (
    types.MappingProxyType(
        {
            PlanState.PROPOSED: {
                PlanEvent.APPROVE: PlanState.APPROVED,
                **_ENDING,
            },
            PlanState.APPROVED: {
                PlanEvent.BEGIN: PlanState.RUNNING,
                **_ENDING,
            },
            PlanState.RUNNING: {
                PlanEvent.FINISH: PlanState.DONE,
                PlanEvent.REMAIN: PlanState.PARTIAL,
                PlanEvent.FAIL: PlanState.FAILED,
                **_ENDING,
            },
            PlanState.PARTIAL: {
                PlanEvent.FINISH: PlanState.DONE,
                PlanEvent.STOP: PlanState.STOPPED,
            },
            PlanState.DONE: {},
            PlanState.STOPPED: {},
            PlanState.EXPIRED: {},
            PlanState.FAILED: {},
        }
    )
)
"""Transitions of plans: state, event, next state; there are no others."""

_TABLE = transitions.TransitionTable('plan', STEPS)

FINAL = _TABLE.final
"""Final states of plans."""


class MoveState(enum.Enum):
    """State of a move."""

    PENDING = 'pending'
    """The request for the move was not sent to Nova."""

    MOVING = 'moving'
    """The request for the move may have been sent to Nova; it is not sent
    again.
    """

    MOVED = 'moved'
    """The server runs on its new host."""

    SKIPPED = 'skipped'
    """The move was skipped; the cause is recorded."""

    FAILED = 'failed'
    """Nova did not execute the move; the server is on its old host."""


class MoveEvent(enum.Enum):
    """Event that changes the state of a move."""

    ASK = 'ask'
    """The request for the move is sent to Nova next."""

    RETURN = 'return'
    """It is proven that Nova has no record of the move."""

    ARRIVE = 'arrive'
    SKIP = 'skip'
    FAIL = 'fail'


MOVE_STEPS: Mapping[MoveState, Mapping[MoveEvent, MoveState]] = (
    types.MappingProxyType(
        {
            MoveState.PENDING: {
                MoveEvent.ASK: MoveState.MOVING,
                MoveEvent.SKIP: MoveState.SKIPPED,
            },
            MoveState.MOVING: {
                MoveEvent.RETURN: MoveState.PENDING,
                MoveEvent.ARRIVE: MoveState.MOVED,
                MoveEvent.SKIP: MoveState.SKIPPED,
                MoveEvent.FAIL: MoveState.FAILED,
            },
            MoveState.MOVED: {},
            MoveState.SKIPPED: {},
            MoveState.FAILED: {},
        }
    )
)
"""Transitions of moves."""

_MOVE_TABLE = transitions.TransitionTable('move', MOVE_STEPS)

UNENDED = frozenset({MoveState.PENDING, MoveState.MOVING})


class PlanCause(enum.Enum):
    """Why a plan or a move is in its state. The values are part of the API: do
    not change them.
    """

    FOUND = 'found'
    """The planner found it worth its moves for long enough."""

    OPERATOR = 'operator'
    """An operator asked for it."""

    AUTO = 'auto'
    """The configuration lets plans begin by themselves."""

    ALL_ENDED = 'all_ended'
    """All of its moves have ended."""

    SOME_STAY = 'some_stay'
    """Servers are left on the host that was to be emptied."""

    NOT_A_GOAL = 'not_a_goal'
    """The configuration no longer names what it is for."""

    LATE = 'late'
    """Its time is over."""

    NO_USE = 'no_use'
    """The reason for the plan, or for one of its moves, is gone."""

    REPLACED = 'replaced'
    """A plan took its place that matters more."""

    MANY_FAILED = 'many_failed'
    """Moves failed one after the other: more would."""

    ASKED = 'asked'
    """Nova was asked for it."""

    NOT_ASKED = 'not_asked'
    """Nova knows nothing of it: it is asked for again."""

    ARRIVED = 'arrived'
    """The server runs on its new host."""

    SERVER_GONE = 'server_gone'
    """The server was deleted, or lies on no host."""

    ELSEWHERE = 'elsewhere'
    """The server was moved, but not by this service."""

    BUSY = 'busy'
    """The server is busy with another operation."""

    LOCKED = 'locked'
    """The server is locked, or may not be moved."""

    HOST_CLOSED = 'host_closed'
    """Nothing may start on the new host."""

    NO_ROOM = 'no_room'
    """The new host has no room for it, or may not take it."""

    NOWHERE = 'nowhere'
    """No other host has room for the server, or may take it."""

    TOGETHER = 'together'
    """Its server group keeps the server beside others."""

    IN_VAIN = 'in_vain'
    """Its host cannot be emptied any more."""

    PLAN_ENDED = 'plan_ended'
    """Its plan ended before it began."""

    REFUSED = 'refused'
    """Nova refused it."""

    MIGRATION_FAILED = 'migration_failed'
    """Nova tried and could not."""

    CANCELLED = 'cancelled'
    """The live migration was cancelled."""


_SENTENCES: Mapping[PlanCause, str] = types.MappingProxyType(
    {
        PlanCause.FOUND: 'it was worth its moves for long enough',
        PlanCause.OPERATOR: 'an operator asked for it',
        PlanCause.AUTO: 'plans begin by themselves here',
        PlanCause.ALL_ENDED: 'all of its moves have ended',
        PlanCause.SOME_STAY: (
            'its host is not empty, and stays closed until an operator stops'
            ' the plan'
        ),
        PlanCause.NOT_A_GOAL: (
            '[fairness_plans] goals does not name its goal any more'
        ),
        PlanCause.LATE: 'its time is over',
        PlanCause.NO_USE: 'what it was for, or one of its servers, changed',
        PlanCause.REPLACED: 'a plan that matters more replaced it',
        PlanCause.MANY_FAILED: 'its moves failed',
        PlanCause.ASKED: 'Nova was asked for it',
        PlanCause.NOT_ASKED: 'Nova knows nothing of it: it is asked for again',
        PlanCause.ARRIVED: 'the server runs on its new host',
        PlanCause.SERVER_GONE: 'the server is gone',
        PlanCause.ELSEWHERE: 'the server was moved by others',
        PlanCause.BUSY: 'something else is done with the server',
        PlanCause.LOCKED: 'the server is locked, or bound to its host',
        PlanCause.HOST_CLOSED: 'nothing may start on the new host',
        PlanCause.NO_ROOM: (
            'the new host has no room for it, or may not take it'
        ),
        PlanCause.NOWHERE: 'no other host has room for it, or may take it',
        PlanCause.TOGETHER: 'its server group keeps it beside others',
        PlanCause.IN_VAIN: 'its host cannot be emptied any more',
        PlanCause.PLAN_ENDED: 'its plan ended before it began',
        PlanCause.REFUSED: 'Nova refused it',
        PlanCause.MIGRATION_FAILED: 'Nova tried it and could not',
        PlanCause.CANCELLED: 'the live migration was ended by others',
    }
)


def cause_sentence(cause: PlanCause | None, text: str) -> str:
    """Return the sentence of a cause; '' without a cause.

    :param text: text that is appended.
    """
    if cause is None:
        return ''
    return f'{_SENTENCES[cause]}: {text}' if text else _SENTENCES[cause]


NAMED = 20
"""Largest number of items that a text lists, because databases limit the
length of texts.
"""


def shortened_list(named: Sequence[str], between: str = ', ') -> str:
    """Return the first items as a text, with the number of further ones."""
    found = between.join(named[:NAMED])
    more = len(named) - NAMED
    return f'{found}{between}and {more} more' if more > 0 else found


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A live migration of a server from one host to another.

    :ivar server: UUID of the server.
    :ivar source: name of the host that it leaves.
    :ivar target: name of its new host.
    :ivar wave: number of its wave; 1 is first. Moves of one wave may run at
        the same time.
    :ivar cost_mb: memory that it is expected to send, MB.
    :ivar state: state of the move.
    :ivar cause: cause of the state; ``None`` at first.
    :ivar text: the cause for people, with names.
    :ivar asked_at: time of the last request to Nova, seconds of the epoch.
    :ivar ended_at: end of the move, seconds of the epoch.
    :ivar sent_mb: memory that was seen to be sent, MB.
    :ivar after: number of the newest live migration of the server before Nova
        was asked. A later migration is this move, or one of others.
    """

    server: str
    source: str
    target: str
    wave: int
    cost_mb: int
    state: MoveState = MoveState.PENDING
    cause: PlanCause | None = None
    text: str = ''
    asked_at: float | None = None
    ended_at: float | None = None
    sent_mb: int | None = None
    after: int = 0

    def stepped(
        self, event: MoveEvent, now: float, cause: PlanCause, text: str = ''
    ) -> 'Move':
        """Return the move after a step.

        :param now: seconds of the epoch.
        :raises IllegalStep: if the event is not allowed in its state.
        """
        state = _MOVE_TABLE.after(self.state, event)
        return dataclasses.replace(
            self,
            state=state,
            cause=cause,
            text=text,
            asked_at=now if event is MoveEvent.ASK else self.asked_at,
            ended_at=None if state in UNENDED else now,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Stay:
    """A server that a plan leaves on the host that is to be emptied.

    :ivar server: UUID of the server.
    :ivar name: name of the server; '' if it is not known.
    :ivar cause: cause for which it stays.
    :ivar text: details of the cause for people.
    """

    server: str
    name: str
    cause: PlanCause
    text: str = ''

    @property
    def sentence(self) -> str:
        """Sentence with the name of the server and the cause."""
        cause = cause_sentence(self.cause, self.text)
        return f'{self.name or self.server}: {cause}'


@dataclasses.dataclass(frozen=True, slots=True)
class PlanOutcome:
    """Effects of a plan, expected or measured.

    :ivar hosts_before: number of hosts in use before the plan.
    :ivar hosts_after: number of hosts in use after the plan.
    :ivar spread_before: largest use of a host beyond the average of all hosts
        before the plan, as a part of the host, in the class with the largest
        excess.
    :ivar spread_after: this excess after the plan.
    :ivar emptied: number of hosts that the plan emptied.
    :ivar moves: number of servers that moved.
    :ivar memory_mb: memory that was sent, MB.
    :ivar served: number of requests that started because of the plan.
    """

    hosts_before: int = 0
    hosts_after: int = 0
    spread_before: float = 0.0
    spread_after: float = 0.0
    emptied: int = 0
    moves: int = 0
    memory_mb: int = 0
    served: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Moves for one goal.

    :ivar uuid: UUID of the plan.
    :ivar goal: goal of the plan.
    :ivar subject: request, owner or host for which the plan is; '' without
        one.
    :ivar made_at: time at which it was proposed, seconds of the epoch.
    :ivar changed_at: time at which it entered its state, seconds of the
        epoch.
    :ivar until: time at which it expires, seconds of the epoch.
    :ivar moves: moves in the order in which they are to be made.
    :ivar empties: names of hosts that are empty after the moves.
    :ivar promised: expected effects.
    :ivar won: measured effects; ``None`` until they are measured.
    :ivar state: state of the plan.
    :ivar cause: cause of the state.
    :ivar text: the cause for people.
    :ivar version: number of writes to its row. A write names the version for
        which it was decided.
    :ivar stays: servers that were known, when the plan was proposed, to stay
        on the host that is to be emptied.
    """

    uuid: str
    goal: Goal
    subject: str
    made_at: float
    changed_at: float
    until: float
    moves: tuple[Move, ...]
    empties: tuple[str, ...] = ()
    promised: PlanOutcome = dataclasses.field(default_factory=PlanOutcome)
    won: PlanOutcome | None = None
    state: PlanState = PlanState.PROPOSED
    cause: PlanCause = PlanCause.FOUND
    text: str = ''
    version: int = 0
    stays: tuple[Stay, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether moves or the measurement of effects remain."""
        return self.state not in FINAL or (
            self.won is None and any(each.asked_at for each in self.moves)
        )

    @property
    def is_moving(self) -> bool:
        """Whether Nova was asked for a move that has not ended."""
        return any(each.state is MoveState.MOVING for each in self.moves)

    def stepped(
        self, event: PlanEvent, now: float, cause: PlanCause, text: str = ''
    ) -> 'MigrationPlan':
        """Return the plan after a step. Moves that did not begin end with the
        plan.

        :param now: seconds of the epoch.
        :raises IllegalStep: if the event is not allowed in its state.
        """
        state = _TABLE.after(self.state, event)
        moves = self.moves
        if state in FINAL:
            moves = tuple(
                each.stepped(MoveEvent.SKIP, now, PlanCause.PLAN_ENDED)
                if each.state is MoveState.PENDING
                else each
                for each in moves
            )
        return dataclasses.replace(
            self,
            state=state,
            cause=cause,
            text=text,
            changed_at=now,
            moves=moves,
        )

    def with_move(self, number: int, move: Move) -> 'MigrationPlan':
        """Return the plan with one of its moves replaced.

        :param number: index of the move, from 0.
        """
        moves = (*self.moves[:number], move, *self.moves[number + 1 :])
        return dataclasses.replace(self, moves=moves)
