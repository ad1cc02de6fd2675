# SPDX-License-Identifier: Apache-2.0

"""How values look in a table; ``-f json`` gives them as they are."""

from collections.abc import Mapping
from collections.abc import Sequence
import datetime as dt
import math
from typing import Any

from cliff import columns

from nova_fairness.model import plain as plain_module
from nova_fairness.model import wording

_MOST_ENTRIES = 10
"""Of a history in a table."""

_NEUTRAL = 0.01
"""A weight that differs from 1 by less makes no difference."""

_WALL_S = 'wall_s'
"""The one amount of seconds that is a time of day."""

_STEPS = ((1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k'))


def number(value: Any) -> str:
    """Write a number with three digits."""
    if value is None:
        return '-'
    if not isinstance(value, int | float):
        # Of a newer release, which says something else there.
        return str(value)
    for step, letter in _STEPS:
        if abs(value) >= step:
            return f'{value / step:.3g}{letter}'
    return f'{value:.3g}' if math.isfinite(value) else '-'


def _numbers(values: Mapping[str, Any]) -> str:
    return ' '.join(f'{name}={number(n)}' for name, n in values.items())


class Number(columns.FormattableColumn):  # type: ignore[type-arg]
    """A number, or none."""

    def human_readable(self) -> str:
        """Write it with three digits."""
        return number(self._value)


class Numbers(columns.FormattableColumn):  # type: ignore[type-arg]
    """Numbers by name."""

    def human_readable(self) -> str:
        """Write one on each line."""
        return '\n'.join(
            f'{name}={number(n)}' for name, n in (self._value or {}).items()
        )


class Amounts(columns.FormattableColumn):  # type: ignore[type-arg]
    """Amounts by resource."""

    def human_readable(self) -> str:
        """Write those that matter, each on a line and with its unit."""
        return '\n'.join(
            f'{wording.resource(name)}: {wording.amount(name, value)}'
            for name, value in (self._value or {}).items()
            if wording.matters(name, value)
        )


class Weights(columns.FormattableColumn):  # type: ignore[type-arg]
    """Weights by control."""

    def human_readable(self) -> str:
        """Write those that are not neutral, each on a line."""
        return '\n'.join(
            f'{name}: {value:.2f}'
            for name, value in (self._value or {}).items()
            if value is not None and abs(value - 1) > _NEUTRAL
        )


class Names(columns.FormattableColumn):  # type: ignore[type-arg]
    """A list of names."""

    def human_readable(self) -> str:
        """Write them on one line."""
        return ', '.join(map(str, self._value or ()))


class Sentences(columns.FormattableColumn):  # type: ignore[type-arg]
    """A list of sentences."""

    def human_readable(self) -> str:
        """Write each on a line."""
        return '\n'.join(map(str, self._value or ()))


class WeightColumns(columns.FormattableColumn):  # type: ignore[type-arg]
    """Weights by time."""

    def human_readable(self) -> str:
        """Write the newest, each on a line."""
        entries: Sequence[Mapping[str, Any]] = self._value or ()
        left = len(entries) - _MOST_ENTRIES
        lines = [f'... {left} before'] if left > 0 else []
        lines += [
            f'{item.get("at", "-")} {_numbers(item.get("weights") or {})}'
            for item in entries[-_MOST_ENTRIES:]
        ]
        return '\n'.join(lines)


class Stays(columns.FormattableColumn):  # type: ignore[type-arg]
    """Servers that stay where they are, and why."""

    def human_readable(self) -> str:
        """Write a line for each."""
        return '\n'.join(
            f'{each.get("name") or each.get("server")}:'
            f' {each.get("explanation")}'
            for each in self._value or ()
        )


class ObjectTree(columns.FormattableColumn):  # type: ignore[type-arg]
    """An object of anything."""

    def human_readable(self) -> str:
        """Write a line for each leaf."""
        return '\n'.join(_leaves(self._value, ''))


def _leaves(value: Any, path: str) -> list[str]:
    if isinstance(value, dict) and value:
        return [
            line
            for key, inner in value.items()
            for line in _leaves(inner, f'{path}.{key}' if path else key)
        ]
    if isinstance(value, list):
        value = ', '.join(map(str, value))
    if path.rpartition('.')[2] == _WALL_S:
        value = _time(value)
    if isinstance(value, float):
        value = number(value)
    if value is None or value in ('', {}):
        value = '-'
    return [f'{path}={value}' if path else str(value)]


def _time(wall_s: Any) -> Any:
    """Write seconds since the epoch as a time."""
    if not isinstance(wall_s, int | float):
        return wall_s
    at = dt.datetime.fromtimestamp(wall_s, dt.UTC)
    return at.strftime('%Y-%m-%dT%H:%M:%SZ')


def safe(value: Any) -> Any:
    """A value without anything that a terminal obeys; its form stays."""
    if isinstance(value, columns.FormattableColumn):
        return type(value)(_safe(value.machine_readable()))
    return _safe(value)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return plain_module.line(value)
    if isinstance(value, Mapping):
        return {_safe(key): _safe(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(each) for each in value]
    return value


def plain(value: Any) -> Any:
    """Write a value for ``-f value``: text, but numbers as they are."""
    if isinstance(value, Number) or not isinstance(
        value, columns.FormattableColumn
    ):
        return value
    return value.human_readable()


def plain_line(value: Any) -> Any:
    """The same on one line."""
    found = plain(value)
    return ', '.join(found.splitlines()) if isinstance(found, str) else found
