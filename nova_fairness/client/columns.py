# SPDX-License-Identifier: Apache-2.0

"""How values look in a table; ``-f json`` gives them as they are."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime as dt
import math
import textwrap
from typing import Any

from cliff import columns

from nova_fairness.client import naming
from nova_fairness.model import moments
from nova_fairness.model import plain as plain_module
from nova_fairness.model import wording

_MOST_ENTRIES = 10
"""Of a history in a table."""

_NEUTRAL = 0.01
"""A weight that differs from 1 by less makes no difference."""

_WALL_S = 'wall_s'
"""The one amount of seconds that is a time of day."""

_NOTHING = 1e-6
"""A number nearer to 0 is 0 in a table."""

_SPANS_S = ((86400, 'd'), (3600, 'h'), (60, 'min'))

WIDTH = 120
"""Characters of a line of a table that people read."""

_EDGE = 3
"""Characters between two columns."""

_LEAST = 16
"""Characters of a line of a text, however much the other columns take."""

_STEPS = ((1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k'))


def number(value: Any) -> str:
    """Write a number with three digits."""
    if value is None:
        return ''
    if not isinstance(value, int | float):
        # Of a newer release, which says something else there.
        return str(value)
    if abs(value) < _NOTHING:
        return '0'
    for step, letter in _STEPS:
        if abs(value) >= step:
            return f'{value / step:.3g}{letter}'
    return f'{value:.3g}' if math.isfinite(value) else ''


def percent(part: Any) -> str:
    """Write a part of a whole in percent."""
    if not isinstance(part, int | float):
        return number(part)
    return f'{number(100 * part)} %'


def span(value: Any) -> str:
    """Write seconds as a span of time, in the largest unit that fits."""
    if not isinstance(value, int | float):
        return number(value)
    for step, unit in _SPANS_S:
        if abs(value) >= step:
            return f'{value / step:.3g} {unit}'
    return f'{number(value)} s'


def _numbers(values: Mapping[str, Any]) -> str:
    return ' '.join(f'{name}={number(n)}' for name, n in values.items())


def percents(values: Mapping[str, Any] | None) -> list[str]:
    """Write parts of wholes by name, each in percent."""
    return [f'{name} {percent(part)}' for name, part in (values or {}).items()]


class Number(columns.FormattableColumn):  # type: ignore[type-arg]
    """A number, or none."""

    def human_readable(self) -> str:
        """Write it with three digits."""
        return number(self._value)


class Percent(Number):
    """A part of a whole, or none."""

    def human_readable(self) -> str:
        """Write it in percent."""
        return percent(self._value)


class Percents(columns.FormattableColumn):  # type: ignore[type-arg]
    """Parts of wholes by name."""

    def human_readable(self) -> str:
        """Write one on each line, in percent."""
        return '\n'.join(percents(self._value))


class Span(columns.FormattableColumn):  # type: ignore[type-arg]
    """Seconds, or none."""

    def human_readable(self) -> str:
        """Write them in the largest unit that fits."""
        return span(self._value)


class Moment(columns.FormattableColumn):  # type: ignore[type-arg]
    """A time, or none."""

    def human_readable(self) -> str:
        """Write it to the minute, UTC."""
        try:
            at = dt.datetime.fromisoformat(self._value)
        except (TypeError, ValueError):
            return str(self._value or '')
        if at.tzinfo is not None:
            at = at.astimezone(dt.UTC)
        return at.strftime('%Y-%m-%d %H:%M')


class Text(columns.FormattableColumn):  # type: ignore[type-arg]
    """A sentence, or none.

    :param value: as in the answer.
    :param width: characters of a line, >= 1; ``None`` for one line.
    """

    def __init__(self, value: Any, width: int | None = None) -> None:
        super().__init__(value)
        self.width = width

    def human_readable(self) -> str:
        """Write it in lines that are no longer than that."""
        if self.width is None:
            return self.told
        return '\n'.join(textwrap.wrap(self.told, self.width))

    @property
    def told(self) -> str:
        """All of it."""
        return str(self._value or '')


class Truth(columns.FormattableColumn):  # type: ignore[type-arg]
    """Whether something is so."""

    def human_readable(self) -> str:
        """Write a word; nothing if it is not known."""
        if not isinstance(self._value, bool):
            return str(self._value or '')
        return 'yes' if self._value else 'no'


class Named(columns.FormattableColumn):  # type: ignore[type-arg]
    """An id, or several, or ``PROJECT/USER``, with their names.

    :param value: as in the answer.
    :param names: by id.
    :param is_short: whether those that have a name go without their id.
    """

    def __init__(
        self,
        value: Any,
        names: Mapping[str, str] | None = None,
        *,
        is_short: bool = False,
    ) -> None:
        super().__init__(value)
        self.names = names or {}
        self.is_short = is_short

    def human_readable(self) -> str:
        """Write each on a line: its name, and its id."""
        value = self._value or ()
        listed = [value] if isinstance(value, str) else value
        return '\n'.join(self._named(str(each)) for each in listed)

    def _named(self, given: str) -> str:
        known = [self.names.get(each) for each in given.split('/')]
        if not any(known):
            return given
        whole = naming.account(given, self.names.get)
        return whole if self.is_short and all(known) else f'{whole} ({given})'


class PastWaits(columns.FormattableColumn):  # type: ignore[type-arg]
    """Waits in a replay, without and with a change.

    :param value: as in the answer.
    :param names: of projects, by id.
    """

    def __init__(
        self, value: Any, names: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(value)
        self.names = names or {}

    def human_readable(self) -> str:
        """Write all on a line, and each project on one."""
        if not self._value:
            return ''
        lines = [f'all since {self._value.get("since")}: {_turn(self._value)}']
        for each in self._value.get('projects') or ():
            given = str(each.get('project_id'))
            lines.append(f'{self.names.get(given, given)}: {_turn(each)}')
        return '\n'.join(lines)


def _turn(told: Mapping[str, Any]) -> str:
    """Say how waits change, for those half and 90 of 100 do not exceed."""
    before, after = told.get('before') or {}, told.get('after') or {}
    spans = [
        f'{part} {span(before.get(part))} -> {span(after.get(part))}'
        for part in ('p50', 'p90')
    ]
    count = wording.counted(told.get('requests_count', 0), 'request')
    return f'{count}, {", ".join(spans)}'


def forecast(names: Mapping[str, str], each: Mapping[str, Any]) -> str:
    """Write the standing of a request without and with a change.

    :param names: of servers and projects, by id.
    :param each: request, as in the answer.
    """

    def named(given: Any) -> str:
        name = names.get(str(given))
        return f'{name} ({given})' if name else str(given)

    servers = ', '.join(map(named, each.get('servers') or ()))
    before, after = (
        _forecast(each.get(when) or {}) for when in ('before', 'after')
    )
    turn = before if before == after else f'{before} -> {after}'
    return f'{servers} of {named(each.get("project_id"))}: {turn}'


def _forecast(told: Mapping[str, Any]) -> str:
    """Say in a few words where a request stands."""
    position, estimate = told.get('position'), told.get('estimated_start')
    if position is None:
        return f'{told.get("state")} now'
    at = f', starts about {estimate.get("p50")}' if estimate else ''
    return f'{told.get("state")} at place {position}{at}'


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


class Names(Text):
    """A list of names."""

    @property
    def told(self) -> str:
        """All of them."""
        return ', '.join(map(str, self._value or ()))


class Sentences(columns.FormattableColumn):  # type: ignore[type-arg]
    """A list of sentences."""

    def human_readable(self) -> str:
        """Write each on a line."""
        return '\n'.join(map(str, self._value or ()))


class Entries(columns.FormattableColumn):  # type: ignore[type-arg]
    """A list of objects.

    :param value: as in the answer.
    :param line: writes one of them.
    """

    def __init__(
        self, value: Any, line: Callable[[Mapping[str, Any]], str] = str
    ) -> None:
        super().__init__(value)
        self.line = line

    def human_readable(self) -> str:
        """Write each on a line."""
        return '\n'.join(map(self.line, self._value or ()))


class WeightColumns(columns.FormattableColumn):  # type: ignore[type-arg]
    """Weights by time."""

    def human_readable(self) -> str:
        """Write the newest, each on a line."""
        entries: Sequence[Mapping[str, Any]] = self._value or ()
        left = len(entries) - _MOST_ENTRIES
        lines = [f'... {left} before'] if left > 0 else []
        lines += [
            f'{item.get("at", "")} {_numbers(item.get("weights") or {})}'
            for item in entries[-_MOST_ENTRIES:]
        ]
        return '\n'.join(lines)


class Events(columns.FormattableColumn):  # type: ignore[type-arg]
    """Events by time."""

    def human_readable(self) -> str:
        """Write a line for each: begin, end, kind, and what is known."""
        rows = [
            [
                str(each.get('at') or ''),
                str(each.get('until') or ''),
                str(each.get('kind') or ''),
                _event(each),
            ]
            for each in self._value or ()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return '\n'.join(
            '  '.join(map(str.ljust, row, widths)).rstrip() for row in rows
        )


def _event(item: Mapping[str, Any]) -> str:
    hosts = ', '.join(map(str, item.get('hosts') or ()))
    told = (item.get('explanation'), hosts and f'hosts: {hosts}')
    text = '; '.join(str(each) for each in told if each)
    server = item.get('server')
    return f'server {server}: {text}' if server else text


class Outcome(columns.FormattableColumn):  # type: ignore[type-arg]
    """A thing after something was done with it."""

    def human_readable(self) -> str:
        """Write its state, and why it is so."""
        found = self._value or {}
        told = (found.get('state'), found.get('explanation'))
        return ': '.join(str(each) for each in told if each)


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
    if isinstance(value, list) and any(isinstance(e, dict) for e in value):
        begin = f'{path}: ' if path else ''
        return [begin + ', '.join(_leaves(each, '')) for each in value]
    if isinstance(value, list):
        value = ', '.join(map(str, value))
    if path.rpartition('.')[2] == _WALL_S:
        value = _time(value)
    if isinstance(value, float):
        value = number(value)
    if isinstance(value, bool):
        value = 'yes' if value else 'no'
    if value is None or value in ('', {}):
        return []
    return [f'{path}={value}' if path else str(value)]


def _time(wall_s: Any) -> Any:
    """Write seconds since the epoch as a time."""
    if not isinstance(wall_s, int | float):
        return wall_s
    return moments.stamp(wall_s)


def safe(value: Any) -> Any:
    """A value without anything that a terminal obeys; its form stays."""
    if isinstance(value, Named):
        return Named(
            _safe(value.machine_readable()),
            value.names,
            is_short=value.is_short,
        )
    if isinstance(value, Entries):
        return Entries(_safe(value.machine_readable()), value.line)
    if isinstance(value, PastWaits):
        return PastWaits(_safe(value.machine_readable()), value.names)
    if isinstance(value, columns.FormattableColumn):
        return type(value)(_safe(value.machine_readable()))
    return _safe(value)


def cell(value: Any) -> Any:
    """A value as a cell of a table: empty if it is none, and no object."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, float):
        return Number(value)
    return ObjectTree(value) if isinstance(value, dict | list) else value


