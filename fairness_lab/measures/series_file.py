# SPDX-License-Identifier: Apache-2.0

"""Reading the series of a run again: one CSV file per kind."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import math
import pathlib

from nova_fairness import exception

Row = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Series:
    """What was written round by round.

    :ivar ideals: of users: round, time_s, user, share, ideal, bounded_ideal,
        and ``<resource>.part`` of the quota for each resource.
    :ivar weights: of VMs: round, time_s, vm, user, and one per control.
    :ivar measures: of the cloud: round, time_s, worst_bounded ...
    """

    ideals: Sequence[Row]
    weights: Sequence[Row]
    measures: Sequence[Row]


NOTHING = Series((), (), ())
"""Of a run of which nothing was written."""


def read(directory: pathlib.Path) -> Series:
    """Read the series of a run.

    :raises BadSeries: if a file cannot be read; names it.
    """
    return Series(
        *(
            _rows(directory / f'{field.name}.csv')
            for field in dataclasses.fields(Series)
        )
    )


def _rows(path: pathlib.Path) -> Sequence[Row]:
    if not path.exists():
        return ()
    try:
        with path.open(encoding='utf-8', newline='') as stream:
            return tuple(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise exception.BadSeries(
            f'{path}: {error}; expected comma-separated values'
        ) from error


def curve(
    rows: Sequence[Row], quantity: str, **wanted: str
) -> tuple[list[float], list[float]]:
    """Give rounds and values of one thing; NaN where it is not known.

    :param wanted: what the other columns must say.
    """
    chosen = [
        row
        for row in rows
        if all(row.get(name) == value for name, value in wanted.items())
    ]
    return (
        [float(row['round']) for row in chosen],
        [_number(row.get(quantity)) for row in chosen],
    )


def names(rows: Sequence[Row], column: str) -> list[str]:
    """Give the different entries of a column in their first order."""
    return list(dict.fromkeys(row[column] for row in rows))


def _number(text: str | None) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        return math.nan
