# SPDX-License-Identifier: Apache-2.0

"""Detection of a cluster service that is down, so that no request waits for
it.
"""

from collections.abc import Callable
import contextlib
import threading
import time

from oslo_log import log as logging

from nova_fairness import exception

LOG = logging.getLogger(__name__)

AWAY = 'builds pass unheld: the cluster service shows no life for %.0f s'
BACK = 'builds are held again: the cluster service is back'

_LOOKS_PER_PATIENCE = 10


class Lookout:
    """Observes a number that grows while the service runs.

    :param pulse: returns the number; it may block, or raise an error of the
        store: both are no sign of life.
    :param patience_s: seconds after which the service counts as down.
    :param stopped: event that ends the thread.
    :param clock: returns seconds that never decrease.
    :ivar name: name of the thread.
    """

    name = 'lookout'

    def __init__(
        self,
        pulse: Callable[[], int],
        patience_s: float,
        stopped: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pulse = pulse
        self._patience_s = patience_s
        self._stopped = stopped
        self._clock = clock
        self._lock = threading.Lock()
        self._known: int | None = None
        self._known_at_s = clock()
        self._was_away = False

    def run(self) -> None:
        """Read the number repeatedly until stopped."""
        while not self._stopped.wait(self._patience_s / _LOOKS_PER_PATIENCE):
            self.look()

    def look(self) -> None:
        """Read the number once."""
        number = self._known
        with contextlib.suppress(exception.StoreError):
            number = self._pulse()
        with self._lock:
            # The first number may be an old one, and is no sign of life.
            if number != self._known and self._known is not None:
                self._known_at_s = self._clock()
            self._known = number
        self.is_away()

    def is_away(self) -> bool:
        """Return whether the service is down; a change is logged."""
        with self._lock:
            silent_s = self._clock() - self._known_at_s
            away = silent_s > self._patience_s
            if away != self._was_away:
                LOG.warning(*((AWAY, silent_s) if away else (BACK,)))
            self._was_away = away
        return away
