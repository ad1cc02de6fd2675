# SPDX-License-Identifier: Apache-2.0

"""Lists of CPUs in the form of the kernel and libvirt."""

from collections.abc import Iterable


def parse_cpus(text: str) -> tuple[int, ...]:
    """Parse a list of CPUs in the form of cpusets, such as ``0-1,3``.

    :returns: numbers, ascending, without duplicates; empty for ''.
    :raises ValueError: if the text is no such list.
    """
    found: set[int] = set()
    for part in text.strip().split(',') if text.strip() else ():
        first, dash, last = part.partition('-')
        low, high = int(first), int(last if dash else first)
        if not 0 <= low <= high:
            raise ValueError(f'{part!r} is no range of CPUs')
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def text(of: Iterable[int]) -> str:
    """Write a list of CPUs.

    >>> text([3, 0, 1])
    '0-1,3'
    """
    parts: list[list[int]] = []
    for number in sorted(set(of)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ','.join('-'.join(map(str, part)) for part in parts)
