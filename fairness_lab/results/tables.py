# SPDX-License-Identifier: Apache-2.0

"""Reading comma-separated tables whose last line may be cut off."""

from collections.abc import Iterator
from collections.abc import Mapping
import csv
import io
import math
import pathlib

from nova_fairness import exception


def file_error(path: pathlib.Path, line: int, what: str) -> exception.LabError:
    """Error that names file and line."""
    return exception.LabError(f'{path}, line {line}: {what}')


def text(path: pathlib.Path) -> str:
    """Read a file.

    :raises LabError: if it is missing or cannot be read.
    """
    try:
        return path.read_text()
    except FileNotFoundError:
        raise exception.LabError(f'{path} is missing') from None
    except (OSError, UnicodeDecodeError) as error:
        raise exception.LabError(f'{path} cannot be read: {error}') from error


def rows(
    path: pathlib.Path, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the fields of each whole line below the head.

    :param columns: that must be there; others are handed on as they are.
    :raises LabError: for a missing column or a line with too few fields.
    """
    whole, _, _cut_off = text(path).rpartition('\n')
    lines = csv.reader(io.StringIO(whole))
    head = next(lines, [])
    missing = [name for name in columns if name not in head]
    if missing:
        raise file_error(
            path,
            1,
            f'expected the columns {",".join(columns)}, '
            f'but {", ".join(missing)} is missing',
        )
    for fields in lines:
        if not fields:
            continue
        if len(fields) != len(head):
            raise file_error(
                path,
                lines.line_num,
                f'expected {len(head)} fields, got {len(fields)}',
            )
        yield lines.line_num, dict(zip(head, fields, strict=True))


def number(
    path: pathlib.Path, line: int, row: Mapping[str, str], column: str
) -> float:
    """Finite number.

    :raises LabError: if the field holds none.
    """
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise file_error(path, line, f'{column}: {row[column]!r} is no number')
    return value


def optional_number(
    path: pathlib.Path, line: int, row: Mapping[str, str], column: str
) -> float | None:
    """Finite number, or ``None`` for an empty field.

    :raises LabError: if the field holds anything else.
    """
    if row[column] in {'', 'None', 'nan'}:
        return None
    return number(path, line, row, column)
