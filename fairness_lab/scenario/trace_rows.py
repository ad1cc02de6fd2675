# SPDX-License-Identifier: Apache-2.0

"""Rows of CSV or Parquet with their places, for errors people can use."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import math
import pathlib
from typing import Any

from nova_fairness import exception

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class RowPlace:
    """Place of a row in a file, for error messages."""

    path: pathlib.Path
    line: int

    def error(
        self, column: str, value: Any, expected: str
    ) -> exception.BadTrace:
        """Error that says where and what was expected."""
        return exception.BadTrace(
            f'{self.path}, line {self.line}, column {column}: expected '
            f'{expected}, got {value!r}'
        )


@dataclasses.dataclass(frozen=True)
class Header:
    """Columns of a table.

    :ivar needed: that must be there.
    :ivar others: that may be there.
    """

    needed: Sequence[str]
    others: Sequence[str]

    def check(self, path: pathlib.Path, found: Sequence[str]) -> None:
        """Refuse columns that are missing or unknown.

        :raises BadTrace: if there are some.
        """
        missing = [name for name in self.needed if name not in found]
        known = {*self.needed, *self.others}
        unknown = [name for name in found if name not in known]
        if missing or unknown:
            wrong = (
                f'lacks {", ".join(missing)}'
                if missing
                else (f'has {", ".join(map(repr, unknown))}')
            )
            raise exception.BadTrace(
                f'{path}, line 1: the header {wrong}; expected '
                f'{", ".join(self.needed)} and some of '
                f'{", ".join(self.others)}'
            )


def read(path: pathlib.Path, header: Header) -> Iterator[tuple[RowPlace, Row]]:
    """Rows of a ``.csv`` or ``.parquet`` file, with where they are.

    :raises BadTrace: with file, line, column and what was expected.
    """
    reader = _parquet if path.suffix == '.parquet' else _csv
    for line, row in enumerate(reader(path, header), 2):
        yield RowPlace(path, line), row


def _csv(path: pathlib.Path, header: Header) -> Iterator[Row]:
    try:
        with path.open(newline='', encoding='utf-8') as file:
            reader = csv.DictReader(file, restkey='', restval=None)
            header.check(path, list(reader.fieldnames or []))
            for row in reader:
                if '' in row:
                    raise RowPlace(path, reader.line_num).error(
                        'after the last', row[''], 'nothing'
                    )
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise exception.BadTrace(f'{path} cannot be read: {error}') from None


def _parquet(path: pathlib.Path, header: Header) -> Iterator[Row]:
    try:
        from pyarrow import parquet  # an extra, for large traces
    except ImportError:
        raise exception.BadTrace(
            f'{path}: Parquet needs pyarrow:'
            ' pip install nova-fairness[parquet]'
        ) from None
    try:
        file = parquet.ParquetFile(path)
        header.check(path, file.schema_arrow.names)
        for batch in file.iter_batches():
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise exception.BadTrace(f'{path} cannot be read: {error}') from None


def text(place: RowPlace, row: Row, column: str) -> str:
    """Read a text that is not empty."""
    given = row[column]
    # A tenant may be number 0.
    found = '' if given is None else str(given).strip()
    if not found:
        raise place.error(column, row[column], 'a name')
    return found


def number(
    place: RowPlace, row: Row, column: str, missing: float, lowest: float = 0.0
) -> float:
    """Read a number, infinite for ``max``.

    :param missing: what an empty one is.
    """
    value = row.get(column)
    if value is None or value == '':
        return missing
    try:
        found = math.inf if value == 'max' else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not found >= lowest:
        raise place.error(column, value, f'a number, at least {lowest:g}')
    return found
