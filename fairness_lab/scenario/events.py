# SPDX-License-Identifier: Apache-2.0


"""What happens to VMs, nodes and agents during a scenario."""

import dataclasses
import functools
import math

import numpy as np

from fairness_lab.scenario import scenario
from fairness_lab.scenario import values
from fairness_lab.scenario import yaml
from nova_fairness.model import resources

Value = yaml.Value


Action = values.Action
Event = values.Event

_MEANT = tuple(
    action
    for action in Action
    if action.concerns is not values.Subject.REDIS
    and action is not Action.RESTART_AGENT
)
"""What means something here: Redis is none, a restart takes no time."""

_SILENCING = {
    Action.KILL_AGENT: True,
    Action.FREEZE_AGENT: True,
    Action.START_AGENT: False,
    Action.THAW_AGENT: False,
}
_CUTTING = {Action.CUT: True, Action.HEAL: False}


def _idle() -> resources.Vector:
    return resources.RESOURCES.vector(
        memory=scenario.IDLE_MEMORY_MIB * scenario.MIB
    )


@dataclasses.dataclass(frozen=True, eq=False)
class VmState:
    """A VM at a moment.

    :ivar node: where it is, or would be.
    :ivar present: whether it exists.
    :ivar frozen: whether it stands still.
    :ivar demand: (r,) what it wants when it does not.
    """

    node: str
    present: bool = True
    frozen: bool = False
    demand: resources.Vector = dataclasses.field(default_factory=_idle)

    def wanting(self, demand: resources.Vector) -> 'VmState':
        """Want something else; NaN leaves a thing as it was."""
        new = np.where(np.isnan(demand), self.demand, demand)
        return dataclasses.replace(self, demand=new)

    def after(self, event: Event) -> 'VmState':
        """Let something happen to it."""
        match event.action:
            case Action.START:
                return dataclasses.replace(self, present=True)
            case Action.DESTROY:
                return dataclasses.replace(self, present=False)
            case Action.MOVE:
                return dataclasses.replace(self, node=event.to)
            case action:
                frozen = action is Action.FREEZE
                return dataclasses.replace(self, frozen=frozen)

    def change(self, when: int, name: str) -> scenario.Change:
        """What the simulator is told."""
        time_shared = resources.RESOURCES.time_shared
        running = np.where(time_shared & self.frozen, 0.0, self.demand)
        return scenario.Change(
            when, name, self.node if self.present else '', running
        )


def events(
    value: Value,
    vms: tuple[str, ...],
    nodes: tuple[str, ...],
    length_s: float,
) -> tuple[Event, ...]:
    """Read what happens, in the order of time.

    :raises BadScenario: with file, line and what was expected.
    """
    found = [_event(item, vms, nodes, length_s) for item in value.items()]
    return tuple(sorted(found, key=lambda event: event.at_s))


def _event(
    value: Value,
    vms: tuple[str, ...],
    nodes: tuple[str, ...],
    length_s: float,
) -> Event:
    section = value.section()
    at_s = section.need('at', Value.number)
    one_of = functools.partial(functools.partial, Value.one_of)
    to = section.take('to', one_of(choices=nodes), '')
    found = []
    for action in _MEANT:
        known = vms if action.concerns is values.Subject.VM else nodes
        subject = section.take(action.value, one_of(choices=known), '')
        if subject:
            found.append((action, subject))
    section.finish()
    if len(found) != 1:
        words = ', '.join(action.value for action in _MEANT)
        raise value.wrong(f'exactly one of {words}')
    if at_s >= length_s:
        raise value.wrong(f'a time below {length_s:g} s')
    if (found[0][0] is Action.MOVE) != bool(to):
        raise value.wrong('"move: VM" and "to: NODE" together')
    return Event(at_s, *found[0], to)


def silent(
    found: tuple[Event, ...], nodes: tuple[str, ...], story: scenario.Story
) -> resources.Mask | None:
    """Say when whose agent is down: (rounds, m), ``None`` if never."""
    return _spans(found, nodes, story, _SILENCING)


def cut(
    found: tuple[Event, ...], nodes: tuple[str, ...], story: scenario.Story
) -> resources.Mask | None:
    """Say when which node is cut off: (rounds, m), ``None`` if never."""
    return _spans(found, nodes, story, _CUTTING)


def _spans(
    found: tuple[Event, ...],
    nodes: tuple[str, ...],
    story: scenario.Story,
    meaning: dict[Action, bool],
) -> resources.Mask | None:
    mine = [event for event in found if event.action in meaning]
    if not mine:
        return None
    result = np.zeros((story.rounds, len(nodes)), dtype=np.bool_)
    seen: set[str] = set()
    for event in mine:
        place = nodes.index(event.subject)
        when = math.ceil(event.at_s / story.interval_s - 1e-9)
        # Who is started first was not there before.
        if event.action is Action.START_AGENT and event.subject not in seen:
            result[:when, place] = True
        result[when:, place] = meaning[event.action]
        seen.add(event.subject)
    return result
