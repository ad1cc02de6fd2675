# SPDX-License-Identifier: Apache-2.0

"""GET /fairness/hosts and one of them."""

import math

import pytest

from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud


@pytest.fixture
def many(tmp_path):
    names = [f'cmp{number}' for number in range(5)]
    agents = [
        fake_agents.FakeAgent(
            name,
            [
                fake_agents.FakeVm(f'{name}-{vm}', 'u', 'p')
                for vm in range(number)
            ],
            peers=tuple(names),
        )
        for number, name in enumerate(names)
    ]
    client = fake_agents.FakeClient(*agents)
    return fake_cloud.FakeCloud(tmp_path, of_client=client, max_limit=4)


def names(answer):
    return [item['name'] for item in answer.json['hosts']]


@pytest.mark.parametrize('who', ['admin', 'auditor'])
def test_operators_see_all_hosts(cloud, who):
    answer = cloud.ask(who, 'GET', '/fairness/hosts')
    assert answer.status_code == 200
    assert answer.json['partial'] is False
    assert answer.json['hosts'][0] == {
        'name': 'cmp1',
        'version': '1.0',
        'metric': 'GreedinessMetric',
        'policy': 'feedback',
        'epoch': 0,
        'paused': False,
        'enforce': True,
        'refused': '',
        'interval_s': 10.0,
        'peers_count': 1,
        'left_out_count': 0,
        'round': 41,
        'duration_s': 0.003,
        'age_s': 4.0,
        'instances_count': 2,
        'users_count': 2,
    }


@pytest.mark.parametrize('who', ['alice', 'nobody'])
@pytest.mark.parametrize(
    'url', ['', '/cmp1', '/cmp9', '/cmp1/preview', '/cmp9/preview']
)
def test_others_see_no_host(cloud, who, url):
    answer = cloud.ask(who, 'GET', f'/fairness/hosts{url}')
    assert answer.status_code == 403
    assert cloud.client.calls == []


def test_a_host_without_a_round_is_listed(cloud):
    cloud.client._agents['cmp1'].has_round = False
    answer = cloud.ask('admin', 'GET', '/fairness/hosts')
    assert answer.json['hosts'][0]['round'] is None
    assert answer.json['hosts'][0]['age_s'] is None
    order = cloud.ask('admin', 'GET', '/fairness/hosts?sort_key=duration_s')
    assert names(order) == ['cmp2', 'cmp1']


def test_hosts_that_do_not_answer_are_named(cloud):
    cloud.client.silent = {'cmp2'}
    answer = cloud.ask('admin', 'GET', '/fairness/hosts')
    assert names(answer) == ['cmp1']
    assert answer.json['partial'] is True
    assert answer.json['not_reached'] == [
        {'host': 'cmp2', 'reason': 'no answer within 1 s'}
    ]


def follow(cloud, url):
    pages = []
    while url is not None:
        answer = cloud.ask('admin', 'GET', url)
        assert answer.status_code == 200
        pages.append(names(answer))
        [link] = answer.json.get('hosts_links') or [None]
        url = link and link['href'].partition('/v2.1')[2]
        assert link is None or link['rel'] == 'next'
    return pages


@pytest.mark.parametrize(
    ('query', 'pages'),
    [
        ('', [['cmp0', 'cmp1', 'cmp2', 'cmp3'], ['cmp4']]),
        ('?limit=2', [['cmp0', 'cmp1'], ['cmp2', 'cmp3'], ['cmp4']]),
        ('?limit=1000', [['cmp0', 'cmp1', 'cmp2', 'cmp3'], ['cmp4']]),
        (
            '?sort_dir=desc&limit=3',
            [['cmp4', 'cmp3', 'cmp2'], ['cmp1', 'cmp0']],
        ),
        (
            '?sort_key=instances_count&sort_dir=desc&limit=3',
            [['cmp4', 'cmp3', 'cmp2'], ['cmp1', 'cmp0']],
        ),
        (
            '?sort_key=metric&limit=3',
            [['cmp0', 'cmp1', 'cmp2'], ['cmp3', 'cmp4']],
        ),
        ('?marker=cmp3', [['cmp4']]),
        ('?marker=cmp25', [['cmp3', 'cmp4']]),
        ('?marker=x', [[]]),
    ],
)
def test_links_lead_through_all_pages_of_hosts(many, query, pages):
    assert follow(many, f'/fairness/hosts{query}') == pages


