# SPDX-License-Identifier: Apache-2.0

"""What runs with several nodes must show."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from fairness_lab.results import check
from fairness_lab.results import peers

TOLERANCE = 0.05
"""Largest distance of a VM from its max-min part."""

LONGEST_GAP = 2.0
"""Intervals between two rounds from which something hangs."""

GREEDY_PART = 0.58
"""Least part of a node for a user with one VM there and nothing elsewhere,
against one who uses another node, too."""

SATISFIED = 0.95
"""Least part of its demand that a VM gets where nobody has to wait."""

THESIS = 'thesis'
"""The original's policy, which follows heaviness wherever somebody waits or
not."""

WOUND_UP = 1.05
"""Largest to smallest weight of a VM that never had to wait."""

Check = check.Check
Result = check.Result


def two_nodes(result: Result) -> Iterator[Check]:
    """Judge users who meet on one node and not on another."""
    steered = result['agents'] and result['policy'] != THESIS
    for name, vm in _contenders(result):
        if not result['agents']:
            part = 1 / sum(1 for _ in _contenders(result))
            yield _within(f'equal-part-{name}', name, vm, part)
        elif steered and result['metric'] == 'DominantShareMetric':
            yield _within(f'fair-part-{name}', name, vm, vm['max_min_share'])
    if result['agents'] and result['metric'] == 'GreedinessMetric':
        name, vm = _best_entitled(result)
        yield Check(
            f'greater-part-{name}',
            f'{name} gets more than who uses another node, too',
            vm['cpu_share'],
            GREEDY_PART,
        )
    yield from _nobody_loses(result, steered=steered)
    if result['agents']:
        yield from rounds(result)


def _within(
    name: str, vm_name: str, vm: Mapping[str, Any], part: float
) -> Check:
    return Check(
        name,
        f'{vm_name} gets {100 * part:.0f} % of its node',
        vm['cpu_share'],
        part - 0.04,
        part + 0.04,
    )


def _contenders(result: Result) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the VMs of nodes on which more is wanted than there is."""
    for name, vm in result['instances'].items():
        if _is_contended(result, vm['node']):
            yield name, vm


def _is_contended(result: Result, node: str) -> bool:
    window = result['window']
    seconds = window['to_s'] - window['from_s']
    wanted_s = sum(
        vm['demand_cpu_s']
        for vm in result['instances'].values()
        if vm['node'] == node
    )
    return bool(wanted_s > result['nodes'][node]['cpus'] * seconds)


def _best_entitled(result: Result) -> tuple[str, Mapping[str, Any]]:
    """Give the contender whose user wants the least elsewhere."""
    wanted: dict[str, float] = {}
    for vm in result['instances'].values():
        wanted[vm['user']] = wanted.get(vm['user'], 0.0) + vm['demand_cpu_s']
    return min(
        _contenders(result),
        key=lambda item: (wanted[item[1]['user']], item[0]),
    )


def _nobody_loses(result: Result, *, steered: bool) -> Iterator[Check]:
    for name, vm in result['instances'].items():
        if _is_contended(result, vm['node']) or not vm['demand_cpu_s']:
            continue
        yield Check(
            f'satisfied-{name}',
            f'{name}, where nobody has to wait, gets what it wants',
            vm['cpu_s'] / vm['demand_cpu_s'],
            SATISFIED,
        )
        if steered:
            low, high = vm['weight_range'].get('cpu') or (None, None)
            yield Check(
                f'does-not-wind-up-{name}',
                f'the weight of {name} stays (largest / smallest)',
                high / low if low else None,
                highest=WOUND_UP,
            )


def healed(result: Result) -> Iterator[Check]:
    """Judge what followed each event after which agents met again."""
    for number, entry in enumerate(result['healings'], start=1):
        what = f'{entry["event"]} {entry["subject"]}'.strip()
        yield Check(
            f'known-{number}',
            f'{what} at {entry["t_s"]:.0f} s: round in which every agent '
            'knows all others',
            entry['rounds_until_known'],
            highest=float(peers.ROUNDS_TO_HEAL),
        )
        yield Check(
            f'as-before-{number}',
            f'{what} at {entry["t_s"]:.0f} s: largest distance of a VM from '
            f'its max-min part {peers.ROUNDS_TO_HEAL} rounds later',
            _most(vm['distance'] for vm in entry['instances'].values()),
            highest=TOLERANCE,
        )


def rounds(result: Result) -> Iterator[Check]:
    """Judge that no agent stands still or leaves a VM without weight."""
    for name, node in result['nodes'].items():
        gap_s = node['longest_gap_s']
        yield Check(
            f'no-hang-{name}',
            f'longest time between two rounds on {name}, intervals',
            None if gap_s is None else gap_s / result['interval_s'],
            highest=LONGEST_GAP,
        )
        yield Check(
            f'always-weights-{name}',
            f'rounds on {name} in which a VM has no weight',
            float(node['rounds_without_weights']),
            highest=0.0,
        )
        yield Check(
            f'knows-all-{name}',
            f'part of all CPUs that the agent of {name} reckons with at last',
            node['known_part'],
            lowest=0.99,
        )


def _most(values: Iterable[float]) -> float | None:
    return max(values, default=None)
