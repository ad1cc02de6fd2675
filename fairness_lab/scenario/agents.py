# SPDX-License-Identifier: Apache-2.0

"""Read the settings of agents from a scenario file."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools

from fairness_lab.scenario import values
from fairness_lab.scenario import yaml
from nova_fairness.model import resources

Value = yaml.YamlValue
Section = yaml.Section

SIMULATED_ONLY = (
    'controls',
    'ticks',
    'spread',
    'view_max_age',
    'reports',
    'seed',
)
"""Keys of what agents are in the simulator alone."""

_PLAIN = values.AgentSpec()


def seed(value: Value) -> int:
    """Read the seed of random numbers."""
    return value.integer(0, 2**32)


def agents(
    top: Section, nodes: tuple[str, ...], start: int
) -> values.AgentSpec:
    """Read the settings of the agents.

    :param nodes: names of all nodes.
    :param start: where chance begins.
    :raises BadScenario: with file, line and what was expected.
    """
    found = dataclasses.replace(
        _PLAIN,
        metric=top.take('metric', Value.text, _PLAIN.metric),
        policy=top.take('policy', Value.text, _PLAIN.policy),
        max_weight_ratio=top.take('max_weight_ratio', _read_ratio, None),
        controls=top.take('controls', _read_controls, _PLAIN.controls),
        ticks=top.take('ticks', lambda v: v.integer(1, 100), _PLAIN.ticks),
        spread=top.take('spread', Value.yes_or_no, _PLAIN.spread),
        view_max_age=top.take(
            'view_max_age', Value.positive, _PLAIN.view_max_age
        ),
        links=top.take(
            'reports',
            functools.partial(_read_links, nodes=nodes, start=start),
            None,
        ),
        seed=start,
    )
    return top.take(
        'agent', functools.partial(_with_options, found=found), found
    )


def _read_ratio(value: Value) -> float | None:
    return value.number(1.0)


def _read_controls(value: Value) -> tuple[resources.ResourceControl, ...]:
    words = tuple(control.value for control in resources.CONTROLS)
    return tuple(
        resources.ResourceControl(item.one_of(words)) for item in value.items()
    )


def _with_options(value: Value, found: values.AgentSpec) -> values.AgentSpec:
    """Read options of agents; simulated ones know three of them."""
    groups = {
        group: section.entries() for group, section in value.entries().items()
    }
    known = {
        option: _NUMBERS[option](setting)
        for option, setting in groups.get('fairness', {}).items()
        if option in _NUMBERS
    }
    options = {
        group: {option: setting.text() for option, setting in section.items()}
        for group, section in groups.items()
    }
    return dataclasses.replace(
        found,
        options=options,
        decay_factor=known.get('decay_factor', found.decay_factor),
        largest_step=known.get('largest_step', found.largest_step),
        weight_tolerance=known.get('weight_tolerance', found.weight_tolerance),
    )


def _read_decay_factor(value: Value) -> float:
    number = value.positive()
    if number > 1:
        raise value.wrong('a number above 0, at most 1')
    return number


_NUMBERS: Mapping[str, Callable[[Value], float]] = {
    'decay_factor': _read_decay_factor,
    'largest_step': functools.partial(Value.number, lowest=1.0),
    'weight_tolerance': Value.number,
}


def _read_links(
    value: Value, nodes: tuple[str, ...], start: int
) -> values.LinkSpec | None:
    section = value.section()
    found = values.LinkSpec(
        delay=section.take('delay', Value.number, 0.0),
        jitter=section.take('jitter', Value.number, 0.0),
        loss=section.take('loss', _read_probability, 0.0),
        seed=section.take('seed', seed, start),
    )
    nobody: tuple[tuple[str, float, float], ...] = ()
    of = section.take(
        'of',
        functools.partial(_read_senders, nodes=nodes, plain=found),
        nobody,
    )
    section.finish()
    return dataclasses.replace(found, of=of)


def _read_probability(value: Value) -> float:
    number = value.number()
    if number > 1:
        raise value.wrong('a probability, 0 to 1')
    return number


def _read_senders(
    value: Value, nodes: tuple[str, ...], plain: values.LinkSpec
) -> tuple[tuple[str, float, float], ...]:
    result = []
    for name, entry in value.entries().items():
        if name not in nodes:
            some = ', '.join(nodes[:10])
            raise entry.wrong(f'a node, such as {some}, instead of {name}')
        section = entry.section()
        delay = section.take('delay', Value.number, plain.delay)
        loss = section.take('loss', _read_probability, plain.loss)
        section.finish()
        result.append((name, delay, loss))
    return tuple(result)
