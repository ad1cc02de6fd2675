# SPDX-License-Identifier: Apache-2.0

"""Writes the results of all resources at once into the manual.

Takes ``benchmarks/results/all-at-once``; measures nothing itself::

    python -m benchmarks.pages.all_at_once
"""

import json
import pathlib
import sys

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/all-at-once/result.json'
PAGE = TOP / 'doc/source/reference/all-at-once.inc'
COLUMNS = ('dominant', 'ideal', 'distance')
HEADER = ('User', 'Dominant share', 'Best possible', 'Distance')


def recorded() -> str:
    """Table of what is recorded."""
    users = json.loads(RESULT.read_text())['users']
    rows = [
        [user, *(f'{users[user][what]:.3f}' for what in COLUMNS)]
        for user in sorted(users)
    ]
    return '\n'.join(manual_table.lines(HEADER, rows))


def main() -> int:
    """Write the table."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