def fitted(
    titles: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Rows of cells whose texts are divided so that a line is short enough.

    :param titles: of columns.
    """
    listed = [*zip(*rows, strict=True)]
    texts = [any(isinstance(each, Text) for each in one) for one in listed]
    taken = sum(
        _EDGE + (0 if is_text else max(map(_width, (title, *cells))))
        for title, cells, is_text in zip(titles, listed, texts, strict=False)
    )
    each = max(_LEAST, (WIDTH - 1 - taken) // max(sum(texts), 1))
    return [
        tuple(
            type(value)(value.machine_readable(), each)
            if isinstance(value, Text)
            else value
            for value in row
        )
        for row in rows
    ]


def wrapped(titles: Sequence[str], values: Sequence[Any]) -> tuple[Any, ...]:
    """Cells of one thing, whose lines are divided where they are too long.

    :param titles: of the values.
    """
    room = WIDTH - 2 * _EDGE - max(map(len, titles), default=0)
    return tuple(_in_lines(each, room) for each in values)


def _in_lines(value: Any, room: int) -> Any:
    if isinstance(value, columns.FormattableColumn):
        value = value.human_readable()
    if not isinstance(value, str) or _width(value) <= room:
        return value
    return '\n'.join(
        textwrap.fill(
            line,
            room,
            subsequent_indent='  ',
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in value.splitlines()
    )


def _width(value: Any) -> int:
    if isinstance(value, columns.FormattableColumn):
        value = value.human_readable()
    return max(map(len, str(value).splitlines()), default=0)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return plain_module.line(value)
    if isinstance(value, Mapping):
        return {_safe(key): _safe(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(each) for each in value]
    return value


_PLAIN = (Number, Span, Truth, Named, Moment)
"""Columns whose values are plain as they are."""


def plain(value: Any) -> Any:
    """Write a value for ``-f value``: text, but numbers as they are."""
    if isinstance(value, _PLAIN):
        return value.machine_readable()
    if not isinstance(value, columns.FormattableColumn):
        return value
    return value.human_readable()


def plain_line(value: Any) -> Any:
    """The same on one line."""
    found = plain(value)
    return ', '.join(found.splitlines()) if isinstance(found, str) else found
