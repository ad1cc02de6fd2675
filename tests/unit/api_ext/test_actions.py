# SPDX-License-Identifier: Apache-2.0

"""POST /fairness/{host}/action."""

import pytest

from nova_fairness import exception
from tests.unit.api_ext import fake_cloud


def act(cloud, host, body, who='admin'):
    return cloud.ask(who, 'POST', f'/fairness/{host}/action', body)


def agents(cloud):
    return list(cloud.client._agents.values())


def test_a_metric_is_chosen_through_one_host(cloud):
    answer = act(cloud, 'cmp1', {'set-metric': {'name': 'TrialMetric'}})
    assert answer.status_code == 202
    assert answer.json == {
        'action': 'set-metric',
        'hosts': [
            {
                'name': 'cmp1',
                'from_round': 42,
                'epoch': 1,
                'metric': 'TrialMetric',
                'policy': 'feedback',
                'origin': 'cmp1',
            }
        ],
        'not_reached': [],
        'refused': [],
    }
    assert [agent.epoch for agent in agents(cloud)] == [1, 0]


def test_a_policy_is_chosen_for_all_as_one_epoch(cloud):
    answer = act(cloud, 'all', {'set-policy': {'name': 'thesis'}})
    assert answer.status_code == 202
    assert [item['name'] for item in answer.json['hosts']] == ['cmp1', 'cmp2']
    assert {agent.policy for agent in agents(cloud)} == {'thesis'}
    assert {agent.epoch for agent in agents(cloud)} == {1}


class FakeSigner:
    """Signs like a controller, and like one whose key cannot."""

    can = True

    def signed(self, epoch, metric, policy, **_):
        if not self.can:
            raise exception.NotAllowed('the key of c1 cannot sign')
        return {
            'epoch': epoch,
            'metric': metric,
            'policy': policy,
            'origin': 'c1',
            'signature': f'c1: {epoch} {metric} {policy}',
        }

    def check(self, choice):
        raise exception.ReportRefused('unsigned', 'no controller signed it')


@pytest.mark.parametrize('host', ['cmp1', 'all'])
def test_where_hosts_have_keys_a_choice_is_signed(cloud, host):
    cloud.agents._signer = FakeSigner()
    answer = act(cloud, host, {'set-policy': {'name': 'thesis'}})
    assert answer.status_code == 202
    told = agents(cloud)[: len(answer.json['hosts'])]
    assert {agent.signature for agent in told} == {
        'c1: 1 GreedinessMetric thesis'
    }
    cloud.agents._signer.can = False
    answer = act(cloud, host, {'set-policy': {'name': 'thesis'}})
    assert answer.status_code == 409
    assert 'the key of c1 cannot sign' in str(answer.json)


@pytest.mark.parametrize('given', [None, {}])
def test_all_hosts_are_paused_resumed_and_reset(cloud, given):
    for action in ('pause', 'reset', 'resume'):
        answer = act(cloud, 'all', {action: given})
        assert answer.status_code == 202
        assert len(answer.json['hosts']) == 2
    assert [agent.paused for agent in agents(cloud)] == [False, False]
    assert [agent.resets for agent in agents(cloud)] == [1, 1]


def test_agents_are_told_the_name_of_the_caller(cloud):
    for action in ({'pause': None}, {'set-policy': {'name': 'thesis'}}):
        assert act(cloud, 'all', action).status_code == 202
        for agent in agents(cloud):
            assert agent.by.user_id == fake_cloud.TOKENS['admin']['user_id']
            assert agent.by.request_id.startswith('req-')


def test_one_host_is_paused(cloud):
    answer = act(cloud, 'cmp2', {'pause': None})
    assert answer.json['hosts'] == [
        {
            'name': 'cmp2',
            'from_round': 42,
            'paused': True,
            'persistent': True,
            'problem': '',
        }
    ]
    assert [agent.paused for agent in agents(cloud)] == [False, True]


def test_an_action_names_unreached_hosts(cloud):
    cloud.client.silent = {'cmp2'}
    for body in ({'pause': None}, {'set-metric': {'name': 'TrialMetric'}}):
        answer = act(cloud, 'all', body)
        assert answer.status_code == 202
        assert [item['host'] for item in answer.json['not_reached']] == [
            'cmp2'
        ]


