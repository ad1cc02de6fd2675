# SPDX-License-Identifier: Apache-2.0

"""Tables of the allowed transitions between states."""

from collections.abc import Mapping
import enum
from typing import Generic
from typing import TypeVar

from automaton import exceptions as automaton_exceptions
from automaton import machines

from nova_fairness import exception

_State = TypeVar('_State', bound=enum.Enum)
_Event = TypeVar('_Event', bound=enum.Enum)


class TransitionTable(Generic[_State, _Event]):
    """All allowed transitions: state, event, next state.

    :param noun: noun for an object with these states, for messages.
    :param steps: next states by state, then by event; it has every state.
    """

    def __init__(
        self, noun: str, steps: Mapping[_State, Mapping[_Event, _State]]
    ) -> None:
        self._noun, self._steps = noun, steps
        self._machine = machines.FiniteMachine.build(
            [
                machines.State(
                    state.value,
                    is_terminal=not leads,
                    next_states={
                        event.value: then.value
                        for event, then in leads.items()
                    },
                )
                for state, leads in steps.items()
            ]
        )
        self._machine.freeze()

    @property
    def final(self) -> frozenset[_State]:
        """Final states: no event leads out of them."""
        return frozenset(
            state for state, leads in self._steps.items() if not leads
        )

    def after(self, state: _State, event: _Event) -> _State:
        """Return the state after an event.

        :raises IllegalStep: if the event is not allowed in this state; the
            error lists the allowed events.
        """
        machine = self._machine.copy(shallow=True)
        try:
            machine.initialize(start_state=state.value)
            machine.process_event(event.value)
        except automaton_exceptions.AutomatonException as error:
            raise exception.IllegalStep(self._refusal(state, event)) from error
        return self._steps[state][event]

    def _refusal(self, state: _State, event: _Event) -> str:
        begun = f'this {self._noun} is {state.value}'
        possible = ', '.join(each.value for each in self._steps[state])
        if not possible:
            return f'{begun} already: {event.value} is not possible any more'
        return (
            f'{begun}: {event.value} is not possible; possible now: {possible}'
        )
