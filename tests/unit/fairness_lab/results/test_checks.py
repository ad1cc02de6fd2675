# SPDX-License-Identifier: Apache-2.0

import json
import math
import pathlib

import pytest

from fairness_lab.results import checks
from fairness_lab.results import result
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from tests.unit.fairness_lab.results import expected
from tests.unit.fairness_lab.results import fake_run

INF = math.inf


def evaluated(run):
    made = expected.evaluate(
        result.build(run),
        light=('b1',),
        **{'heavy-1': ('a1',), 'heavy-2': ('a2',), 'loner': ('alice',)},
    )
    return {item.name: item for item in made}


@pytest.mark.parametrize(
    ('measured', 'lowest', 'highest', 'passed'),
    [
        (1.0, 0.5, 1.5, True),
        (0.4, 0.5, 1.5, False),
        (1.6, 0.5, 1.5, False),
        (0.5, 0.5, None, True),
        (9.0, None, 8.0, False),
        (None, None, None, False),
    ],
)
def test_a_value_passes_within_its_bounds(measured, lowest, highest, passed):
    check = checks.Check('n', 's', measured, lowest, highest)
    assert check.passed is passed
    assert check.to_json()['passed'] is passed


def test_a_fair_run_passes():
    found = evaluated(fake_run.one_node_cpu())
    assert set(found) == {
        'fair-part-alice',
        'fair-part-bob',
        'within-60-s-alice',
        'within-60-s-bob',
        'steady-weight-a1',
        'steady-weight-a2',
        'steady-weight-b1',
    }
    assert all(item.passed for item in found.values())


def test_an_agent_that_does_nothing_fails():
    found = evaluated(fake_run.one_node_cpu(ratio=1.0))
    assert not found['fair-part-bob'].passed
    assert found['fair-part-bob'].measured == pytest.approx(1 / 3, abs=1e-3)
    assert not found['within-60-s-bob'].passed


def test_without_agents_equal_parts_are_expected():
    found = evaluated(fake_run.one_node_cpu(agents=False))
    assert len(found) == 3
    assert all(item.passed for item in found.values())


def test_the_thesis_gives_the_lone_vm_about_twice_as_much():
    found = evaluated(
        fake_run.one_node_cpu(metric='GreedinessMetric', policy='thesis')
    )
    assert set(found) == {
        'ratio-light-a1',
        'ratio-light-a2',
        'weights-equal-reference',
    }
    assert found['weights-equal-reference'].passed


def spike(**changes):
    vms = {'a1': 'alice', 'b1': 'bob'}
    demand = [(0, 'a1', INF), (0, 'b1', INF), (60, 'b1', 0)]
    return fake_run.simulate(
        fake_run.FakeRun(vms, demand, name='spike', **changes)
    )


def test_a_lone_vm_gets_the_whole_cpu():
    found = evaluated(spike())
    assert found['lone-vm-gets-all'].passed
    assert found['weight-does-not-wind-up'].passed


def test_a_lone_vm_is_judged_only_at_the_lowest_weight():
    run = spike()
    for entry in run.rounds['node1']:
        entry['instances'][0]['weights'] = {'cpu': 3.0}
    assert evaluated(run)['lone-vm-gets-all'].measured is None


def test_a_weight_that_winds_up_is_noticed():
    run = spike()
    for number, entry in enumerate(run.rounds['node1']):
        entry['instances'][0]['weights'] = {'cpu': 0.1 + number / 100}
    assert not evaluated(run)['weight-does-not-wind-up'].passed


def test_a_spike_that_never_came_does_not_pass():
    found = evaluated(fake_run.one_node_cpu(name='spike', duration_s=20.0))
    assert not any(item.passed for item in found.values())


def test_the_light_user_among_many_gets_as_much_as_the_bound_allows():
    vms = {'l': 'alice', **{f'h{place}': 'bob' for place in range(30)}}
    run = fake_run.FakeRun(
        vms, [(0, vm, INF) for vm in vms], name='many-against-one'
    )
    found = evaluated(fake_run.simulate(run))
    assert found['bounded-part-loner'].passed
    assert found['bounded-part-loner'].lowest == pytest.approx(0.37)


