# SPDX-License-Identifier: Apache-2.0

"""Why a VM gets what it gets: its own numbers, and nobody else's."""

import dataclasses
import json

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.agent.explain import answer
from nova_fairness.agent.explain import history as weight_history
from nova_fairness.agent.explain import parts as parts_module
from nova_fairness.agent.explain import situation
from nova_fairness.agent.explain import standing
from nova_fairness.agent.explain import summary
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from tests.unit.agent import fake_host

CPU = resources.ResourceControl.CPU


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann', display_name='web'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
    )


def explained(host, done, uuid, history=(), **more):
    row = answer.find_row(done, uuid)
    asked = answer.AskedVm(
        done,
        row,
        parts_module.Explainer().parts(done),
        history,
        host.settings,
        **more,
    )
    told = answer.explain(asked)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    return told


def test_a_heavy_owner_reads_the_own_use(host):
    why = explained(host, host.rounds(2), 'a-1')
    assert (why['name'], why['user_id']) == ('web', 'ann')
    assert (why['user_name'], why['project_name']) == ('ann', 'project-ann')
    said = why['summary']
    assert said == ' '.join(why['advice'])
    assert said.startswith(
        'This VM is slowed down by sharing: it gets 0.33 CPU and wants 1.00 '
        "CPU. On this node 2 users wait for CPU; by quota its owner's part of "
        'it here is 50%, and they have 67%. All in all its owner is heavier'
    )
    assert f'weight {why["weights"]["cpu"]:.2f}' in said
    assert said.endswith(
        'The greatest part comes from CPU: their VMs use 0.67 CPU in all, '
        'and their part of all nodes is 0.50 CPU. If they use less of it, '
        'this VM gets more.'
    )


def test_a_light_owner_reads_that_it_has_precedence(host):
    said = explained(host, host.rounds(2), 'b-3')['summary']
    assert 'this VM goes first' in said
    assert 'less of it' not in said


def test_an_owner_at_the_fair_share_reads_that_nothing_is_wrong(host):
    said = explained(host, host.rounds(12), 'a-1')['summary']
    assert "its owner's part of it here is 50%, and they have 50%." in said
    assert 'This is their fair part: nothing is wrong.' in said


def test_reserved_resources_are_not_called_use(host):
    """The metric charges for endowment; nobody reads from a disk."""
    host.change(metric='GreedinessMetric')
    host.cpu.wants = {'a-1': 0.6, 'a-2': 0.0, 'b-3': 0.6}
    said = explained(host, host.rounds(3), 'a-1')['summary']
    assert 'is charged for what their VMs have reserved' in said
    assert 'use less' not in said


def test_no_other_user_is_named_as_cause_if_only_own_vms_wait(tmp_path):
    host = fake_host.FakeHost(
        tmp_path, fake_host.vm('a-1', 'ann'), fake_host.vm('a-2', 'ann')
    )
    said = explained(host, host.rounds(4), 'a-1')['summary']
    assert 'No other user waits for it' in said


def test_a_host_that_is_busy_itself_is_named(tmp_path):
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))
    done = waiting_alone(host, busy=1.0, part=0.3)
    said = explained(host, done, 'a-1')['summary']
    assert 'The host is busy itself: its own programs use 0.70 CPU' in said
    assert 'limit of its flavor' not in said


@pytest.mark.parametrize(
    ('specs', 'is_limit'),
    [
        ({'quota:cpu_quota': '30000'}, True),
        ({'quota:cpu_quota': '3000', 'quota:cpu_period': '10000'}, True),
        ({'quota:cpu_quota': '90000'}, False),
        ({'quota:cpu_quota': '-1'}, False),
        ({'quota:cpu_quota': '9', 'quota:cpu_period': '0'}, False),
        ({'quota:cpu_quota': 'much'}, False),
    ],
)
def test_a_limit_of_the_flavor_is_named_where_there_is_one(
    tmp_path, specs, is_limit
):
    vm = fake_host.vm('a-1', 'ann', extra_specs=specs)
    host = fake_host.FakeHost(tmp_path, vm)
    done = waiting_alone(host, busy=0.3, part=0.3)
    said = explained(host, done, 'a-1')['summary']
    assert ('the limit of its flavor' in said) is is_limit


