# SPDX-License-Identifier: Apache-2.0

"""Eviction of a server: its owner gets a notice, Nova executes actions, its
room becomes free.

:data:`STEPS` contains all allowed transitions. Each state is written before
its step is executed. After a crash, the service checks the server before it
repeats a step.
"""

import dataclasses
import enum
from typing import Any
import uuid as uuid_module

from nova_fairness.model import reason
from nova_fairness.model import transitions


class EvictionState(enum.Enum):
    """State of an eviction, in chronological order."""

    CHOSEN = 'chosen'
    """The server is a victim; its owner may not have a notice yet."""

    TOLD = 'told'
    """The owner has a notice; no action is executed before its time."""

    ACTING = 'acting'
    """The request for an action to Nova is next, or was sent."""

    ASKED = 'asked'
    """Nova accepted the action; the service checks whether the room is
    free.
    """

    UNDOING = 'undoing'
    """The eviction is not needed any more; its actions are undone."""

    GONE = 'gone'
    """The room of the server is free."""

    RETURNED = 'returned'
    """The server was evicted for another, and runs again."""

    STAYS = 'stays'
    """The eviction ended, and the server still has its room.

    Actions were executed or failed. They are undone if the eviction was a
    preemption.
    """

    SPARED = 'spared'
    """The eviction was withdrawn."""


class EvictionEvent(enum.Enum):
    """Event that changes the state of an eviction."""

    TELL = 'tell'
    """The owner got a notice."""

    ACT = 'act'
    """The first or the next action is due."""

    ASK = 'ask'
    """Nova accepted the action, or works on it."""

    FREE = 'free'
    """The room of the server is free, for any cause."""

    GIVE_UP = 'give_up'
    """No action is left, or nothing is left to undo."""

    RETURN = 'return'
    """The server runs again."""

    SPARE = 'spare'
    """The cause of the eviction has ended, and no action was begun."""

    UNDO = 'undo'
    """The cause of the eviction has ended, or no action is left."""


_FREED = {EvictionEvent.FREE: EvictionState.GONE}
_ACTED = {
    EvictionEvent.ACT: EvictionState.ACTING,
    EvictionEvent.GIVE_UP: EvictionState.STAYS,
    EvictionEvent.UNDO: EvictionState.UNDOING,
    **_FREED,
}

STEPS: dict[EvictionState, dict[EvictionEvent, EvictionState]] = {
    EvictionState.CHOSEN: {
        EvictionEvent.TELL: EvictionState.TOLD,
        EvictionEvent.SPARE: EvictionState.SPARED,
        **_FREED,
    },
    EvictionState.TOLD: {
        EvictionEvent.ACT: EvictionState.ACTING,
        EvictionEvent.SPARE: EvictionState.SPARED,
        EvictionEvent.UNDO: EvictionState.UNDOING,
        **_FREED,
    },
    EvictionState.ACTING: {EvictionEvent.ASK: EvictionState.ASKED, **_ACTED},
    EvictionState.ASKED: _ACTED,
    EvictionState.UNDOING: {
        EvictionEvent.SPARE: EvictionState.SPARED,
        EvictionEvent.GIVE_UP: EvictionState.STAYS,
        **_FREED,
    },
    EvictionState.GONE: {EvictionEvent.RETURN: EvictionState.RETURNED},
    EvictionState.RETURNED: {},
    EvictionState.STAYS: {},
    EvictionState.SPARED: {},
}
"""Transitions: state, event, next state; there are no others."""

_TABLE = transitions.TransitionTable('server', STEPS)

FINAL = _TABLE.final | {EvictionState.GONE}
"""States after which no action is executed to free the room."""

LIVE = frozenset(EvictionState) - FINAL

GOING = LIVE - {EvictionState.UNDOING}
"""States after which the room is expected to be free."""

UNTOUCHED = frozenset({EvictionState.CHOSEN, EvictionState.TOLD})
"""States before the first action."""


_OUTCOMES = {
    EvictionState.GONE: 'freed',
    EvictionState.RETURNED: 'freed',
    EvictionState.STAYS: 'stayed',
    EvictionState.SPARED: 'spared',
}
_STAMPS = {
    EvictionEvent.TELL: 'told_at',
    EvictionEvent.ACT: 'acted_at',
    EvictionEvent.FREE: 'gone_at',
    EvictionEvent.RETURN: 'returned_at',
}
"""Fields with the time of the first event of each kind."""


def state_after(state: EvictionState, event: EvictionEvent) -> EvictionState:
    """Return the state after an event.

    :raises IllegalStep: if the event is not allowed in this state.
    """
    return _TABLE.after(state, event)


def eviction_uuid(server: str, turn: int) -> str:
    """Return the UUID of one eviction of a server, which does not reveal the
    server.

    :param turn: number of earlier evictions of the server.
    """
    name = f'{server} {turn}'
    return str(uuid_module.uuid5(uuid_module.NAMESPACE_OID, name))


class EvictionAction(enum.Enum):
    """Action on a server that is evicted."""

    STOP = 'stop'
    SUSPEND = 'suspend'
    SHELVE = 'shelve'
    SNAPSHOT_DELETE = 'snapshot_delete'
    """The owner gets an image of the server; then the server is deleted."""

    DELETE = 'delete'

    @property
    def frees(self) -> bool:
        """Whether the action frees the room of the server."""
        return self not in (EvictionAction.STOP, EvictionAction.SUSPEND)


