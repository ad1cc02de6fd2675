# SPDX-License-Identifier: Apache-2.0

"""Counts unread bytes of peers, and closes peers with too many.

ZeroMQ receives all frames of a message before it returns the first one, and
many messages before one is read. It limits the size of a frame and the number
of messages, but not the frames of a message or the total memory. So the kernel
is asked for the received bytes of each connection, and each reader counts the
bytes that it read.
"""

import collections
from collections.abc import Callable
import contextlib
import dataclasses
import os
import pathlib

import zmq

from oslo_messaging_zmq.access import sessions

_FRAME_BYTES = 42
"""Largest number of bytes that encryption adds to a frame (RFC 26: 33;
its length: 9)."""
_STATM = pathlib.Path('/proc/self/statm')
_PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')


def resident_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(_STATM.read_bytes().split(None, 2)[1]) * _PAGE_BYTES


@dataclasses.dataclass(slots=True, eq=False)
class _Connection:
    cookie: int
    who: Callable[[], str]
    # Bytes that came and are not unread, besides those that were taken.
    settled: int


class AllConnections:
    """All connections of a driver, incoming and outgoing.

    :param most: largest number of unread bytes of one peer.
    :param look: returns facts about a descriptor; :func:`.sessions.look`.
    :param shut: closes a connection; :func:`.sessions.shut`.
    :param resident: returns the memory of this process, bytes.
    """

    def __init__(
        self,
        most: int,
        look: Callable[[int], sessions.ConnectionFacts | None] = sessions.look,
        shut: Callable[[int, int], bool] = sessions.shut,
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self._most = most
        self._look = look
        self._shut = shut
        self._resident = resident
        self._resident_before = resident()
        self._connections: dict[int, _Connection] = {}
        self._taken: dict[int, int] = {}

    def opened(self, descriptor: int, who: Callable[[], str]) -> None:
        """Record a connection; thread-safe.

        :param who: returns the name of its peer; connections with the same
            name count together.
        """
        found = self._look(descriptor)
        if found is not None:
            taken = self._taken.get(descriptor, 0)
            self._connections[descriptor] = _Connection(
                found.cookie, who, -taken
            )

    def took(self, frame: zmq.Frame) -> None:
        """Count a frame that was read; called by one thread per socket."""
        descriptor = int(frame.get('__fd'))
        taken = self._taken.get(descriptor, 0)
        self._taken[descriptor] = taken + len(frame) + _FRAME_BYTES

    def may_be_much(self) -> bool:
        """Check whether memory grew enough to justify a check of all
        connections.
        """
        return self._resident() - self._resident_before > self._most

    def end(self) -> dict[str, int]:
        """Close all connections of peers with too many unread bytes.

        :returns: number of these bytes, by peer.
        """
        self._resident_before = self._resident()
        waiting: collections.Counter[str] = collections.Counter()
        found = []
        for descriptor, connection in list(self._connections.items()):
            size = self._unread_bytes(descriptor, connection)
            if size is None:
                self._forget(descriptor, connection)
                continue
            who = connection.who()
            waiting[who] += size
            found.append((who, descriptor, connection.cookie))
        ended = {who: n for who, n in waiting.items() if n > self._most}
        for who, descriptor, cookie in found:
            if who in ended:
                # Without a descriptor for it: tried again before long.
                with contextlib.suppress(OSError):
                    self._shut(descriptor, cookie)
        return ended

    def _unread_bytes(
        self, descriptor: int, connection: _Connection
    ) -> int | None:
        """Return the number of unread bytes; ``None`` if the connection
        ended.
        """
        found = self._look(descriptor)
        if found is None or found.cookie != connection.cookie:
            return None
        taken = self._taken.get(descriptor, 0)
        size = found.received - taken - connection.settled
        # What encryption adds was assumed to be more than it is.
        connection.settled += min(size, 0)
        return max(size, 0)

    def _forget(self, descriptor: int, connection: _Connection) -> None:
        if self._connections.get(descriptor) is connection:
            del self._connections[descriptor]
