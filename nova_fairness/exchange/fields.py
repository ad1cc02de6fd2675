# SPDX-License-Identifier: Apache-2.0

"""Reads the fields of a message of which nothing is believed."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import Never

from nova_fairness import exception

_SHOWN = 40
"""Characters of a wrong value that a message tells."""


class Fields:
    """The fields of one JSON object.

    :param value: anything.
    :param what: name of the object in error messages.
    :raises ReportRefused: if it is no JSON object.
    """

    def __init__(self, value: object, what: str) -> None:
        self._what = what
        if not isinstance(value, dict):
            self._refuse(what, 'an object', value)
        self._values: Mapping[Any, Any] = value

    def given(self, name: str) -> Any:
        """A field as it is.

        :raises ReportRefused: if it is missing.
        """
        if name not in self._values:
            raise exception.ReportRefused(
                'malformed', f'{self._what} has no field {name!r}'
            )
        return self._values[name]

    def all_of(
        self, get: Callable[[Mapping[Any, Any]], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """Some fields as they are, in one go.

        :raises ReportRefused: if one is missing.
        """
        try:
            return get(self._values)
        except KeyError as error:
            raise exception.ReportRefused(
                'malformed', f'{self._what} has no field {error}'
            ) from None

    def is_set(self, name: str) -> bool:
        """Tell whether a field is there and true."""
        return self._values.get(name) is True

    def text(self, name: str, longest: int) -> str:
        """A string of 1..longest printable characters.

        :raises ReportRefused: if it is none.
        """
        value = self.given(name)
        if (
            type(value) is not str
            or not 0 < len(value) <= longest
            or not value.isprintable()
        ):
            self._refuse(name, f'1 to {longest} printable characters', value)
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number of low..high.

        :raises ReportRefused: if it is none.
        """
        value = self.given(name)
        if type(value) is not int or not low <= value <= high:
            self._refuse(name, f'a whole number from {low} to {high}', value)
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """A finite number of low..high.

        :raises ReportRefused: if it is none.
        """
        value = self.given(name)
        if type(value) not in (int, float) or not low <= value <= high:
            self._refuse(name, f'a number from {low} to {high}', value)
        return float(value)

    def items(self, name: str, kinds: set[type], longest: int) -> list[Any]:
        """A list of values of the given types.

        :raises ReportRefused: if it is none, or longer.
        """
        value = self.given(name)
        if type(value) not in (list, tuple) or len(value) > longest:
            self._refuse(name, f'a list of at most {longest} values', value)
        if strange := set(map(type, value)) - kinds:
            names = sorted(kind.__name__ for kind in strange)
            wanted = sorted(kind.__name__ for kind in kinds)
            raise exception.ReportRefused(
                'malformed',
                f'{self._what}: {name} holds {", ".join(names)}; '
                f'expected {" or ".join(wanted)}',
            )
        return list(value)

    def _refuse(self, name: str, expected: str, value: object) -> Never:
        raise exception.ReportRefused(
            'malformed',
            f'{self._what}: {name} must be {expected}, got {shown(value)}',
        )


def shown(value: object) -> str:
    """Describe a value in few characters, however large or odd it is."""
    if type(value) is str:
        cut = value[:_SHOWN]
        rest = f'... ({len(value)} characters)' if cut != value else ''
        return f'{cut!a}{rest}'
    if type(value) is int and value.bit_length() > 64:
        return f'a whole number of {value.bit_length()} bits'
    if value is None or type(value) in (bool, int, float):
        return str(value)
    if isinstance(value, list | tuple | dict | bytes):
        return f'{type(value).__name__} of {len(value)}'
    return type(value).__name__
