# SPDX-License-Identifier: Apache-2.0

"""Operations of traffic control, and their commands: pure.

No command line ever comes from outside. An operation has a name and fields,
and every field is checked here.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import re

from nova_fairness.apply.network import state

Operation = tuple[str | int, ...]
"""Name of the operation, one of :data:`OPERATIONS`, and its fields."""

_LARGEST = 1 << 40
_DEVICE = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}')
_MAC = re.compile('[0-9a-f]{2}(:[0-9a-f]{2}){5}')

Check = Callable[[object], bool]


def _is_device(field: object) -> bool:
    return isinstance(field, str) and bool(_DEVICE.fullmatch(field))


def _is_ifb(field: object) -> bool:
    return isinstance(field, str) and field in state.IFBS


def _is_mac(field: object) -> bool:
    return isinstance(field, str) and bool(_MAC.fullmatch(field))


def _is_side(field: object) -> bool:
    return field in (state.SOURCE, state.DESTINATION)


def _is_block(field: object) -> bool:
    return _is_whole(field) and field in state.BLOCKS


def _is_block_or_none(field: object) -> bool:
    return _is_block(field) or (_is_whole(field) and field == 0)


def _is_whole(field: object) -> bool:
    return isinstance(field, int) and not isinstance(field, bool)


def _within(low: int, high: int) -> Check:
    def check(field: object) -> bool:
        return (
            isinstance(field, int)
            and _is_whole(field)
            and (low <= field <= high)
        )

    return check


_minor = _within(1, 0xFFFE)
_amount = _within(1, _LARGEST)
_bucket = _within(0, state.BUCKETS - 1)
_number = _within(1, 0xFFF)

_ROOT = f'{state.ROOT_HANDLE:x}:'
_OURS = f'protocol all pref {state.PREFERENCE}'
_EVERYTHING = 'u32 match u32 0 0 action mirred egress redirect dev'
_HASHED = {
    state.SOURCE: '0x00ff0000 at -4',
    state.DESTINATION: '0x000000ff at -12',
}


def _class(
    device: str,
    minor: int,
    rate: int,
    ceil: int,
    burst: int,
    cburst: int,
    quantum: int,
) -> list[str]:
    parent = '' if minor == state.TRUNK else f'{state.TRUNK:x}'
    return [
        (
            f'class replace dev {device} parent {_ROOT}{parent} '
            f'classid {_ROOT}{minor:x} htb rate {rate}bps ceil {ceil}bps '
            f'burst {burst} cburst {cburst} quantum {quantum}'
        )
    ]


def _table(device: str, side: str) -> list[str]:
    start = f'filter add dev {device} parent {_ROOT} {_OURS}'
    table = f'{state.TABLE:x}:'
    return [
        f'{start} handle {table} u32 divisor {state.BUCKETS}',
        f'{start} u32 match u32 0 0 link {table} hashkey mask {_HASHED[side]}',
    ]


def _filter(
    device: str, side: str, mac: str, number: int, minor: int, tap: str = ''
) -> list[str]:
    came = f'indev {tap} ' if tap else ''
    bucket = f'{state.TABLE:x}:{state.bucket_of(mac):x}:'
    return [
        (
            f'filter add dev {device} parent {_ROOT} {_OURS} '
            f'handle {bucket}{number:x} u32 ht {bucket} '
            f'match ether {side} {mac} {came}flowid {_ROOT}{minor:x}'
        )
    ]


def _no_filter(device: str, bucket: int, number: int) -> list[str]:
    handle = f'{state.TABLE:x}:{bucket:x}:{number:x}'
    return [
        f'filter del dev {device} parent {_ROOT} {_OURS} handle {handle} u32'
    ]


def _clsact(device: str, incoming: int, outgoing: int) -> list[str]:
    blocks = f'egress_block {outgoing}'
    if incoming:
        blocks = f'ingress_block {incoming} {blocks}'
    return [f'qdisc add dev {device} {blocks} clsact']


_Form = tuple[tuple[Check, ...], Callable[..., list[str]]]

OPERATIONS: Mapping[str, _Form] = {
    'ifb': (
        (_is_ifb,),
        lambda name: [
            f'link add name {name} txqueuelen 1000 type ifb',
            f'link set dev {name} up',
        ],
    ),
    'no-ifb': ((_is_ifb,), lambda name: [f'link del dev {name}']),
    'root': (
        (_is_device,),
        lambda device: [
            (
                f'qdisc add dev {device} root handle {_ROOT} htb '
                f'default {state.REST:x} r2q 100'
            )
        ],
    ),
    'no-root': (
        (_is_device,),
        lambda device: [f'qdisc del dev {device} root handle {_ROOT} htb'],
    ),
    'table': ((_is_device, _is_side), _table),
    'class': ((_is_device, _minor, *(_amount,) * 5), _class),
    'no-class': (
        (_is_device, _minor),
        lambda device, minor: [
            (
                f'class del dev {device} parent {_ROOT}{state.TRUNK:x} '
                f'classid {_ROOT}{minor:x}'
            )
        ],
    ),
    'filter': ((_is_device, _is_side, _is_mac, _number, _minor), _filter),
    'tap-filter': (
        (_is_device, _is_side, _is_mac, _number, _minor, _is_device),
        _filter,
    ),
    'no-filter': ((_is_device, _bucket, _number), _no_filter),
    'ingress': (
        (_is_device,),
        lambda device: [f'qdisc add dev {device} handle ffff: ingress'],
    ),
    'no-ingress': (
        (_is_device,),
        lambda device: [f'qdisc del dev {device} ingress'],
    ),
    'redirect': (
        (_is_device,),
        lambda device: [
            (
                f'filter add dev {device} parent ffff: {_OURS} '
                f'{_EVERYTHING} {state.IFB_IN}'
            )
        ],
    ),
    'no-redirect': (
        (_is_device,),
        lambda device: [f'filter del dev {device} parent ffff: {_OURS}'],
    ),
    'clsact': ((_is_device, _is_block_or_none, _is_block), _clsact),
    'no-clsact': (
        (_is_device,),
        lambda device: [f'qdisc del dev {device} clsact'],
    ),
    'block': (
        (_is_block,),
        lambda block: [
            (
                f'filter add block {block} {_OURS} '
                f'{_EVERYTHING} {state.BLOCKS[block]}'
            )
        ],
    ),
}
"""Check of each field, and the command's lines, by name."""

LINKS = frozenset(('ifb', 'no-ifb'))
"""Operations of the tool ``ip``; all others are of ``tc``."""

GUARDED = frozenset(('no-clsact', 'no-ingress'))
"""Operations that could take away what others made."""


def refusal(item: Sequence[object]) -> str:
    """Say what is wrong with an operation; empty if nothing is."""
    name = item[0] if item else None
    form = OPERATIONS.get(name) if isinstance(name, str) else None
    if form is None:
        return f'unknown operation {str(item[:1])[:40]}'
    checks, fields = form[0], item[1:]
    if len(fields) != len(checks):
        return f'{item[0]} has {len(fields)} fields, expected {len(checks)}'
    for check, field in zip(checks, fields, strict=True):
        if not check(field):
            return f'{item[0]} cannot have the field {str(field)[:40]!r}'
    return ''


def lines(item: Sequence[str | int]) -> list[str]:
    """The lines of an operation for which :func:`refusal` is empty."""
    name, *fields = item
    return OPERATIONS[str(name)][1](*fields)
