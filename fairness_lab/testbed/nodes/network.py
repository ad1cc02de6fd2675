# SPDX-License-Identifier: Apache-2.0

"""Addresses of a node's own network, and sockets in its namespace."""

import ctypes
import ipaddress
import os
import pathlib
import socket
import threading

SEGMENTS = 4
"""Networks of a node; a guest's n-th interface is in the n-th of them."""

BRIDGE = 'br0'
SINK_PORT, SOURCE_PORT = 9, 19

FAR_ADDRESS = '10.78.255.254'
FAR_ADDRESS_SIX = 'fd78::ffff:1'
"""Of the far end of the nodes' uplinks, in their first network."""

_CLONE_NEWNET = 0x40000000


def bridge_addresses(index: int) -> list[str]:
    """Give the addresses of a node's bridge, with prefix lengths.

    :param index: number of the node in its run, 0 to 30.
    """
    return [
        address
        for segment in range(SEGMENTS)
        for address in addresses(index, segment, 0)
    ]


def far_addresses() -> list[str]:
    """Give the addresses of the far end, with prefix lengths."""
    return [f'{FAR_ADDRESS}/16', f'{FAR_ADDRESS_SIX}/64']


def addresses(index: int, segment: int, number: int) -> tuple[str, str]:
    """Give the IPv4 and the IPv6 address of one interface.

    :param index: number of the node in its run, 0 to 30.
    :param segment: 0 to :data:`SEGMENTS` - 1.
    :param number: of the guest on its node, from 1 to 2000; 0 is the node.
    """
    if not 0 <= index < 31 or not 0 <= number <= 2000:
        raise ValueError(f'no address for guest {number} of node {index}')
    four = ipaddress.IPv4Address(f'10.{78 + segment}.0.1')
    six = ipaddress.IPv6Address(f'fd{78 + segment}::1')
    offset = index * 2048 + number
    return f'{four + offset}/16', f'{six + offset}/64'


def open_socket(
    pid: int, family: socket.AddressFamily, kind: socket.SocketKind
) -> socket.socket:
    """Open a socket in the network namespace of another process.

    A thread of its own enters the namespace and ends there, so that the
    caller never leaves its own.

    :param pid: a process of that namespace.
    :raises OSError: if the namespace cannot be entered.
    """
    opened: list[socket.socket | OSError] = []
    thread = threading.Thread(
        target=_open_there, args=(pid, family, kind, opened)
    )
    thread.start()
    thread.join()
    if isinstance(opened[0], OSError):
        raise opened[0]
    return opened[0]


def _open_there(
    pid: int,
    family: socket.AddressFamily,
    kind: socket.SocketKind,
    opened: list[socket.socket | OSError],
) -> None:
    try:
        _enter(pid)
        opened.append(socket.socket(family, kind))
    except OSError as error:
        opened.append(error)


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with pathlib.Path(f'/proc/{pid}/ns/net').open('rb') as there:
        if libc.setns(there.fileno(), _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def open_sink(pid: int) -> socket.socket:
    """Open a UDP port that swallows what comes, in another namespace.

    Nobody reads it: what does not fit into its buffer the kernel drops,
    which costs nothing and answers nothing.

    :param pid: a process of that namespace.
    :raises OSError: if it cannot be opened.
    """
    sink = open_socket(pid, socket.AF_INET6, socket.SOCK_DGRAM)
    sink.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sink.bind(('::', SINK_PORT))
    return sink
