# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Writes what was measured on real guests into the manual.

Takes ``benchmarks/results/scenarios``; measures nothing itself::

    python benchmarks/scenarios_page.py
"""

from collections.abc import Iterator
from collections.abc import Mapping
import csv
import io
import json
import pathlib
import sys
from typing import Any

TOP = pathlib.Path(__file__).resolve().parents[1]
RESULTS = TOP / 'benchmarks/results/scenarios'
PAGE = TOP / 'doc/source/reference/measured.csv'
HEADER = ('Run', 'What is asked', 'Measured', 'Bar', 'Holds')


def bar(check: Mapping[str, Any]) -> str:
    """Say what is asked of a number."""
    low, high = check['lowest'], check['highest']
    if low is None:
        return f'at most {high:.3g}'
    if high is None:
        return f'at least {low:.3g}'
    return f'{low:.3g} to {high:.3g}'


def rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Give a row for each check of each run."""
    for name, result in results.items():
        for check in result['checks']:
            measured = check['measured']
            yield [
                name,
                check['says'],
                '-' if measured is None else f'{measured:.3g}',
                bar(check),
                'yes' if check['passed'] else '**no**',
            ]


def recorded() -> str:
    """Give the table of what is recorded."""
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
