# SPDX-License-Identifier: Apache-2.0

"""Orders compared over the recorded clouds, one seed each.

    python -m benchmarks.queue.over_clouds --out FILE

runs nothing. It reads what ``benchmarks/results/queue`` has of the standard
clouds, and of those under orders of other systems, pairs runs cloud by cloud,
and writes means and intervals of differences from ``fair_tree`` in the form of
``spread.json``.
"""

from benchmarks.pages import queue_orders
from benchmarks.queue import recorded
from fairness_lab.measures import paired
from fairness_lab.queue_sim import reader
from fairness_lab.queue_sim import spread

REFERENCE = 'fair_tree'
MEASURES = ('share_error', 'jain', 'utilisation', 'wait_mean_s')


def compared(name, runs):
    """Compare orders over clouds.

    :param name: of the set of clouds.
    :param runs: recorded results.
    """
    clouds = sorted({run['scenario'] for run in runs})
    found = {(run['order'], run['scenario']): run for run in runs}
    orders = sorted({run['order'] for run in runs} - {REFERENCE})
    entries = []
    for order in (REFERENCE, *orders):
        measures = {}
        for measure in MEASURES:
            values, beside = (
                spread.values(measure, [found[one, each] for each in clouds])
                for one in (order, REFERENCE)
            )
            measures[measure] = spread.measured(
                values,
                None if order == REFERENCE else beside,
                spread.BETTER[measure],
            )
        entries.append({'name': order, 'measures': measures})
    return {
        'scenario': name,
        'clouds': clouds,
        'reference': REFERENCE,
        'runs': entries,
    }


def tables():
    """Compare all orders, and those of other systems."""
    results = queue_orders.RESULTS
    paths = sorted((results / 'peers').glob('*.json'))
    standard = [results / f'{name}.json' for name in reader.STANDARD]
    orders = queue_orders.runs(standard)
    peers = queue_orders.runs(paths)
    clouds = {run['scenario'] for run in peers}
    ours = [
        run
        for run in orders
        if run['order'] == REFERENCE and run['scenario'] in clouds
    ]
    return {
        'confidence': paired.CONFIDENCE,
        'better': {name: spread.BETTER[name] for name in MEASURES},
        'clouds': [
            compared('standard', orders),
            compared('peers', [*ours, *peers]),
        ],
    }


def main():
    """Write the comparison."""
    options = recorded.parser(__doc__).parse_args()
    recorded.write(options.out, tables())


if __name__ == '__main__':
    main()
