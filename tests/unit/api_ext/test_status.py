# SPDX-License-Identifier: Apache-2.0

"""One answer about the cluster service and the agents."""

import pytest

from tests.unit.api_ext import fake_cloud


@pytest.fixture
def cloud(tmp_path):
    return fake_cloud.FakeCloud(tmp_path)


def status(cloud):
    answer = cloud.ask('admin', 'GET', '/fairness/status')
    assert answer.status_code == 200, answer.body
    return answer.json['status']


def test_leader_and_agents_are_in_one_answer(cloud):
    told = status(cloud)
    assert (told['leader'], told['epoch']) == ('ctl1', 7)
    assert told['leads_since'] == '2025-12-31T00:00:00+00:00'
    assert told['agents'] == {'steering': 2}
    assert told['warnings'] == ['account p: odd']


def test_agents_that_are_paused_or_silent_are_counted_and_named(cloud):
    cloud.client._agents['cmp1'].paused = True
    cloud.client.silent.add('cmp2')
    told = status(cloud)
    assert told['agents'] == {'paused': 1, 'silent': 1}
    [silent] = [each for each in told['warnings'] if 'cmp2' in each]
    assert silent.startswith('agent of host cmp2: ')
    assert told['advice'][-1].endswith('openstack fairness host list')


def test_the_service_is_shown_though_no_agent_answers(cloud):
    cloud.client.silent |= {'cmp1', 'cmp2'}
    told = status(cloud)
    assert (told['leader'], told['agents']) == ('ctl1', {})
    assert told['warnings'][-1].startswith('agents: No agent answers')


def test_many_silent_agents_are_summed_up(cloud, monkeypatch):
    monkeypatch.setattr('api_ext.handlers.status._NAMED', 0)
    cloud.client.silent.add('cmp2')
    assert status(cloud)['warnings'][-1] == '1 more agent does not answer'