def judged(host, **changes):
    done = host.rounds(2)
    parts = parts_module.Explainer().parts(done)
    given = standing.JudgedVm(
        done, done.measured, done.decided, 0, parts, host.settings
    )
    return dataclasses.replace(given, **changes)


def test_an_unknown_part_of_a_heaviness_is_not_invented(host):
    known = judged(host)
    parts, measured = known.parts, known.measured
    nothing = dataclasses.replace(measured, user_usage=None, wanted=None)
    assert (
        standing.largest_cause(judged(host, parts=None))
        == standing.LargestCause()
    )
    light = parts._replace(by_resource=-np.abs(parts.by_resource))
    assert (
        standing.largest_cause(judged(host, parts=light))
        == standing.LargestCause()
    )
    far = parts._replace(elsewhere=parts.elsewhere + 10)
    assert standing.largest_cause(
        judged(host, parts=far)
    ) == standing.LargestCause(situation.HeavinessCause.ELSEWHERE)
    unsummed = dataclasses.replace(known, measured=nothing)
    assert standing.largest_cause(unsummed) == standing.LargestCause(
        situation.HeavinessCause.USED, 'cpu_time'
    )
    cpu = standing.collect_facts(unsummed).cpu
    assert cpu.wants == cpu.gets


def waiting_alone(host, busy, part):
    """A VM that waits for a CPU, although nobody competes for it."""
    done = host.rounds(3)
    cpu = resources.CONTROLS.index(CPU)
    wanting = done.decided.wanting.copy()
    wanting[:, cpu] = True
    usage = done.measured.usage
    used = usage.newest.copy()
    used[:, 0] = part * usage.interval_s
    return dataclasses.replace(
        done,
        decided=dataclasses.replace(
            done.decided,
            wanting=wanting,
            contended=np.zeros_like(done.decided.contended),
        ),
        measured=dataclasses.replace(
            done.measured,
            usage=dataclasses.replace(
                usage, cpu_busy=np.array([busy]), unsmoothed=used
            ),
        ),
    )


def test_a_device_that_is_slow_itself_is_named(host):
    done = host.rounds(3)
    wanting = np.zeros_like(done.decided.wanting)
    wanting[:, resources.CONTROLS.index(resources.ResourceControl.DISK)] = True
    done = dataclasses.replace(
        done, decided=dataclasses.replace(done.decided, wanting=wanting)
    )
    said = explained(host, done, 'a-1')['summary']
    assert said.startswith('This VM waits for disk reads, but other VMs are')


def test_no_user_but_the_owner_is_named(host):
    text = json.dumps(explained(host, host.rounds(4), 'a-1'))
    assert 'bob' not in text
    assert 'b-3' not in text


def test_use_of_other_users_changes_no_number_that_is_not_theirs(tmp_path):
    """With half the load of the other user, only waiting may differ."""
    told = []
    for number, load in enumerate((1.0, 0.7)):
        place = tmp_path / str(number)
        place.mkdir()
        host = fake_host.FakeHost(
            place,
            fake_host.vm('a-1', 'ann'),
            fake_host.vm('b-2', 'bob'),
            metric='AssetFairnessMetric',
        )
        host.cpu.wants = {'a-1': 0.2, 'b-2': load}
        told.append(explained(host, host.rounds(5), 'a-1'))
    first, second = told
    for name in ('usage', 'owner_usage', 'endowment', 'quota', 'heaviness'):
        assert first[name] == second[name], name


