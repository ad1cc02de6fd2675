# SPDX-License-Identifier: Apache-2.0

"""Native threads, also where eventlet has patched ``threading``.

A driver's input and output must go on while an endpoint blocks. Under
eventlet all patched threads share one native thread, so a blocked endpoint
stops them all. What this module starts is always a real thread, and what it
gives to wait on may be waited on by green and by native code alike.
"""

import _thread
import collections
from collections.abc import Callable
import contextlib
import os
import select
import socket
import sys
import threading
import time
from typing import Any
from typing import Generic
from typing import TypeVar

T = TypeVar('T')

_MODULES = {
    '_thread': _thread,
    'select': select,
    'socket': socket,
    'threading': threading,
    'time': time,
}


def is_patched() -> bool:
    """Whether eventlet has replaced the threads of this process."""
    eventlet = sys.modules.get('eventlet.patcher')
    return eventlet is not None and eventlet.is_monkey_patched('thread')


def original(name: str) -> Any:
    """A module of the standard library as it was before any patching.

    :param name: ``_thread``, ``select``, ``socket``, ``threading`` or
        ``time``.
    """
    module = _MODULES[name]
    if is_patched():
        return sys.modules['eventlet.patcher'].original(name)
    return module


def lock() -> Any:
    """A native lock; hold it only where nothing can block."""
    return original('_thread').allocate_lock()


# Names the threads that start() made; others may be green.
_NATIVE: set[int] = set()


def start(name: str, target: Callable[..., None], *arguments: Any) -> Any:
    """Run something in a native daemon thread.

    :param name: shown by debuggers.
    :param target: what to run.
    :param arguments: passed to it.
    :returns: the thread, with ``join(timeout)`` and ``is_alive()``; green
        code must not join it but wait on a :class:`Waiter` that it sets.
    """
    identity = original('_thread').get_ident

    def run() -> None:
        _NATIVE.add(identity())
        try:
            target(*arguments)
        finally:
            _NATIVE.discard(identity())

    thread = original('threading').Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def is_green() -> bool:
    """Whether the caller must wait by way of eventlet's hub."""
    return is_patched() and original('_thread').get_ident() not in _NATIVE


def readable(descriptor: int, timeout_s: float | None) -> bool:
    """Wait until a descriptor can be read, without stopping green threads.

    :param timeout_s: longest wait in seconds, None for ever.
    :returns: whether it can be read.
    """
    if is_green():
        return _readable_green(descriptor, timeout_s)
    poller = original('select').poll()
    poller.register(descriptor, 1)
    limit = None if timeout_s is None else max(timeout_s, 0) * 1000
    return bool(poller.poll(limit))


def _readable_green(descriptor: int, timeout_s: float | None) -> bool:
    hubs = sys.modules['eventlet'].hubs
    expired = sys.modules['eventlet.timeout'].Timeout
    try:
        hubs.trampoline(descriptor, read=True, timeout=timeout_s)
    except expired:
        return False
    return True


class Waiter:
    """An event that native code sets and green or native code waits for.

    One thread at a time may wait.
    """

    __slots__ = ('_closed', '_descriptor', '_event', '_lock')

    def __init__(self) -> None:
        self._event: Any = None
        self._descriptor = -1
        self._closed = False
        self._lock = lock()
        if is_patched():
            self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self._event = original('threading').Event()

    def set(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        if self._event is not None:
            self._event.set()
            return
        with self._lock:
            if not self._closed:
                os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Forget that it was set."""
        if self._event is not None:
            self._event.clear()
            return
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set.

        :param timeout_s: longest wait in seconds, None for ever.
        :returns: whether it was set.
        """
        if self._event is not None:
            return bool(self._event.wait(timeout_s))
        return readable(self._descriptor, timeout_s)

    def close(self) -> None:
        """Give its descriptor back; later set() calls do nothing."""
        with self._lock:
            if not self._closed and self._descriptor >= 0:
                os.close(self._descriptor)
            self._closed = True


class Mailbox(Generic[T]):
    """A bounded queue from any threads to one green or native thread.

    :param capacity: most items that wait; more are refused.
    """

    __slots__ = ('_capacity', '_items', '_waiter')

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: collections.deque[T] = collections.deque()
        self._waiter = Waiter()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> bool:
        """Add an item.

        :returns: False when the mailbox was full and the item dropped.
        """
        if len(self._items) >= self._capacity:
            return False
        self._items.append(item)
        self._waiter.set()
        return True

    def take(self, limit: int, timeout_s: float | None) -> list[T]:
        """Take the oldest items, waiting for the first.

        :param limit: most items to take.
        :param timeout_s: longest wait in seconds, None for ever; wake()
            ends it too.
        :returns: none when nothing came in time.
        """
        if not self._items:
            self._waiter.wait(timeout_s)
            self._waiter.clear()
        taken: list[T] = []
        while self._items and len(taken) < limit:
            taken.append(self._items.popleft())
        return taken

    def wake(self) -> None:
        """End a wait in take()."""
        self._waiter.set()

    def close(self) -> None:
        """Give the descriptor back; nothing may be taken any more."""
        self._waiter.close()


def call(name: str, target: Callable[[], None]) -> None:
    """Run what may block; green threads go on meanwhile.

    :param name: of the native thread that is used under eventlet.
    :param target: what to run; its errors are lost under eventlet.
    """
    if not is_green():
        target()
        return
    done = Waiter()

    def run() -> None:
        try:
            target()
        finally:
            done.set()

    start(name, run)
    done.wait()
    done.close()
