# SPDX-License-Identifier: Apache-2.0


"""The part of a scenario file that says what is drawn."""

from collections.abc import Callable
import dataclasses
import enum
import functools
from typing import Any
from typing import TypeVar

from fairness_lab.scenario import generate
from fairness_lab.scenario import recipes
from fairness_lab.scenario import yaml
from fairness_lab.simulator import loops
from fairness_lab.simulator import model
from nova_fairness.model import resources

Value = yaml.Value
Draw = Callable[[str, str, float, int], model.Cloud]
"""(name, description, interval_s, rounds) -> cloud."""

_Word = TypeVar('_Word', bound=enum.Enum)

SHORT_NAMES = {
    'cpu': ('cpu_time',),
    'disk': ('disk_read', 'disk_written'),
    'network': ('net_received', 'net_sent'),
    'memory': ('memory',),
}
"""Words for several resources at once."""

_MOST_VMS = 10_000_000


def read(value: Value, seed: int) -> Draw:
    """Read the section; nothing is drawn yet.

    :param seed: if the section names none.
    :raises BadScenario: with file, line and what was expected.
    """
    section = value.section()
    found = {
        name: section.take(name, convert, recipes.DEFAULTS[name])
        for name, convert in _READERS.items()
    }
    found['seed'] = section.take('seed', lambda v: v.integer(0, 2**32), seed)
    section.finish()
    recipe = recipes.Recipe(**found)
    if recipe.nodes * recipe.vms_per_node > _MOST_VMS:
        raise value.wrong(f'at most {_MOST_VMS} VMs')
    return functools.partial(generate.generate, recipe)


def resource_names(value: Value) -> tuple[str, ...]:
    """Read a list of resources, by their names or shorter words."""
    words = (*SHORT_NAMES, *resources.RESOURCES.names)
    if value.node.value == 'all':
        return resources.RESOURCES.names
    found = [item.one_of(words) for item in value.items()]
    return tuple(
        name for word in found for name in SHORT_NAMES.get(word, (word,))
    )


def _count(value: Value) -> int:
    return value.integer(1, _MOST_VMS)


def _numbers(value: Value) -> tuple[float, ...]:
    """Read a number above 0, or a list of them."""
    if not isinstance(value.node.value, list):
        return (value.positive(),)
    found = tuple(item.positive() for item in value.items())
    if not found:
        raise value.wrong('at least one number')
    return found


def _wholes(value: Value) -> tuple[float, ...]:
    found = _numbers(value)
    if any(number != int(number) for number in found):
        raise value.wrong('whole numbers')
    return found


def _loops(value: Value) -> tuple[loops.Loop, ...]:
    """Read how work comes to VMs: a word, or a list of them."""
    read = word(loops.Loop)
    if not isinstance(value.node.value, list):
        return (read(value),)
    found = tuple(read(item) for item in value.items())
    if not found:
        raise value.wrong('at least one word')
    return found


def _part(value: Value) -> float:
    number = value.number()
    if number > 1:
        raise value.wrong('a number, 0 to 1')
    return number


def word(kind: type[_Word]) -> Callable[[Value], _Word]:
    """A reader of one of the words of an enumeration."""
    words = tuple(str(entry.value) for entry in kind)
    return lambda value: kind(value.one_of(words))


_READERS: dict[str, Callable[[Value], Any]] = {
    'graph': word(recipes.Graph),
    'nodes': _count,
    'users': _count,
    'degree': _count,
    'vms_per_node': _count,
    'skew': Value.number,
    'node_cpus': _numbers,
    'node_speeds': _numbers,
    'memory_per_cpu_mib': Value.positive,
    'disk_mib_s': Value.positive,
    'network_mbit_s': Value.positive,
    'vcpus': _wholes,
    'memory_mib': _numbers,
    'user_weights': _numbers,
    'resources': resource_names,
    'pressure': Value.positive,
    'coupled': _part,
    'demand': word(recipes.Demand),
    'on': Value.positive,
    'off': Value.positive,
    'idle': _part,
    'tail': Value.positive,
    'churn': _part,
    'moves': _part,
    'loop': _loops,
    'threads': _count,
    'period': _count,
    'length': _count,
}

KEYS = tuple(field.name for field in dataclasses.fields(recipes.Recipe))
"""All keys of the section."""
