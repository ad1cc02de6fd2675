# SPDX-License-Identifier: Apache-2.0

"""How a server leaves: its owner is told, Nova acts, room is free.

The states are one table, :data:`STEPS`. Each state is written before its step
is done. After a crash, the service looks at the server before it does anything
again.
"""

import dataclasses
import enum
from typing import Any
import uuid as uuid_module

from nova_fairness.model import reason
from nova_fairness.model import transitions


class EvictionState(enum.Enum):
    """How far a server has left, in the order of its way."""

    CHOSEN = 'chosen'
    """It is to leave; its owner may not know."""

    TOLD = 'told'
    """Its owner knows when; nothing is done to it until then."""

    ACTING = 'acting'
    """Nova is asked next, or was asked, for the action."""

    ASKED = 'asked'
    """Nova took the action; it is looked whether it gives room back."""

    UNDOING = 'undoing'
    """It need not leave any more: what was done to it is undone."""

    GONE = 'gone'
    """Its room is free."""

    RETURNED = 'returned'
    """It made room for another, and runs again."""

    STAYS = 'stays'
    """It was to leave for good, and has its room still.

    Actions were done to it, or failed; they are undone if it makes room.
    """

    SPARED = 'spared'
    """It need not leave any more."""


class EvictionEvent(enum.Enum):
    """The events of an eviction."""

    TELL = 'tell'
    """Its owner was told."""

    ACT = 'act'
    """The first or the next action is due."""

    ASK = 'ask'
    """Nova took the action, or is seen to work on it."""

    FREE = 'free'
    """Its room is free, whatever freed it."""

    GIVE_UP = 'give_up'
    """No action is left, or nothing is left to undo."""

    RETURN = 'return'
    """It is seen to run again."""

    SPARE = 'spare'
    """There is no reason any more, and no action was begun."""

    UNDO = 'undo'
    """There is no reason any more, or no action is left."""


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
"""States in which nothing more is done so that its room is free."""

LIVE = frozenset(EvictionState) - FINAL

GOING = LIVE - {EvictionState.UNDOING}
"""States in which its room will be free."""

UNTOUCHED = frozenset({EvictionState.CHOSEN, EvictionState.TOLD})
"""States in which nothing was done to the server."""


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
"""Fields that say when something happened first."""


def after(state: EvictionState, event: EvictionEvent) -> EvictionState:
    """The state that an event leads to.

    :raises IllegalStep: if it leads nowhere from this state.
    """
    return _TABLE.after(state, event)


def name_of(server: str, turn: int) -> str:
    """UUID of one time that a server is to leave; it does not tell which."""
    name = f'{server} {turn}'
    return str(uuid_module.uuid5(uuid_module.NAMESPACE_OID, name))


class EvictionAction(enum.Enum):
    """Something that is done to a server."""

    STOP = 'stop'
    SUSPEND = 'suspend'
    SHELVE = 'shelve'
    SNAPSHOT_DELETE = 'snapshot_delete'
    """Its owner gets an image of it; then it is deleted."""

    DELETE = 'delete'

    @property
    def frees(self) -> bool:
        """Whether it gives its room back."""
        return self not in (EvictionAction.STOP, EvictionAction.SUSPEND)


class EvictionCause(enum.Enum):
    """The reason for which a server is to leave."""

    TIME_LIMIT = 'time_limit'
    ROOM = 'room'
    """It makes room for a request."""

    HOST = 'host'
    """Its host goes to the batch system."""

    IDLE = 'idle'
    """It did next to nothing for days."""

    FREE = 'free'
    """A part of the cloud is to be free before anybody asks for it."""

    RETIRES = 'retires'
    """It is done, and others want its room."""


PREEMPTIONS = frozenset(
    {EvictionCause.ROOM, EvictionCause.FREE, EvictionCause.RETIRES}
)
"""Causes for which a preemptible server makes room for others."""

COME_BACK = frozenset(
    {EvictionCause.ROOM, EvictionCause.HOST, EvictionCause.FREE}
)
"""Causes for which who was shelved is asked to start again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Eviction:
    """One time that a server is to leave.

    :ivar server: UUID.
    :ivar project: that it belongs to.
    :ivar user: who asked for it.
    :ivar cause: why, for programs.
    :ivar why: the same for its owner.
    :ivar actions: done one after the other until its room is free; at least
        one.
    :ivar at: before that nothing is done to it, seconds of the epoch.
    :ivar changed_at: when it came into its state, seconds of the epoch.
    :ivar tried: number of actions that were begun.
    :ivar state: how far it has left.
    :ivar version: number of writes to its row; a write names the version that
        it was decided on.
    :ivar request: UUID of the one that it makes room for; '' without.
    :ivar asked_at: when it was asked for itself, seconds of the epoch;
        ``None`` if that is not known.
    :ivar turn: number of times that it was to leave before.
    :ivar vcpus: that it has.
    :ivar began_at: when it began to run, seconds of the epoch; ``None`` if it
        did not run when it was chosen, or for times below that did not come.
    :ivar chosen_at: when it was chosen.
    :ivar told_at: when its owner was told.
    :ivar acted_at: when the first action began.
    :ivar gone_at: when its room was seen to be free.
    :ivar returned_at: when it was seen to run again.
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
        """Name of this one time."""
        return name_of(self.server, self.turn)

    @property
    def for_project(self) -> str:
        """The project that it makes room for; '' without."""
        return self.why.subject if self.cause is EvictionCause.ROOM else ''

    @property
    def outcome(self) -> str | None:
        """How it ended: ``freed``, ``stayed`` or ``spared``."""
        return _OUTCOMES.get(self.state)

    @property
    def notice_s(self) -> float | None:
        """Seconds from telling its owner until it had to leave, or did.

        ``None`` if the owner was not told, or may be acted on later.
        """
        until = self.gone_at if self.acted_at is None else self.acted_at
        if self.told_at is None or until is None:
            return None
        return max(until - self.told_at, 0.0)

    @property
    def answered(self) -> bool:
        """Whether it said that it was done, and left before it had to."""
        return self.acted_at is not None and self.acted_at < self.at

    @property
    def lost_vcpu_s(self) -> float:
        """VCPUs times seconds that it had run when the first action began.

        0 of one that said that it was done: it saved its work.
        """
        if self.acted_at is None or self.began_at is None or self.answered:
            return 0.0
        return self.vcpus * max(self.acted_at - self.began_at, 0.0)

    def stepped(
        self, event: EvictionEvent, now: float, at: float | None = None
    ) -> 'Eviction':
        """It in its next state.

        :param event: what happens to it.
        :param now: seconds of the epoch.
        :param at: before that nothing is done to it; ``None`` leaves it.
        :raises IllegalStep: if the event leads nowhere from its state.
        """
        changes: dict[str, Any] = {}
        stamp = _STAMPS.get(event)
        if stamp and getattr(self, stamp) is None:
            changes[stamp] = now
        return dataclasses.replace(
            self,
            state=after(self.state, event),
            version=self.version + 1,
            changed_at=now,
            tried=self.tried + (event is EvictionEvent.ACT),
            at=self.at if at is None else at,
            **changes,
        )

    @property
    def action(self) -> EvictionAction:
        """The one that is done now, or comes first."""
        return self.actions[max(self.tried - 1, 0)]

    @property
    def is_last(self) -> bool:
        """Whether no action comes after it."""
        return self.tried == len(self.actions)
