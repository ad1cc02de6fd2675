# SPDX-License-Identifier: Apache-2.0

"""Writes what the exchange costs into the manual, from recorded results.

Takes ``benchmarks/results/mesh.json`` and ``call_latency.json``; measures
nothing itself::

    python -m benchmarks.pages.exchange
"""

import json
import pathlib
import sys

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks/results'
PAGE = TOP / 'doc/source/reference/exchange-cost.inc'

HEADER = (
    'Nodes',
    'Users on each',
    'PUB/SUB, CPU ms',
    'Driver',
    'Whole path',
    'Whole path, CPU ms',
    'KiB',
    'Memory, MiB',
)

INTRODUCTION = """\
Per node and round, on two cores that all nodes share \
(``benchmarks/exchange/mesh.py``).
The driver alone, and the whole path from a report to the ledgers of all, are
multiples of what plain PUB/SUB sockets take in the same run, for the same
bytes:"""


def costs(mesh: dict) -> list[tuple[str, ...]]:
    """A row for each number of nodes and users that was measured."""
    measured = {
        (row['nodes'], row['users'], row['kind']): row for row in mesh['rows']
    }
    ratio = {
        (row['nodes'], row['users'], row['kind']): row['cpu_ratio']
        for row in mesh['ratios']
    }
    cases = dict.fromkeys((nodes, users) for nodes, users, _ in measured)
    return [
        (
            f'{nodes}',
            f'{users:,}',
            f'{measured[nodes, users, "pubsub"]["cpu_ms_per_node_round"]:.1f}',
            f'x {ratio[nodes, users, "driver"]:.1f}',
            f'x {ratio[nodes, users, "exchange"]:.1f}',
            f'{whole["cpu_ms_per_node_round"]:.1f}',
            f'{whole["bytes_per_node_round"] / 1024:,.0f}',
            f'{whole["pss_kib_per_node"] / 1024:.1f}',
        )
        for nodes, users in cases
        for whole in [measured[nodes, users, 'exchange']]
    ]


def describe_sizes(mesh: dict) -> str:
    """Say how large the report of a node is."""
    by_users = {item['users']: item['bytes'] for item in mesh['message_bytes']}
    told = ', '.join(
        f'{size / 1024:.0f} KiB with {users:,} users'
        for users, size in by_users.items()
    )
    return f'A report takes {told}, however many VMs they have.'


def describe_delay(mesh: dict) -> str:
    """Say when all nodes have used a change that one saw."""
    most = max(
        row['rounds_until_used_max']
        for row in mesh['rows']
        if row['kind'] == 'exchange'
    )
    return (
        'Every node has used a change that one saw after at most '
        f'{most} round{"s" if most != 1 else ""}.'
    )


def describe_extrapolation(mesh: dict) -> str:
    """Say what a straight line through the results gives."""
    found = [row for row in mesh['model'] if row['kind'] == 'exchange']
    told = ', '.join(
        f'{row["cpu_ms_per_node_round"]:.0f} ms with {row["users"]} users on '
        f'each'
        for row in found
    )
    return (
        f'A straight line through these, **not measured**, gives for '
        f'{found[0]["nodes"]:,} nodes per node and round {told}.'
    )


def latencies(calls: dict) -> list[str]:
    """Say how long a call takes."""
    rows = [
        (
            f'``{name}://``',
            f'{row["p50_us"] / 1e3:.2f} ms',
            f'{row["p99_us"] / 1e3:.2f} ms',
        )
        for name, row in calls['transports'].items()
    ]
    return manual_table.lines(
        ('Call on loopback', 'Median', '99 % within'), rows
    )


def page(mesh: dict, calls: dict) -> str:
    """The text."""
    lines = [
        INTRODUCTION,
        '',
        *manual_table.lines(HEADER, costs(mesh)),
        describe_sizes(mesh),
        describe_delay(mesh),
        describe_extrapolation(mesh),
        '',
        *latencies(calls),
    ]
    return '\n'.join(lines)


def recorded() -> str:
    """Text of what is recorded."""
    return page(
        *(
            json.loads((RESULTS / name).read_text())
            for name in ('mesh.json', 'call_latency.json')
        )
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
