# SPDX-License-Identifier: Apache-2.0


"""Scenario files of the simulator: YAML in, a checked scenario out.

What a scenario file of the laboratory says means the same here; the
simulator knows more (nodes of any size, generators, traces, slow and lost
reports) and has no use for some (keys, Redis, rests, pairs of windows).
"""

from collections.abc import Mapping
import dataclasses
import functools
import math
import pathlib
import types
from typing import Any

from fairness_lab.scenario import generate
from fairness_lab.scenario import recipes
from fairness_lab.scenario import scenario
from fairness_lab.scenario import story_section
from fairness_lab.scenario import traces
from fairness_lab.scenario import yaml
from fairness_lab.simulator import model
from nova_fairness import exception
from nova_fairness.model import resources

FOLDER = pathlib.Path(__file__).parents[1] / 'scenarios' / 'simulator'
"""Where the standard set is."""

Value = yaml.Value
Section = yaml.Section

_AS_WRITTEN: Mapping[str, str] = types.MappingProxyType({})
_MOST_ROUNDS = 1_000_000
_UNUSED = ('settle', 'pairs', 'redis', 'keys', 'fio', 'expect')
_TOLD = ('vms', 'load', 'events')


def names() -> list[str]:
    """Names of the standard set."""
    return sorted(path.stem for path in FOLDER.glob('*.yaml'))


def find(
    name: str, overrides: Mapping[str, str] = _AS_WRITTEN
) -> scenario.Scenario:
    """Read a scenario of the standard set, or one in a file.

    :param name: its name, or the path of a YAML file.
    :param overrides: see :func:`read`.
    :raises BadScenario: if there is none, or it is wrong.
    """
    if name in names():
        return read(FOLDER / f'{name}.yaml', overrides)
    path = pathlib.Path(name)
    if path.suffix in {'.yaml', '.yml'} or path.is_file():
        return read(path, overrides)
    raise exception.BadScenario(
        f'there is no scenario {name}: expected one of '
        f'{", ".join(names())}, or the path of a YAML file'
    )


def read(
    path: pathlib.Path, overrides: Mapping[str, str] = _AS_WRITTEN
) -> scenario.Scenario:
    """Read a scenario file.

    :param overrides: YAML by key (``reports.loss``), instead of what the file
        says or beside it.
    :raises BadScenario: with file, line and what was expected.
    """
    whole = yaml.load(path)
    for key, text in overrides.items():
        yaml.override(whole, key, text)
    top = whole.section()
    name = top.take('name', Value.text, path.stem)
    description = top.need('description', Value.text)
    interval_s = top.take('interval', lambda v: v.number(0.2), 10.0)
    rounds = _rounds(top, interval_s)
    for key in _UNUSED:
        top.take(key, _unused, None)
    seed = top.take('seed', _seed, 0)
    recipe = top.take(
        'generate', functools.partial(recipes.recipe, seed=seed), None
    )
    if recipe is not None:
        _refuse_told(top)
        cloud = generate.generate(
            recipe, name, description, interval_s, rounds
        )
    else:
        cloud = _told(top, name, description, interval_s, rounds)
    agents = _agents(top, cloud.nodes, seed)
    top.finish()
    return scenario.Scenario(cloud, agents)


def _seed(value: Value) -> int:
    return value.integer(0, 2**32)


def _rounds(top: Section, interval_s: float) -> int:
    rounds = top.take('rounds', lambda v: v.integer(1, _MOST_ROUNDS), 0)
    duration_s = top.take('duration', Value.positive, 0.0)
    if bool(rounds) == bool(duration_s):
        raise top.value.wrong('exactly one of the keys rounds and duration')
    return rounds or min(_MOST_ROUNDS, math.ceil(duration_s / interval_s))


def _unused(_value: Value) -> None:
    """Pass over what means nothing here."""


def _refuse_told(top: Section) -> None:
    """Say that a generated cloud is not told as well."""

    def refuse(value: Value) -> None:
        raise value.wrong('no such section beside "generate"')

    for key in ('nodes', 'users', 'trace', *_TOLD):
        top.take(key, refuse, None)


