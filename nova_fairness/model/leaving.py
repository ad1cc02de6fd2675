# SPDX-License-Identifier: Apache-2.0

"""How a server leaves: its owner is told, Nova acts, room is free.

The states are one table, :data:`STEPS`. Each is written before what it stands
for is done, so that whoever finds one after a crash looks at the server
before anything is done again.
"""

import dataclasses
import enum

from nova_fairness.model import reason
from nova_fairness.model import steps


class State(enum.Enum):
    """How far a server has left, in the order of its way."""

    CHOSEN = 'chosen'
    """It is to leave; its owner may not know."""

    TOLD = 'told'
    """Its owner knows when; nothing is done to it until then."""

    ACTING = 'acting'
    """Nova is asked next, or was asked, for the action."""

    ASKED = 'asked'
    """Nova took the action; it is looked whether it gives room back."""

    GONE = 'gone'
    """Its room is free."""

    RETURNED = 'returned'
    """It made room for another, and runs again."""

    STAYS = 'stays'
    """Every action was done or failed, and it has its room still."""

    SPARED = 'spared'
    """It need not leave any more."""


class Event(enum.Enum):
    """What can happen to a server that leaves."""

    TELL = 'tell'
    """Its owner was told."""

    ACT = 'act'
    """The first or the next action is due."""

    ASK = 'ask'
    """Nova took the action, or is seen to work on it."""

    FREE = 'free'
    """Its room is seen to be free, whoever freed it."""

    GIVE_UP = 'give_up'
    """No action is left."""

    RETURN = 'return'
    """It is seen to run again."""

    SPARE = 'spare'
    """There is no reason any more."""


_FREED = {Event.FREE: State.GONE}
_ACTED = {Event.ACT: State.ACTING, Event.GIVE_UP: State.STAYS, **_FREED}

STEPS: dict[State, dict[Event, State]] = {
    State.CHOSEN: {
        Event.TELL: State.TOLD,
        Event.SPARE: State.SPARED,
        **_FREED,
    },
    State.TOLD: {
        Event.ACT: State.ACTING,
        Event.SPARE: State.SPARED,
        **_FREED,
    },
    State.ACTING: {Event.ASK: State.ASKED, **_ACTED},
    State.ASKED: _ACTED,
    State.GONE: {Event.RETURN: State.RETURNED},
    State.RETURNED: {},
    State.STAYS: {},
    State.SPARED: {},
}
"""Transitions: state, event, next state; there are no others."""

_TABLE = steps.Table('server', STEPS)

FINAL = _TABLE.final | {State.GONE}
"""States in which nothing more is done so that its room is free."""

LIVE = frozenset(State) - FINAL

UNTOUCHED = frozenset({State.CHOSEN, State.TOLD})
"""States in which nothing was done to the server."""


def after(state: State, event: Event) -> State:
    """The state that an event leads to.

    :raises IllegalStep: if it leads nowhere from this state.
    """
    return _TABLE.after(state, event)


class Action(enum.Enum):
    """Something that is done to a server."""

    STOP = 'stop'
    SUSPEND = 'suspend'
    SHELVE = 'shelve'
    DELETE = 'delete'

    @property
    def frees(self) -> bool:
        """Whether it gives its room back."""
        return self in (Action.SHELVE, Action.DELETE)


class Cause(enum.Enum):
    """The reason for which a server is to leave."""

    TIME_LIMIT = 'time_limit'
    ROOM = 'room'
    """It makes room for a request."""


@dataclasses.dataclass(frozen=True, slots=True)
class Leave:
    """A server that leaves, or left last.

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
    """

    server: str
    project: str
    user: str
    cause: Cause
    why: reason.Why
    actions: tuple[Action, ...]
    at: float
    changed_at: float
    tried: int = 0
    state: State = State.CHOSEN
    version: int = 0
    request: str = ''
    asked_at: float | None = None

    @property
    def action(self) -> Action:
        """The one that is done now, or comes first."""
        return self.actions[max(self.tried - 1, 0)]

    @property
    def is_last(self) -> bool:
        """Whether no action comes after it."""
        return self.tried == len(self.actions)
