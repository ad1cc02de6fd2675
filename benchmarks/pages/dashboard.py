# SPDX-License-Identifier: Apache-2.0

"""Writes what pages of Horizon take into the manual.

Takes ``benchmarks/results/dashboard/pages.json``; measures nothing itself::

    python -m benchmarks.pages.dashboard
"""

import json
import pathlib
import sys
from typing import Any

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/dashboard/pages.json'
PAGE = TOP / 'doc/source/admin/dashboard-cost.inc'
HEADER = (
    'Page',
    'Half of the loads, s',
    '95 of 100, s',
    'CPU time, s',
    'By an empty page',
    'Calls',
    'kB',
)
TITLES = {
    'empty': 'Settings of Horizon, an empty page',
    'queue': 'Queue',
    'hosts': 'Hosts',
    'board': 'Status',
    'tree': 'Share Tree',
    'requests of a member': 'My Requests',
}


def _row(title: str, page: dict[str, Any]) -> list[str]:
    return [
        title,
        manual_table.range_text(page['p50_s'], '.2f'),
        manual_table.range_text(page['p95_s'], '.2f'),
        manual_table.range_text(page['p50_cpu_s'], '.2f'),
        manual_table.range_text(page['ratio'], '.1f'),
        manual_table.range_text(page['calls'], 'd'),
        f'{max(page["bytes"]) / 1000:.0f}',
    ]


def recorded() -> str:
    """Table of what is recorded."""
    pages = json.loads(RESULT.read_text())['pages']
    rows = [_row(title, pages[name]) for name, title in TITLES.items()]
    return '\n'.join(manual_table.lines(HEADER, rows))


def main() -> int:
    """Write the table."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