def test_only_the_hosts_of_a_page_are_asked(many):
    many.ask('admin', 'GET', '/fairness/hosts?limit=2&marker=cmp0')
    asked = {
        host
        for host, method, _ in many.client.calls
        if method == 'get_status' and host
    }
    assert asked == {'cmp1', 'cmp2'}


def test_a_page_of_silent_hosts_links_to_the_next_page(many):
    many.client.silent = {'cmp2', 'cmp3'}
    pages = follow(many, '/fairness/hosts?limit=2')
    assert pages == [['cmp0', 'cmp1'], [], ['cmp4']]


def test_a_marker_of_a_removed_host_is_refused_in_other_sort_orders(many):
    answer = many.ask(
        'admin', 'GET', '/fairness/hosts?sort_key=metric&marker=cmp9'
    )
    assert answer.status_code == 400
    assert 'marker [cmp9]' in answer.json['badRequest']['message']


def test_a_host_is_shown_with_its_full_status(cloud):
    answer = cloud.ask('auditor', 'GET', '/fairness/hosts/cmp1')
    assert answer.status_code == 200
    host = answer.json['host']
    assert host['name'] == 'cmp1'
    assert 'host' not in host
    assert host['peers'] == {'cmp2': {'age_s': 1.5, 'left_out': None}}
    assert host['round']['number'] == 41


def test_an_unknown_host_gives_404(cloud):
    answer = cloud.ask('admin', 'GET', '/fairness/hosts/cmp9')
    assert answer.status_code == 404
    assert not any(host == 'cmp9' for host, _, _ in cloud.client.calls)


def test_a_newly_added_host_is_found(tmp_path):
    cloud = fake_cloud.FakeCloud(tmp_path, kept_s=3600.0)
    cloud.ask('admin', 'GET', '/fairness/hosts')
    cloud.client._agents['cmp3'] = fake_agents.FakeAgent('cmp3')
    cloud.client._agents['cmp1'].peers = ('cmp2', 'cmp3')
    answer = cloud.ask('admin', 'GET', '/fairness/hosts/cmp3')
    assert answer.status_code == 200


def test_a_silent_host_gives_503(cloud):
    cloud.client.silent = {'cmp2'}
    answer = cloud.ask('admin', 'GET', '/fairness/hosts/cmp2')
    assert answer.status_code == 503
    message = answer.json['serviceUnavailable']['message']
    assert message == 'Host cmp2 was not reached: no answer within 1 s'


@pytest.mark.parametrize(
    'broken', [None, [], {}, {'host': 'cmp2', 'peers': math.nan}]
)
def test_an_invalid_answer_gives_503(cloud, broken):
    cloud.client.broken = {'cmp2': broken}
    answer = cloud.ask('admin', 'GET', '/fairness/hosts/cmp2')
    assert answer.status_code == 503
    answer = cloud.ask('admin', 'GET', '/fairness/hosts')
    assert [item['host'] for item in answer.json['not_reached']] == ['cmp2']


def test_operators_see_users_that_would_gain_or_lose(cloud):
    def ask(host):
        url = f'/fairness/hosts/{host}/preview'
        return cloud.ask('auditor', 'GET', url)

    answer = ask('cmp1')
    assert answer.status_code == 200
    told = answer.json['preview']
    assert (told['name'], told['not_foreseen']) == ('cmp1', ['memory'])
    in_force = {one['metric'] for one in told['metrics'] if one['in_force']}
    assert in_force == {'GreedinessMetric'}
    assert ask('cmp9').status_code == 404
    cloud.client.silent = {'cmp1'}
    assert ask('cmp1').status_code == 503
