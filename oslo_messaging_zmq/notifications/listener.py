# SPDX-License-Identifier: Apache-2.0

"""A listener of notifications: oslo.messaging's contract on one consumer.

Its thread lives from start() to cleanup(): after stop() it makes no calls, but
goes on saying that the consumer lives, so that no other one takes over the
entries that endpoints still work on.
"""

from collections.abc import Callable
import contextlib
import logging
import threading
import time
from typing import Any

from oslo_messaging._drivers import base

from oslo_messaging_zmq.notifications import consumer as consumer_module
from oslo_messaging_zmq.redis import client

LOG = logging.getLogger(__name__)

STOP_PATIENCE_S = 5.0
"""How long stop() and cleanup() wait for an answer of Redis at most."""

Incomings = list['IncomingNotification']


class IncomingNotification(base.IncomingMessage):  # type: ignore[misc]
    """One notification that an endpoint works on."""

    def __init__(
        self,
        consumer: consumer_module.Consumer,
        taken: consumer_module.Taken,
    ) -> None:
        super().__init__(taken.ctxt, taken.message, taken.entry.id)
        self._consumer = consumer
        self._taken = taken

    def acknowledge(self) -> None:
        """Say that this pool is done with it; never raises."""
        self._consumer.acknowledge(self._taken)

    def requeue(self) -> None:
        """Put it into this pool again, after what waits; never raises."""
        self._consumer.requeue(self._taken)


class NotificationListener(base.Listener):  # type: ignore[misc]
    """Passes notifications to a callback, in batches.

    :param consumer: what talks to Redis; the listener closes it.
    :param batch_size: notifications per call of the callback; None for
        whatever ``batch_timeout`` gathers, or one by one without it.
    :param batch_timeout: how long the first of a batch waits for the others,
        in seconds; None for ever.
    """

    def __init__(
        self,
        consumer: consumer_module.Consumer,
        batch_size: int | None,
        batch_timeout: float | None,
    ) -> None:
        if not batch_size:
            batch_size = 1 if batch_timeout is None else consumer.most_open
        super().__init__(min(batch_size, consumer.most_open), batch_timeout)
        self._consumer = consumer
        self._waiting: Incomings = []
        self._since_s = 0.0
        self._gate = threading.Lock()
        self._is_stopping = threading.Event()
        self._is_quiet = threading.Event()
        self._is_leaving = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, on_incoming_callback: Callable[[Incomings], Any]) -> None:
        """Begin to call back."""
        super().start(on_incoming_callback)
        self._thread = threading.Thread(
            target=self._run, name='zmq-notifications', daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop calling; entries that were taken already are given first."""
        self._is_stopping.set()
        self._wait_for(self._is_quiet)
        with self._gate:
            super().stop()

    def cleanup(self) -> None:
        """Leave the pool; entries that are still open go to the others."""
        self._is_stopping.set()
        self._is_leaving.set()
        if self._thread is not None:
            self._wait_for(None)
        self._consumer.close()

    def _wait_for(self, event: threading.Event | None) -> None:
        if self._thread is None:
            return
        end_s = time.monotonic() + STOP_PATIENCE_S
        while time.monotonic() < end_s and self._thread.is_alive():
            self._consumer.interrupt()
            if event is None:
                self._thread.join(0.05)
            elif event.wait(0.05):
                return

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            self._guarded(self._turn)
        self._deliver(everything=True)
        self._is_quiet.set()
        while not self._is_leaving.is_set():
            self._guarded(self._linger)
        with contextlib.suppress(*client.FAILURES):
            self._consumer.leave()

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            if not isinstance(error, client.FAILURES):
                LOG.exception('Unexpected failure; trying again')
            delay_s = self._consumer.failed(error)
            self._deliver(everything=False)
            pause = self._is_stopping
            (self._is_leaving if pause.is_set() else pause).wait(delay_s)

    def _turn(self) -> None:
        wanted = self.batch_size - len(self._waiting)
        for taken in self._consumer.take(wanted, self._patience_s()):
            if not self._waiting:
                self._since_s = time.monotonic()
            self._waiting.append(IncomingNotification(self._consumer, taken))
        self._deliver(everything=False)

    def _linger(self) -> None:
        self._consumer.upkeep()
        self._is_leaving.wait(self._consumer.PATIENCE_S)

    def _patience_s(self) -> float:
        if not self._waiting or self.batch_timeout is None:
            return self._consumer.PATIENCE_S
        left_s: float = self._since_s + self.batch_timeout - time.monotonic()
        return min(max(left_s, 0.0), self._consumer.PATIENCE_S)

    def _deliver(self, *, everything: bool) -> None:
        while len(self._waiting) >= self.batch_size:
            self._give(self.batch_size)
        if self._waiting and (everything or self._is_late()):
            self._give(len(self._waiting))

    def _is_late(self) -> bool:
        if self.batch_timeout is None:
            return False
        return bool(time.monotonic() >= self._since_s + self.batch_timeout)

    def _give(self, count: int) -> None:
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._since_s = time.monotonic()
        with self._gate:
            if self.on_incoming_callback is None:
                return
            try:
                self.on_incoming_callback(batch)
            except Exception:  # the executor refused: others shall try
                LOG.exception('Could not hand over %d notifications', count)
                return
