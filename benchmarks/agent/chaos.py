# SPDX-License-Identifier: Apache-2.0

"""How many rounds an agent on real guests takes to be fair after each fault.

Runs ``tests/chaos`` and keeps what it recorded. Needs root; takes about twenty
minutes, or two with ``--once``::

    python -m benchmarks.agent.chaos --out benchmarks/results/chaos.json
"""

import argparse
import collections
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
from xml.etree import ElementTree as ET

TOP = pathlib.Path(__file__).resolve().parents[2]


def rounds_by_fault(report: pathlib.Path) -> dict[str, list[int]]:
    """Rounds by fault, of each time that it happened.

    :param report: of pytest, in JUnit's format.
    """
    found = collections.defaultdict(list)
    for told in ET.parse(report).iter('property'):
        if told.get('name') == 'rounds':
            for fault, rounds in json.loads(told.get('value')):
                found[fault].append(rounds)
    return found


def main() -> int:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument(
        '--once',
        action='store_true',
        help='run each fault once, without the ten other orders',
    )
    options = parser.parse_args()
    chosen = ['-m', 'not slow'] if options.once else []
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory, 'chaos.xml')
        ended = subprocess.run(
            [
                *(sys.executable, '-m', 'pytest', '-q', 'tests/chaos'),
                *(f'--junitxml={report}', *chosen),
            ],
            cwd=TOP,
            check=False,
        )
        if ended.returncode:
            return ended.returncode
        found = rounds_by_fault(report)
    result = {
        'version': 1,
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
        'machine': {
            'kernel': platform.release(),
            'python': platform.python_version(),
        },
        'faults': {
            fault: {'times': len(rounds), 'most_rounds': max(rounds)}
            for fault, rounds in sorted(found.items())
        },
    }
    text = json.dumps(result, indent=2) + '\n'
    sys.stdout.write(text)
    if options.out:
        options.out.write_text(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
