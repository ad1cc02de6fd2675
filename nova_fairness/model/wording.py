# SPDX-License-Identifier: Apache-2.0


"""Texts for people: names and amounts of resources, counts and tables."""

from collections.abc import Mapping
from collections.abc import Sequence
import string
from typing import Any

from nova_fairness.model import plain

RESOURCES: Mapping[str, str] = {
    'cpu_time': 'CPU',
    'disk_read': 'disk reads',
    'disk_written': 'disk writes',
    'net_received': 'network traffic received',
    'net_sent': 'network traffic sent',
    'memory': 'memory',
}

_CPU, _MEMORY = 'cpu_time', 'memory'

_RATES = ((1e9, 'GB/s'), (1e6, 'MB/s'), (1e3, 'kB/s'))
_SIZES = ((2.0**30, 'GiB'), (2.0**20, 'MiB'), (2.0**10, 'KiB'))


def resource_name(name: str) -> str:
    """Return the name of a resource for people; unknown names are returned
    unchanged.
    """
    return RESOURCES.get(name, name)


def amount_text(name: str, value: float) -> str:
    """Format an amount of a resource, rounded and with its unit.

    :param value: CPUs, bytes per second, or bytes of memory; finite.
    """
    if name == _CPU:
        return cpus_text(value)
    steps, smallest = (_SIZES, 'bytes') if name == _MEMORY else (_RATES, 'B/s')
    for step, unit in steps:
        if abs(value) >= step:
            return f'{_short_number(value / step)} {unit}'
    return f'{value:.0f} {smallest}'


def cpus_text(value: float) -> str:
    """Format a number of CPUs."""
    return f'{value:.2f} CPU'


def is_visible(name: str, value: float | None) -> bool:
    """Return whether an amount is above 0 after rounding."""
    if value is None:
        return False
    least = {_CPU: 0.005, _MEMORY: 2.0**20}.get(name, 1e3)
    return abs(value) >= least


def counted(count: float, one: str, many: str = '') -> str:
    """Format a number of things: ``1 server``, ``2 servers``.

    :param one: noun after the number 1.
    :param many: noun after all other numbers; by default ``one`` and an s.
    """
    text = f'{count:g}' if count % 1 else f'{count:.0f}'
    return f'{text} {one if count == 1 else many or one + "s"}'


def fill_in(text: str, parts: Mapping[str, str | float]) -> str:
    """Fill in the fields of a sentence; ``{n:server|servers}`` uses
    :func:`counted`.
    """
    return _Sentence().vformat(text, (), parts)


class _Sentence(string.Formatter):
    """Formatter of fields that have a singular and a plural noun."""

    def format_field(self, value: Any, form: str) -> str:
        one, bar, many = form.partition('|')
        if bar:
            return counted(value, one, many)
        return str(super().format_field(value, form))


def format_table(
    lines: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> str:
    """Return a table in columns as a text; each line ends with a line break.

    :param lines: cells, the same number in each line; the first line has the
        titles.
    :param numeric: whether each column is aligned to the right, for numbers.
    """
    # A cell is one line, whatever text it has.
    lines = [[plain.line(cell) for cell in each] for each in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ''.join(
        '  '.join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        + '\n'
        for line in lines
    )


def _short_number(number: float) -> str:
    return f'{number:.0f}' if abs(number) >= 10 else f'{number:.1f}'
