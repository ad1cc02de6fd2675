# SPDX-License-Identifier: Apache-2.0

"""Table of orders side by side, of what ``cluster compare`` wrote.

    python benchmarks/queue_orders_page.py

reads what ``benchmarks/results/queue`` has of each standard cloud and writes
``doc/source/contributor/order-evidence.inc``.
"""

import json
import pathlib

from fairness_lab.cluster import reader

TOP = pathlib.Path(__file__).resolve().parents[1]
RESULTS = TOP / 'benchmarks' / 'results' / 'queue'
PAGE = TOP / 'doc' / 'source' / 'contributor' / 'order-evidence.inc'

HEAD = (
    'Cloud',
    'Order',
    'Error of shares %',
    'Utilisation %',
    'Mean wait h',
    'Longest h',
    'Expired',
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


def text():
    """The whole table."""
    rows = [HEAD]
    paths = [RESULTS / f'{name}.json' for name in sorted(reader.STANDARD)]
    for path in filter(pathlib.Path.exists, paths):
        runs = json.loads(path.read_text('utf-8'))['runs']
        rows += [row(run) for run in runs]
    lines = [COLUMNS]
    for cells in rows:
        first, *others = cells
        lines.append(f'   * - {first}')
        lines += [f'     - {cell}' for cell in others]
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    PAGE.write_text(text(), encoding='utf-8')
