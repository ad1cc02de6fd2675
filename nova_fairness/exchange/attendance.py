# SPDX-License-Identifier: Apache-2.0

"""Says in the log who comes, who is left out and who is back."""

import logging

from nova_fairness.model import report

_MOST = 10
"""Hosts that are named in one view; of the others only the number."""


class Attendance:
    """Compares each view with the one before; not thread-safe.

    :param log: where to.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._usable: set[str] = set()
        self._left_out: dict[str, str] = {}

    def note(self, view: report.View) -> None:
        """Name what changed. A reason's first word says what kind it is."""
        left_out = {
            host: why.split(' ', 1)[0] for host, why in view.left_out.items()
        }
        gone = [
            f'{host} ({view.left_out[host]})'
            for host, kind in left_out.items()
            if self._left_out.get(host) != kind
        ]
        come = [host for host in view.reports if host not in self._usable]
        if gone:
            self._log.warning('Left out: %s', _named(gone))
        if come:
            self._log.info('In view: %s', _named(come))
        self._usable, self._left_out = set(view.reports), left_out


def _named(items: list[str]) -> str:
    more = len(items) - _MOST
    return ', '.join(items[:_MOST]) + (f' and {more} more' if more > 0 else '')
