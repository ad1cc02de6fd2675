# SPDX-License-Identifier: Apache-2.0

"""Orders from any thread to the one native thread that owns sockets.

That thread waits for its sockets and for a descriptor that an order makes
readable. While it works anyway nobody needs to wake it.
"""

import collections
from collections.abc import Callable
import contextlib
import os

from oslo_messaging_zmq import threads

Order = Callable[[], None]


class Orders:
    """What one thread is to do next."""

    __slots__ = (
        '_asleep',
        '_closed',
        '_is_wanted',
        '_lock',
        '_queue',
        'descriptor',
    )

    def __init__(self) -> None:
        self._queue: collections.deque[Order] = collections.deque()
        self._asleep = False
        self._closed = False
        self._is_wanted = False
        self._lock = threads.lock()
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, order: Order) -> None:
        """Have something done by the thread, soon."""
        self._queue.append(order)
        if self._asleep:
            self._wake()

    def _wake(self) -> None:
        # Finalisers come here too, and must never wait for a lock that the
        # thread they interrupt may hold. Who holds it looks again after
        # giving it back, and so does this for others.
        self._is_wanted = True
        while self._is_wanted and self._lock.acquire(blocking=False):
            try:
                self._is_wanted = False
                if not self._closed:
                    os.eventfd_write(self.descriptor, 1)
            finally:
                self._lock.release()

    def may_sleep(self) -> bool:
        """Say that the thread is about to wait.

        :returns: False if there is something to do first.
        """
        # In this order: who adds an order now finds that a wake is needed.
        self._asleep = True
        return not self._queue

    def heard(self) -> None:
        """Note that the descriptor was readable."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)

    def work(self) -> None:
        """Do what was ordered. Only the owning thread calls it."""
        self._asleep = False
        for _ in range(len(self._queue)):
            self._queue.popleft()()

    def close(self) -> None:
        """Give the descriptor back; what is ordered later is never done."""
        with self._lock:
            self._closed = True
            os.close(self.descriptor)
        self._queue.clear()