class EvictionCause(enum.Enum):
    """Cause of an eviction."""

    TIME_LIMIT = 'time_limit'
    ROOM = 'room'
    """A request needs the room of the server."""

    HOST = 'host'
    """The host of the server moves to the batch system."""

    IDLE = 'idle'
    """The server was idle for days."""

    FREE = 'free'
    """A part of the cloud must stay free for later requests."""

    RETIRES = 'retires'
    """The work of the server is done, and requests need its room."""


PREEMPTIONS = frozenset(
    {EvictionCause.ROOM, EvictionCause.FREE, EvictionCause.RETIRES}
)
"""Causes for which a preemptible server is evicted for others."""

COME_BACK = frozenset(
    {EvictionCause.ROOM, EvictionCause.HOST, EvictionCause.FREE}
)
"""Causes after which a shelved server is started again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Eviction:
    """One eviction of a server. All times are seconds of the epoch.

    :ivar server: UUID of the server.
    :ivar project: project of the server.
    :ivar user: user who asked for the server.
    :ivar cause: cause of the eviction.
    :ivar why: reason for the owner.
    :ivar actions: actions that are done one after the other until the room is
        free; at least one.
    :ivar at: time before which no action is done.
    :ivar changed_at: time at which the eviction entered its state.
    :ivar tried: number of actions that were begun.
    :ivar state: state of the eviction.
    :ivar version: number of writes to its row. A write names the version for
        which it was decided.
    :ivar request: UUID of the request for which the server makes room; ''
        without one.
    :ivar asked_at: time at which the server was asked for; ``None`` if it is
        not known.
    :ivar turn: number of earlier evictions of the server.
    :ivar vcpus: number of VCPUs of the server.
    :ivar began_at: start of the server; ``None`` if it did not run when it
        was chosen.
    :ivar chosen_at: time at which the server was chosen.
    :ivar told_at: time of the notice; ``None`` if there was none.
    :ivar acted_at: start of the first action; ``None`` if there was none.
    :ivar gone_at: time at which the room was seen to be free, or ``None``.
    :ivar returned_at: time at which the server was seen to run again, or
        ``None``.
    """

    server: str
    project: str
    user: str
    cause: EvictionCause
    why: reason.Why
    actions: tuple[EvictionAction, ...]
    at: float
    changed_at: float
    tried: int = 0
    state: EvictionState = EvictionState.CHOSEN
    version: int = 0
    request: str = ''
    asked_at: float | None = None
    turn: int = 0
    vcpus: int = 0
    began_at: float | None = None
    chosen_at: float = 0.0
    told_at: float | None = None
    acted_at: float | None = None
    gone_at: float | None = None
    returned_at: float | None = None

    @property
    def uuid(self) -> str:
        """UUID of this eviction."""
        return eviction_uuid(self.server, self.turn)

    @property
    def for_project(self) -> str:
        """Project for which the server makes room; '' without one."""
        return self.why.subject if self.cause is EvictionCause.ROOM else ''

    @property
    def outcome(self) -> str | None:
        """Outcome: ``freed``, ``stayed`` or ``spared``; ``None`` before."""
        return _OUTCOMES.get(self.state)

    @property
    def notice_s(self) -> float | None:
        """Seconds from the notice to the first action, or to free room.

        ``None`` if there was no notice, or neither has happened yet.
        """
        until = self.gone_at if self.acted_at is None else self.acted_at
        if self.told_at is None or until is None:
            return None
        return max(until - self.told_at, 0.0)

    @property
    def answered(self) -> bool:
        """Whether the server agreed to its eviction before its time."""
        return self.acted_at is not None and self.acted_at < self.at

    @property
    def lost_vcpu_s(self) -> float:
        """VCPUs times seconds from the start to the first action.

        0 for a server that agreed to its eviction, because it saved its work.
        """
        if self.acted_at is None or self.began_at is None or self.answered:
            return 0.0
        return self.vcpus * max(self.acted_at - self.began_at, 0.0)

    def stepped(
        self, event: EvictionEvent, now: float, at: float | None = None
    ) -> 'Eviction':
        """Return the eviction after an event.

        :param event: the event.
        :param now: seconds of the epoch.
        :param at: new :attr:`at`; ``None`` keeps the present value.
        :raises IllegalStep: if the event is not allowed in its state.
        """
        changes: dict[str, Any] = {}
        stamp = _STAMPS.get(event)
        if stamp and getattr(self, stamp) is None:
            changes[stamp] = now
        return dataclasses.replace(
            self,
            state=state_after(self.state, event),
            version=self.version + 1,
            changed_at=now,
            tried=self.tried + (event is EvictionEvent.ACT),
            at=self.at if at is None else at,
            **changes,
        )

    @property
    def action(self) -> EvictionAction:
        """The present action, or the first one if none was begun."""
        return self.actions[max(self.tried - 1, 0)]

    @property
    def is_last(self) -> bool:
        """Whether no action follows the present one."""
        return self.tried == len(self.actions)
