# SPDX-License-Identifier: Apache-2.0

"""Users and projects."""

import math

import pytest

from api_ext import owners
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud


def test_operators_see_all_users_with_the_sum_of_their_instances(cloud):
    answer = cloud.ask('auditor', 'GET', '/fairness/users')
    assert answer.status_code == 200
    assert answer.json['partial'] is False
    assert answer.json['users'][0] == {
        'id': fake_cloud.ALICE,
        'heaviness_quotas': 0.5,
        'instances_count': 1,
        'usage_quotas': {'cpu_time': 0.5, 'disk_read': 0.5, 'memory': 0.5},
        'hosts': ['cmp1'],
    }
    assert [item['id'] for item in answer.json['users']] == [
        fake_cloud.ALICE,
        fake_cloud.BOB,
        fake_cloud.CAROL,
    ]


def test_the_heaviness_by_the_shadow_metric_is_shown_if_there_is_one(cloud):
    url = '/fairness/users'
    for agent in cloud.client._agents.values():
        agent.shadow = 'AssetFairnessMetric'
    for item in cloud.ask('auditor', 'GET', url).json['users']:
        assert item['shadow_metric'] == 'AssetFairnessMetric'
        assert item['shadow_heaviness_quotas'] == 2 * item['heaviness_quotas']
    url = f'/fairness/users/{fake_cloud.ALICE}'
    told = cloud.ask('alice', 'GET', url).json['user']
    assert told['shadow_heaviness_quotas'] == 1.0
    told = cloud.ask('admin', 'GET', '/fairness/projects').json['projects']
    assert {item['shadow_metric'] for item in told} == {'AssetFairnessMetric'}


def test_users_can_be_sorted_by_heaviness(cloud):
    url = '/fairness/users?sort_key=heaviness_quotas&sort_dir=desc&limit=2'
    answer = cloud.ask('admin', 'GET', url)
    assert [item['id'] for item in answer.json['users']] == [
        fake_cloud.CAROL,
        fake_cloud.ALICE,
    ]
    [link] = answer.json['users_links']
    assert f'marker={fake_cloud.ALICE}' in link['href']


@pytest.mark.parametrize('who', ['alice', 'bob', 'carol', 'nobody'])
@pytest.mark.parametrize('url', ['users', 'projects'])
def test_non_operators_cannot_list_users(cloud, who, url):
    assert cloud.ask(who, 'GET', f'/fairness/{url}').status_code == 403
    assert cloud.client.calls == []


@pytest.mark.parametrize('name', ['me', fake_cloud.ALICE])
def test_a_user_sees_only_himself_and_no_host(cloud, name):
    cloud.client.silent = {'cmp2'}
    answer = cloud.ask('alice', 'GET', f'/fairness/users/{name}')
    assert answer.status_code == 200
    assert answer.json == {
        'user': {
            'id': fake_cloud.ALICE,
            'heaviness_quotas': 0.5,
            'instances_count': 1,
            'usage_quotas': {
                'cpu_time': 0.5,
                'disk_read': 0.5,
                'memory': 0.5,
            },
        },
        'partial': True,
    }


@pytest.mark.parametrize('name', [fake_cloud.BOB, 'nobody-at-all', 'Me'])
def test_whether_another_user_exists_is_not_told(cloud, name):
    answer = cloud.ask('alice', 'GET', f'/fairness/users/{name}')
    assert answer.status_code == 403
    assert cloud.client.calls == []


def test_an_operator_sees_any_user(cloud):
    url = f'/fairness/users/{fake_cloud.BOB}'
    answer = cloud.ask('admin', 'GET', url)
    assert answer.json['user']['hosts'] == ['cmp1']
    assert answer.json['not_reached'] == []


def test_a_user_without_instances_gives_404(cloud):
    answer = cloud.ask('admin', 'GET', '/fairness/users/me')
    assert answer.status_code == 404


def test_a_user_that_may_be_on_a_silent_host_gives_503(cloud):
    cloud.client.silent = {'cmp2'}
    answer = cloud.ask('admin', 'GET', '/fairness/users/me')
    assert answer.status_code == 503


def test_users_give_404_where_projects_are_compared(cloud):
    for agent in cloud.client._agents.values():
        agent.entity = 'project'
        agent.heaviness_elsewhere = {}
    assert cloud.ask('admin', 'GET', '/fairness/users').json['users'] == []
    projects = cloud.ask('admin', 'GET', '/fairness/projects').json
    assert {item['scope'] for item in projects['projects']} == {'domain'}


