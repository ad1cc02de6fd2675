# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math

import jsonschema
import pytest

from fairness_lab.results import recording
from fairness_lab.results import result
from fairness_lab.results import schema as result_schema
from fairness_lab.results import timeline
from nova_fairness import exception
from tests.fixtures import manual_fields
from tests.unit.fairness_lab.results import fake_run

INF = math.inf


def simulate(vms, demand, **changes):
    return fake_run.simulate(fake_run.FakeRun(vms, demand, **changes))


def valid(built):
    schema = result_schema.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({**built, 'checks': []}, schema)
    return built


def test_without_agents_all_vms_get_equal_cpu_time():
    built = valid(result.build(fake_run.one_node_cpu(agents=False)))
    parts = [vm['cpu_share'] for vm in built['instances'].values()]
    assert parts == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert built['rounds'] == 0
    assert built['users']['alice']['cpu_share'] == pytest.approx(2 / 3, 1e-3)
    assert built['users']['alice']['first_within_s'] is None
    assert built['jain']['cpu'] == pytest.approx(0.9, abs=1e-3)
    assert built['instances']['a1']['weights'] == {}


def test_with_agents_every_user_gets_the_same():
    built = valid(result.build(fake_run.one_node_cpu()))
    assert built['rounds'] == 24
    for user in built['users'].values():
        assert user['cpu_share'] == pytest.approx(0.5, abs=1e-3)
        assert user['max_min_share'] == pytest.approx(0.5, abs=1e-9)
        assert 10 < user['first_within_s'] < 40
    vm = built['instances']['b1']
    assert vm['max_min_share'] == pytest.approx(0.5)
    assert vm['weights']['cpu'][-1] == pytest.approx(2.0, abs=1e-3)
    assert vm['weights_applied']['cpu'][-1] == 2048
    assert vm['peak_to_peak']['cpu'] < 0.01
    assert vm['work_per_s'] == pytest.approx(50, rel=1e-2)


def test_waits_of_vcpus_are_a_part_of_the_time():
    run = fake_run.one_node_cpu()
    readings = tuple(
        dataclasses.replace(row, more={'wait_s': 0.6 * row.t_s})
        if row.vm == 'a1'
        else row
        for row in run.readings
    )
    built = valid(result.build(dataclasses.replace(run, readings=readings)))
    assert built['instances']['a1']['waited_part'] == pytest.approx(0.6)
    assert built['instances']['b1']['waited_part'] is None


def test_only_the_rounds_of_the_settled_half_count():
    built = result.build(fake_run.one_node_cpu(interval_s=10.0))
    assert built['window'] == {'from_s': 60.0, 'to_s': 120.0}
    assert len(built['instances']['a1']['weights']['cpu']) == 7


def test_weights_of_users_change_fair_parts():
    built = result.build(fake_run.one_node_cpu(user_weight={'alice': 3}))
    assert built['users']['alice']['max_min_share'] == pytest.approx(0.75)
    assert built['instances']['a2']['max_min_share'] == pytest.approx(0.375)
    # alice: 0.5 / 3, bob: 0.5
    expected = (1 / 6 + 1 / 2) ** 2 / (2 * (1 / 36 + 1 / 4))
    assert built['jain']['cpu'] == pytest.approx(expected, abs=1e-3)


def test_the_bound_of_the_weights_limits_the_light_user():
    vms = {'l': 'alice', **{f'h{place}': 'bob' for place in range(30)}}
    built = valid(result.build(simulate(vms, [(0, vm, INF) for vm in vms])))
    light = built['users']['alice']
    assert light['bounded_share'] == pytest.approx(0.4)
    assert light['max_min_share'] == pytest.approx(0.5)
    assert light['cpu_share'] == pytest.approx(0.4, abs=0.01)


def test_a_frozen_vm_wants_nothing_and_is_left_out():
    vms = {'a1': 'alice', 'b1': 'bob', 'c1': 'carol'}
    built = valid(
        result.build(
            simulate(
                vms,
                [(0, vm, INF) for vm in vms],
                events=[(40.0, 'freeze', 'a1'), (80.0, 'thaw', 'a1')],
            )
        )
    )
    before, frozen, after = built['windows']
    assert (frozen['from_s'], frozen['to_s']) == (40.0, 80.0)
    assert set(frozen['instances']) == {'b1', 'c1'}
    for window, fair in ((before, 1 / 3), (frozen, 1 / 2), (after, 1 / 3)):
        for vm in window['instances'].values():
            assert vm['max_min_share'] == pytest.approx(fair)
            assert vm['distance'] < 0.01


def test_changes_of_the_load_cut_windows():
    built = result.build(
        simulate(
            {'a1': 'alice', 'b1': 'bob'},
            [(0, 'a1', INF), (0, 'b1', 0.1), (50, 'b1', INF)],
        )
    )
    first, second = built['windows']
    assert first['to_s'] == second['from_s'] == 50
    assert first['instances']['b1']['max_min_share'] == pytest.approx(0.1)
    assert first['instances']['b1']['demand'] == pytest.approx(0.1)
    assert second['instances']['b1']['max_min_share'] == pytest.approx(0.5)


