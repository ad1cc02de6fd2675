# SPDX-License-Identifier: Apache-2.0

"""What a scenario must show, as named checks with bounds."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from fairness_lab.results import check
from fairness_lab.results import disk_checks
from fairness_lab.results import load_checks
from fairness_lab.results import network_checks
from fairness_lab.results import peer_checks

PEER_SCENARIOS = (
    'silent-peer',
    'killed-peer',
    'redis-away',
    'redis-flushed',
    'cut-node',
    'late-joiner',
    'rolling-restart',
)
"""Scenarios in which something happens to agents or between them."""

_MAX_MIN = (
    ('DominantShareMetric', 'feedback'),
    ('DominantShareMetric', 'foresight'),
)
"""Metrics and policies whose aim the max-min part is."""

Check = check.Check
Result = check.Result


def evaluate(result: Result) -> tuple[Check, ...]:
    """Give the checks of a result's scenario; none for an unknown one.

    :param result: what :func:`fairness_lab.results.result.build` returned.
    """
    rules = _BY_SCENARIO.get(result['scenario'])
    return tuple(rules(result)) if rules else ()


def _one_node_cpu(result: Result) -> Iterator[Check]:
    chosen = (result['metric'], result['policy'])
    if not result['agents']:
        yield from _equal_vms(result)
    elif chosen == ('GreedinessMetric', 'thesis'):
        yield from _thesis(result)
    else:
        if result['metric'] == 'DominantShareMetric':
            yield from _fair_users(result)
        yield from _steady(result)


def _equal_vms(result: Result) -> Iterator[Check]:
    for name, vm in result['instances'].items():
        part = 1 / len(result['instances'])
        yield Check(
            f'equal-part-{name}',
            f'without the agent {name} gets an equal part',
            vm['cpu_share'],
            part - 0.04,
            part + 0.04,
        )


def _fair_users(result: Result) -> Iterator[Check]:
    for name, user in result['users'].items():
        yield load_checks.fair_part(name, user)
        yield Check(
            f'within-60-s-{name}',
            f'seconds until the part of {name} is fair and stays so',
            user['first_within_s'],
            highest=60.0,
        )


def _steady(result: Result) -> Iterator[Check]:
    for name, vm in result['instances'].items():
        yield Check(
            f'steady-weight-{name}',
            f'the weight of {name} is steady (peak to peak)',
            vm['peak_to_peak'].get('cpu'),
            highest=0.05,
        )


def _thesis(result: Result) -> Iterator[Check]:
    """Compare the lone VM of a user with each VM of the others."""
    owned: dict[str, list[str]] = {}
    for name, vm in result['instances'].items():
        owned.setdefault(vm['user'], []).append(name)
    part = {n: vm['cpu_share'] for n, vm in result['instances'].items()}
    fewest = min(owned.values(), key=len)[0]
    others = [n for vms in owned.values() if fewest not in vms for n in vms]
    for name in others:
        yield Check(
            f'ratio-{fewest}-{name}',
            f'{fewest} gets about twice as much as {name}',
            part[fewest] / part[name] if part[name] else None,
            1.8,
            2.2,
        )
    yield Check(
        'weights-equal-reference',
        'shares differ by at most 1 from a reference evaluation',
        (result['reference'] or {}).get('largest_difference'),
        highest=1.0,
    )


def _spike(result: Result) -> Iterator[Check]:
    lone = [
        entry
        for entry in result['lone']
        if entry['lowest_weight'] == entry['node_lowest_weight']
    ]
    yield Check(
        'lone-vm-gets-all',
        'a lone busy VM gets the CPU at the lowest weight of its node',
        _least(entry['cpu_part'] for entry in lone),
        0.97,
    )
    if not result['agents'] or result['policy'] == 'thesis':
        return
    yield Check(
        'weight-does-not-wind-up',
        'the weight of a lone VM stays (highest / lowest)',
        _most(
            entry['highest_weight'] / entry['lowest_weight']
            for entry in lone
            if entry['lowest_weight']
        ),
        highest=1.05,
    )


def _many_against_one(result: Result) -> Iterator[Check]:
    if not result['agents']:
        return
    count: dict[str, int] = {}
    for vm in result['instances'].values():
        count[vm['user']] = count.get(vm['user'], 0) + 1
    light = min(count, key=lambda name: (count[name], name))
    bound = result['users'][light]['bounded_share']
    yield Check(
        f'bounded-part-{light}',
        f'{light} gets what the largest ratio of weights allows',
        result['users'][light]['cpu_share'],
        bound - 0.03,
        bound + 0.03,
    )


def _closed_loops(result: Result) -> Iterator[Check]:
    chosen = (result['metric'], result['policy'])
    if not result['agents'] or chosen not in _MAX_MIN:
        return
    yield from load_checks.closed_loops(result)


def _uncontended(result: Result) -> Iterator[Check]:
    bound = 0.01 if result['interval_s'] >= 10 else 0.02
    measured = result['uncontended'] or {}
    low, high = measured.get('confidence_95') or (None, None)
    yield Check(
        'ten-pairs',
        'pairs of phases without and with the agent',
        float(len(measured.get('pairs', ()))),
        10.0,
    )
    yield Check(
        'work-not-lost',
        'change of the work, lower end of the 95 % confidence interval',
        low,
        lowest=-bound,
    )
    yield Check(
        'work-not-won',
        'change of the work, upper end of the 95 % confidence interval',
        high,
        highest=bound,
    )


def _windows(result: Result) -> Iterator[Check]:
    if not result['agents']:
        return
    yield Check(
        'windows',
        'windows between events that are long enough to judge',
        float(len(result['windows'])),
        lowest=1.0,
    )
    for number, window in enumerate(result['windows'], start=1):
        yield Check(
            f'window-{number}',
            f'{window["from_s"]:.0f} to {window["to_s"]:.0f} s: largest '
            'distance of a VM from its max-min part',
            _most(vm['distance'] for vm in window['instances'].values()),
            highest=0.05,
        )


def _peers(result: Result) -> Iterator[Check]:
    """Judge runs in which agents lose each other and find each other."""
    if not result['agents']:
        return
    if (result['metric'], result['policy']) in _MAX_MIN:
        yield from _windows(result)
        yield from peer_checks.healed(result)
    yield from peer_checks.rounds(result)


def _least(values: Iterable[float]) -> float | None:
    return min(values, default=None)


def _most(values: Iterable[float]) -> float | None:
    return max(values, default=None)


_BY_SCENARIO: Mapping[str, Callable[[Result], Iterator[Check]]] = {
    'one-node-cpu': _one_node_cpu,
    'spike': _spike,
    'many-against-one': _many_against_one,
    'closed-loops': _closed_loops,
    'kinds-of-load': load_checks.kinds,
    'uncontended': _uncontended,
    'churn': _windows,
    'frozen-guest': _windows,
    'two-nodes-cpu': peer_checks.two_nodes,
    'one-node-network': network_checks.one_node_network,
    'one-node-network-weighted': network_checks.one_node_network,
    'one-node-disk': disk_checks.one_node,
    'two-nodes-cpu-disk': disk_checks.two_nodes,
    'latency': disk_checks.latency,
    **dict.fromkeys(PEER_SCENARIOS, _peers),
}
