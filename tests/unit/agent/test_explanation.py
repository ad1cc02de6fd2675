# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Why a VM gets what it gets: its own numbers, and nobody else's."""

import dataclasses
import json

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.agent import explainer
from nova_fairness.agent import explanation
from nova_fairness.agent import weight_history
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from tests.unit.agent import fake_host

CPU = resources.Control.CPU


@pytest.fixture
def host(tmp_path):
    return fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann', display_name='web'),
        fake_host.vm('a-2', 'ann'),
        fake_host.vm('b-3', 'bob'),
    )


def explained(host, done, uuid, history=(), **more):
    row = explanation.row_of(done, uuid)
    asked = explanation.Asked(
        done,
        row,
        explainer.Explainer().parts(done),
        history,
        host.settings,
        **more,
    )
    told = explanation.explain(asked)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    return told


def test_a_heavy_owner_is_told_to_use_less(host):
    why = explained(host, host.rounds(4), 'a-1')
    assert (why['name'], why['user_id']) == ('web', 'ann')
    (sentence,) = why['advice']
    assert sentence.startswith('Your VMs use 1.')
    assert 'times your part of cpu_time' in sentence
    assert f'weight {why["weights"]["cpu"]:.2f}' in sentence
    assert why['weights']['cpu'] < 1


def test_a_light_owner_is_told_that_it_is_served_first(host):
    (sentence,) = explained(host, host.rounds(4), 'b-3')['advice']
    assert 'served before heavier ones' in sentence


def test_nobody_is_named_but_the_owner(host):
    text = json.dumps(explained(host, host.rounds(4), 'a-1'))
    assert 'bob' not in text
    assert 'b-3' not in text


def test_what_others_use_changes_no_number_that_is_not_theirs(tmp_path):
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


def test_before_anything_is_measured_there_is_an_answer(host):
    why = explained(host, host.rounds(1), 'a-1')
    assert why['heaviness'] == {
        'total': None,
        'additive': None,
        'by_resource': {},
        'elsewhere': None,
    }
    assert why['usage'] == why['weights'] == {}
    assert why['contended'] == why['waiting'] == []
    assert why['advice'][0].startswith('Nothing is known of this VM for now')


def test_a_node_that_only_observes_says_so(tmp_path):
    host = fake_host.FakeHost(
        tmp_path,
        fake_host.vm('a-1', 'ann'),
        fake_host.vm('b-2', 'bob'),
        enforce=False,
    )
    why = explained(host, host.rounds(4), 'a-1')
    assert why['enforced'] is False
    assert why['advice'][0].startswith('Weights are not in force')


def test_an_exempted_vm_is_told_so(host):
    host.change(exempt_users=frozenset({'ann'}))
    why = explained(host, host.rounds(4), 'a-1')
    assert why['advice'] == [
        (
            'An operator exempted this VM: its weights are not written, and '
            'it gets what it would get without fair sharing.'
        )
    ]


def test_a_control_that_cannot_steer_it_is_not_blamed(host):
    done = host.rounds(4)
    for working in (
        round_model.Working(False, 'no such file'),
        round_model.Working(True, 'fine', {done.incarnations[0].key: 'x'}),
    ):
        given = dataclasses.replace(done, controls={CPU: working})
        (sentence,) = explained(host, given, 'a-1')['advice']
        assert 'cannot be steered for it on this node' in sentence
        assert 'no such file' not in sentence


def test_weights_that_are_places_are_not_called_neutral(host):
    why = explained(
        host, host.rounds(4), 'a-1', preset=policy_base.Preset.THESIS
    )
    assert 'a place in a range' in why['advice'][0]


def test_earlier_weights_are_told_with_their_time(host):
    history = weight_history.WeightHistory()
    done = dataclasses.replace(host.rounds(4), wall_s=1763774400.0)
    history.add(done)
    why = explained(host, done, 'b-3', history.of('b-3', 1763774400.0))
    assert why['weights_last_hour'] == [
        {'at': '2025-11-22T01:20:00Z', 'weights': why['weights']}
    ]


def test_a_vm_that_is_not_there_has_no_row(host):
    assert explanation.row_of(host.rounds(1), 'x-9') is None


def test_a_metric_that_failed_leaves_the_weights_as_they_were(host):
    history = weight_history.WeightHistory()
    before = host.rounds(4)
    history.add(before)
    guard = host.cycle._rooms.guard
    with pytest.raises(exception.PluginMisbehaved):
        guard.call(host.settings.metric, lambda: 1 / 0)
    done = host.rounds(1)
    assert done.decided is None
    why = explained(host, done, 'b-3', history.of('b-3', 0.0))
    assert why['weights'] == {
        control.value: weight
        for control, weight in zip(
            resources.CONTROLS, before.decided.weights[2], strict=True
        )
    }
    assert why['usage'] == {}
    (sentence,) = why['advice']
    assert sentence.startswith('The metric or the policy of this node failed')
