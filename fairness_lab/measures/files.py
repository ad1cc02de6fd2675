# SPDX-License-Identifier: Apache-2.0


"""Write results to disk: a directory appears complete or not at all."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import csv
import json
import pathlib
import shutil
import tempfile
from typing import Any
from typing import Protocol
from typing import TextIO

import numpy as np
import numpy.typing as npt

from nova_fairness import exception

RESULT = 'result.json'

Column = Sequence[str] | npt.NDArray[Any]


@contextlib.contextmanager
def new_directory(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Create a directory under a temporary name; rename it at the end.

    After any error, nothing is left behind.

    :param directory: that must not exist, or be empty.
    :raises SimError: if it does, or cannot be written.
    """
    directory = directory.absolute()
    if directory.exists() and (
        not directory.is_dir() or any(directory.iterdir())
    ):
        raise exception.SimError(
            f'{directory} exists already: expected a new or empty directory'
        )
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(
            prefix=f'.{directory.name}-', dir=directory.parent
        )
    except OSError as error:
        raise exception.SimError(
            f'{directory} cannot be written: {error}'
        ) from error
    temporary = pathlib.Path(made)
    try:
        temporary.chmod(0o755)
        yield temporary
        temporary.replace(directory)
    except OSError as error:
        raise exception.SimError(
            f'{directory} cannot be written: {error}'
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: pathlib.Path, content: Any) -> None:
    """Write JSON that people can read too; the same content, same bytes.

    :raises ValueError: if a number is not finite.
    """
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + '\n', encoding='utf-8')


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """Read a JSON file.

    :raises SimError: if it cannot be read, or is no result.
    """
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise exception.SimError(f'{path} cannot be read: {error}') from error
    if not isinstance(found, dict):
        raise exception.SimError(f'{path}: expected a result, a JSON object')
    return found


class GrowingTable(Protocol):
    """A table in a file to which rows are appended."""

    def add(self, columns: Mapping[str, Column]) -> None:
        """Append rows, given by column; always the same columns."""

    def close(self) -> None:
        """End the file."""


class CsvTable:
    """Comma-separated values with a header.

    :param path: of the new file, without suffix.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._file: TextIO = path.with_suffix('.csv').open(
            'w', encoding='utf-8', newline=''
        )
        self._writer = csv.writer(self._file, lineterminator='\n')
        self._begun = False

    def add(self, columns: Mapping[str, Column]) -> None:
        """Append rows; numbers have nine digits, NaN is empty."""
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        self._writer.writerows(
            zip(*map(_texts, columns.values()), strict=True)
        )

    def close(self) -> None:
        """End the file."""
        self._file.close()


def _texts(column: Column) -> Sequence[Any]:
    if isinstance(column, np.ndarray) and column.dtype.kind == 'f':
        return [
            '' if number != number else f'{number:.9g}'
            for number in column.tolist()
        ]
    return list(column)


class ParquetTable:
    """Apache Parquet, for large runs; needs pyarrow.

    :param path: of the new file, without suffix.
    :raises SimError: if pyarrow is not installed.
    """

    def __init__(self, path: pathlib.Path) -> None:
        try:
            import pyarrow as pa  # an extra, for large runs
            from pyarrow import parquet
        except ImportError:
            raise exception.SimError(
                'Parquet needs pyarrow: pip install nova-fairness[parquet]'
            ) from None
        self._arrow = pa
        self._parquet = parquet
        self._path = path.with_suffix('.parquet')
        self._writer: Any = None

    def add(self, columns: Mapping[str, Column]) -> None:
        """Append rows as a row group."""
        table = self._arrow.table(
            {name: self._arrow.array(value) for name, value in columns.items()}
        )
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(
                self._path, table.schema
            )
        self._writer.write_table(table)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()


TABLES: Mapping[str, type[CsvTable] | type[ParquetTable]] = {
    'csv': CsvTable,
    'parquet': ParquetTable,
}
"""Kind of table by the word for it."""
