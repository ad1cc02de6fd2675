# SPDX-License-Identifier: Apache-2.0

"""Gives incoming messages to a server's callback.

Without eventlet the listener's own thread calls it. Under eventlet a green
thread does, as the callback's locks are green: the listener's thread goes on
reading while that one is held up.
"""

from collections.abc import Callable
import threading

from oslo_messaging_zmq import native_log
from oslo_messaging_zmq import threads
from oslo_messaging_zmq.rpc import incoming

LOG = native_log.Log(__name__)

Batch = list[incoming.Incoming]
Callback = Callable[[Batch], None]

_BATCH = 64


class Straight:
    """Calls back at once.

    :param callback: the server's.
    """

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._is_stopped = False

    def put(self, batch: Batch) -> None:
        """Have messages processed."""
        if self._is_stopped:
            _refuse(batch)
            return
        try:
            self._callback(batch)
        except Exception as error:  # noqa: BLE001 - others wait for us
            LOG.error('A server did not take a message: %r', error)

    def stop(self) -> None:
        """Call back no more."""
        self._is_stopped = True


class ByGreenThread(Straight):
    """Calls back in a green thread.

    :param callback: the server's.
    :param capacity: more messages are never in work.
    """

    def __init__(self, callback: Callback, capacity: int) -> None:
        super().__init__(callback)
        self._batches: threads.Mailbox[Batch] = threads.Mailbox(capacity)
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, batch: Batch) -> None:
        """Have messages processed soon."""
        if self._is_stopped or not self._batches.put(batch):
            _refuse(batch)

    def stop(self) -> None:
        """Call back no more."""
        super().stop()
        self._batches.wake()

    def _run(self) -> None:
        while not self._is_stopped:
            for batch in self._batches.take(_BATCH, None):
                super().put(batch)
        for batch in self._batches.take(len(self._batches) + 1, 0.0):
            _refuse(batch)
        self._batches.close()


def start(callback: Callback, capacity: int) -> Straight:
    """Make what gives messages to a callback.

    :param capacity: more messages are never in work.
    """
    if threads.is_patched():
        return ByGreenThread(callback, capacity)
    return Straight(callback)


def _refuse(batch: Batch) -> None:
    for message in batch:
        message.refuse()
