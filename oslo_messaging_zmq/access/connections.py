# SPDX-License-Identifier: Apache-2.0

"""TCP connections that belong to ZeroMQ, seen from outside of it.

ZeroMQ tells their descriptors and may close them at any time, after which a
number can mean something else. The kernel's socket cookie says what it means.
"""

import contextlib
import dataclasses
import errno
import os
import struct
from typing import Any

from oslo_messaging_zmq import threads

_SO_COOKIE = 57  # asm-generic/socket.h, Linux 4.12; unknown to Python
_INFO_BYTES = 256
_SENT_AND_AGAIN = struct.Struct('=QQ')
_SENT_AT = 200  # tcpi_bytes_sent and tcpi_bytes_retrans, Linux 4.19


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What the kernel says about a connection.

    :param cookie: never the same for two sockets.
    :param address: of the peer, without port.
    :param sent: bytes sent to the peer; ``None`` if the kernel is too old.
    """

    cookie: int
    address: str
    port: int
    sent: int | None


def look(descriptor: int) -> Look | None:
    """Ask the kernel about a descriptor; ``None`` if it is not connected."""
    socket = threads.original('socket')
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        return None
    try:
        found = _look(connection)
        # ZeroMQ may close it at any time, and the number mean another one.
        return found if _look(connection).cookie == found.cookie else None
    except OSError:
        return None
    finally:
        connection.detach()


def _look(connection: Any) -> Look:
    # Not of the patched module: that would wait in eventlet's hub.
    socket = threads.original('socket')
    cookie = connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)
    address, port = connection.getpeername()[:2]
    state = connection.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES
    )
    sent = None
    if len(state) >= _SENT_AT + _SENT_AND_AGAIN.size:
        all_sent, again = _SENT_AND_AGAIN.unpack_from(state, _SENT_AT)
        sent = all_sent - again
    return Look(int.from_bytes(cookie, 'little'), address, port, sent)


def shut(descriptor: int, cookie: int) -> bool:
    """End a connection, if the descriptor still means that one.

    :returns: whether it was ended now; False if it had ended before.
    :raises OSError: no descriptor is left for the attempt.
    """
    socket = threads.original('socket')
    try:
        # A duplicate cannot come to mean something else while it is open.
        duplicate = os.dup(descriptor)
    except OSError as error:
        if error.errno == errno.EBADF:
            return False
        raise
    try:
        connection = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return False
    with connection, contextlib.suppress(OSError):
        if _look(connection).cookie == cookie:
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False
