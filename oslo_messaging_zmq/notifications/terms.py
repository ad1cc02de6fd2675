# SPDX-License-Identifier: Apache-2.0

"""What all parts of the notifications have in common."""

from collections.abc import Mapping
import dataclasses
import os
import threading
from typing import Any
import weakref

from oslo_messaging_zmq.notifications import store
from oslo_messaging_zmq.redis import url


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What all listeners and senders of one transport have in common.

    :param settings: where Redis is.
    :param prefix: with which every key in Redis begins.
    :param timeout_s: longest wait for one answer of Redis, seconds.
    :param lease_s: a consumer that Redis did not hear of for so long is
        dead, seconds.
    :param most_open: how many notifications one listener takes at most that
        it has not acknowledged yet.
    :param max_message_size: longest notification, bytes.
    """

    settings: url.RedisSettings
    prefix: str
    timeout_s: float
    lease_s: float
    most_open: int
    max_message_size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A notification that is open."""

    entry: store.Entry
    ctxt: dict[str, Any]
    message: dict[str, Any]


class Tally:
    """Counters that any thread may increase, of a forked process too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        _EVERY.add(self)

    def after_fork(self) -> None:
        """Drop a lock that a thread may hold which this process lacks."""
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> None:
        """Increase one counter."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + count

    def read(self) -> Mapping[str, int]:
        """All counters that were increased ever."""
        with self._lock:
            return dict(self._counts)


_EVERY: weakref.WeakSet[Tally] = weakref.WeakSet()


def _after_fork() -> None:
    for tally in list(_EVERY):
        tally.after_fork()


os.register_at_fork(after_in_child=_after_fork)
