# SPDX-License-Identifier: Apache-2.0

"""Reads traffic control from the kernel by netlink, without root.

The kernel returns exact numbers and starts no process. The output of ``tc`` is
rounded, and only some versions write JSON. Formats: ``linux/rtnetlink.h``,
``linux/pkt_sched.h``, ``linux/pkt_cls.h``. A round reads a few messages per
VM, so attributes are found by offset, and only needed ones are copied.
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
"""Error numbers for a device or qdisc that was just removed."""

_GET_QDISC, _GET_CLASS, _GET_FILTER = 38, 42, 46
_ERROR, _DONE = 2, 3
_REQUEST_DUMP = 0x301
_HEADER = struct.Struct('=IHHII')
_TCMSG = struct.Struct('=BxxxiIII')
_BUFFER = 1 << 18
_BLOCK_MAGIC = 0xFFFFFFFF
_ROOT_PARENT = state.ROOT_HANDLE << 16
_INGRESS_PARENT = 0xFFFF0000
_TIMEOUT_S = 5.0

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
"""Begin and end of a part of a message, in bytes."""

_NOTHING = 0, 0


def _find_attribute(message: bytes, span: Span, wanted: int) -> Span:
    """Return the span of an attribute's content; an empty span if it is
    missing.
    """
    at, end = span
    while at + 4 <= end:
        size, kind = _ATTRIBUTE.unpack_from(message, at)
        if size < 4:
            break
        if kind & _NESTED == wanted:
            return at + 4, min(at + size, end)
        at += (size + 3) & ~3
    return _NOTHING


def _attributes_span(message: bytes) -> Span:
    return _TCMSG.size, len(message)


def _read_u32(message: bytes, span: Span, at: int = 0) -> int:
    """Read a 32-bit number; 0 if the span is too short."""
    begin, end = span
    if begin + at + 4 > end:
        return 0
    return int(_U32.unpack_from(message, begin + at)[0])


def _read_string(message: bytes, span: Span) -> str:
    return message[slice(*span)].rstrip(b'\0').decode('ascii', 'replace')


def parse_qdisc(message: bytes) -> tuple[int, state.Qdisc]:
    """Parse a message about a qdisc.

    :returns: number of its interface, and the qdisc.
    """
    _, number, handle, parent, _ = _TCMSG.unpack_from(message)
    whole = _attributes_span(message)
    kind = _read_string(message, _find_attribute(message, whole, _KIND))
    incoming = outgoing = 0
    if kind == 'clsact':
        incoming = _read_u32(
            message, _find_attribute(message, whole, _INGRESS_BLOCK)
        )
        outgoing = _read_u32(
            message, _find_attribute(message, whole, _EGRESS_BLOCK)
        )
    where = _PARENTS.get(parent, 'other')
    return number, state.Qdisc(kind, handle >> 16, where, (incoming, outgoing))


def parse_class(message: bytes) -> tuple[int, state.Class]:
    """Parse a message about a class of a hierarchical token bucket.

    :returns: its minor number, and the class; zeros for a class of another
        kind.
    """
    minor = _TCMSG.unpack_from(message)[2] & 0xFFFF
    options = _find_attribute(message, _attributes_span(message), _OPTIONS)
    begin, end = _find_attribute(message, options, _HTB_PARMS)
    if end - begin < _HTB_SPEC.size:
        return minor, state.Class(0, 0, 0)
    rate, ceil, quantum = _HTB_SPEC.unpack_from(message, begin)
    if ceil == 0xFFFFFFFF:
        # What does not fit has an attribute of its own.
        rate = _read_u64(
            message, _find_attribute(message, options, _HTB_RATE64), rate
        )
        ceil = _read_u64(
            message, _find_attribute(message, options, _HTB_CEIL64), ceil
        )
    return minor, state.Class(rate, ceil, quantum)


def _read_u64(message: bytes, span: Span, narrow: int) -> int:
    begin, end = span
    if end - begin < _U64.size:
        return narrow
    return int(_U64.unpack_from(message, begin)[0])


def _parse_filters(
    messages: Iterable[bytes],
) -> Iterator[tuple[int, int, bytes, Span]]:
    """Yield preference, handle, message and options of each filter.

    The kernel also sends a message without a handle for each preference; it is
    skipped.
    """
    for message in messages:
        _, _, handle, _, told = _TCMSG.unpack_from(message)
        if handle:
            options = _find_attribute(
                message, _attributes_span(message), _OPTIONS
            )
            yield told >> 16, handle, message, options


def parse_tree(
    classes: Mapping[int, state.Class], messages: Iterable[bytes]
) -> state.ClassTree:
    """Return a tree of its classes and filters.

    :param classes: by minor number.
    :param messages: about its filters.
    """
    filters: dict[state.FilterHandle, state.MacFilter] = {}
    has_table, foreign = False, 0
    for preference, handle, message, options in _parse_filters(messages):
        number = handle & 0xFFF
        if preference != state.PREFERENCE:
            foreign += 1
        elif handle >> 20 == state.TABLE and number:
            key = handle >> 12 & 0xFF, number
            filters[key] = _mac_filter(message, options)
        elif number:
            linked = _read_u32(
                message, _find_attribute(message, options, _U32_LINK)
            )
            has_table |= linked >> 20 == state.TABLE
    return state.ClassTree(classes, filters, has_table, foreign)


def _mac_filter(message: bytes, options: Span) -> state.MacFilter:
    """Return the MAC address that a filter matches; empty for other
    filters.
    """
    classid = _read_u32(
        message, _find_attribute(message, options, _U32_CLASSID)
    )
    begin, end = _find_attribute(message, options, _U32_SEL)
    mac = ''
    if end - begin == _TWO_KEYS.size:
        mac = _mac_of_keys(*_TWO_KEYS.unpack_from(message, begin))
    tap = _read_string(message, _find_attribute(message, options, _U32_INDEV))
    return state.MacFilter(mac, classid & 0xFFFF, tap)


def _mac_of_keys(
    count: int,
    mask: bytes,
    value: bytes,
    offset: int,
    next_mask: bytes,
    next_value: bytes,
    next_offset: int,
) -> str:
    """Return the MAC address in two keys, as ``tc`` encodes them."""
    where = count, mask, offset, next_mask, next_offset
    if where == (2, _FULL, -8, _HIGH, -4):
        return (value + next_value[:2]).hex(':')
    if where == (2, _LOW, -16, _FULL, -12):
        return (value[2:] + next_value).hex(':')
    return ''


def parse_redirect(
    messages: Iterable[bytes], names: Mapping[int, str]
) -> tuple[str, int]:
    """Return the interface to which all incoming traffic is redirected.

    :param messages: about filters of a device's incoming traffic.
    :param names: of interfaces, by number.
    :returns: name of the interface, empty without this agent's filter; and the
        number of other filters.
    """
    target, foreign = '', 0
    for preference, handle, message, options in _parse_filters(messages):
        actions = _find_attribute(message, options, _U32_ACT)
        if preference != state.PREFERENCE:
            foreign += 1
        elif handle & 0xFFF and actions != _NOTHING:
            target = names.get(_redirect_target(message, actions), '')
    return target, foreign


def _redirect_target(message: bytes, actions: Span) -> int:
    """Return the number of the interface to which the first action
    redirects.
    """
    action = _find_attribute(message, actions, 1)
    if (
        _read_string(message, _find_attribute(message, action, _ACT_KIND))
        != 'mirred'
    ):
        return 0
    options = _find_attribute(message, action, _ACT_OPTIONS)
    parameters = _find_attribute(message, options, _MIRRED_PARMS)
    return _read_u32(message, parameters, _MIRRED_IFINDEX)


class KernelConnection:
    """A netlink connection; close it, or use it as a context manager.

    :raises ControlUnavailable: if the kernel has no netlink.
    """

    def __init__(self) -> None:
        try:
            self._socket = socket.socket(
                socket.AF_NETLINK,
                socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                socket.NETLINK_ROUTE,
            )
            self._socket.settimeout(_TIMEOUT_S)
            self._socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20
            )
        except OSError as error:
            raise exception.ControlUnavailable(
                'traffic control: no netlink connection to the kernel: '
                f'{error}'
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
        """Read the qdiscs, trees and redirections of this host.

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
                f'traffic control: reading failed: {error}'
            ) from error

    def _qdiscs(
        self, names: dict[int, str]
    ) -> dict[str, tuple[state.Qdisc, ...]]:
        found: dict[str, tuple[state.Qdisc, ...]] = {}
        for message in self._dump_objects(_GET_QDISC, 0, 0):
            number, qdisc = parse_qdisc(message)
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
            parse_class(message)
            for message in self._dump_objects(_GET_CLASS, number, 0)
        )
        return parse_tree(
            classes, self._dump_objects(_GET_FILTER, number, _ROOT_PARENT)
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
                messages = self._dump_objects(
                    _GET_FILTER, number, _INGRESS_PARENT
                )
                found[name] = parse_redirect(messages, names)
        used = {b for many in qdiscs.values() for q in many for b in q.blocks}
        for block in used & set(state.BLOCKS):
            messages = self._dump_objects(_GET_FILTER, _BLOCK_MAGIC, block)
            found[block] = parse_redirect(messages, names)
        return found

    def _dump_objects(
        self, kind: int, number: int, parent: int
    ) -> Iterator[bytes]:
        """Request all objects of a kind; yield each message without its
        header.
        """
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
                    _raise_error(message)
                    return
                yield message


def _raise_error(message: bytes) -> None:
    """Raise the error in an answer, unless a device was just removed."""
    number = -struct.unpack_from('=i', message)[0]
    if number and number not in _GONE:
        raise OSError(number, os.strerror(number))
