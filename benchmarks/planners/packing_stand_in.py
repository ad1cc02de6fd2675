# SPDX-License-Identifier: Apache-2.0

"""A stand-in for Azure's trace for packing, with its schema.

The trace itself is large, and is not here. This draws invented servers:
types from a sixty-fourth to a half of a machine, small ones more often, some
with much memory and some with many cores, and lifetimes of minutes to weeks::

    python -m benchmarks.planners.packing_stand_in --out stand-in.sqlite
    nova-fairness-sim cluster pack --trace stand-in.sqlite --out packing
"""

import contextlib
import pathlib
import random
import sqlite3

from benchmarks.queue import recorded

VMS, DAYS, SEED = 5000, 14.0, 1
PARTS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
OFTEN = (20, 30, 25, 15, 7, 3)
LEAN = (0.5, 1.0, 2.0)
"""Parts of the memory for a part of the cores."""


def kinds() -> list[tuple[float, ...]]:
    """Rows of ``vmType``: id, type, machine, cores, memory, and the rest."""
    found: list[tuple[float, ...]] = []
    for part in PARTS:
        for lean in LEAN:
            number = len(found)
            memory = min(part * lean, 1.0)
            found.append((number, number, 1, part, memory, 0, 0, 0))
    return found


def machines(chance: random.Random) -> list[tuple[float | None, ...]]:
    """Rows of ``vm``."""
    found: list[tuple[float | None, ...]] = []
    for number in range(VMS):
        [size] = chance.choices(range(len(PARTS)), OFTEN)
        kind = size * len(LEAN) + chance.randrange(len(LEAN))
        begin = chance.uniform(-1.0, DAYS)
        end = begin + chance.lognormvariate(-1.0, 1.5)
        low = int(chance.random() < 0.2)
        found.append((number, number % 40, kind, low, begin, end))
    return found


def write(path: pathlib.Path) -> None:
    """Replace the file."""
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(
            'CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime,'
            ' endtime)'
        )
        file.execute(
            'CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd,'
            ' ssd, nic)'
        )
        rows = machines(random.Random(SEED))
        file.executemany('INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)', rows)
        file.executemany(
            'INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)', kinds()
        )


if __name__ == '__main__':
    write(recorded.parser(__doc__ or '').parse_args().out)
