# SPDX-License-Identifier: Apache-2.0


"""What scenarios of small and of mixed loads must show."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from fairness_lab.results import check

CALM = 'calm-'
"""Begin of the names of VMs on the node that has enough for all of them."""

Check = check.Check
Result = check.Result


def fair_part(
    name: str, user: Mapping[str, Any], within: float = 0.03
) -> Check:
    """Judge what a user got."""
    fair = user['max_min_share']
    return Check(
        f'fair-part-{name}',
        f'{name} gets the max-min part',
        user['cpu_share'],
        fair - within,
        fair + within,
    )


def closed_loops(result: Result) -> Iterator[Check]:
    """Judge ten small closed loops of two users."""
    for name, user in result['users'].items():
        # The pair wants just its half: each wait, however short, is lost to
        # it. Without agents it has a fifth.
        yield fair_part(name, user, within=0.05)
    yield Check(
        'worst-vm',
        'largest distance of a VM from its max-min part',
        max(
            abs(vm['cpu_share'] - vm['max_min_share'])
            for vm in result['instances'].values()
        ),
        highest=0.05,
    )
    yield Check(
        'cpu-not-lost',
        'part of the CPU that the VMs used, though none is always busy',
        min(node['cpu_used'] for node in result['nodes'].values()),
        lowest=0.95,
    )


def kinds(result: Result) -> Iterator[Check]:
    """Judge what the kernel told of each kind of load."""
    window = result['window']
    length_s = window['to_s'] - window['from_s']
    for name, vm in result['instances'].items():
        wanted_s = vm['demand_cpu_s']
        if name.startswith(CALM) and wanted_s:
            yield Check(
                f'served-{name}',
                f'{name} got of what it wanted',
                vm['cpu_s'] / wanted_s,
                lowest=0.95,
            )
        if not wanted_s:
            yield Check(
                f'quiet-{name}',
                f'{name} wants nothing and waited for so much of the time',
                vm['waited_part'],
                highest=0.08,
            )
    if not result['agents']:
        yield from _scarce(result, length_s)


def _scarce(result: Result, length_s: float) -> Iterator[Check]:
    vms = result['instances']
    closed, other = vms['closed'], vms['open']
    yield Check(
        'told-closed',
        'what the closed loop wants alone, told by what it used and waited',
        closed['cpu_s'] / length_s / (1 - closed['waited_part']),
        closed['demand_cpu_s'] / length_s - 0.06,
        closed['demand_cpu_s'] / length_s + 0.06,
    )
    yield Check(
        'open-is-never-done',
        'part of the time in which the open loop ran or waited',
        other['cpu_s'] / length_s + other['waited_part'],
        lowest=0.95,
    )
