# SPDX-License-Identifier: Apache-2.0

"""Shares of the link between changes of the load."""

import pytest

from fairness_lab.figures import panel
from fairness_lab.figures import runs
from fairness_lab.results import network_windows
from fairness_lab.results import recording
from fairness_lab.results import result
from fairness_lab.results import series
from fairness_lab.results import timeline
from tests.unit.fairness_lab.results import expected

MBIT = 125_000
CHOSEN = {'metric': 'any', 'policy': 'any', 'interval_s': 2.0}


def recorded(rates, classes, changes=(0.0, 40.0), seconds=80):
    """Record two VMs: payload in Mbit/s by VM, as functions of time."""
    readings = []
    total = {(vm, way): 0.0 for vm in rates for way in range(2)}
    for t_s in range(seconds + 1):
        for vm, rate in rates.items():
            for way in range(2):
                total[vm, way] += rate(t_s)[way] * MBIT
            readings.append(
                recording.Reading(
                    float(t_s),
                    'node1',
                    vm,
                    f'of-{vm}',
                    0.1 * t_s,
                    more={
                        'arrived_bytes': total[vm, 0],
                        'received_bytes': total[vm, 1],
                    },
                )
            )
    vms = {
        vm: {'user': f'of-{vm}', 'node': 'node1', 'vcpus': 1, 'nics': 1}
        for vm in rates
    }
    return recording.Recording(
        meta={
            'name': 'one-node-network',
            'backend': 'fake',
            'monotonic_start_s': 1000.0,
            'options': {
                'metric': 'DominantShareMetric',
                'policy': 'feedback',
                'interval_s': 2.0,
                'duration_s': float(seconds),
                'agents': True,
            },
            'scenario': {
                'nodes': {'node1': {'cpus': [0], 'network_mbit_s': 20}},
                'users': {f'of-{vm}': {'weight': 1} for vm in rates},
                'vms': vms,
                'network_changes_s': list(changes),
            },
        },
        readings=tuple(readings),
        events=(),
        offers=(),
        rounds={
            'node1': [
                {
                    'time_s': 1000.0 + t_s,
                    'round': t_s // 2 + 1,
                    'node': {'speed_factor': 1.0},
                    'instances': [
                        {
                            'name': vm,
                            'uuid': vm,
                            'applied': {'network': rate * MBIT},
                        }
                        for vm, rate in classes.items()
                    ],
                }
                for t_s in range(0, seconds, 2)
            ]
        },
    )


def windows(*arguments, **more):
    line = timeline.Timeline(recorded(*arguments, **more))
    return list(network_windows.windows(line))


def both(t_s):
    return (4.5, 0.0) if t_s < 40 else (0.0, 9.0)


def triple(t_s):
    return (13.5, 0.0) if t_s < 40 else (0.0, 9.0)


def test_each_direction_of_each_stretch_is_compared_with_the_classes():
    found = windows({'a': both, 'b': triple}, {'a': 5, 'b': 15})
    shown = [
        (item['direction'], item['from_s'], item['rivals']) for item in found
    ]
    assert shown == [
        ('sent', 0.0, 2),
        ('received', 0.0, 0),
        ('sent', 40.0, 0),
        ('received', 40.0, 2),
    ]
    assert found[0]['off_by'] == pytest.approx(0.0, abs=0.01)
    assert found[0]['instances']['b']['share'] == pytest.approx(0.75, abs=0.01)
    # the classes say 1:3, they got 1:1
    assert found[3]['off_by'] == pytest.approx(1.0, abs=0.02)


def test_a_lone_vm_is_judged_by_the_link():
    found = windows(
        {'a': lambda t_s: (19.0, 0), 'b': lambda t_s: (0.1, 0)},
        {'a': 5, 'b': 15},
    )
    assert found[0]['rivals'] == 1
    assert found[0]['off_by'] is None
    assert found[0]['link_part'] == pytest.approx(0.993, abs=0.01)


@pytest.mark.parametrize('changes', [(), (79.0,)])
def test_network_windows_without_load_or_time_are_not_judged(changes):
    assert windows({'a': both}, {'a': 5}, changes=changes) == []


def test_the_checks_name_missed_bars():
    result = {
        'scenario': 'one-node-network',
        **CHOSEN,
        'agents': True,
        'network': windows({'a': both, 'b': triple}, {'a': 5, 'b': 15}),
    }
    failed = [
        item.name for item in expected.evaluate(result) if not item.passed
    ]
    assert failed == ['network-windows-lone', 'network-shares-2']


def test_a_run_without_agents_is_not_judged():
    result = {**CHOSEN, 'scenario': 'one-node-network', 'agents': False}
    assert expected.evaluate(result) == ()


def test_the_series_has_both_ways_and_the_classes():
    found = recorded({'a': both, 'b': triple}, {'a': 5, 'b': 15})
    points = list(series.points(timeline.Timeline(found)))

    def last(name, quantity):
        values = [
            point.value
            for point in points
            if (point.name, point.quantity) == (name, quantity)
        ]
        return values[-1]

    assert last('a', 'received_mbit_s') == pytest.approx(9.0, rel=0.01)
    assert last('b', 'sent_mbit_s') == pytest.approx(0.0)
    assert last('b', 'class_mbit_s') == pytest.approx(15.0)


def test_a_picture_of_network_shares_is_drawn():
    found = recorded({'a': both, 'b': triple}, {'a': 5, 'b': 15})
    line = timeline.Timeline(found)
    side = panel.PanelSide(
        'x', result.build(found), tuple(series.points(line))
    )
    assert runs.network(side).startswith(b'\x89PNG')
