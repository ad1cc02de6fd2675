# SPDX-License-Identifier: Apache-2.0

"""Writes the steps of a run of tools/test.sh and their ends as JSON."""

from collections.abc import Iterator
from collections.abc import Mapping
import json
import pathlib
import subprocess
import sys
import time
from typing import Any
from xml.etree import ElementTree as ET

BAD = {'failure': 'failed', 'error': 'failed', 'skipped': 'skipped'}


def cases(report: pathlib.Path) -> Iterator[tuple[str, str, float]]:
    """Name, outcome and seconds of each test of a report of pytest."""
    for case in ET.parse(report).iter('testcase'):
        found = [BAD[child.tag] for child in case if child.tag in BAD]
        name = f'{case.get("classname")}::{case.get("name")}'
        yield name, (found or ['passed'])[0], float(case.get('time', 0))


def steps(text: str) -> list[Mapping[str, Any]]:
    """Steps by the lines that ``step`` of tools/environment.sh wrote."""
    rows = [line.split('\t') for line in text.splitlines()]
    return [
        {'name': name, 'seconds': float(seconds), 'exit_code': int(code)}
        for name, seconds, code in rows
    ]


def reruns(path: pathlib.Path) -> list[Mapping[str, str]]:
    """Tests that failed and were tried again, as tests/conftest.py notes."""
    text = path.read_text() if path.exists() else ''
    return [json.loads(line) for line in text.splitlines()]


def outcome(results: pathlib.Path, code: int) -> Mapping[str, Any]:
    """Everything that is in a directory of results.

    :param code: with which the run ended.
    """
    lines = results / 'steps'
    suites = {
        report.stem: {
            name: {'outcome': ended, 'seconds': seconds}
            for name, ended, seconds in cases(report)
        }
        for report in sorted(results.glob('*.xml'))
    }
    ended = [
        test['outcome'] for tests in suites.values() for test in tests.values()
    ]
    git = subprocess.run(
        ['git', 'describe', '--always', '--dirty'],
        capture_output=True,
        check=False,
        text=True,
    )
    return {
        'revision': git.stdout.strip(),
        'ended': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'exit_code': code,
        'counts': {kind: ended.count(kind) for kind in sorted(set(ended))},
        'reruns': reruns(results / 'reruns'),
        'steps': steps(lines.read_text() if lines.exists() else ''),
        'tests': suites,
    }


def main() -> None:
    """Write what is in RESULTS: ``outcome.py RESULTS EXIT_CODE FILE``."""
    results, code, file = sys.argv[1:]
    made = outcome(pathlib.Path(results), int(code))
    pathlib.Path(file).write_text(json.dumps(made, indent=1) + '\n')
    counts = [f'{count} {kind}' for kind, count in made['counts'].items()]
    for each in made['reruns']:
        print(f'failed, and was tried again: {each["test"]}')
    print(f'tests: {", ".join(counts) or "none"}; {file} tells of each')


if __name__ == '__main__':
    main()
