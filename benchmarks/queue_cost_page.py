# SPDX-License-Identifier: Apache-2.0

"""Write the part of the manual that says what the queue costs.

Takes ``benchmarks/results/queue_cycle.json`` and ``fairqueue.json``; measures
nothing itself::

    python benchmarks/queue_cost_page.py
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import manual_table

TOP = pathlib.Path(__file__).resolve().parents[1]
RESULTS = TOP / 'benchmarks/results'
PAGE = TOP / 'doc/source/admin/queue-cost.inc'

CYCLES = (
    'Requests',
    'Hosts',
    'A look, s of CPU',
    'A plan, s of CPU',
    'Both, s of CPU',
)
PLANS = ('Order', 'Flavors', 'A plan, s of CPU', 'Exponent')
ORDERS = {'OldestFirst': '``fifo``', 'FairTree': '``fair_tree``'}


def cycles(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`CYCLES`."""
    return [
        (
            f'{each["requests"]:,}',
            f'{each["hosts"]:,}',
            *(
                f'{each[name]:.2f}'
                for name in ('look_cpu_s', 'plan_cpu_s', 'cycle_cpu_s')
            ),
        )
        for each in found['cycles']
    ]


def plans(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`PLANS`: the largest cloud."""
    return [
        (
            ORDERS[each['order']],
            f'{each["flavors"]:,}',
            f'{each["plans"][-1]["cpu_s"]:.2f}',
            f'{each["exponent"]:.2f}',
        )
        for each in found['plans']
    ]


def recorded() -> str:
    """The part of the manual, from what is recorded."""
    cycle, plan = (
        json.loads((RESULTS / f'{name}.json').read_text())
        for name in ('queue_cycle', 'fairqueue')
    )
    largest = plan['plans'][0]['plans'][-1]
    grows = (
        'A look and a plan together grow with the size of the cloud to the '
        f'power of {cycle["exponent"]:.2f}. Plans for '
        f'{largest["requests"]:,} requests on {largest["hosts"]:,} hosts:'
    )
    return '\n'.join(
        [
            *manual_table.lines(CYCLES, cycles(cycle)),
            grows,
            '',
            *manual_table.lines(PLANS, plans(plan)),
        ]
    )


if __name__ == '__main__':
    PAGE.write_text(recorded())
