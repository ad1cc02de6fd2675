# SPDX-License-Identifier: Apache-2.0

"""What scenarios with disks and with latencies must show."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from fairness_lab.results import check

Check = check.Check
Result = check.Result

FIO_TOLERANCE = 0.15
"""Relative distance of a guest's part of its disk from what fio got with
the same weights on the same disk."""

MORE = 0.54
"""Least part of a node for a user with one VM there and nothing elsewhere,
against one who uses another node, too."""

EQUAL = 0.08
"""Distance from an equal part where nobody steers."""

SATISFIED = 0.95
"""Least part of its demand that a VM gets where nobody has to wait."""

AS_ALONE = 0.9
"""Least part of a disk's rate that a guest gets that is alone on it."""


def one_node(result: Result) -> Iterator[Check]:
    """Compare what guests got of a disk with what fio got."""
    disk = result['disk'] or {}
    for name, vm in disk.items():
        if vm['fio_share'] is None:
            continue
        yield Check(
            f'like-fio-{name}',
            f'{name} gets of the disk what fio gets with the same weights',
            _ratio(vm['share'], vm['fio_share']),
            1 - FIO_TOLERANCE,
            1 + FIO_TOLERANCE,
        )
    if not result['agents']:
        yield from _equal(result, list(disk), 'share')
        return
    yield Check(
        'compared-with-fio',
        'guests whose part was compared with what fio got',
        float(sum(vm['fio_share'] is not None for vm in disk.values())),
        lowest=2.0,
    )
    yield from _fewest_first(result)


def _fewest_first(result: Result) -> Iterator[Check]:
    """A VM of a user with fewer VMs has the larger part of the disk."""
    owned: dict[str, list[str]] = {}
    for name, vm in result['instances'].items():
        owned.setdefault(vm['user'], []).append(name)
    fewest = min(owned.values(), key=len)[0]
    others = [n for vms in owned.values() if fewest not in vms for n in vms]
    disk = result['disk'] or {}
    for name in others:
        yield Check(
            f'more-than-{name}',
            f'{fewest} gets more of the disk than {name} (times)',
            _ratio(_share(disk, fewest), _share(disk, name)),
            lowest=1.25,
        )


def two_nodes(result: Result) -> Iterator[Check]:
    """Judge users who meet on one node for CPU and disk, not on another."""
    meeting = _meeting(result)
    disk = result['disk'] or {}
    if not result['agents']:
        yield from _equal(result, meeting, 'cpu_share')
        yield from _equal(result, meeting, 'share')
    else:
        name = min(meeting, key=lambda vm: (_owned(result, vm), vm))
        yield Check(
            f'more-cpu-{name}',
            f'{name} gets more CPU than who uses another node, too',
            result['instances'][name]['cpu_share'],
            MORE,
        )
        yield Check(
            f'more-disk-{name}',
            f'{name} gets more of the disk than who uses another node, too',
            _share(disk, name),
            MORE,
        )
    yield from _others(result, meeting, disk)


def _others(
    result: Result, meeting: list[str], disk: Mapping[str, Any]
) -> Iterator[Check]:
    """Nobody takes anything from VMs that compete with nobody."""
    for name, vm in result['instances'].items():
        if name in meeting:
            continue
        if vm['demand_cpu_s']:
            yield Check(
                f'satisfied-{name}',
                f'{name} gets the CPU time that it wants',
                vm['cpu_s'] / vm['demand_cpu_s'],
                SATISFIED,
            )
        if _share(disk, name):
            yield Check(
                f'as-alone-{name}',
                f'{name} gets what its disk can do',
                disk[name]['device_part'],
                AS_ALONE,
            )


def latency(result: Result) -> Iterator[Check]:
    """The guest of a light user must not wait for those of a heavy one."""
    measured = result['latency'] or {}
    yield Check(
        'measured',
        'guests in which the lateness of wakes was measured',
        float(len(measured)),
        lowest=1.0,
    )
    if not result['agents']:
        return
    for name, vm in measured.items():
        yield Check(
            f'awake-in-time-{name}',
            f'part of the wakes of {name} that are 20 ms late or more',
            vm['late_20ms_part'],
            highest=0.05,
        )


def _meeting(result: Result) -> list[str]:
    """Give the VMs of the first node, on which users meet."""
    first = next(iter(result['nodes']))
    return [n for n, vm in result['instances'].items() if vm['node'] == first]


def _owned(result: Result, name: str) -> int:
    user = result['instances'][name]['user']
    return sum(vm['user'] == user for vm in result['instances'].values())


def _equal(result: Result, names: list[str], what: str) -> Iterator[Check]:
    disk = result['disk'] or {}
    of = 'disk' if what == 'share' else 'CPU'
    for name in names:
        part = 1 / len(names)
        measured = (
            _share(disk, name)
            if what == 'share'
            else result['instances'][name][what]
        )
        yield Check(
            f'equal-{of.lower()}-{name}',
            f'without the agent {name} gets an equal part of the {of}',
            measured,
            part - EQUAL,
            part + EQUAL,
        )


def _share(disk: Mapping[str, Any], name: str) -> float | None:
    return disk[name]['share'] if name in disk else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
