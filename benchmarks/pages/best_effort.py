# SPDX-License-Identifier: Apache-2.0

"""Write the part of the manual that says what best-effort VMs cost others.

Takes ``benchmarks/results/best_effort.json``; measures nothing itself::

    python -m benchmarks.pages.best_effort
"""

from collections.abc import Mapping
import json
import pathlib
import sys
from typing import Any

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/best_effort.json'
PAGE = TOP / 'doc/source/admin/best-effort.inc'
HEADER = (
    'One VM',
    'CPU that it has',
    'It wakes late by, ms',
    '20 ms late or more',
)


def page(result: Mapping[str, Any]) -> str:
    """A table of what the VM has, way by way."""
    others = result['guests']['others']
    rows = [
        (
            way.replace('beside', f'beside {others}'),
            f'{row["busy_cpus"]:.2f}',
            f'{row["late_ms"]:.1f}',
            f'{row["late_20ms_part"]:.1%}',
        )
        for way, row in result['rows'].items()
    ]
    return '\n'.join(manual_table.lines(HEADER, rows))


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(json.loads(RESULT.read_text())), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