def closed_loops(**changes):
    vms = {
        **{f'many-{place}': 'crowd' for place in range(8)},
        **{f'few-{place}': 'pair' for place in range(2)},
    }
    demand = [(0, vm, 0.25) for vm in vms]
    run = fake_run.FakeRun(vms, demand, name='closed-loops', **changes)
    return evaluated(fake_run.simulate(run))


def test_users_of_small_vms_get_fair_parts():
    found = closed_loops()
    assert found['fair-part-pair'].passed
    assert found['worst-vm'].passed
    assert found['cpu-not-lost'].measured == pytest.approx(1, abs=1e-3)


def test_unwatched_users_of_small_vms_do_not_gain():
    found = closed_loops(ratio=1.0)
    assert not found['fair-part-pair'].passed
    assert not found['worst-vm'].passed


def test_small_vms_are_judged_by_the_aim_of_the_run():
    assert closed_loops(agents=False) == {}
    assert closed_loops(metric='UniformMetric') == {}


@pytest.mark.parametrize(
    ('interval_s', 'speed', 'passed'),
    [
        (10.0, 1.0, True),
        (10.0, 1.015, False),
        (1.0, 1.015, True),
        (1.0, 1.025, False),
    ],
)
def test_the_check_notices_lost_work(interval_s, speed, passed):
    events = [
        (10.0 * n, ('agents_stopped', 'agents_started')[n % 2], 'node1')
        for n in range(22)
    ]
    run = fake_run.FakeRun(
        {'a1': 'alice'},
        [(0, 'a1', 0.5)],
        name='uncontended',
        events=events,
        duration_s=220.0,
        interval_s=interval_s,
        speed_without=speed,
    )
    found = evaluated(fake_run.simulate(run))
    assert found['ten-pairs'].passed
    assert found['work-not-lost'].passed is passed
    assert found['work-not-won'].passed


def test_uncontended_without_phases_does_not_pass():
    found = evaluated(fake_run.one_node_cpu(name='uncontended'))
    assert not any(item.passed for item in found.values())


@pytest.mark.parametrize(('ratio', 'passed'), [(20.0, True), (1.0, False)])
def test_windows_of_churn_are_judged_one_by_one(ratio, passed):
    run = fake_run.one_node_cpu(
        name='churn', ratio=ratio, events=[(60.0, 'note', '')]
    )
    found = evaluated(run)
    assert found['windows'].measured == 2
    assert found['window-1'].passed is passed
    assert found['window-2'].passed is passed


RECORDED = sorted(
    (pathlib.Path(__file__).parents[4] / 'benchmarks/results/scenarios').glob(
        '*/result.json'
    )
)


WIDER = {
    'closed-loops',
    'kinds-of-load-without',
    'two-nodes-cpu-disk',
    'two-nodes-cpu-disk-thesis',
    'two-nodes-cpu-disk-without',
}
"""Runs that were recorded when the bounds were narrower."""


def test_there_are_recorded_runs_of_every_kind():
    assert len(RECORDED) > 30


@pytest.mark.parametrize('path', RECORDED, ids=lambda path: path.parent.name)
def test_recorded_runs_are_judged_as_they_were(path):
    run = json.loads(path.read_text())
    found = {item.name: item for item in expected.evaluate(run)}
    assert sorted(found) == sorted(item['name'] for item in run['checks'])
    for before in run['checks']:
        now = found[before['name']].to_json()
        assert now['measured'] == before['measured']
        if path.parent.name in WIDER:
            assert now['passed'] >= before['passed']
        else:
            judged = ('passed', 'lowest', 'highest')
            assert [now[key] for key in judged] == [
                before[key] for key in judged
            ]


def test_an_expectation_goes_through_json():
    for name in programs.LABORATORY.names():
        told = reader.find(name, programs.LABORATORY).to_json()['expect']
        kept = json.loads(json.dumps(told))
        assert (
            tuple(map(checks.from_json, kept))
            == reader.find(name, programs.LABORATORY).expect
        )


def test_a_vm_that_is_not_there_does_not_pass():
    run = result.build(fake_run.one_node_cpu())
    missing = checks.Expectation(
        'cpu-part', 'part', ('nobody',), around='max-min', within=0.1
    )
    (found,) = checks.evaluate(run, [missing])
    assert (found.name, found.measured, found.passed) == ('part', None, False)


def test_a_scenario_without_expectations_has_no_checks():
    run = result.build(fake_run.one_node_cpu(name='mine'))
    assert checks.evaluate(run, ()) == ()