def test_amounts_are_in_units_that_people_know(tmp_path):
    host = fake_host.FakeHost(tmp_path, fake_host.vm('a-1', 'ann'))
    host.node = dataclasses.replace(
        host.node,
        speed_factor=4800.0,
        capacity=host.node.capacity
        * np.where(np.array(resources.RESOURCES.names) == 'cpu_time', 4800, 1),
    )
    host.cycle = host._cycle()
    done = host.rounds(5)
    why = explained(host, done, 'a-1')
    assert why['usage']['cpu_time'] == pytest.approx(1.0, rel=0.1)
    assert why['endowment']['cpu_time'] == pytest.approx(1.0)
    assert why['quota']['cpu_time'] == pytest.approx(1.0)
    assert why['usage']['memory'] == pytest.approx(2**27, rel=0.1)
    assert why['quota']['disk_read'] == pytest.approx(1e8)


def test_an_explanation_exists_before_the_first_measurement(host):
    why = explained(host, host.rounds(1), 'a-1')
    assert why['heaviness'] == {
        'total': None,
        'additive': None,
        'by_resource': {},
        'elsewhere': None,
        'shadow': None,
        'shadow_metric': '',
    }
    assert why['usage'] == why['weights'] == {}
    assert why['contended'] == why['waiting'] == []
    assert why['summary'].startswith('Nothing is known of this VM for now')
    assert why['advice'] == [why['summary']]


def test_a_node_that_only_observes_says_so(tmp_path):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('b-2', 'bob'),
        enforce=False,
    )
    why = explained(host, host.rounds(4), 'a-1')
    assert why['enforced'] is False
    assert 'Weights are not in force on this node' in why['summary']


def test_an_exempted_vm_is_told_so(host):
    host.change(exempt=frozenset({'ann'}))
    why = explained(host, host.rounds(4), 'a-1')
    assert why['summary'] == summary.EXEMPT


def test_an_explanation_names_no_fault_of_a_control_that_cannot_steer(host):
    done = host.rounds(4)
    for working in (
        round_model.ControlStatus(False, 'no such file'),
        round_model.ControlStatus(
            True, 'fine', {done.incarnations[0].key: 'x'}
        ),
    ):
        given = dataclasses.replace(done, controls={CPU: working})
        said = explained(host, given, 'a-1')['summary']
        assert 'this node does not steer CPU for this VM' in said
        assert 'no such file' not in said


def test_written_values_count_as_working_where_no_kernel_reports(host):
    done = dataclasses.replace(host.rounds(4), controls={})
    assert 'does not steer' not in explained(host, done, 'a-1')['summary']


def test_weights_of_the_thesis_policy_are_not_called_neutral(host):
    why = explained(
        host, host.rounds(2), 'a-1', preset=policy_base.Preset.THESIS
    )
    assert 'in a range from 0 to 1' in why['summary']


def test_earlier_weights_are_listed_with_their_time(host):
    history = weight_history.WeightHistory()
    done = dataclasses.replace(host.rounds(4), wall_s=1763774400.0)
    history.add(done)
    why = explained(host, done, 'b-3', history.entries_of('b-3', 1763774400.0))
    assert why['weights_last_hour'] == [
        {'at': '2025-11-22T01:20:00Z', 'weights': why['weights']}
    ]


def test_an_explanation_of_a_missing_vm_has_no_row(host):
    assert answer.find_row(host.rounds(1), 'x-9') is None


def test_a_metric_that_failed_leaves_the_weights_as_they_were(host):
    history = weight_history.WeightHistory()
    before = host.rounds(4)
    history.add(before)
    guard = host.cycle._parts.guard
    with pytest.raises(exception.PluginMisbehaved):
        guard.call(host.settings.metric, lambda: 1 / 0)
    done = host.rounds(1)
    assert done.decided is None
    why = explained(host, done, 'b-3', history.entries_of('b-3', 0.0))
    assert why['weights'] == {
        control.value: weight
        for control, weight in zip(
            resources.CONTROLS, before.decided.weights[2], strict=True
        )
    }
    assert why['usage'] == {}
    (sentence,) = why['advice']
    assert sentence.startswith('The metric or the policy of this node failed')
