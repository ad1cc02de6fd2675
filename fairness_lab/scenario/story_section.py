# SPDX-License-Identifier: Apache-2.0


"""The parts of a scenario file that tell nodes, VMs, load and events."""

from collections.abc import Iterator
import dataclasses
import functools
import math

from fairness_lab.scenario import events as happenings
from fairness_lab.scenario import load_section
from fairness_lab.scenario import recipes
from fairness_lab.scenario import scenario
from fairness_lab.scenario import yaml
from fairness_lab.simulator import loops

Value = yaml.Value

_MOST = 1_000_000


def nodes(value: Value) -> tuple[scenario.NodeSpec, ...]:
    """Read the nodes, ``count`` of a kind if so said.

    :raises BadScenario: with file, line and what was expected.
    """
    found: dict[str, scenario.NodeSpec] = {}
    for name, entry in value.entries().items():
        for spec in _node(name, entry):
            if spec.name in found:
                raise entry.wrong(f'names that differ, {spec.name} exists')
            found[spec.name] = spec
    if not found:
        raise value.wrong('at least one node')
    return tuple(found.values())


def _node(name: str, value: Value) -> list[scenario.NodeSpec]:
    section = value.section()
    plain = scenario.NodeSpec(name)
    positive = Value.positive
    count = section.take('count', lambda v: v.integer(1, _MOST), 0)
    spec = scenario.NodeSpec(
        name,
        cpus=section.need('cpus', _cpus),
        speed=section.take('speed', positive, plain.speed),
        memory_mib=section.take('memory_mib', positive, plain.memory_mib),
        disk_mib_s=section.take('disk_mib_s', positive, plain.disk_mib_s),
        network_mbit_s=section.take(
            'network_mbit_s', positive, plain.network_mbit_s
        ),
    )
    load_section.pass_over(section, 'disk_scheduler', 'uplink')
    section.finish()
    return [
        dataclasses.replace(spec, name=copy) for copy in _copies(name, count)
    ]


def _copies(name: str, count: int) -> list[str]:
    return [f'{name}-{n}' for n in range(1, count + 1)] or [name]


def _cpus(value: Value) -> float:
    """Read a number of CPUs, or the laboratory's list of them."""
    if isinstance(value.node.value, list):
        if not value.items():
            raise value.wrong('at least one CPU')
        return float(len({item.integer() for item in value.items()}))
    return value.positive()


def users(value: Value) -> dict[str, float]:
    """Read the users: quota weight by name."""
    return {name: _user(entry) for name, entry in value.entries().items()}


def _user(value: Value) -> float:
    section = value.section()
    weight = section.take('weight', Value.positive, 1.0)
    section.finish()
    return weight


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A VM, and where it is at first.

    :ivar spec: what it is.
    :ivar node: on which node.
    :ivar group: name that it shares with its copies.
    """

    spec: scenario.VmSpec
    node: str
    group: str


def read(top: yaml.Section, story: scenario.Story) -> scenario.Story:
    """Read VMs, load and events.

    :param story: of which only nodes and users are known.
    :raises BadScenario: with file, line and what was expected.
    """
    placed = top.need('vms', functools.partial(_vms, story=story))
    length_s = story.rounds * story.interval_s
    no_load: dict[str, list[load_section.Step]] = {}
    no_events: tuple[happenings.Event, ...] = ()
    load = top.take(
        'load',
        functools.partial(
            load_section.load,
            groups={name: item.group for name, item in placed.items()},
            length_s=length_s,
            interval_s=story.interval_s,
        ),
        no_load,
    )
    names = tuple(spec.name for spec in story.nodes)
    events = top.take(
        'events',
        functools.partial(
            happenings.events,
            vms=tuple(placed),
            nodes=names,
            length_s=length_s,
        ),
        no_events,
    )
    return dataclasses.replace(
        story,
        vms=tuple(
            _looped(item.spec, load.get(name, []))
            for name, item in placed.items()
        ),
        changes=tuple(_changes(story, placed, load, events)),
        silent=happenings.silent(events, names, story),
        cut=happenings.cut(events, names, story),
    )


def _looped(
    spec: scenario.VmSpec, steps: list[load_section.Step]
) -> scenario.VmSpec:
    """Take over from its first load how work comes to a VM, if that says."""
    for step in steps:
        if step.loop is not None:
            return dataclasses.replace(
                spec, loop=step.loop, threads=step.threads
            )
    return spec


def _vms(value: Value, story: scenario.Story) -> dict[str, Placed]:
    found: dict[str, Placed] = {}
    for group, entry in value.entries().items():
        for item in _group(group, entry, story):
            if item.spec.name in found:
                raise entry.wrong(
                    f'names that differ, {item.spec.name} exists'
                )
            found[item.spec.name] = item
    if not found:
        raise value.wrong('at least one VM')
    return found


def _group(
    group: str, value: Value, story: scenario.Story
) -> Iterator[Placed]:
    section = value.section()
    names = tuple(spec.name for spec in story.nodes)
    node = section.take('node', lambda v: v.one_of(names), '')
    count = section.take('count', lambda v: v.integer(1, _MOST), 0)
    spec = scenario.VmSpec(
        group,
        user=section.need('user', lambda v: _owner(v, story)),
        vcpus=section.take('vcpus', lambda v: v.integer(1, 1024), 1),
        memory_mib=section.take('memory_mib', Value.positive, 128.0),
        coupled=section.take('coupled', recipes.resource_names, ()),
        loop=section.take(
            'loop', recipes.one_of_words(loops.Loop), loops.Loop.CLOSED
        ),
        threads=section.take('threads', lambda v: v.integer(1, 1024), 1),
    )
    if spec.coupled and spec.loop is not loops.Loop.CLOSED:
        raise value.wrong('no key "loop" beside "coupled"')
    load_section.pass_over(section, 'disks', 'nics')
    section.finish()
    if not node and len(names) > 1:
        raise value.wrong(f'a node out of {", ".join(names[:10])}')
    for name in _copies(group, count):
        yield Placed(
            dataclasses.replace(spec, name=name), node or names[0], group
        )


def _owner(value: Value, story: scenario.Story) -> str:
    if story.user_weight:
        return value.one_of(tuple(story.user_weight))
    return value.text()


def _changes(
    story: scenario.Story,
    placed: dict[str, Placed],
    load: dict[str, list[load_section.Step]],
    events: tuple[happenings.Event, ...],
) -> Iterator[scenario.Change]:
    """Tell for each VM what load and events together come to."""
    for name, item in placed.items():
        mine = [event for event in events if event.subject == name]
        late = bool(mine) and mine[0].action is happenings.Action.START
        state = happenings.VmState(node=item.node, present=not late)
        yield state.change(0, name)
        # At the same moment, events are later than load.
        happening: list[load_section.Step | happenings.Event] = [
            *load.get(name, []),
            *mine,
        ]
        for what in sorted(happening, key=lambda item: item.at_s):
            if isinstance(what, load_section.Step):
                state = state.wanting(what.demand)
            else:
                state = state.after(what)
            when = math.ceil(what.at_s / story.interval_s - 1e-9)
            if when < story.rounds:
                yield state.change(when, name)
