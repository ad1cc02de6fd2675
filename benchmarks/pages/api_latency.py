# SPDX-License-Identifier: Apache-2.0

"""Write what the manual says of the cost of the HTTP interface.

Takes ``benchmarks/results/api_latency.json``; measures nothing itself::

    python -m benchmarks.pages.api_latency
"""

import json
import pathlib
import sys
from typing import Any

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/api_latency.json'
PAGE = TOP / 'doc/source/reference/api-cost.inc'

GUESTS = {'idle': 'Guests that sleep', 'busy': 'Guests that use all CPUs'}

ROWS = {
    'authentication, admin': 'nothing but authentication, ``admin``',
    'servers, admin': '``GET /servers?all_tenants=1``, ``admin``',
    'users, admin, kept': '``GET /fairness/users``, ``admin``',
    'users, admin, afresh': 'the same, agents asked each time',
    'authentication, alice': 'nothing but authentication, a user',
    'servers, alice': '``GET /servers``, a user',
    'users, alice, kept': '``GET /fairness/users/me``, a user',
    'users, alice, afresh': 'the same, agents asked each time',
}
"""Columns of the page, and what they are called."""

ASKED = """\
Measured with {servers} servers on {hosts} hosts, which share {cpus} CPUs with
all of OpenStack; {rounds} requests of each kind, one after the other and by
turns (``benchmarks/http/api_latency.py``). The cost beyond authentication
is compared with a path that does not exist, which ends before any policy or
database. Keystone's answers about tokens are remembered for five minutes, as
in Nova's defaults."""

PASSING = """\
Other requests pass the filter. Their medians with it are so many times those
of a nova-api without it (95 % interval, {pairs} pairs of processes):"""


def requests(conditions: list[dict[str, Any]]) -> list[str]:
    """Table of what requests take."""
    header = ['Milliseconds: median, 99 % within, median beyond']
    header += [GUESTS[item['guests']] for item in conditions]
    rows = [
        [
            shown,
            *(
                describe_durations(item['requests'][name])
                for item in conditions
            ),
        ]
        for name, shown in ROWS.items()
    ]
    return manual_table.lines(header, rows)


def describe_durations(request: dict[str, Any]) -> str:
    """Say what one kind of request takes."""
    text = f'{request["p50_ms"]:.1f}, {request["p99_ms"]:.1f}'
    more_ms = request.get('beyond_authentication_ms')
    return text if more_ms is None else f'{text}, {more_ms:+.1f}'


def filter_table(conditions: list[dict[str, Any]]) -> list[str]:
    """Table of what others pay for the filter."""
    rows = [
        [
            f'``{name}``',
            f'{item["ratio"]:.3f}',
            '{:.3f} to {:.3f}'.format(*item['interval_95']),
        ]
        for condition in conditions
        for name, item in condition.get('filter', {}).items()
    ]
    header = ['With the filter : without', 'Ratio', 'Interval']
    return manual_table.lines(header, rows)


def page(result: dict[str, Any]) -> str:
    """The text."""
    conditions = result['conditions']
    asked = ASKED.format(cpus=result['machine']['cpus'], **result)
    lines = [
        *(asked, '', *requests(conditions)),
        *(PASSING.format(**result), '', *filter_table(conditions)),
    ]
    return '\n'.join(lines)


def recorded() -> str:
    """Text of what is recorded."""
    return page(json.loads(RESULT.read_text()))


def main() -> int:
    """Write the page."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
