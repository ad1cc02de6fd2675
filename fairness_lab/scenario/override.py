# SPDX-License-Identifier: Apache-2.0


"""Values that take the place of what a scenario file says."""

import yaml

from fairness_lab.scenario import yaml as yaml_section
from nova_fairness import exception

_LENGTHS = ('rounds', 'duration')
"""Keys of which one excludes the other."""


def put(whole: yaml_section.Value, key: str, text: str) -> None:
    """Put a value in the place of another.

    :param key: with dots, such as ``reports.loss``.
    :param text: YAML.
    :raises BadScenario: if the text is no YAML, or there is no such section.
    """
    try:
        new = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        new = None
    if new is None:
        raise exception.BadScenario(
            f'{key}: expected a value in YAML, got {text!r}'
        )
    place = whole.node
    *path, last = key.split('.')
    for name in path:
        place = _section_of(place, name, key)
    if key in _LENGTHS:
        for length in _LENGTHS:
            _put(place, length, None, key)
    _put(place, last, new, key)


def _section_of(place: yaml.Node, name: str, key: str) -> yaml.Node:
    """Find a section, or make it."""
    for entry, value in _entries(place, key):
        if entry.value == name:
            return value
    tag = 'tag:yaml.org,2002:map'
    made = yaml.MappingNode(tag, [], place.start_mark, place.end_mark)
    _put(place, name, made, key)
    return made


def _put(place: yaml.Node, name: str, new: yaml.Node | None, key: str) -> None:
    kept = [
        (entry, value)
        for entry, value in _entries(place, key)
        if entry.value != name
    ]
    if new is not None:
        tag = 'tag:yaml.org,2002:str'
        mark = place.start_mark
        kept.append((yaml.ScalarNode(tag, name, mark, mark), new))
    place.value = kept


def _entries(
    place: yaml.Node, key: str
) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    if not isinstance(place, yaml.MappingNode):
        raise exception.BadScenario(
            f'{key}: expected a key of the scenario, such as reports.loss'
        )
    return list(place.value)
