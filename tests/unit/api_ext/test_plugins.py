# SPDX-License-Identifier: Apache-2.0

"""GET /fairness."""

from api_ext.handlers import plugin
from nova_fairness import exception
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud


def test_all_callers_see_the_installed_plugins(cloud):
    answer = cloud.ask('alice', 'GET', '/fairness')
    assert answer.status_code == 200
    assert answer.json == {
        'metrics': [
            {
                'metric': {
                    'name': 'DominantShareMetric',
                    'description': 'The largest share.',
                    'in_force': False,
                }
            },
            {
                'metric': {
                    'name': 'GreedinessMetric',
                    'description': 'Credit for what is left unused.',
                    'in_force': True,
                }
            },
            {
                'metric': {
                    'name': 'TrialMetric',
                    'description': 'An experiment.',
                    'in_force': False,
                }
            },
        ],
        'policies': [
            {
                'policy': {
                    'name': 'feedback',
                    'description': 'Until heaviness is equal.',
                    'in_force': True,
                }
            },
            {
                'policy': {
                    'name': 'thesis',
                    'description': 'The fixed map.',
                    'in_force': False,
                }
            },
        ],
    }


def without(answer):
    return {
        item['metric']['name']: item['metric']['hosts_without']
        for item in answer.json['metrics']
    }


def test_operators_see_which_hosts_lack_a_plugin(cloud):
    answer = cloud.ask('admin', 'GET', '/fairness/')
    assert without(answer) == {
        'DominantShareMetric': [],
        'GreedinessMetric': [],
        'TrialMetric': ['cmp2'],
    }
    assert 'partial' not in answer.json


def test_a_host_that_cannot_load_a_plugin_lacks_it(tmp_path):
    broken = fake_agents.FakeAgent('cmp1', peers=('cmp2',))
    broken.metrics['TrialMetric'] = 'unusable: it has no method'
    well = fake_agents.FakeAgent('cmp2', peers=('cmp1',))
    well.metrics['TrialMetric'] = 'An experiment.'
    cloud = fake_cloud.FakeCloud(
        tmp_path, of_client=fake_agents.FakeClient(broken, well)
    )
    answer = cloud.ask('admin', 'GET', '/fairness')
    assert without(answer)['TrialMetric'] == ['cmp1']
    assert answer.json['metrics'][-1]['metric']['description'] == (
        'An experiment.'
    )


def test_a_silent_host_makes_the_answer_partial(cloud):
    cloud.client.silent = {'cmp2'}
    told = cloud.ask('auditor', 'GET', '/fairness').json
    assert told['partial'] is True
    assert told['not_reached'] == [
        {'host': 'cmp2', 'reason': 'no answer within 1 s'}
    ]
    told = cloud.ask('alice', 'GET', '/fairness').json
    assert told['partial'] is True
    assert 'cmp' not in str(told)


def test_a_host_with_an_invalid_answer_is_listed_as_missing(cloud):
    for broken in (None, [], {'metrics': 3}, {'metrics': [{}]}, 'x'):
        cloud.client.broken = {'cmp2': broken}
        told = cloud.ask('admin', 'GET', '/fairness').json
        assert [item['host'] for item in told['not_reached']] == ['cmp2']


def test_a_caller_without_a_role_sees_no_plugin(cloud):
    assert cloud.ask('nobody', 'GET', '/fairness').status_code == 403


def test_a_host_with_an_older_agent_is_missing_from_the_plugins(
    cloud, monkeypatch
):
    real = type(cloud.client)._call

    def call(self, host, method, arguments):
        if host == 'cmp2' and method == 'get_plugins':
            raise exception.RpcError('UnsupportedVersion: 1.2')
        return real(self, host, method, arguments)

    monkeypatch.setattr(type(cloud.client), '_call', call)
    told = cloud.ask('admin', 'GET', '/fairness').json
    assert told['not_reached'] == [
        {'host': 'cmp2', 'reason': 'UnsupportedVersion: 1.2'}
    ]


def test_agents_of_an_older_release_do_not_name_the_plugins_in_force():
    agent = fake_agents.FakeAgent('cmp1', peers=())
    told = agent.plugins()
    del told['metric'], told['policy']
    assert plugin.parse_plugins(told)['metric'] == {}
    assert plugin.parse_plugins(agent.plugins())['policy'] == {'feedback': ''}


def test_only_operators_see_why_a_plugin_is_unusable(tmp_path):
    broken = fake_agents.FakeAgent('cmp1')
    why = 'unusable: /opt/secret/place.py on cmp1 cannot be read'
    broken.metrics['TrialMetric'] = why
    cloud = fake_cloud.FakeCloud(
        tmp_path, of_client=fake_agents.FakeClient(broken)
    )
    said = {
        who: cloud.ask(who, 'GET', '/fairness').json['metrics'][-1]['metric']
        for who in ('auditor', 'alice')
    }
    assert said['auditor']['description'] == why
    assert (said['alice']['name'], said['alice']['description']) == (
        'TrialMetric',
        '',
    )
