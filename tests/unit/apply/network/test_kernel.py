# SPDX-License-Identifier: Apache-2.0

"""Messages of the kernel, taken apart."""

import struct

import pytest

from nova_fairness.apply.network import kernel
from nova_fairness.apply.network import state

ROOT, INGRESS = 0xFFFFFFFF, 0xFFFFFFF1


def attribute(kind, content):
    padding = bytes(-len(content) % 4)
    return struct.pack('=HH', len(content) + 4, kind) + content + padding


def nested(kind, *attributes):
    return attribute(kind | 0x8000, b''.join(attributes))


def message(number, handle, parent, told, *attributes):
    head = struct.pack('=BxxxiIII', 0, number, handle, parent, told)
    return head + b''.join(attributes)


def text(kind, content):
    return attribute(kind, content.encode() + b'\0')


def u32(kind, number):
    return attribute(kind, struct.pack('=I', number))


@pytest.mark.parametrize(
    ('kind', 'parent', 'blocks', 'expected'),
    [
        ('htb', ROOT, (), ('root', (0, 0))),
        ('clsact', INGRESS, (), ('ingress', (0, 0))),
        ('clsact', INGRESS, (64018, 64019), ('ingress', (64018, 64019))),
        ('pfifo', 0x10001, (), ('other', (0, 0))),
    ],
)
def test_a_qdisc_message_is_parsed(kind, parent, blocks, expected):
    more = [u32(13 + place, block) for place, block in enumerate(blocks)]
    found = kernel.parse_qdisc(
        message(7, 0xFA120000, parent, 2, text(1, kind), *more)
    )
    assert found == (7, state.Qdisc(kind, 0xFA12, *expected))


def parms(rate, ceil, quantum):
    def spec(value):
        return struct.pack('=BBHhHI', 0, 1, 0, -1, 0, value)

    return attribute(
        1, spec(rate) + spec(ceil) + struct.pack('=IIIII', 9, 9, quantum, 0, 0)
    )


def test_a_class_message_is_parsed():
    found = kernel.parse_class(
        message(7, 0xFA120010, 1, 0, text(1, 'htb'), nested(2, parms(5, 6, 7)))
    )
    assert found == (16, state.Class(5, 6, 7))


def test_large_rates_have_an_attribute_of_their_own():
    wide = [
        attribute(kind, struct.pack('=Q', value))
        for kind, value in ((6, 1 << 33), (7, 1 << 34))
    ]
    found = kernel.parse_class(
        message(
            7,
            0xFA120010,
            1,
            0,
            nested(2, parms(0xFFFFFFFF, 0xFFFFFFFF, 7), *wide),
        )
    )
    assert found[1] == state.Class(1 << 33, 1 << 34, 7)


def test_a_class_of_another_kind_has_no_rate():
    found = kernel.parse_class(message(7, 0xFA120010, 1, 0))
    assert found == (16, state.Class(0, 0, 0))


def selector(*keys):
    head = struct.pack('=BBBxHHhhI', 1, 0, len(keys), 0, 0, 0, 0, 0)
    return attribute(
        5,
        head + b''.join(m + v + struct.pack('=ii', o, 0) for o, v, m in keys),
    )


FULL, LOW, HIGH = b'\xff' * 4, b'\0\0\xff\xff', b'\xff\xff\0\0'
SOURCE = selector((-8, b'\x52\x54\0\0', FULL), (-4, b'\0\xa1\0\0', HIGH))
DESTINATION = selector((-16, b'\0\0\x52\x54', LOW), (-12, b'\0\0\1\xa2', FULL))
OTHER = selector((12, b'\x0a\0\0\1', FULL))


def mac_filter(handle, minor, keys, preference=0xFA12, kind='u32'):
    options = nested(2, u32(1, 0xFA120000 | minor), keys)
    return message(7, handle, 0, preference << 16 | 3, text(1, kind), options)


def link():
    options = nested(2, u32(3, 0x00100000))
    return message(7, 0x80000800, 0, 0xFA120003, text(1, 'u32'), options)


def test_filters_by_mac_address_are_parsed():
    tree = kernel.parse_tree(
        {},
        [
            message(7, 0, 0, 0xFA120003, text(1, 'u32')),
            mac_filter(0x00100000, 0, b''),
            mac_filter(0x001A1001, 16, SOURCE),
            mac_filter(0x001A2002, 17, DESTINATION),
            mac_filter(0x00101003, 18, OTHER),
            link(),
        ],
    )
    assert tree.filters == {
        (0xA1, 1): state.MacFilter('52:54:00:00:00:a1', 16),
        (0xA2, 2): state.MacFilter('52:54:00:00:01:a2', 17),
        (1, 3): state.MacFilter('', 18),
    }
    assert tree.has_table
    assert tree.foreign == 0


def test_foreign_filters_are_only_counted():
    tree = kernel.parse_tree(
        {},
        [
            mac_filter(0x80000800, 16, SOURCE, preference=49152),
            mac_filter(1, 16, b'', preference=10, kind='flower'),
        ],
    )
    assert tree.filters == {}
    assert not tree.has_table
    assert tree.foreign == 2


def redirect_filter(interface, preference=0xFA12, kind='mirred'):
    parameters = struct.pack('=IIiiiiI', 1, 0, 4, 1, 1, 1, interface)
    action = nested(1, text(1, kind), nested(2, attribute(2, parameters)))
    options = nested(2, nested(7, action))
    return message(
        7, 0x80000800, 0, preference << 16 | 3, text(1, 'u32'), options
    )


@pytest.mark.parametrize(
    ('messages', 'expected'),
    [
        ([], ('', 0)),
        ([redirect_filter(9)], ('nfair-in', 0)),
        ([redirect_filter(8)], ('', 0)),
        ([redirect_filter(9, kind='gact')], ('', 0)),
        (
            [redirect_filter(9), redirect_filter(9, preference=1)],
            ('nfair-in', 1),
        ),
        ([redirect_filter(9, preference=1)], ('', 1)),
    ],
)
def test_a_redirection_filter_is_parsed(messages, expected):
    assert kernel.parse_redirect(messages, {9: 'nfair-in'}) == expected


def test_a_truncated_message_is_refused_without_endless_loop():
    broken = struct.pack('=HH', 0, 1) + bytes(8)
    found = kernel.parse_class(message(7, 0xFA120010, 1, 0, broken))
    assert found[1] == state.Class(0, 0, 0)
