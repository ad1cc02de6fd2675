# SPDX-License-Identifier: Apache-2.0

"""Unread bytes of peers, and the end of peers that send too much.

ZeroMQ takes in all frames of a message before it shows the first one, and many
messages before one is read. It limits the size of a frame and the number of
messages, but neither the number of frames in a message nor the memory of all.
So the kernel is asked how many bytes have come by a connection, and each
reader counts the bytes that it took.
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
"""Bytes that encryption adds to a frame, at most (RFC 26: 33; its length:
9)."""
_STATM = pathlib.Path('/proc/self/statm')
_PAGE_BYTES = os.sysconf('SC_PAGE_SIZE')


def resident_bytes() -> int:
    """Memory that this process has."""
    return int(_STATM.read_bytes().split(None, 2)[1]) * _PAGE_BYTES


@dataclasses.dataclass(slots=True, eq=False)
class _Connection:
    cookie: int
    who: Callable[[], str]
    # Bytes that came and are not unread, besides those that were taken.
    settled: int


class AllConnections:
    """All connections of a driver, accepted and made.

    :param most: bytes of one peer that may wait to be read.
    :param look: asks about a descriptor; :func:`.sessions.look`.
    :param shut: ends a connection; :func:`.sessions.shut`.
    :param resident: memory of this process, bytes.
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
        """Note a connection. Any thread's.

        :param who: names its peer; connections with the same name count
            together.
        """
        found = self._look(descriptor)
        if found is not None:
            taken = self._taken.get(descriptor, 0)
            self._connections[descriptor] = _Connection(
                found.cookie, who, -taken
            )

    def took(self, frame: zmq.Frame) -> None:
        """Note that a frame was read; by one thread for each socket."""
        descriptor = int(frame.get('__fd'))
        taken = self._taken.get(descriptor, 0)
        self._taken[descriptor] = taken + len(frame) + _FRAME_BYTES

    def may_be_much(self) -> bool:
        """Whether memory has grown so much that a look is worth its time."""
        return self._resident() - self._resident_before > self._most

    def end(self) -> dict[str, int]:
        """End all connections of peers with too many unread bytes.

        :returns: number of these bytes, by peer.
        """
        self._resident_before = self._resident()
        waiting: collections.Counter[str] = collections.Counter()
        found = []
        for descriptor, connection in list(self._connections.items()):
            size = self._waiting(descriptor, connection)
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

    def _waiting(self, descriptor: int, connection: _Connection) -> int | None:
        """Bytes that are unread; None if the connection has ended."""
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
