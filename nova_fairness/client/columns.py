# SPDX-License-Identifier: Apache-2.0

"""Formats of values in a table; ``-f json`` shows the unformatted values."""

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
"""Largest number of entries of a history in a table."""

_NEUTRAL = 0.01
"""Largest difference from 1 of a weight that counts as neutral."""

_WALL_S = 'wall_s'
"""Key of the only number of seconds that is a point in time."""

_NOTHING = 1e-6
"""Numbers whose absolute value is smaller are shown as 0."""

_SPANS_S = ((86400, 'd'), (3600, 'h'), (60, 'min'))

WIDTH = 120
"""Characters per line of a table for people."""

_EDGE = 3
"""Characters between two columns."""

_LEAST = 16
"""Smallest width of a column with texts, in characters."""

_STEPS = ((1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k'))


def number(value: Any) -> str:
    """Format a number with three digits."""
    if value is None:
        return ''
    if not isinstance(value, int | float):
        # A newer release may send another type here.
        return str(value)
    if abs(value) < _NOTHING:
        return '0'
    for step, letter in _STEPS:
        if abs(value) >= step:
            return f'{value / step:.3g}{letter}'
    return f'{value:.3g}' if math.isfinite(value) else ''


def percent(part: Any) -> str:
    """Format a part of a whole in percent."""
    if not isinstance(part, int | float):
        return number(part)
    return f'{number(100 * part)} %'


def span(value: Any) -> str:
    """Format seconds as a span of time, in the largest unit that fits."""
    if not isinstance(value, int | float):
        return number(value)
    for step, unit in _SPANS_S:
        if abs(value) >= step:
            return f'{value / step:.3g} {unit}'
    return f'{number(value)} s'


def _numbers(values: Mapping[str, Any]) -> str:
    return ' '.join(f'{name}={number(n)}' for name, n in values.items())


def percents(values: Mapping[str, Any] | None) -> list[str]:
    """Format parts of wholes by name, each in percent."""
    return [f'{name} {percent(part)}' for name, part in (values or {}).items()]


class Number(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of numbers; None is empty."""

    def human_readable(self) -> str:
        """Format the number with three digits."""
        return number(self._value)


class Percent(Number):
    """Column of parts of a whole; None is empty."""

    def human_readable(self) -> str:
        """Format the part in percent."""
        return percent(self._value)


class Percents(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of parts of wholes by name."""

    def human_readable(self) -> str:
        """Format the parts in percent, one per line."""
        return '\n'.join(percents(self._value))


class Span(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of spans of time in seconds; None is empty."""

    def human_readable(self) -> str:
        """Format the span in the largest unit that fits."""
        return span(self._value)


class Moment(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of points in time; None is empty."""

    def human_readable(self) -> str:
        """Format the time in UTC, without seconds."""
        try:
            at = dt.datetime.fromisoformat(self._value)
        except (TypeError, ValueError):
            return str(self._value or '')
        if at.tzinfo is not None:
            at = at.astimezone(dt.UTC)
        return at.strftime('%Y-%m-%d %H:%M')


class Text(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of texts; None is empty.

    :param value: text of the answer.
    :param width: characters per line, >= 1; ``None`` for a single line.
    """

    def __init__(self, value: Any, width: int | None = None) -> None:
        super().__init__(value)
        self.width = width

    def human_readable(self) -> str:
        """Wrap the text to the width."""
        if self.width is None:
            return self.text
        return '\n'.join(textwrap.wrap(self.text, self.width))

    @property
    def text(self) -> str:
        """Return the text on one line."""
        return str(self._value or '')


class Truth(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of truth values."""

    def human_readable(self) -> str:
        """Return ``yes`` or ``no``; empty if the value is unknown."""
        if not isinstance(self._value, bool):
            return str(self._value or '')
        return 'yes' if self._value else 'no'


class Named(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of IDs with names: one ID, several, or ``PROJECT/USER``.

    :param value: value of the answer.
    :param names: names by ID.
    :param is_short: whether IDs with a known name are omitted.
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
        """Format each ID with its name, one per line."""
        value = self._value or ()
        listed = [value] if isinstance(value, str) else value
        return '\n'.join(self._with_name(str(each)) for each in listed)

    def _with_name(self, uuid: str) -> str:
        known = [self.names.get(each) for each in uuid.split('/')]
        if not any(known):
            return uuid
        whole = naming.account(uuid, self.names.get)
        return whole if self.is_short and all(known) else f'{whole} ({uuid})'


class PastWaits(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of waits in a replay, without and with a change.

    :param value: value of the answer.
    :param names: names of projects, by ID.
    """

    def __init__(
        self, value: Any, names: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(value)
        self.names = names or {}

    def human_readable(self) -> str:
        """Format the waits of all requests on one line, and of each project on
        another.
        """
        if not self._value:
            return ''
        change = _format_wait_change(self._value)
        lines = [f'all since {self._value.get("since")}: {change}']
        for each in self._value.get('projects') or ():
            project = str(each.get('project_id'))
            name = self.names.get(project, project)
            lines.append(f'{name}: {_format_wait_change(each)}')
        return '\n'.join(lines)


def _format_wait_change(waits: Mapping[str, Any]) -> str:
    """Format the median and the 90th percentile of waits, before and after a
    change.
    """
    before, after = waits.get('before') or {}, waits.get('after') or {}
    spans = [
        f'{part} {span(before.get(part))} -> {span(after.get(part))}'
        for part in ('p50', 'p90')
    ]
    count = wording.counted(waits.get('requests_count', 0), 'request')
    return f'{count}, {", ".join(spans)}'


def forecast(names: Mapping[str, str], request: Mapping[str, Any]) -> str:
    """Format the standing of a request without and with a change.

    :param names: names of servers and projects, by ID.
    :param request: request, as in the answer.
    """

    def with_name(uuid: Any) -> str:
        name = names.get(str(uuid))
        return f'{name} ({uuid})' if name else str(uuid)

    servers = ', '.join(map(with_name, request.get('servers') or ()))
    before, after = (
        _format_standing(request.get(when) or {})
        for when in ('before', 'after')
    )
    turn = before if before == after else f'{before} -> {after}'
    return f'{servers} of {with_name(request.get("project_id"))}: {turn}'


def _format_standing(standing: Mapping[str, Any]) -> str:
    """Format the state, position and estimated start of a request."""
    position, estimate = (
        standing.get('position'),
        standing.get('estimated_start'),
    )
    if position is None:
        return f'{standing.get("state")} now'
    at = f', starts about {estimate.get("p50")}' if estimate else ''
    return f'{standing.get("state")} at place {position}{at}'


class Numbers(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of numbers by name."""

    def human_readable(self) -> str:
        """Format each number on a line."""
        return '\n'.join(
            f'{name}={number(n)}' for name, n in (self._value or {}).items()
        )


class Amounts(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of amounts by resource."""

    def human_readable(self) -> str:
        """Format the significant amounts, each on a line with its unit."""
        return '\n'.join(
            f'{wording.resource_name(name)}:'
            f' {wording.amount_text(name, value)}'
            for name, value in (self._value or {}).items()
            if wording.is_visible(name, value)
        )


class Weights(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of weights by control."""

    def human_readable(self) -> str:
        """Format the weights that are not neutral, each on a line."""
        return '\n'.join(
            f'{name}: {value:.2f}'
            for name, value in (self._value or {}).items()
            if value is not None and abs(value - 1) > _NEUTRAL
        )


class Names(Text):
    """Column of lists of names."""

    @property
    def text(self) -> str:
        """Return the names, separated by commas."""
        return ', '.join(map(str, self._value or ()))


class Sentences(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of lists of sentences."""

    def human_readable(self) -> str:
        """Return the sentences, one per line."""
        return '\n'.join(map(str, self._value or ()))


class Entries(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of lists of objects.

    :param value: objects of the answer.
    :param line: formats one object.
    """

    def __init__(
        self, value: Any, line: Callable[[Mapping[str, Any]], str] = str
    ) -> None:
        super().__init__(value)
        self.line = line

    def human_readable(self) -> str:
        """Format each object on a line."""
        return '\n'.join(map(self.line, self._value or ()))


class WeightColumns(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of weights over time."""

    def human_readable(self) -> str:
        """Format the newest weights, one time per line."""
        entries: Sequence[Mapping[str, Any]] = self._value or ()
        left = len(entries) - _MOST_ENTRIES
        lines = [f'... {left} before'] if left > 0 else []
        lines += [
            f'{item.get("at", "")} {_numbers(item.get("weights") or {})}'
            for item in entries[-_MOST_ENTRIES:]
        ]
        return '\n'.join(lines)


class Events(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of lists of events."""

    def human_readable(self) -> str:
        """Format each event on a line: begin, end, kind and explanation."""
        rows = [
            [
                str(each.get('at') or ''),
                str(each.get('until') or ''),
                str(each.get('kind') or ''),
                _format_event(each),
            ]
            for each in self._value or ()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return '\n'.join(
            '  '.join(map(str.ljust, row, widths)).rstrip() for row in rows
        )


def _format_event(item: Mapping[str, Any]) -> str:
    hosts = ', '.join(map(str, item.get('hosts') or ()))
    texts = (item.get('explanation'), hosts and f'hosts: {hosts}')
    text = '; '.join(str(each) for each in texts if each)
    server = item.get('server')
    return f'server {server}: {text}' if server else text


class Outcome(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of objects after an action."""

    def human_readable(self) -> str:
        """Return the state of the object and its explanation."""
        found = self._value or {}
        text = (found.get('state'), found.get('explanation'))
        return ': '.join(str(each) for each in text if each)


class ObjectTree(columns.FormattableColumn):  # type: ignore[type-arg]
    """Column of nested objects."""

    def human_readable(self) -> str:
        """Format each leaf on a line, with its path."""
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
        value = _format_time(value)
    if isinstance(value, float):
        value = number(value)
    if isinstance(value, bool):
        value = 'yes' if value else 'no'
    if value is None or value in ('', {}):
        return []
    return [f'{path}={value}' if path else str(value)]


def _format_time(wall_s: Any) -> Any:
    """Format seconds since the epoch as a time."""
    if not isinstance(wall_s, int | float):
        return wall_s
    return moments.stamp(wall_s)


def safe(value: Any) -> Any:
    """Return a value without control characters, which a terminal would
    execute. Its format stays.
    """
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
    """Return a value in the format of a table cell; None is an empty text."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, float):
        return Number(value)
    return ObjectTree(value) if isinstance(value, dict | list) else value


def fit_to_width(
    titles: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Wrap the texts in rows of cells so that a line fits the width.

    :param titles: titles of columns.
    """
    cells_by_column = [*zip(*rows, strict=True)]
    texts = [
        any(isinstance(text_width, Text) for text_width in one)
        for one in cells_by_column
    ]
    width = sum(
        _EDGE + (0 if is_text else max(map(_width, (title, *cells))))
        for title, cells, is_text in zip(
            titles, cells_by_column, texts, strict=False
        )
    )
    text_width = max(_LEAST, (WIDTH - 1 - width) // max(sum(texts), 1))
    return [
        tuple(
            type(value)(value.machine_readable(), text_width)
            if isinstance(value, Text)
            else value
            for value in row
        )
        for row in rows
    ]


def wrap_cells(
    titles: Sequence[str], values: Sequence[Any]
) -> tuple[Any, ...]:
    """Wrap the long lines of the cells of one object.

    :param titles: titles of the values.
    """
    width = WIDTH - 2 * _EDGE - max(map(len, titles), default=0)
    return tuple(_in_lines(each, width) for each in values)


def _in_lines(value: Any, width: int) -> Any:
    if isinstance(value, columns.FormattableColumn):
        value = value.human_readable()
    if not isinstance(value, str) or _width(value) <= width:
        return value
    return '\n'.join(
        textwrap.fill(
            line,
            width,
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
"""Columns whose unformatted values are plain text or numbers."""


def plain(value: Any) -> Any:
    """Return a value for ``-f value``: text, but numbers unformatted."""
    if isinstance(value, _PLAIN):
        return value.machine_readable()
    if not isinstance(value, columns.FormattableColumn):
        return value
    return value.human_readable()


def plain_line(value: Any) -> Any:
    """Return a value for ``-f value`` on one line."""
    found = plain(value)
    return ', '.join(found.splitlines()) if isinstance(found, str) else found
