# SPDX-License-Identifier: Apache-2.0

"""Writes what both transports cost into the manual.

Takes ``benchmarks/results/transports.json``; measures nothing itself::

    python -m benchmarks.pages.transports
"""

from collections.abc import Sequence
import json
import pathlib
import sys
from typing import Any

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/transports.json'
PAGE = TOP / 'doc/source/admin/transports-cost.inc'
HEADER = (
    'Nodes',
    'Transport',
    'CPU of a node, ms in a round',
    'CPU of the server, ms in a round',
    'CPU of an idle node, ms in a second',
    'Traffic of a node, KiB in a round',
    'Memory of a node, MiB',
)
NAMES = {'zmq': '``zmq+redis://``', 'rabbit': '``rabbit://``'}


def _row(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Cells of one transport and number of nodes: least and most."""

    def spread(quantity: str, form: str, times: float = 1.0) -> str:
        values = [times * row[quantity] for row in rows]
        return manual_table.range_text([min(values), max(values)], form)

    return [
        str(rows[0]['nodes']),
        NAMES[rows[0]['transport']],
        spread('cpu_ms_per_node_round', '.1f'),
        spread('server_cpu_ms_per_round', '.0f'),
        spread('idle_cpu_ms_per_node_s', '.1f'),
        spread('bytes_per_node_round', '.0f', 1 / 1024),
        spread('pss_kib_per_node', '.1f', 1 / 1024),
    ]


def recorded() -> str:
    """Table of what is recorded."""
    rows = json.loads(RESULT.read_text())['rows']
    by_case: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        case = row['nodes'], row['transport']
        by_case.setdefault(case, []).append(row)
    table = [_row(of_case) for of_case in by_case.values()]
    return '\n'.join(manual_table.lines(HEADER, table))


def main() -> int:
    """Write the table."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
