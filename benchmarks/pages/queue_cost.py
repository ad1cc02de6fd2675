# SPDX-License-Identifier: Apache-2.0

"""Write the part of the manual that says what the queue costs.

Takes ``benchmarks/results/relay.json``, ``holds.json``, ``queue_cycle.json``,
``fairqueue.json``, ``queue/pages.json`` and ``queue/waits.json``; measures
nothing itself::

    python -m benchmarks.pages.queue_cost
"""

import json
import pathlib

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks/results'
PAGE = TOP / 'doc/source/admin/queue-cost.inc'

CALLS = ('A call of conductor', 'Half of them, ms', '99 of 100, ms')
NAMES = {
    'directly': 'without the relay',
    'with_the_relay': 'with the relay',
    'added': 'what it adds',
}
HOLDS = (
    'Held',
    'Senders',
    'Memory of the relay, MiB',
    'CPU time of the relay, ms a hold',
    'Holds a second',
)
CYCLES = (
    'Requests',
    'Hosts',
    'Accounts',
    'Cycle',
    'The store',
    'A look',
    'The ledger',
    'A plan',
    'A cycle',
    'Starts',
)
KINDS = ('whole', 'between')
PLANS = ('Order', 'Flavors', 'Accounts', 'A plan, s of CPU', 'Exponent')
ANSWERS = ('Answer of the HTTP interface', 'CPU time, s', 'Last page by first')
WAITS = ('Percentiles of waits by', 'Database', 'A week, s', '30 days, s')
KEYS = ('project', 'flavor', 'reason')
ACCOUNTS = {False: 'none', True: 'bounded'}
ORDERS = {'OldestFirst': '``fifo``', 'FairTree': '``fair_tree``'}


def calls(relay: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`CALLS`."""
    return [
        (
            told,
            f'{relay["a_call"][name]["p50_ms"]:.1f}',
            f'{relay["a_call"][name]["p99_ms"]:.1f}',
        )
        for name, told in NAMES.items()
    ]


def holds(relay: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`HOLDS`."""
    return [
        (
            f'{each["held"]:,}',
            str(each['senders']),
            f'{each["memory_mib"]:.0f}',
            f'{each["cpu_ms_a_hold"]:.2f}',
            f'{each["holds_a_second"]:,}',
        )
        for each in relay['holding']
    ]


def databases(found: dict) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows: holds a second by database and size of batches."""
    by_name = found['holds_a_second']
    sizes = list(next(iter(by_name.values())))
    header = tuple(each.replace('_', ' ') for each in sizes)
    rows = [
        (name, *(f'{numbers[size]:,}' for size in sizes))
        for name, numbers in by_name.items()
    ]
    return ('Holds a second', *header), rows


def cycles(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`CYCLES`."""
    return [
        (
            f'{each["requests"]:,}',
            f'{each["hosts"]:,}',
            ACCOUNTS[cloud['bounded']],
            kind,
            *(
                f'{each[kind][f"{name}_cpu_s"]:.2f}'
                for name in ('store', 'look', 'ledger', 'plan')
            ),
            f'{each[kind]["without_starts_cpu_s"]:.2f}',
            f'{each[kind]["starts_cpu_s"]:.2f}',
        )
        for cloud in found['clouds']
        for each in cloud['cycles']
        for kind in KINDS
    ]


def plans(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`PLANS`: the largest cloud."""
    return [
        (
            ORDERS[each['order']],
            f'{each["flavors"]:,}',
            ACCOUNTS[each['bounded']],
            f'{each["plans"][-1]["cpu_s"]:.2f}',
            f'{each["exponent"]:.2f}',
        )
        for each in found['plans']
    ]


def answers(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`ANSWERS`."""
    flat = {
        f'{name}, last page': [run['flat'][name] for run in found['runs']]
        for name in found['runs'][0]['flat']
    }
    return [
        (
            name,
            manual_table.range_text(values, '.3f'),
            manual_table.range_text(flat[name], '.2f') if name in flat else '',
        )
        for name, values in found['p95_cpu_s'].items()
    ]


def waits(found: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`WAITS`."""
    return [
        (
            key,
            name,
            *(
                f'{each["queries"][f"{key}_{span}"]["median_s"]:.2f}'
                for span in ('week', 'month')
            ),
        )
        for key in KEYS
        for name, each in found['databases'].items()
    ]


def recorded() -> str:
    """The part of the manual, from what is recorded."""
    relay, holding, cycle, plan, answered, waited = (
        json.loads((RESULTS / f'{name}.json').read_text())
        for name in (
            'relay',
            'holds',
            'queue_cycle',
            'fairqueue',
            'queue/pages',
            'queue/waits',
        )
    )
    largest = plan['plans'][0]['plans'][-1]
    without, bounded = (each['exponent'] for each in cycle['clouds'])
    grows = (
        'A whole cycle grows with the size of the cloud to the power of '
        f'{without:.2f} without accounts, and of {bounded:.2f} with them. '
        f'Plans for {largest["requests"]:,} requests on '
        f'{largest["hosts"]:,} hosts:'
    )
    of_all = (
        f'``wait list`` of all projects, with {waited["requests"]:,} requests '
        'that ended in 30 days:'
    )
    of_large = (
        f'Answers about {answered["requests"]:,} requests, '
        f'{answered["hosts"]:,} full hosts and {answered["accounts"]:,} '
        f'accounts, 95th percentiles of {len(answered["runs"])} runs:'
    )
    return '\n'.join(
        [
            *manual_table.lines(CALLS, calls(relay)),
            *manual_table.lines(HOLDS, holds(relay)),
            *manual_table.lines(*databases(holding)),
            *manual_table.lines(CYCLES, cycles(cycle)),
            grows,
            '',
            *manual_table.lines(PLANS, plans(plan)),
            of_large,
            '',
            *manual_table.lines(ANSWERS, answers(answered)),
            of_all,
            '',
            *manual_table.lines(WAITS, waits(waited)),
        ]
    )


if __name__ == '__main__':
    PAGE.write_text(recorded())
