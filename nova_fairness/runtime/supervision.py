# SPDX-License-Identifier: Apache-2.0

"""Reports of a process to systemd: ready, at work, at its end.

systemd kills and restarts a service that reports no work for the
``WatchdogSec=`` of its unit. So each loop reports its own progress. No timer
does that for a loop: it would report a loop that hangs.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import threading
import time

from oslo_service import systemd

from nova_fairness.model import plain

_EVERY_S = 1.0
"""Seconds between two WATCHDOG=1. Some loops report 100 times a second."""

PAUSE_S = 10.0
"""A loop that waits reports after so many seconds that it does."""

Beat = Callable[[], None]


class ServiceManager:
    """Reports to systemd. It sends nothing where systemd did not start it.

    Any thread.

    :param monotonic: seconds that never go back.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._loops = 0
        self._silent: set[int] = set()
        self._sent_at_s = -_EVERY_S
        self._said = ''

    def loop(self) -> Beat:
        """Take one more loop under supervision.

        :returns: to be called when that loop made progress. systemd hears of
            it once all loops did, so that one that hangs is not covered by
            the others.
        """
        number, self._loops = self._loops, self._loops + 1
        self._silent.add(number)
        return lambda: self._beat(number)

    def ready(self) -> None:
        """Report that the service does its work from now on."""
        _send('READY=1')

    def say(self, status: str) -> None:
        """Report what the service does, if that is new."""
        with self._lock:
            if status == self._said:
                return
            self._said = status
        # A second line would be an order to systemd.
        _send(f'STATUS={plain.line(status)}')

    def stopping(self) -> None:
        """Report that the service ends; nothing is expected of it then."""
        _send('STOPPING=1')

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Report that the service works meanwhile, and that it ends then."""
        self.ready()
        try:
            yield
        finally:
            self.stopping()

    def _beat(self, number: int) -> None:
        with self._lock:
            self._silent.discard(number)
            now_s = self._monotonic()
            if self._silent or now_s - self._sent_at_s < _EVERY_S:
                return
            self._sent_at_s = now_s
            self._silent.update(range(self._loops))
        _send('WATCHDOG=1')


def _send(state: str) -> None:
    # The library has a public name for READY=1 alone.
    systemd._sd_notify(False, state.encode())  # noqa: SLF001
