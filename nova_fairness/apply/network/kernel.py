# SPDX-License-Identifier: Apache-2.0

"""Reads traffic control from the kernel, by netlink and without root.

The kernel gives exact numbers and costs no process; what the tool ``tc``
prints is rounded, and is JSON in some of its versions only.
"""

from collections.abc import Iterator
import os
import socket
import struct
import types

from nova_fairness import exception
from nova_fairness.apply import network_messages
from nova_fairness.apply.network import state

_GET_QDISC, _GET_CLASS, _GET_FILTER = 38, 42, 46
_ERROR, _DONE = 2, 3
_REQUEST_DUMP = 0x301
_HEADER = struct.Struct('=IHHII')
_TCMSG = struct.Struct('=BxxxiIII')
_BUFFER = 1 << 18
_BLOCK_MAGIC = 0xFFFFFFFF
_ROOT_PARENT = state.ROOT_HANDLE << 16
_INGRESS_PARENT = 0xFFFF0000
_PATIENCE_S = 5.0


class Reader:
    """A connection to the kernel; close it, or use it as a context.

    :raises ControlUnavailable: if there is no netlink.
    """

    def __init__(self) -> None:
        try:
            self._socket = socket.socket(
                socket.AF_NETLINK,
                socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                socket.NETLINK_ROUTE,
            )
            self._socket.settimeout(_PATIENCE_S)
            self._socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20
            )
        except OSError as error:
            raise exception.ControlUnavailable(
                f'the kernel cannot be asked for traffic control: {error}'
            ) from error
        self._sequence = 0

    def __enter__(self) -> 'Reader':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._socket.close()

    def read(self) -> state.Kernel:
        """Read everything that concerns us.

        :raises ControlUnavailable: if the kernel does not answer.
        """
        names = dict(socket.if_nameindex())
        try:
            qdiscs = self._qdiscs(names)
            return state.Kernel(
                {name: number for number, name in names.items()},
                qdiscs,
                self._trees(names, qdiscs),
                self._redirects(names, qdiscs),
            )
        except OSError as error:
            raise exception.ControlUnavailable(
                f'traffic control cannot be read: {error}'
            ) from error

    def _qdiscs(
        self, names: dict[int, str]
    ) -> dict[str, tuple[state.Qdisc, ...]]:
        found: dict[str, tuple[state.Qdisc, ...]] = {}
        for message in self._dump(_GET_QDISC, 0, 0):
            number, qdisc = network_messages.qdisc(message)
            if name := names.get(number):
                found[name] = (*found.get(name, ()), qdisc)
        return found

    def _trees(
        self,
        names: dict[int, str],
        qdiscs: dict[str, tuple[state.Qdisc, ...]],
    ) -> dict[str, state.Tree]:
        return {
            name: self._tree(number)
            for number, name in names.items()
            if any(
                state.is_our_root(item)
                for item in qdiscs.get(name, ())
                if item.parent == 'root'
            )
        }

    def _tree(self, number: int) -> state.Tree:
        classes = dict(
            network_messages.klass(message)
            for message in self._dump(_GET_CLASS, number, 0)
        )
        return network_messages.tree(
            classes, self._dump(_GET_FILTER, number, _ROOT_PARENT)
        )

    def _redirects(
        self,
        names: dict[int, str],
        qdiscs: dict[str, tuple[state.Qdisc, ...]],
    ) -> dict[str | int, tuple[str, int]]:
        found: dict[str | int, tuple[str, int]] = {}
        for number, name in names.items():
            kinds = {item.kind for item in qdiscs.get(name, ())}
            if 'ingress' in kinds:
                messages = self._dump(_GET_FILTER, number, _INGRESS_PARENT)
                found[name] = network_messages.redirect(messages, names)
        used = {b for many in qdiscs.values() for q in many for b in q.blocks}
        for block in used & set(state.BLOCKS):
            messages = self._dump(_GET_FILTER, _BLOCK_MAGIC, block)
            found[block] = network_messages.redirect(messages, names)
        return found

    def _dump(self, kind: int, number: int, parent: int) -> Iterator[bytes]:
        """Ask for all objects of a kind, each a message without header."""
        self._sequence += 1
        signed = number - (1 << 32) if number >> 31 else number
        body = _TCMSG.pack(socket.AF_UNSPEC, signed, 0, parent, 0)
        length = _HEADER.size + len(body)
        header = _HEADER.pack(length, kind, _REQUEST_DUMP, self._sequence, 0)
        self._socket.send(header + body)
        while True:
            told = self._socket.recv(_BUFFER)
            at = 0
            while at < len(told):
                size, found, _, sequence, _ = _HEADER.unpack_from(told, at)
                message = told[at + _HEADER.size : at + size]
                at += (size + 3) & ~3
                if sequence != self._sequence:
                    continue
                if found == _DONE:
                    return
                if found == _ERROR:
                    _raise(message)
                    return
                yield message


def _raise(message: bytes) -> None:
    """Raise what the kernel answered, unless a device just went."""
    number = -struct.unpack_from('=i', message)[0]
    if number and number not in network_messages.GONE:
        raise OSError(number, os.strerror(number))
