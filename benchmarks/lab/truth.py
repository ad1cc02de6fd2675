# SPDX-License-Identifier: Apache-2.0


"""The laboratory's recorded runs beside the simulator's, as a table.

Run::

    python -m benchmarks.lab.truth
"""

from collections.abc import Iterator
from collections.abc import Sequence
import pathlib
import sys

from fairness_lab.measures import files
from fairness_lab.measures import truth
from fairness_lab.measures import truth_loads
from nova_fairness.model import wording

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks' / 'results'
PAGE = TOP / 'doc' / 'source' / 'user' / 'simulator-truth.inc'
LOADS_PAGE = PAGE.with_name('simulator-truth-loads.inc')


def main() -> int:
    """Print the table, and write it as JSON and for the documents."""
    rows = truth.compare(RESULTS / 'scenarios')
    loads = truth_loads.compare(RESULTS / 'scenarios')
    files.write_json(
        RESULTS / 'simulator-and-laboratory.json',
        {**truth.table(rows), 'loads': truth_loads.table(loads)},
    )
    LOADS_PAGE.write_text(truth_loads.page(loads), encoding='utf-8')
    PAGE.write_text(truth.page(rows), encoding='utf-8')
    numeric = [False] * 2 + [True] * 3
    print(wording.format_table(list(_lines(rows)), numeric), end='')
    far = [
        row for row in rows if abs(row.difference) > truth.LARGEST_DIFFERENCE
    ]
    return 1 if far else 0


def _lines(rows: Sequence[truth.Row]) -> Iterator[Sequence[str]]:
    yield 'recording', 'user', 'laboratory', 'simulator', 'difference'
    for row in rows:
        yield (
            row.recording,
            row.user,
            f'{row.laboratory:.1%}',
            f'{row.simulator:.1%}',
            f'{row.difference:+.1%}',
        )


if __name__ == '__main__':
    sys.exit(main())
