# SPDX-License-Identifier: Apache-2.0

import copy

import pytest

from fairness_lab.scenario import programs
from fairness_lab.scenario import reader
from fairness_lab.scenario import values
from tests.unit.fairness_lab.results import expected
from tests.unit.fairness_lab.testbed import fake_backend


def run(out, name, agents=True, **changes):
    found = fake_backend.changed(
        reader.find(name, programs.LABORATORY), **changes
    )
    _, result = fake_backend.result_of(found, out, agents=agents)
    return result


@pytest.fixture(scope='module')
def results(tmp_path_factory):
    """Results of simulated runs, each made once."""
    made = {}

    def give(name, **changes):
        key = (name, *sorted(changes.items()))
        if key not in made:
            out = tmp_path_factory.mktemp('run') / 'out'
            made[key] = run(out, name, **changes)
        return copy.deepcopy(made[key])

    return give


def failed(result):
    return sorted(c.name for c in expected.evaluate(result) if not c.passed)


def named(result):
    return {check.name for check in expected.evaluate(result)}


def test_a_user_competing_on_one_node_only_gets_more_there(results):
    result = results('two-nodes-cpu')
    parts = {n: vm['cpu_share'] for n, vm in result['instances'].items()}
    assert parts['single'] == pytest.approx(0.70, abs=0.04)
    assert parts['first'] == pytest.approx(0.30, abs=0.04)
    assert failed(result) == []


def test_the_metric_of_the_paper_favours_users_with_one_vm(results):
    result = results('two-nodes-cpu', metric='GreedinessMetric')
    assert result['instances']['single']['cpu_share'] >= 0.58
    assert 'greater-part-single' in named(result)
    assert failed(result) == []
    result['instances']['single']['cpu_share'] = 0.57
    assert failed(result) == ['greater-part-single']


def test_without_agents_both_get_the_same(results):
    result = results('two-nodes-cpu', agents=False)
    assert named(result) == {
        *('equal-part-single', 'equal-part-first'),
        *('satisfied-second', 'satisfied-other'),
    }
    assert failed(result) == []


def test_the_check_finds_agents_that_never_connect(results):
    never = (values.ScenarioEvent(0.0, values.ScenarioAction.KILL_REDIS, ''),)
    late = (
        values.ScenarioEvent(20.0, values.ScenarioAction.START_AGENT, 'node2'),
        values.ScenarioEvent(10.0, values.ScenarioAction.KILL_REDIS, ''),
    )
    assert failed(results('two-nodes-cpu', events=never)) == []
    events = tuple(sorted(late, key=lambda event: event.at_s))
    assert failed(results('two-nodes-cpu', events=events)) == [
        'fair-part-first',
        'fair-part-single',
        'knows-all-node1',
        'knows-all-node2',
    ]


def test_the_check_finds_losses_without_waiting_vms(results):
    result = results('two-nodes-cpu')
    result['instances']['second']['cpu_s'] *= 0.9
    result['instances']['other']['weight_range'] = {'cpu': [1.0, 1.2]}
    assert failed(result) == ['does-not-wind-up-other', 'satisfied-second']


def test_a_peer_that_was_away_is_taken_in_again(results):
    result = results('cut-node')
    assert failed(result) == []
    assert [entry['event'] for entry in result['healings']] == ['heal']
    healing = result['healings'][0]
    assert healing['since_s'] == 115
    assert (healing['from_s'], healing['to_s']) == (130, 145)
    assert 1 <= healing['rounds_until_known'] <= 3
    assert result['instances']['single']['max_min_share'] < 0.70


@pytest.mark.parametrize(
    ('change', 'missed'),
    [
        ({'rounds_until_known': 4}, 'known-1'),
        ({'rounds_until_known': None}, 'known-1'),
        ({'instances': {}}, 'as-before-1'),
        ({'instances': {'single': {'distance': 0.051}}}, 'as-before-1'),
    ],
)
def test_the_check_finds_a_state_that_differs_after_the_test(
    results, change, missed
):
    result = results('cut-node')
    result['healings'][0].update(change)
    assert failed(result) == [missed]


@pytest.mark.parametrize(
    ('change', 'missed'),
    [
        ({'longest_gap_s': 10.1}, 'no-hang-node2'),
        ({'longest_gap_s': None}, 'no-hang-node2'),
        ({'rounds_without_weights': 1}, 'always-weights-node2'),
        ({'known_part': 0.5}, 'knows-all-node2'),
        ({'known_part': None}, 'knows-all-node2'),
    ],
)
def test_the_check_finds_an_idle_agent(results, change, missed):
    result = results('cut-node')
    result['nodes']['node2'].update(change)
    assert failed(result) == [missed]


def test_other_metrics_are_judged_by_their_rounds_only(results):
    result = results('cut-node', metric='UniformMetric')
    assert not [name for name in named(result) if 'window' in name]
    assert failed(result) == []


def test_an_agent_that_joins_late_counts_from_its_first_report(results):
    result = results('late-joiner')
    healing = result['healings'][0]
    assert (healing['t_s'], healing['since_s']) == (40, 45)


def test_agents_that_stop_are_not_said_to_hang(results):
    for name in ('killed-peer', 'silent-peer', 'rolling-restart'):
        nodes = results(name)['nodes']
        assert nodes['node2']['longest_gap_s'] <= 5.1, name
