# SPDX-License-Identifier: Apache-2.0

"""Logs once when the connection to a server is lost, and once when it returns.

All code of a process that calls a server reports here, so that retries and
other threads do not log the same again.
"""

from collections.abc import Callable
import logging
import threading
import time

LOG = logging.getLogger(__name__)

DATABASE = 'database'
BROKER = 'message broker'


class OutageLog:
    """Records which servers do not answer; thread-safe.

    :param clock: monotonic, seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[str, float] = {}

    def lost(self, server: str, cause: object) -> None:
        """Record that a server does not answer; log it once.

        :param server: its name for people.
        """
        with self._lock:
            if server in self._since_s:
                return
            self._since_s[server] = self._clock()
        LOG.warning(
            '%s: connection lost: %s; it is tried again', server, cause
        )

    def restored(self, server: str) -> None:
        """Record that a server answers again; log it once."""
        if server not in self._since_s:
            return
        with self._lock:
            since_s = self._since_s.pop(server, None)
        if since_s is not None:
            LOG.info(
                '%s: connection restored after %.0f s',
                server,
                self._clock() - since_s,
            )

    def away(self) -> list[str]:
        """Return a sentence on each server that does not answer."""
        now_s = self._clock()
        with self._lock:
            since_s = sorted(self._since_s.items())
        return [
            f'{server}: connection lost {now_s - at_s:.0f} s ago'
            for server, at_s in since_s
        ]


SERVERS = OutageLog()
"""The log of outages of this process."""