def _told(
    top: Section,
    name: str,
    description: str,
    interval_s: float,
    rounds: int,
) -> model.Cloud:
    nodes = top.need('nodes', story_section.nodes)
    nobody: dict[str, float] = {}
    users = top.take('users', story_section.users, nobody)
    trace = top.take('trace', _path, None)
    story = scenario.Story(
        name, description, interval_s, rounds, nodes, users, (), ()
    )
    if trace is not None:
        for key in _TOLD:
            top.take(key, _refuse_beside_trace, None)
        return traces.add(story, trace).cloud()
    return story_section.read(top, story).cloud()


def _refuse_beside_trace(value: Value) -> None:
    raise value.wrong('no such section beside "trace"')


def _path(value: Value) -> pathlib.Path:
    return value.path.parent / value.text()


def _agents(
    top: Section, nodes: tuple[str, ...], seed: int
) -> scenario.AgentSpec:
    plain = scenario.AgentSpec(seed=seed)
    found = dataclasses.replace(
        plain,
        metric=top.take('metric', Value.text, plain.metric),
        policy=top.take('policy', Value.text, plain.policy),
        max_weight_ratio=top.take(
            'max_weight_ratio', lambda v: v.number(1.0), plain.max_weight_ratio
        ),
        controls=top.take('controls', _controls, plain.controls),
        ticks=top.take('ticks', lambda v: v.integer(1, 100), plain.ticks),
        spread=top.take('spread', Value.yes_or_no, plain.spread),
        view_max_age=top.take(
            'view_max_age', Value.positive, plain.view_max_age
        ),
        links=top.take(
            'reports', functools.partial(_links, nodes=nodes, seed=seed), None
        ),
    )
    return top.take('agent', functools.partial(_options, plain=found), found)


def _controls(value: Value) -> tuple[resources.Control, ...]:
    words = tuple(control.value for control in resources.CONTROLS)
    return tuple(
        resources.Control(item.one_of(words)) for item in value.items()
    )


def _options(value: Value, plain: scenario.AgentSpec) -> scenario.AgentSpec:
    """Read the agent's options; the simulator knows some of them."""
    known = ('decay_factor', 'largest_step', 'weight_tolerance')
    found: dict[str, Any] = {}
    for group, section in value.entries().items():
        for option, setting in section.entries().items():
            if group == 'fairness' and option in known:
                found[option] = setting.number()
                _check_option(setting, option, found[option])
    return dataclasses.replace(plain, **found)


def _check_option(value: Value, option: str, number: float) -> None:
    if option == 'decay_factor' and not 0 < number <= 1:
        raise value.wrong('a number above 0, at most 1')
    if option == 'largest_step' and number < 1:
        raise value.wrong('a number, at least 1')


def _links(
    value: Value, nodes: tuple[str, ...], seed: int
) -> scenario.LinkSpec:
    section = value.section()
    found = scenario.LinkSpec(
        delay=section.take('delay', Value.number, 0.0),
        jitter=section.take('jitter', Value.number, 0.0),
        loss=section.take('loss', _probability, 0.0),
        seed=section.take('seed', _seed, seed),
    )
    nobody: tuple[tuple[str, float, float], ...] = ()
    of = section.take(
        'of', functools.partial(_senders, nodes=nodes, plain=found), nobody
    )
    section.finish()
    return dataclasses.replace(found, of=of)


def _probability(value: Value) -> float:
    number = value.number()
    if number > 1:
        raise value.wrong('a probability, 0 to 1')
    return number


def _senders(
    value: Value, nodes: tuple[str, ...], plain: scenario.LinkSpec
) -> tuple[tuple[str, float, float], ...]:
    result = []
    for name, entry in value.entries().items():
        if name not in nodes:
            some = ', '.join(nodes[:10])
            raise entry.wrong(f'a node, such as {some}, instead of {name}')
        section = entry.section()
        delay = section.take('delay', Value.number, plain.delay)
        loss = section.take('loss', _probability, plain.loss)
        section.finish()
        result.append((name, delay, loss))
    return tuple(result)
