# SPDX-License-Identifier: Apache-2.0

"""Write the part of the manual that says what the agent of a node costs.

Takes ``benchmarks/results/node_cycle.json``, ``tc_cost.json`` and
``call_latency.json``; measures nothing itself::

    python -m benchmarks.pages.sizing
"""

import json
import pathlib
import sys

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks/results'
PAGE = TOP / 'doc/source/admin/sizing-cost.inc'
SOURCES = ('node_cycle.json', 'tc_cost.json', 'call_latency.json')

ROUNDS = (
    'VMs on the node',
    'Nothing changes, ms',
    'A tenth changes, ms',
    'All change, ms',
)
UNCHANGED, SOME, ALL = 0.0, 0.1, 1.0
ANSWERS = (
    'Peers',
    '``get_status``, KiB',
    'ms',
    '``list_users``, KiB',
    'ms',
)


def agent(cycle: dict) -> str:
    """Sentences on the agent's CPU time and memory over its window."""
    of = cycle['agent']
    return (
        f'With {of["vms"]} paused guests and a round every '
        f'{of["interval_s"]:.0f} s, the agent and its helpers took '
        f'{of["agent_and_helper_cpu_s"]:.2f} s of CPU time in '
        f'{of["window_s"]:.0f} s, and libvirtd '
        f'{of["libvirtd_caused_cpu_s"]:.2f} s for them: '
        f'{of["cpu_percent"]:.2f} % of a CPU. The agent held '
        f'{of["agent_pss_mib"]:.0f} MiB, all {of["processes"]} processes '
        f'{of["tree_pss_mib"]:.0f} MiB (proportional set size). It had no '
        'peers.'
    )


def rounds(cycle: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`ROUNDS`: whole rounds, milliseconds."""
    by_case = {
        (row['vms'], row['changed']): row['vms'] * row['ours_us_per_vm'] / 1e3
        for row in cycle['rows']
    }
    return [
        (
            f'{vms}',
            *(f'{by_case[vms, part]:.1f}' for part in (UNCHANGED, SOME, ALL)),
        )
        for vms in dict.fromkeys(vms for vms, _ in by_case)
    ]


def traffic(costs: dict) -> str:
    """The sentence on traffic control with most VMs."""
    most = max(row['vms'] for row in costs['results'])
    rows = [row for row in costs['results'] if row['vms'] == most]
    told = ' and '.join(
        f'{row["read_ms_per_vm"] * most:.1f} ms to read and '
        f'{row["write_ms_per_vm"] * most:.1f} ms to write with '
        f'``layout = {row["layout"]}``'
        for row in rows
    )
    return f'Classes of traffic control for {most} VMs take {told}.'


def answers(calls: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`ANSWERS`: sizes and medians of whole calls."""
    return [
        (
            f'{row["peers"]:,}',
            *(
                text
                for name in ('get_status', 'list_users')
                for text in (
                    f'{row[name]["bytes"] / 1024:,.1f}',
                    f'{row[name]["call_p50_ms"]:.1f}',
                )
            ),
        )
        for row in calls['answers']
    ]


def page(cycle: dict, costs: dict, calls: dict) -> str:
    """The text."""
    lines = [
        f'{agent(cycle)} Whole rounds of its five steps took:',
        '',
        *manual_table.lines(ROUNDS, rounds(cycle)),
        traffic(costs),
        'An agent answers calls beside its rounds; sizes and medians over',
        '``zmq://`` on loopback, by the number of peers that it knows:',
        '',
        *manual_table.lines(ANSWERS, answers(calls)),
    ]
    return '\n'.join(lines)


def recorded() -> str:
    """The text of what is recorded."""
    return page(
        *(json.loads((RESULTS / name).read_text()) for name in SOURCES)
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