def test_projects_sum_up_their_hosts(cloud):
    cloud.client._agents['cmp2'].vms.append(
        fake_agents.FakeVm('x', fake_cloud.BOB, fake_cloud.RED, 2.0)
    )
    [red, blue] = cloud.ask('admin', 'GET', '/fairness/projects').json[
        'projects'
    ]
    assert red['id'] == fake_cloud.RED
    assert red['scope'] == 'host'
    assert red['heaviness_quotas'] == 2.25
    assert red['instances_count'] == 3
    assert red['hosts'] == ['cmp1', 'cmp2']
    assert blue['heaviness_quotas'] == 1.0


@pytest.mark.parametrize('name', ['me', fake_cloud.RED])
def test_a_member_sees_the_own_project(cloud, name):
    answer = cloud.ask('alice', 'GET', f'/fairness/projects/{name}')
    assert answer.status_code == 200
    assert answer.json['project']['instances_count'] == 2
    assert 'hosts' not in answer.json['project']


def test_another_project_is_not_shown(cloud):
    url = f'/fairness/projects/{fake_cloud.BLUE}'
    assert cloud.ask('alice', 'GET', url).status_code == 403


def test_a_system_token_sees_no_own_project(cloud):
    answer = cloud.ask('auditor', 'GET', '/fairness/projects/me')
    assert answer.status_code == 400
    assert 'no project' in answer.json['badRequest']['message']


@pytest.mark.parametrize(
    'broken',
    [
        None,
        {},
        {'users': None, 'projects': None},
        {'users': {'a': {}}, 'projects': {'a': {}}, 'scope': 'host'},
        {'users': 'abc', 'projects': 'abc', 'scope': 'host'},
    ],
)
@pytest.mark.parametrize('url', ['users', 'projects'])
def test_a_host_with_an_invalid_answer_is_listed_as_missing(
    cloud, broken, url
):
    cloud.client.broken = {'cmp2': broken}
    answer = cloud.ask('admin', 'GET', f'/fairness/{url}')
    assert answer.status_code == 200
    assert [item['host'] for item in answer.json['not_reached']] == ['cmp2']


def test_answers_are_used_again_for_a_while(tmp_path):
    cloud = fake_cloud.FakeCloud(tmp_path, kept_s=3600.0)
    cloud.ask('admin', 'GET', '/fairness/users')
    calls = len(cloud.client.calls)
    for who in ('alice', 'bob', 'carol'):
        answer = cloud.ask(who, 'GET', '/fairness/users/me')
        assert answer.status_code == 200
    assert len(cloud.client.calls) == calls


def account(scope=owners.DOMAIN, **heaviness):
    return owners.HostOwners(
        scope,
        {
            owner: owners.OwnerNumbers(value, 1, {'memory': value})
            for owner, value in heaviness.items()
        },
    )


def test_one_host_that_is_cut_off_does_not_change_a_users_heaviness():
    merged = owners.merge_hosts(
        {'a': account(u=1.0), 'b': account(u=1.1), 'c': account(u=50.0)}
    )
    assert merged['u']['heaviness_quotas'] == 1.1
    assert merged['u']['usage_quotas'] == {'memory': 1.1}
    assert merged['u']['instances_count'] == 3


def shadowed(metric, number):
    part = owners.OwnerNumbers(1.0, 1, {}, number)
    return owners.HostOwners(owners.DOMAIN, {'u': part}, metric)


def test_numbers_of_different_shadow_metrics_are_not_mixed():
    hosts = {
        'a': shadowed('B', 5.0),
        'b': shadowed('A', 0.1),
        'c': shadowed('A', 0.3),
        'd': shadowed('', None),
    }
    merged = owners.merge_hosts(hosts)['u']
    assert merged['shadow_metric'] == 'A'
    assert merged['shadow_heaviness_quotas'] == pytest.approx(0.2)
    hosts.pop('c')
    assert owners.merge_hosts(hosts)['u']['shadow_metric'] == 'A'
    merged = owners.merge_hosts({'d': hosts['d']})['u']
    assert 'shadow_metric' not in merged


def test_an_unknown_number_of_an_account_is_omitted():
    merged = owners.merge_hosts(
        {'a': account(u=None, v=None), 'b': account(u=2.0), 'c': account()}
    )
    assert merged['u']['heaviness_quotas'] == 2.0
    assert merged['v']['heaviness_quotas'] is None
    assert owners.merge_hosts({'a': account(u=1.0)}, only='v') == {}


@pytest.mark.parametrize(
    ('value', 'number'),
    [(None, None), (math.nan, None), (math.inf, None), (1, 1.0)],
)
def test_a_number_that_json_cannot_write_is_unknown(value, number):
    assert owners.parse_number(value) == number
