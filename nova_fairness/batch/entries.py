# SPDX-License-Identifier: Apache-2.0

"""Reads the entries of a batch system's answer one by one.

Users of a batch system choose many values in its entries. An entry that cannot
be read is set aside and named for the operator; all others are read.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import math
from typing import Any
from typing import TypeVar

from nova_fairness.model import wording

T = TypeVar('T')

NAMED = 10
"""Largest number of unreadable entries of one answer that are named; the
others are only counted.
"""

Name = Callable[[Any], object]


class EntryReader:
    """Reads entries, and collects the faults of unreadable ones.

    :param system: name of the batch system for operators.
    """

    def __init__(self, system: str) -> None:
        self._system = system
        self._faults: list[str] = []

    def read(
        self,
        kind: str,
        name_of: Name,
        listed: Iterable[Any],
        read: Callable[[Any], T],
    ) -> Iterator[tuple[str, T | None]]:
        """Yield the name and the value of each entry.

        :param kind: kind of the entries, for messages: ``job``.
        :param name_of: returns the name of an entry; may raise any error.
        :param read: returns its value; may raise any error.
        :returns: '' for a name that cannot be read, ``None`` for a value that
            cannot.
        """
        for entry in listed:
            name = ''
            try:
                name = checked_text(name_of(entry))
                yield name, read(entry)
            except Exception as error:  # noqa: BLE001 - one entry of any user
                cause = _cause(error)[:200]
                self._faults.append(
                    f'{self._system}: {kind} {name or "without a name"}: its'
                    f' entry cannot be read: {cause}; it is set aside'
                )
                yield name, None

    def by_name(
        self,
        kind: str,
        name_of: Name,
        listed: Iterable[Any],
        read: Callable[[Any], T],
    ) -> dict[str, T | None]:
        """Return the values of entries by name.

        A value is ``None`` if it is unreadable, or if the name is listed
        several times with different values. Otherwise a host in use could be
        taken for empty.
        """
        found: dict[str, T | None] = {}
        for name, value in self.read(kind, name_of, listed, read):
            if found.setdefault(name, value) != value:
                found[name] = None
                self.add_fault(
                    f'{kind} {name}: it is listed again with other values; it'
                    ' is set aside'
                )
        return found

    def faults(self) -> tuple[str, ...]:
        """Return sentences about entries that could not be read."""
        more = len(self._faults) - NAMED
        if more <= 0:
            return tuple(self._faults)
        unread = wording.counted(more, 'more entry', 'more entries')
        rest = f'{self._system}: {unread} cannot be read'
        return (*self._faults[:NAMED], rest)

    def add_fault(self, sentence: str) -> None:
        """Add a sentence about an entry that can be read in part."""
        self._faults.append(f'{self._system}: {sentence}')


def _cause(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f'it has no {error}'
    return f'{type(error).__name__}: {error}'


def checked_list(value: object) -> list[Any]:
    """Return the value if it is a list.

    :raises TypeError: if it is not.
    """
    if not isinstance(value, list):
        raise TypeError(f'expected a list, got {value!r:.100}')
    return value


def checked_text(value: object) -> str:
    """Return the value if it is a text that is not empty, such as a name.

    :raises ValueError: if it is no such text, or cannot be encoded as UTF-8.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f'expected text, got {value!r:.100}')
    value.encode()
    return value


def displayable_text(value: object) -> str:
    """Return a text for people; unencodable characters become ``?``."""
    return str(value).encode('utf-8', 'replace').decode('utf-8')


def checked_number(value: object) -> float:
    """Return the value as a finite number >= 0.

    :raises TypeError: if the value is of another type.
    :raises ValueError: if it is no such number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f'expected a number, got {value!r:.100}')
    found = float(value)
    if not 0 <= found < math.inf:
        raise ValueError(f'expected a number >= 0, got {value!r:.100}')
    return found
