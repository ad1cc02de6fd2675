# SPDX-License-Identifier: Apache-2.0

"""Write the part of the manual that says what one peer can cost an agent.

Takes ``benchmarks/results/hostile_peer.json``; measures nothing itself::

    python -m benchmarks.pages.hostile_peer
"""

import json
import pathlib
import sys

from benchmarks.pages import manual_table

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULT = TOP / 'benchmarks/results/hostile_peer.json'
PAGE = TOP / 'doc/source/admin/hostile-peers.inc'

HEADER = (
    'Attack',
    'CPU (without)',
    'Memory',
    'Descriptors',
    'Middle, ms (without)',
    'Longest, ms (without)',
    'Longest round, ms (without)',
)
DID = {
    'silent': '{connections:,} connections that say nothing',
    'noise': 'garbage, on {connections:,} connections',
    'strangers': '{handshakes:,} handshakes with foreign keys',
    'commands': '{connections} handshakes of 15 MB',
    'small': '{offered:,} small casts on connections that stay; '
    '{messages:,} are taken',
    'small_anew': '{offered:,} small casts on {connections:,} connections, '
    'each left soon',
    'large': 'messages of 100 MB, whose {connections_ended} connections ended',
    'frames': 'messages of 2 GB in frames of 1 MiB, whose {connections_ended} '
    'connections ended',
    'slow_reader': '{questions:,} questions with long answers, never read',
    'questions': '{questions:,} questions with long answers, read',
    'connections': '{connections:,} connections with one good key; '
    '{admitted} are admitted',
}
"""Descriptions, by attack."""


def rows(attacks: dict) -> list[tuple[str, ...]]:
    """Rows of :data:`HEADER`."""
    return [
        (
            ('' if found['has_key'] else 'no key: ')
            + DID[name].format(**found['attacked']['did']),
            _values_of_both(found, '{cpu_share:.2f}'),
            f'{max(0, found["resident_more_bytes"]) / 1e6:.0f} MB',
            f'{found["attacked"]["descriptors_peak"]}',
            _values_of_both(found, '{p50_ms:.0f}'),
            _values_of_both(found, '{longest_ms:.0f}'),
            _values_of_both(found, '{rounds[longest_ms]:.0f}'),
        )
        for name, found in attacks.items()
    ]


def _values_of_both(found: dict, form: str) -> str:
    attacked, quiet = found['attacked'], found['quiet']
    return f'{form.format(**attacked)} ({form.format(**quiet)})'


def page(attacks: dict) -> str:
    """The text."""
    attacked = [found['attacked'] for found in attacks.values()]
    failed = sum(found['failed'] for found in attacked)
    missed = sum(
        max(0, found['rounds']['due'] - found['rounds']['done'])
        for found in attacked
    )
    told = (
        f'Of the calls of the honest peer {failed} failed, and of the rounds '
        f'{missed} were left out.'
    )
    return '\n'.join([*manual_table.lines(HEADER, rows(attacks)), told, ''])


def recorded() -> str:
    """The text of what is recorded."""
    return page(json.loads(RESULT.read_text())['attacks'])


def main() -> int:
    """Write the page."""
    PAGE.write_text(recorded())
    return 0


if __name__ == '__main__':
    sys.exit(main())
