# SPDX-License-Identifier: Apache-2.0

"""Tasks from any thread for the thread that owns sockets.

That thread waits for its sockets and for a descriptor that a task makes
readable. While it is working, it need not be woken.
"""

import collections
from collections.abc import Callable
import contextlib
import logging
import os
import threading
import time

LOG = logging.getLogger(__name__)

_PAUSE_S = 0.1

Task = Callable[[], None]


class TaskQueue:
    """Queue of the next tasks of one thread."""

    __slots__ = (
        '_asleep',
        '_closed',
        '_is_wanted',
        '_lock',
        '_queue',
        'descriptor',
    )

    def __init__(self) -> None:
        self._queue: collections.deque[Task] = collections.deque()
        self._asleep = False
        self._closed = False
        self._is_wanted = False
        self._lock = threading.Lock()
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, task: Task) -> None:
        """Queue a function for the thread."""
        self._queue.append(task)
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
        """Check, just before a wait, whether the queue is empty."""
        # In this order: who adds a task now finds that a wake is needed.
        self._asleep = True
        return not self._queue

    def heard(self) -> None:
        """Clear the readable state of the descriptor."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)

    def work(self) -> None:
        """Run all queued tasks; only the owning thread calls it."""
        self._asleep = False
        for _ in range(len(self._queue)):
            self._queue.popleft()()

    def close(self) -> None:
        """Close the descriptor; later tasks are never run."""
        with self._lock:
            self._closed = True
            os.close(self.descriptor)
        self._queue.clear()


def repeat(turn: Task, is_over: Callable[[], bool], name: str) -> None:
    """Call a function until the end, also after errors.

    :param name: of the thread, for the log.
    """
    while not is_over():
        try:
            turn()
        except Exception as error:  # noqa: BLE001 - others wait for us
            LOG.error('%s: unexpected error; it continues: %r', name, error)
            time.sleep(_PAUSE_S)