def test_an_action_names_refusing_hosts(cloud):
    answer = act(cloud, 'all', {'set-metric': {'name': 'TrialMetric'}})
    assert answer.status_code == 202
    assert [item['host'] for item in answer.json['refused']] == ['cmp2']
    assert 'GreedinessMetric' in answer.json['refused'][0]['reason']


@pytest.mark.parametrize('host', ['cmp1', 'all'])
def test_an_unknown_metric_is_400_and_known_ones_are_named(cloud, host):
    answer = act(cloud, host, {'set-metric': {'name': 'NoMetric'}})
    assert answer.status_code == 400
    assert 'GreedinessMetric' in answer.json['badRequest']['message']
    assert {agent.metric for agent in agents(cloud)} == {'GreedinessMetric'}


def test_an_action_on_an_unknown_host_gives_404(cloud):
    answer = act(cloud, 'cmp9', {'pause': None})
    assert answer.status_code == 404


def test_an_action_on_a_silent_host_gives_503(cloud):
    cloud.client.silent = {'cmp2'}
    answer = act(cloud, 'cmp2', {'pause': None})
    assert answer.status_code == 503
    assert 'cmp2' in answer.json['serviceUnavailable']['message']


@pytest.mark.parametrize('host', ['cmp1', 'all'])
@pytest.mark.parametrize(
    'error',
    [
        exception.NotAllowed('the key is no controller'),
        exception.StateError('no domain'),
        exception.Superseded('epoch 7 is known'),
        exception.RpcError('KeyError: bug'),
    ],
)
def test_an_action_refused_by_all_hosts_gives_409(
    cloud, monkeypatch, host, error
):
    real = type(cloud.client)._call

    def call(self, name, method, arguments):
        if method in ('pause', 'set_metric'):
            raise error
        return real(self, name, method, arguments)

    monkeypatch.setattr(type(cloud.client), '_call', call)
    for body in ({'pause': None}, {'set-metric': {'name': 'TrialMetric'}}):
        answer = act(cloud, host, body)
        assert answer.status_code == 409
        assert str(error) in answer.json['conflictingRequest']['message']


@pytest.mark.parametrize('who', ['alice', 'auditor', 'nobody'])
def test_only_administrators_act(cloud, who):
    for body in ({'pause': None}, {'set-metric': {'name': 'TrialMetric'}}):
        for host in ('cmp1', 'all', 'cmp9'):
            answer = act(cloud, host, body, who)
            assert answer.status_code == 403
    assert cloud.client.calls == []


def test_a_policy_file_may_allow_one_action_to_others(tmp_path, cloud):
    enforcer = cloud.enforcement._enforcer
    enforcer.set_rules(
        {
            **enforcer.rules,
            'os_fairness_api:hosts:pause': _always(),
        },
        overwrite=True,
        use_conf=False,
    )
    assert act(cloud, 'cmp1', {'pause': None}, 'alice').status_code == 202
    assert act(cloud, 'cmp1', {'reset': None}, 'alice').status_code == 403


def test_a_refused_caller_reads_the_policy_rule_of_the_action(cloud):
    said = act(cloud, 'cmp1', {'pause': None}, 'alice').json
    assert said['forbidden']['message'] == (
        "Policy doesn't allow os_fairness_api:hosts:pause to be performed."
    )
    for body in ({'nonsense': None}, {}, []):
        answer = act(cloud, 'cmp1', body, 'alice')
        assert answer.status_code == 403
        assert 'os_fairness_api' not in answer.text


def _always():
    from oslo_policy import _checks

    return _checks.TrueCheck()


def test_a_broken_answer_does_not_hide_actions_that_were_done(cloud):
    cloud.client.broken = {'cmp2': {'host': 'cmp2', 'peers': {}}}
    answer = act(cloud, 'all', {'pause': None})
    assert answer.status_code == 202
    assert [item['name'] for item in answer.json['hosts']] == ['cmp1']
    assert [item['host'] for item in answer.json['not_reached']] == ['cmp2']


def test_an_action_reads_the_host_names_anew(tmp_path):
    cloud = fake_cloud.FakeCloud(tmp_path, kept_s=3600.0)
    cloud.ask('admin', 'GET', '/fairness/hosts')
    agents(cloud)[0].peers = ()
    agents(cloud)[1].peers = ()
    answer = act(cloud, 'all', {'pause': None})
    assert [item['name'] for item in answer.json['hosts']] == ['cmp1']
