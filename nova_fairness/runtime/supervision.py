# SPDX-License-Identifier: Apache-2.0

"""Reports of a process to systemd: ready, working, stopping.

systemd kills and restarts a service that reports no progress for the
``WatchdogSec=`` of its unit. Each loop reports its own progress; a timer would
report a loop that hangs.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import threading
import time

from oslo_service import systemd

from nova_fairness.model import plain

_MIN_INTERVAL_S = 1.0
"""Smallest time between two WATCHDOG=1 in seconds. Some loops report 100
times a second."""

PAUSE_S = 10.0
"""Longest wait of a loop without a report of progress, in seconds."""

Beat = Callable[[], None]


class ServiceManager:
    """Reports to systemd; does nothing if systemd did not start the process.

    Thread-safe.

    :param monotonic: monotonic clock, seconds.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._loops = 0
        self._silent: set[int] = set()
        self._sent_at_s = -_MIN_INTERVAL_S
        self._last_status = ''

    def loop(self) -> Beat:
        """Add a loop to the supervision.

        :returns: function to call after progress of that loop. systemd is
            notified when all loops made progress, so that one that hangs is
            noticed.
        """
        number, self._loops = self._loops, self._loops + 1
        self._silent.add(number)
        return lambda: self._report_progress(number)

    def ready(self) -> None:
        """Report that the service is ready."""
        _send('READY=1')

    def say(self, status: str) -> None:
        """Report a changed status text."""
        with self._lock:
            if status == self._last_status:
                return
            self._last_status = status
        # A second line would be an order to systemd.
        _send(f'STATUS={plain.line(status)}')

    def stopping(self) -> None:
        """Report that the service stops; no progress is expected then."""
        _send('STOPPING=1')

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Report ready at the start and stopping at the end of a context."""
        self.ready()
        try:
            yield
        finally:
            self.stopping()

    def _report_progress(self, number: int) -> None:
        with self._lock:
            self._silent.discard(number)
            now_s = self._monotonic()
            if self._silent or now_s - self._sent_at_s < _MIN_INTERVAL_S:
                return
            self._sent_at_s = now_s
            self._silent.update(range(self._loops))
        _send('WATCHDOG=1')


def _send(state: str) -> None:
    # The library has a public name for READY=1 alone.
    systemd._sd_notify(False, state.encode())  # noqa: SLF001
