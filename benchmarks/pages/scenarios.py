# SPDX-License-Identifier: Apache-2.0

"""Writes what was measured on real guests into the manual.

Takes ``benchmarks/results/scenarios``; measures nothing itself::

    python -m benchmarks.pages.scenarios
"""

from collections.abc import Iterator
from collections.abc import Mapping
import csv
import io
import json
import pathlib
import sys
from typing import Any

from fairness_lab.figures import report

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / 'benchmarks/results/scenarios'
PAGE = TOP / 'doc/source/reference/measured.csv'
HEADER = ('Run', 'Question', 'Measured', 'Bar', 'Holds')


def rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """A row for each check of each run."""
    for name, result in results.items():
        for check in result['checks']:
            yield [
                name,
                check['says'],
                report.value_text(check['measured']),
                report.bounds_text(check),
                'yes' if check['passed'] else '**no**',
            ]


def recorded() -> str:
    """Table of what is recorded."""
    names = json.loads((RESULTS / 'index.json').read_text())
    results = {
        name: json.loads((RESULTS / name / 'result.json').read_text())
        for name in sorted(names)
    }
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerows([HEADER, *rows(results)])
    return text.getvalue()


def main() -> int:
    """Write the table."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
