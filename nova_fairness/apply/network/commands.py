# SPDX-License-Identifier: Apache-2.0

"""Operations of traffic control and their commands; pure functions.

No command line comes from outside. An operation has a name and fields, and
this module validates every field.
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


def _is_direction(field: object) -> bool:
    return field in (state.SOURCE, state.DESTINATION)


def _is_block(field: object) -> bool:
    return _is_whole(field) and field in state.BLOCKS


def _is_block_or_none(field: object) -> bool:
    return _is_block(field) or (_is_whole(field) and field == 0)


def _is_whole(field: object) -> bool:
    return isinstance(field, int) and not isinstance(field, bool)


def _range_check(low: int, high: int) -> Check:
    def check(field: object) -> bool:
        return (
            isinstance(field, int)
            and _is_whole(field)
            and (low <= field <= high)
        )

    return check


_minor = _range_check(1, 0xFFFE)
_amount = _range_check(1, _LARGEST)
_bucket = _range_check(0, state.BUCKETS - 1)
_number = _range_check(1, 0xFFF)

_ROOT = f'{state.ROOT_HANDLE:x}:'
_FILTER_KEYS = f'protocol all pref {state.PREFERENCE}'
_MATCH_ALL = 'u32 match u32 0 0 action mirred egress redirect dev'
_HASH_MASKS = {
    state.SOURCE: '0x00ff0000 at -4',
    state.DESTINATION: '0x000000ff at -12',
}


def _class_lines(
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


def _table_lines(device: str, direction: str) -> list[str]:
    start = f'filter add dev {device} parent {_ROOT} {_FILTER_KEYS}'
    table = f'{state.TABLE:x}:'
    return [
        f'{start} handle {table} u32 divisor {state.BUCKETS}',
        (
            f'{start} u32 match u32 0 0 link {table} hashkey mask '
            f'{_HASH_MASKS[direction]}'
        ),
    ]


def _filter_lines(
    device: str,
    direction: str,
    mac: str,
    number: int,
    minor: int,
    tap: str = '',
) -> list[str]:
    came = f'indev {tap} ' if tap else ''
    bucket = f'{state.TABLE:x}:{state.bucket_of(mac):x}:'
    return [
        (
            f'filter add dev {device} parent {_ROOT} {_FILTER_KEYS} '
            f'handle {bucket}{number:x} u32 ht {bucket} '
            f'match ether {direction} {mac} {came}flowid {_ROOT}{minor:x}'
        )
    ]


def _filter_removal(device: str, bucket: int, number: int) -> list[str]:
    handle = f'{state.TABLE:x}:{bucket:x}:{number:x}'
    return [
        (
            f'filter del dev {device} parent {_ROOT} {_FILTER_KEYS} handle '
            f'{handle} u32'
        )
    ]


def _clsact_lines(device: str, incoming: int, outgoing: int) -> list[str]:
    blocks = f'egress_block {outgoing}'
    if incoming:
        blocks = f'ingress_block {incoming} {blocks}'
    return [f'qdisc add dev {device} {blocks} clsact']


_OperationForm = tuple[tuple[Check, ...], Callable[..., list[str]]]

OPERATIONS: Mapping[str, _OperationForm] = {
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
    'table': ((_is_device, _is_direction), _table_lines),
    'class': ((_is_device, _minor, *(_amount,) * 5), _class_lines),
    'no-class': (
        (_is_device, _minor),
        lambda device, minor: [
            (
                f'class del dev {device} parent {_ROOT}{state.TRUNK:x} '
                f'classid {_ROOT}{minor:x}'
            )
        ],
    ),
    'filter': (
        (_is_device, _is_direction, _is_mac, _number, _minor),
        _filter_lines,
    ),
    'tap-filter': (
        (_is_device, _is_direction, _is_mac, _number, _minor, _is_device),
        _filter_lines,
    ),
    'no-filter': ((_is_device, _bucket, _number), _filter_removal),
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
                f'filter add dev {device} parent ffff: {_FILTER_KEYS} '
                f'{_MATCH_ALL} {state.IFB_IN}'
            )
        ],
    ),
    'no-redirect': (
        (_is_device,),
        lambda device: [
            f'filter del dev {device} parent ffff: {_FILTER_KEYS}'
        ],
    ),
    'clsact': ((_is_device, _is_block_or_none, _is_block), _clsact_lines),
    'no-clsact': (
        (_is_device,),
        lambda device: [f'qdisc del dev {device} clsact'],
    ),
    'block': (
        (_is_block,),
        lambda block: [
            (
                f'filter add block {block} {_FILTER_KEYS} '
                f'{_MATCH_ALL} {state.BLOCKS[block]}'
            )
        ],
    ),
}
"""Validation of each field, and the function for the lines, by name."""

LINKS = frozenset(('ifb', 'no-ifb'))
"""Operations of the tool ``ip``; all others belong to ``tc``."""

GUARDED = frozenset(('no-clsact', 'no-ingress'))
"""Operations that could remove objects of other programs."""


def validation_error(operation: Sequence[object]) -> str:
    """Return the error in an operation; empty if it is valid."""
    name = operation[0] if operation else None
    form = OPERATIONS.get(name) if isinstance(name, str) else None
    if form is None:
        return f'unknown operation {str(operation[:1])[:40]}'
    checks, fields = form[0], operation[1:]
    if len(fields) != len(checks):
        return (
            f'{operation[0]} has {len(fields)} fields, expected {len(checks)}'
        )
    for check, field in zip(checks, fields, strict=True):
        if not check(field):
            return f'{operation[0]} cannot have the field {str(field)[:40]!r}'
    return ''


def command_lines(operation: Sequence[str | int]) -> list[str]:
    """Return the command lines of a valid operation."""
    name, *fields = operation
    return OPERATIONS[str(name)][1](*fields)
