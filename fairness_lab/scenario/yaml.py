# SPDX-License-Identifier: Apache-2.0

"""Read YAML with types; errors name file and line."""

from collections.abc import Callable
from collections.abc import Iterator
import difflib
import math
import pathlib
from typing import TypeVar

import yaml

from nova_fairness import exception
from nova_fairness.runtime import yaml_file

_T = TypeVar('_T')

_LENGTHS = ('rounds', 'duration')
"""Keys that exclude each other."""

NAME_LENGTH = 40
"""Characters of a name, at most."""

Convert = Callable[['YamlValue'], _T]


class YamlValue:
    """A value in a file.

    :param file: where it is.
    :param node: as PyYAML composed it.
    :param what: how to call it in messages.
    """

    def __init__(
        self, file: yaml_file.YamlFile, node: yaml.Node, what: str
    ) -> None:
        self.file = file
        self.node = node
        self.what = what

    @property
    def path(self) -> pathlib.Path:
        """Path of the file."""
        return self.file.path

    def wrong(self, expected: str) -> exception.FairnessError:
        """Error that says where and what was expected."""
        return self.file.node_error(
            self.node,
            f'{self.what}: expected {expected}, got {self._shown()}',
        )

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value)
        return 'a list' if self.is_list() else 'a section'

    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def text(self) -> str:
        """Read a text that is not empty."""
        if isinstance(self.node, yaml.ScalarNode) and self.node.value.strip():
            return str(self.node.value).strip()
        raise self.wrong('a text')

    def number(self, lowest: float = 0.0) -> float:
        """Read a number."""
        try:
            number = float(self.text())
        except (ValueError, exception.BadScenario):
            number = math.nan
        if math.isfinite(number) and number >= lowest:
            return number
        bound = '' if lowest == -math.inf else f', at least {lowest:g}'
        raise self.wrong(f'a number{bound}')

    def positive(self) -> float:
        """Read a number above 0."""
        try:
            number = float(self.text())
        except (ValueError, exception.BadScenario):
            number = math.nan
        if math.isfinite(number) and number > 0:
            return number
        raise self.wrong('a number above 0')

    def integer(self, lowest: int = 0, highest: int | None = None) -> int:
        """Read a whole number."""
        bound = f'at least {lowest}'
        if highest is not None:
            bound += f' and at most {highest}'
        try:
            number = int(self.text())
        except (ValueError, exception.BadScenario):
            raise self.wrong(f'a whole number, {bound}') from None
        if number < lowest or (highest is not None and number > highest):
            raise self.wrong(f'a whole number, {bound}')
        return number

    def name(self) -> str:
        """Read a name that can be used in files and tables.

        :raises BadScenario: if it is none.
        """
        return self.check_name(self.text())

    def check_name(self, name: str) -> str:
        """Refuse a text that cannot be a name."""
        plain = name.replace('-', '').replace('_', '').replace('.', '')
        if plain.isascii() and plain.isalnum() and len(name) <= NAME_LENGTH:
            return name
        raise self.wrong(
            f'a name of at most {NAME_LENGTH} letters, digits, ".", "-" or '
            f'"_" instead of {name!r}'
        )

    def yes_or_no(self) -> bool:
        """Read a truth value."""
        return self.one_of(('true', 'false')) == 'true'

    def one_of(self, choices: tuple[str, ...]) -> str:
        """Read one of some words."""
        word = self.node.value if self._is_scalar() else None
        if word not in choices:
            near = difflib.get_close_matches(str(word), choices, 1)
            hint = f' (did you mean {near[0]}?)' if near else ''
            raise self.wrong(f'one of {", ".join(choices)}{hint}')
        return str(word)

    def _is_scalar(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    def items(self) -> list['YamlValue']:
        """Read a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong('a list')
        return [
            YamlValue(self.file, item, f'{self.what}[{place}]')
            for place, item in enumerate(self.node.value)
        ]

    def entries(self) -> dict[str, 'YamlValue']:
        """Read a section whose keys are names of one's own choice."""
        if self._is_scalar() and not self.node.value:
            return {}
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong('a section of names with values')
        found: dict[str, YamlValue] = {}
        for key, value in self.node.value:
            name = YamlValue(self.file, key, f'name in {self.what}').text()
            if name in found:
                where = YamlValue(self.file, key, f'{self.what}')
                raise where.wrong('every name once')
            found[name] = YamlValue(self.file, value, f'{self.what}.{name}')
        return found

    def section(self) -> 'Section':
        """Read a section whose keys are known."""
        return Section(self)


class Section:
    """A section with known keys; leave it through :meth:`finish`.

    :param value: that should be one.
    """

    def __init__(self, value: YamlValue) -> None:
        self.value = value
        self._keys = {
            key.value: key for key, _ in _pairs(value) if hasattr(key, 'value')
        }
        self._entries = value.entries()
        self._known: list[str] = []

    def take(self, key: str, convert: Convert[_T], default: _T) -> _T:
        """Read a value that may be absent."""
        self._known.append(key)
        found = self._entries.get(key)
        return default if found is None else convert(found)

    def need(self, key: str, convert: Convert[_T]) -> _T:
        """Read a value that must be there.

        :raises BadScenario: if it is not.
        """
        self._known.append(key)
        if key not in self._entries:
            raise self.value.file.node_error(
                self.value.node,
                f'{self.value.what}: expected the key {key}, which is missing',
            )
        return convert(self._entries[key])

    def leave_to(self, program: str, *keys: str) -> None:
        """Refuse keys that another program understands.

        :raises BadScenario: naming the first that is there, and the program.
        """
        for key in keys:
            if key in self._entries:
                raise self.value.file.node_error(
                    self._keys[key],
                    f'{self.value.what}: expected no key {key}, which only'
                    f' {program} understands',
                )

    def finish(self) -> None:
        """Refuse keys that were not read.

        :raises BadScenario: naming the first of them and a near one.
        """
        for name in self._entries:
            if name in self._known:
                continue
            near = difflib.get_close_matches(name, self._known, 1)
            hint = f' (did you mean {near[0]}?)' if near else ''
            raise self.value.file.node_error(
                self._keys[name],
                f'{self.value.what}: unknown key {name}{hint}, expected one of'
                f' {", ".join(self._known)}',
            )


def _pairs(value: YamlValue) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    if isinstance(value.node, yaml.MappingNode):
        yield from value.node.value


def load(path: pathlib.Path) -> YamlValue:
    """Read a YAML file.

    :raises BadScenario: if it cannot be read or is no YAML.
    """
    file = yaml_file.YamlFile(path, exception.BadScenario)
    return YamlValue(file, file.read_root(), 'scenario')


def override(whole: YamlValue, key: str, text: str) -> None:
    """Replace a value in a YAML document.

    :param key: with dots, such as ``reports.loss``.
    :param text: YAML.
    :raises BadScenario: if the text is no YAML, or there is no such section.
    """
    try:
        new = yaml_file.compose(text)
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
