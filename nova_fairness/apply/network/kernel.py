# SPDX-License-Identifier: Apache-2.0

"""Reads traffic control from the kernel, by netlink and without root.

The kernel gives exact numbers and costs no process. The output of the tool
``tc`` is rounded, and is JSON in some of its versions only.

Formats: ``linux/rtnetlink.h``, ``linux/pkt_sched.h``, ``linux/pkt_cls.h``. A
round reads a few messages per VM, so attributes are looked for by offset, and
nothing is copied that is not asked for.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import errno
import os
import socket
import struct
import types

from nova_fairness import exception
from nova_fairness.apply.network import state

_GONE = frozenset((errno.ENODEV, errno.ENOENT, errno.EINVAL))
"""Errors of the kernel for a device or qdisc that has just gone."""

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

_ATTRIBUTE = struct.Struct('=HH')
_U32 = struct.Struct('=I')
_U64 = struct.Struct('=Q')
_NESTED = 0x3FFF

_KIND, _OPTIONS = 1, 2
_INGRESS_BLOCK, _EGRESS_BLOCK = 13, 14
_HTB_PARMS, _HTB_RATE64, _HTB_CEIL64 = 1, 6, 7
_HTB_SPEC = struct.Struct('=8xI8xI8xI')
"""Rate, ceil and quantum of ``struct tc_htb_opt``."""

_U32_CLASSID, _U32_LINK, _U32_SEL, _U32_ACT, _U32_INDEV = 1, 3, 5, 7, 8
_TWO_KEYS = struct.Struct('=2xB13x4s4si4x4s4si4x')
"""``struct tc_u32_sel`` with two keys: their number; mask, value, offset."""

_FULL, _LOW, _HIGH = b'\xff' * 4, b'\0\0\xff\xff', b'\xff\xff\0\0'
_ACT_KIND, _ACT_OPTIONS, _MIRRED_PARMS = 1, 2, 2
_MIRRED_IFINDEX = 24
_PARENTS = {0xFFFFFFFF: 'root', 0xFFFFFFF1: 'ingress'}

Span = tuple[int, int]
"""Begin and end of something within a message."""

_NOTHING = 0, 0


def _find(message: bytes, span: Span, wanted: int) -> Span:
    """Find the content of an attribute; an empty span if it is not there."""
    at, end = span
    while at + 4 <= end:
        size, kind = _ATTRIBUTE.unpack_from(message, at)
        if size < 4:
            break
        if kind & _NESTED == wanted:
            return at + 4, min(at + size, end)
        at += (size + 3) & ~3
    return _NOTHING


def _whole(message: bytes) -> Span:
    return _TCMSG.size, len(message)


def _number(message: bytes, span: Span, at: int = 0) -> int:
    """Read a number of 32 bits; 0 if there is none."""
    begin, end = span
    if begin + at + 4 > end:
        return 0
    return int(_U32.unpack_from(message, begin + at)[0])


def _text(message: bytes, span: Span) -> str:
    return message[slice(*span)].rstrip(b'\0').decode('ascii', 'replace')


def qdisc_of(message: bytes) -> tuple[int, state.Qdisc]:
    """A qdisc.

    :returns: number of its interface, and what it is.
    """
    _, number, handle, parent, _ = _TCMSG.unpack_from(message)
    whole = _whole(message)
    kind = _text(message, _find(message, whole, _KIND))
    incoming = outgoing = 0
    if kind == 'clsact':
        incoming = _number(message, _find(message, whole, _INGRESS_BLOCK))
        outgoing = _number(message, _find(message, whole, _EGRESS_BLOCK))
    where = _PARENTS.get(parent, 'other')
    return number, state.Qdisc(kind, handle >> 16, where, (incoming, outgoing))


def class_of(message: bytes) -> tuple[int, state.Class]:
    """A class of a hierarchical token bucket.

    :returns: its minor number, and what it is; zeros if it is of another
        kind.
    """
    minor = _TCMSG.unpack_from(message)[2] & 0xFFFF
    options = _find(message, _whole(message), _OPTIONS)
    begin, end = _find(message, options, _HTB_PARMS)
    if end - begin < _HTB_SPEC.size:
        return minor, state.Class(0, 0, 0)
    rate, ceil, quantum = _HTB_SPEC.unpack_from(message, begin)
    if ceil == 0xFFFFFFFF:
        # What does not fit has an attribute of its own.
        rate = _wide(message, _find(message, options, _HTB_RATE64), rate)
        ceil = _wide(message, _find(message, options, _HTB_CEIL64), ceil)
    return minor, state.Class(rate, ceil, quantum)


def _wide(message: bytes, span: Span, narrow: int) -> int:
    begin, end = span
    if end - begin < _U64.size:
        return narrow
    return int(_U64.unpack_from(message, begin)[0])


def _filters(
    messages: Iterable[bytes],
) -> Iterator[tuple[int, int, bytes, Span]]:
    """Preference, handle, message and options of each filter.

    The kernel also tells of each preference without a handle; that is none.
    """
    for message in messages:
        _, _, handle, _, told = _TCMSG.unpack_from(message)
        if handle:
            options = _find(message, _whole(message), _OPTIONS)
            yield told >> 16, handle, message, options


def tree_of(
    classes: Mapping[int, state.Class], messages: Iterable[bytes]
) -> state.ClassTree:
    """A tree, put together.

    :param classes: by minor number.
    :param messages: its filters.
    """
    filters: dict[state.FilterHandle, state.MacFilter] = {}
    has_table, foreign = False, 0
    for preference, handle, message, options in _filters(messages):
        number = handle & 0xFFF
        if preference != state.PREFERENCE:
            foreign += 1
        elif handle >> 20 == state.TABLE and number:
            key = handle >> 12 & 0xFF, number
            filters[key] = _mac_filter(message, options)
        elif number:
            linked = _number(message, _find(message, options, _U32_LINK))
            has_table |= linked >> 20 == state.TABLE
    return state.ClassTree(classes, filters, has_table, foreign)


def _mac_filter(message: bytes, options: Span) -> state.MacFilter:
    """Read which address a filter matches; empty if it is none of ours."""
    classid = _number(message, _find(message, options, _U32_CLASSID))
    begin, end = _find(message, options, _U32_SEL)
    mac = ''
    if end - begin == _TWO_KEYS.size:
        mac = _mac(*_TWO_KEYS.unpack_from(message, begin))
    tap = _text(message, _find(message, options, _U32_INDEV))
    return state.MacFilter(mac, classid & 0xFFFF, tap)


def _mac(
    count: int,
    mask: bytes,
    value: bytes,
    offset: int,
    next_mask: bytes,
    next_value: bytes,
    next_offset: int,
) -> str:
    """The address that two keys make, as ``tc`` forms them."""
    where = count, mask, offset, next_mask, next_offset
    if where == (2, _FULL, -8, _HIGH, -4):
        return (value + next_value[:2]).hex(':')
    if where == (2, _LOW, -16, _FULL, -12):
        return (value[2:] + next_value).hex(':')
    return ''


def redirect_of(
    messages: Iterable[bytes], names: Mapping[int, str]
) -> tuple[str, int]:
    """Where everything is sent.

    :param messages: filters of what comes into a device.
    :param names: of interfaces.
    :returns: name of the interface, empty if our filter is not there; and
        how many filters are not ours.
    """
    target, foreign = '', 0
    for preference, handle, message, options in _filters(messages):
        actions = _find(message, options, _U32_ACT)
        if preference != state.PREFERENCE:
            foreign += 1
        elif handle & 0xFFF and actions != _NOTHING:
            target = names.get(_mirrored(message, actions), '')
    return target, foreign


def _mirrored(message: bytes, actions: Span) -> int:
    """The number of the interface to which the first action sends."""
    action = _find(message, actions, 1)
    if _text(message, _find(message, action, _ACT_KIND)) != 'mirred':
        return 0
    options = _find(message, action, _ACT_OPTIONS)
    parameters = _find(message, options, _MIRRED_PARMS)
    return _number(message, parameters, _MIRRED_IFINDEX)


class KernelConnection:
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

    def __enter__(self) -> 'KernelConnection':
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
            number, qdisc = qdisc_of(message)
            if name := names.get(number):
                found[name] = (*found.get(name, ()), qdisc)
        return found

    def _trees(
        self,
        names: dict[int, str],
        qdiscs: dict[str, tuple[state.Qdisc, ...]],
    ) -> dict[str, state.ClassTree]:
        return {
            name: self._tree(number)
            for number, name in names.items()
            if any(
                state.is_our_root(item)
                for item in qdiscs.get(name, ())
                if item.parent == 'root'
            )
        }

    def _tree(self, number: int) -> state.ClassTree:
        classes = dict(
            class_of(message) for message in self._dump(_GET_CLASS, number, 0)
        )
        return tree_of(classes, self._dump(_GET_FILTER, number, _ROOT_PARENT))

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
                found[name] = redirect_of(messages, names)
        used = {b for many in qdiscs.values() for q in many for b in q.blocks}
        for block in used & set(state.BLOCKS):
            messages = self._dump(_GET_FILTER, _BLOCK_MAGIC, block)
            found[block] = redirect_of(messages, names)
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
    if number and number not in _GONE:
        raise OSError(number, os.strerror(number))
