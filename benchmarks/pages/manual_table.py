# SPDX-License-Identifier: Apache-2.0

"""Tables of the manual that are made of results."""

from collections.abc import Iterable
from collections.abc import Sequence


def lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in reStructuredText, an empty one at last."""
    made = ['.. list-table::', '   :header-rows: 1', '']
    for first, *others in (header, *rows):
        made += [f'   * - {first}', *(f'     - {cell}' for cell in others)]
    return [*made, '']


def range_text(values: Iterable[float], form: str) -> str:
    """The smallest and the largest value of all runs; one if they agree."""
    found = sorted(values)
    ends = (format(each, form) for each in (found[0], found[-1]))
    return ' to '.join(dict.fromkeys(ends))
