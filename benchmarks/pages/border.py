# SPDX-License-Identifier: Apache-2.0

"""Writes the results of weeks with a moving border into the manual.

Takes ``benchmarks/results/border/week*.json``; measures nothing itself::

    python -m benchmarks.pages.border
"""

import json
import pathlib
import sys
from typing import Any

from benchmarks.pages import manual_table

Json = dict[str, Any]

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks/results/border'
PAGE = TOP / 'doc/source/evaluation/border-weeks.inc'
HEADER = (
    'Seed',
    'Hosts',
    'Work, per cent',
    'Best border that stays, hosts of the cloud',
    'Its work',
    'More, per cent',
    'Moves a host a day',
    'Killed',
)


def weeks() -> list[Json]:
    """Records of all weeks, the smallest cloud first."""
    paths = RESULTS.glob('week*.json')
    found = [json.loads(path.read_text()) for path in paths]
    return sorted(found, key=lambda each: (each['hosts'], each['seed']))


def pair(week: Json) -> tuple[Json, Json]:
    """The run that demand moved, and the best that stayed."""
    runs = {run['name']: run for run in week['runs']}
    return runs['demand'], runs[week['best_fixed']]


def recorded() -> str:
    """Table of what is recorded."""
    return '\n'.join(manual_table.lines(HEADER, map(_row, weeks())))


def _row(week: Json) -> list[str]:
    moved, best = pair(week)
    more = moved['work']['total'] / best['work']['total'] - 1
    return [
        str(week['seed']),
        str(week['hosts']),
        f'{100 * moved["work"]["part"]:.1f}',
        str(best['cloud_hosts']),
        f'{100 * best["work"]["part"]:.1f}',
        f'{100 * more:.1f}',
        f'{moved["moves"]["a_host_a_day"]:.2f}',
        str(moved['killed']),
    ]


def main() -> int:
    """Write the table."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
