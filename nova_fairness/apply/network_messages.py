# SPDX-License-Identifier: Apache-2.0

"""The kernel's messages about traffic control, taken apart: pure.

Formats: ``linux/rtnetlink.h``, ``linux/pkt_sched.h``, ``linux/pkt_cls.h``. A
round reads a few of these per VM, so attributes are looked for by offset, and
nothing is copied that is not asked for.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import errno
import struct

from nova_fairness.apply.network import state

GONE = frozenset((errno.ENODEV, errno.ENOENT, errno.EINVAL))
"""What the kernel answers about a device or qdisc that has just gone."""

_TCMSG = struct.Struct('=BxxxiIII')
_ATTRIBUTE = struct.Struct('=HH')
_U32 = struct.Struct('=I')
_U64 = struct.Struct('=Q')
_NESTED = 0x3FFF

_KIND, _OPTIONS = 1, 2
_INGRESS_BLOCK, _EGRESS_BLOCK = 13, 14
_HTB_PARMS, _HTB_RATE64, _HTB_CEIL64 = 1, 6, 7
_HTB_SPEC = struct.Struct('=8xI8xI8xI')
"""Rate, ceil and quantum of ``struct tc_htb_opt``."""

_U32_CLASSID, _U32_LINK, _U32_SEL, _U32_ACT = 1, 3, 5, 7
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


def qdisc(message: bytes) -> tuple[int, state.Qdisc]:
    """Read a qdisc.

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


def klass(message: bytes) -> tuple[int, state.Class]:
    """Read a class of a hierarchical token bucket.

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


def tree(
    classes: Mapping[int, state.Class], messages: Iterable[bytes]
) -> state.Tree:
    """Put a tree together.

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
    return state.Tree(classes, filters, has_table, foreign)


def _mac_filter(message: bytes, options: Span) -> state.MacFilter:
    """Read which address a filter matches; empty if it is none of ours."""
    classid = _number(message, _find(message, options, _U32_CLASSID))
    begin, end = _find(message, options, _U32_SEL)
    mac = ''
    if end - begin == _TWO_KEYS.size:
        mac = _mac(*_TWO_KEYS.unpack_from(message, begin))
    return state.MacFilter(mac, classid & 0xFFFF)


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


def redirect(
    messages: Iterable[bytes], names: Mapping[int, str]
) -> tuple[str, int]:
    """Read where everything is sent.

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