def test_a_destroyed_vm_wants_nothing_from_then_on():
    run = fake_run.one_node_cpu(agents=False)
    kept = tuple(
        row for row in run.readings if row.vm != 'b1' or row.t_s <= 60
    )
    shorter = recording.Recording(
        run.meta,
        kept,
        (recording.EventRow(60.0, 'destroy', 'b1'),),
        run.offers,
    )
    built = result.build(shorter)
    assert built['users']['bob']['max_min_share'] == 0
    assert built['instances']['a1']['max_min_share'] == pytest.approx(0.5)


def test_a_lone_vm_and_its_weight_are_found():
    built = valid(
        result.build(
            simulate(
                {'a1': 'alice', 'a2': 'alice', 'b1': 'bob'},
                [
                    (0, 'a1', INF),
                    (0, 'a2', INF),
                    (0, 'b1', INF),
                    (60, 'a2', 0),
                    (60, 'b1', 0),
                ],
            )
        )
    )
    (lone,) = built['lone']
    assert (lone['vm'], lone['from_s'], lone['to_s']) == ('a1', 60, 120)
    assert lone['cpu_part'] == pytest.approx(1.0, abs=1e-6)
    assert lone['lowest_weight'] == lone['highest_weight'] == 1.0


def uncontended(speed):
    events = [
        (10.0 * n, ('agents_stopped', 'agents_started')[n % 2], 'node1')
        for n in range(22)
    ]
    return simulate(
        {'a1': 'alice'},
        [(0, 'a1', 0.5)],
        name='uncontended',
        events=events,
        duration_s=220.0,
        speed_without=speed,
    )


@pytest.mark.parametrize('speed', [1.0, 1.05])
def test_phases_without_and_with_agents_are_compared(speed):
    built = valid(result.build(uncontended(speed)))['uncontended']
    assert len(built['pairs']) == 10
    change = pytest.approx(1 / speed - 1, abs=1e-6)
    assert built['mean_difference'] == change
    assert built['confidence_95'] == [change, change]


def test_other_runs_have_no_phases():
    assert result.build(fake_run.one_node_cpu())['uncontended'] is None


def test_shares_of_the_thesis_are_held_against_the_reference():
    run = fake_run.one_node_cpu(metric='GreedinessMetric', policy='thesis')
    found = valid(result.build(run))['reference']
    assert found == {'compared': 23 * 3, 'largest_difference': 0}
    run.rounds['node1'][9]['instances'][0]['wanted'] = {'cpu': 1}
    assert result.build(run)['reference']['largest_difference'] > 1


@pytest.mark.parametrize(
    ('values', 'expected'),
    [
        ([1.0, 1.0, 1.0], 1.0),
        ([1.0, 0.0, 0.0, 0.0], 0.25),
        ([2.0, 1.0], 0.9),
        ([0.0, 0.0], None),
        ([], None),
    ],
)
def test_the_jain_index_has_its_known_values(values, expected):
    assert result.jain(values) == expected


@pytest.mark.parametrize(
    ('points', 'from_s', 'to_s', 'expected'),
    [
        ([(0, 0), (10, 5)], 2, 4, 1),
        ([(0, 7), (10, 9)], 0, 10, 2),
        ([(0, 0), (1, 4), (2, 1), (3, 2)], 0, 3, 6),
        ([(5, 3), (6, 4)], 0, 10, 1),
        ([], 0, 10, 0),
    ],
)
def test_growth_of_a_counter_ignores_resets(points, from_s, to_s, expected):
    assert timeline.Counter(points).over(from_s, to_s) == expected


def test_a_run_that_was_ended_early_lasted_as_long_as_it_was_read():
    run = fake_run.one_node_cpu()
    early = tuple(row for row in run.readings if row.t_s <= 80)
    ended = dataclasses.replace(run, readings=early)
    assert result.build(ended)['window'] == {'from_s': 40.0, 'to_s': 80.0}


def test_a_run_without_load_is_no_result():
    run = dataclasses.replace(fake_run.one_node_cpu(), readings=())
    with pytest.raises(exception.LabError, match='no readings'):
        result.build(run)


def test_a_vm_that_the_scenario_lacks_is_named():
    run = fake_run.one_node_cpu()
    run.meta['scenario']['vms'].pop()
    with pytest.raises(exception.LabError, match='no VM b1'):
        result.build(run)


@pytest.mark.parametrize(
    ('cpus', 'count'), [(2, 2), ([0, 3], 2), ('0-1,4', 3), ('5', 1)]
)
def test_cpus_of_a_node_are_counted(cpus, count):
    run = fake_run.one_node_cpu(duration_s=10.0)
    run.meta['scenario']['nodes'][0]['cpus'] = cpus
    assert timeline.Timeline(run).capacity == {'node1': count}


def properties(node, path=''):
    for name, inner in node.get('properties', {}).items():
        yield f'{path}{name}'
        yield from properties(inner, f'{path}{name}.')
    for key in ('additionalProperties', 'items'):
        if isinstance(node.get(key), dict):
            mark = '<name>.' if key == 'additionalProperties' else ''
            start = path if mark else f'{path[:-1]}[].'
            yield from properties(node[key], start + mark)


def test_every_property_of_the_schema_is_described():
    page = manual_fields.page_with_schemas('result-json.rst')
    missing = [
        name
        for name in properties(result_schema.schema())
        if f'``{name}``' not in page
    ]
    assert missing == []
