# SPDX-License-Identifier: Apache-2.0

"""Export of charges into a table for other programs."""

from collections.abc import Iterable
import contextlib
import pathlib

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet

from nova_fairness import exception
from nova_fairness.shares import ledger as ledger_module

SCHEMA = pa.schema(
    [
        ('account', pa.string()),
        ('resource_class', pa.string()),
        ('begins', pa.timestamp('us', tz='UTC')),
        ('ends', pa.timestamp('us', tz='UTC')),
        ('amount', pa.float64()),
        ('part', pa.float64()),
    ]
)
"""Columns of the table. ``amount`` is the amount of the class between two
times, ``part`` the same as a part of the cloud.
"""

_WRITERS = {'.csv': csv.write_csv, '.parquet': parquet.write_table}


def write_charges(
    path: pathlib.Path,
    charges: Iterable[ledger_module.PeriodCharge],
    classes: tuple[str, ...],
) -> int:
    """Write charges to a file.

    :param path: path ``*.csv`` or ``*.parquet``; after an error the file is
        unchanged.
    :param classes: resource classes of the columns of the charges.
    :returns: number of rows.
    :raises ConfigurationError: if the suffix is unknown, or the file cannot be
        written.
    """
    if path.suffix not in _WRITERS:
        raise exception.ConfigurationError(
            f'{path} must end with {" or ".join(_WRITERS)}'
        )
    rows = [
        (
            run.account,
            resource_class,
            round(run.begins * 1e6),
            round(run.ends * 1e6),
            float(run.amounts[c]),
            float(run.parts[c]),
        )
        for run in ledger_module.charge_runs(charges)
        for c, resource_class in enumerate(classes)
        if run.amounts[c]
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    table = pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, SCHEMA, strict=True)
        ],
        schema=SCHEMA,
    )
    new = path.with_name(f'.{path.name}.new')
    try:
        _WRITERS[path.suffix](table, new)
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise exception.ConfigurationError(
            f'{path} cannot be written: {error}'
        ) from error
    return len(rows)
