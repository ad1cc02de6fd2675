# SPDX-License-Identifier: Apache-2.0

"""Tables of orders, patience and estimates, of what the simulator wrote.

    python benchmarks/queue_orders_page.py

reads what ``benchmarks/results/queue`` has of each standard cloud, and of
patience and estimates in folders beside it, and writes
``doc/source/contributor/order-evidence.inc``, ``patience-evidence.inc`` and
``estimates-evidence.inc``.
"""

import json
import pathlib

from fairness_lab.cluster import reader

TOP = pathlib.Path(__file__).resolve().parents[1]
RESULTS = TOP / 'benchmarks' / 'results' / 'queue'
PAGES = TOP / 'doc' / 'source' / 'contributor'

HEAD = (
    'Cloud',
    'Order',
    'Error of shares %',
    'Utilisation %',
    'Mean wait h',
    'Longest h',
    'Expired',
)
ESTIMATES_HEAD = (
    'Cloud',
    'Requests',
    'By p50 %, not stretched',
    'By p50 %',
    'By p90 %, not stretched',
    'By p90 %',
)
COLUMNS = '.. list-table::\n   :header-rows: 1\n'


def row(run):
    """Cells of a run."""
    waiting = run['waiting']
    return (
        run['scenario'],
        f'``{run["order"]}``',
        f'{100 * run["share_error"]["mean"]:.1f}',
        f'{100 * run["utilisation"]["settled_mean"]:.1f}',
        f'{waiting["mean_s"] / 3600:.1f}',
        f'{waiting["longest_s"] / 3600:.1f}',
        str(waiting['expired']),
    )


def runs(paths):
    """All that is recorded in some files."""
    return [
        run
        for path in filter(pathlib.Path.exists, paths)
        for run in json.loads(path.read_text('utf-8'))['runs']
    ]


def patient(run):
    """Cells of a run, with its patience."""
    cloud, order, *others = row(run)
    return (cloud, order, f'{run["patience_s"] / 3600:g}', *others)


def orders():
    """The table of orders."""
    paths = [RESULTS / f'{name}.json' for name in sorted(reader.STANDARD)]
    return text([HEAD, *(row(run) for run in runs(paths))])


def patience():
    """The table of patience, the most patient last."""
    found = runs((RESULTS / 'patience').glob('*.json'))
    found.sort(key=lambda r: (r['scenario'], r['order'], r['patience_s']))
    cloud, order, *others = HEAD
    head = (cloud, order, 'Patience h', *others)
    return text([head, *(patient(run) for run in found)])


def estimates():
    """The table of estimates."""
    paths = sorted((RESULTS / 'estimates').glob('*.json'))
    found = [json.loads(path.read_text('utf-8')) for path in paths]
    return text([ESTIMATES_HEAD, *(estimated(run) for run in found)])


def estimated(run):
    """Cells of a run whose estimates were judged."""
    judged = run['estimates']
    parts = ('by_p50_alone', 'by_p50', 'by_p90_alone', 'by_p90')
    return (
        run['scenario'],
        str(judged['count']),
        *(f'{100 * judged[part]:.0f}' for part in parts),
    )


def text(rows):
    """A whole table."""
    lines = [COLUMNS]
    for cells in rows:
        first, *others = cells
        lines.append(f'   * - {first}')
        lines += [f'     - {cell}' for cell in others]
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    for name, table in (
        ('order', orders),
        ('patience', patience),
        ('estimates', estimates),
    ):
        page = PAGES / f'{name}-evidence.inc'
        page.write_text(table(), encoding='utf-8')
