# SPDX-License-Identifier: Apache-2.0

"""A listener of notifications: oslo.messaging's interface for one consumer.

Its thread runs from start() to cleanup(). After stop() it makes no calls, but
renews the consumer's lease, so that no other consumer claims entries that
endpoints still process.
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
"""Longest wait of stop() and cleanup() for Redis, in seconds."""

Incomings = list['IncomingNotification']


class IncomingNotification(base.IncomingMessage):  # type: ignore[misc]
    """One notification that an endpoint processes."""

    def __init__(
        self,
        consumer: consumer_module.Consumer,
        taken: consumer_module.Taken,
    ) -> None:
        super().__init__(taken.ctxt, taken.message, taken.entry.id)
        self._consumer = consumer
        self._taken = taken

    def acknowledge(self) -> None:
        """Acknowledge the notification for this pool; never raises."""
        self._consumer.acknowledge(self._taken)

    def requeue(self) -> None:
        """Append the notification to this pool again; never raises."""
        self._consumer.requeue(self._taken)


class NotificationListener(base.Listener):  # type: ignore[misc]
    """Passes notifications to a callback, in batches.

    :param consumer: reads from Redis; the listener closes it.
    :param batch_size: notifications per call of the callback; ``None`` for as
        many as arrive within ``batch_timeout``, or one without it.
    :param batch_timeout: longest wait of a batch's first notification in
        seconds; ``None`` for ever.
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
        """Start to call the callback."""
        super().start(on_incoming_callback)
        self._thread = threading.Thread(
            target=self._run, name='zmq-notifications', daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the calls, after the notifications that were read already."""
        self._is_stopping.set()
        self._wait_for(self._is_quiet)
        with self._gate:
            super().stop()

    def cleanup(self) -> None:
        """Leave the pool; its unacknowledged entries are left to other
        consumers.
        """
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
            self._run_step(self._read_batch)
        self._deliver(everything=True)
        self._is_quiet.set()
        while not self._is_leaving.is_set():
            self._run_step(self._maintain)
        with contextlib.suppress(*client.FAILURES):
            self._consumer.leave()

    def _run_step(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            if not isinstance(error, client.FAILURES):
                LOG.exception('Unexpected failure; trying again')
            delay_s = self._consumer.failed(error)
            self._deliver(everything=False)
            pause = self._is_stopping
            (self._is_leaving if pause.is_set() else pause).wait(delay_s)

    def _read_batch(self) -> None:
        wanted = self.batch_size - len(self._waiting)
        for taken in self._consumer.take(wanted, self._patience_s()):
            if not self._waiting:
                self._since_s = time.monotonic()
            self._waiting.append(IncomingNotification(self._consumer, taken))
        self._deliver(everything=False)

    def _maintain(self) -> None:
        self._consumer.upkeep()
        self._is_leaving.wait(self._consumer.PATIENCE_S)

    def _patience_s(self) -> float:
        if not self._waiting or self.batch_timeout is None:
            return self._consumer.PATIENCE_S
        left_s: float = self._since_s + self.batch_timeout - time.monotonic()
        return min(max(left_s, 0.0), self._consumer.PATIENCE_S)

    def _deliver(self, *, everything: bool) -> None:
        while len(self._waiting) >= self.batch_size:
            self._call_back(self.batch_size)
        if self._waiting and (everything or self._is_late()):
            self._call_back(len(self._waiting))

    def _is_late(self) -> bool:
        if self.batch_timeout is None:
            return False
        return bool(time.monotonic() >= self._since_s + self.batch_timeout)

    def _call_back(self, count: int) -> None:
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
