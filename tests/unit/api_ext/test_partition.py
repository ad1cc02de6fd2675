# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception

URL = '/fairness/partition'
HOSTS = f'{URL}/hosts'


def test_operators_see_both_sides(cloud):
    answer = cloud.ask('auditor', 'GET', URL)
    assert answer.json['partition']['faults'] == ['cloud is away']
    assert answer.json['partition']['cloud'] is None
    assert cloud.ask('alice', 'GET', URL).status_code == 403


def test_hosts_come_in_pages(cloud):
    first = cloud.ask('admin', 'GET', f'{HOSTS}?limit=1')
    [link] = first.json['hosts_links']
    path = '/fairness' + link['href'].partition('/fairness')[2]
    second = cloud.ask('admin', 'GET', path)
    found = [each.json['hosts'][0]['name'] for each in (first, second)]
    assert found == ['h1', 'h2']
    assert 'hosts_links' not in second.json


def test_a_host_is_moved_and_called_back(cloud):
    url = f'{HOSTS}/h1/action'
    for action, state in (('move', 'cloud_asked'), ('cancel', 'batch')):
        body = {action: None}
        assert cloud.ask('auditor', 'POST', url, body).status_code == 403
        answer = cloud.ask('admin', 'POST', url, body)
        assert answer.status_code == 202
        assert answer.json['host']['state'] == state
        again = cloud.ask('admin', 'POST', url, body)
        assert again.status_code == 409
        assert state in again.json['conflictingRequest']['message']
    shown = cloud.ask('auditor', 'GET', f'{HOSTS}/h1').json['host']
    assert shown['history'][0]['event'] == 'find_in_batch'


def test_a_target_is_set_and_taken_back(cloud):
    for target, status in ((2, 200), (3, 409), (None, 200), (-1, 400)):
        answer = cloud.ask('admin', 'PUT', URL, {'target': target})
        assert answer.status_code == status
        if status == 200:
            assert answer.json == {'target': target}
            shown = cloud.ask('admin', 'GET', URL).json['partition']
            assert shown['target'] == target


def test_a_host_outside_the_border_gives_404(cloud):
    for method, url, body in (
        ('GET', f'{HOSTS}/h9', None),
        ('POST', f'{HOSTS}/h9/action', {'move': None}),
    ):
        answer = cloud.ask('admin', method, url, body)
        assert answer.status_code == 404
        assert 'h9' in answer.json['itemNotFound']['message']


@pytest.mark.parametrize(
    'body', [{}, {'fly': None}, {'move': 3}, {'move': None, 'cancel': None}]
)
def test_an_unknown_action_is_refused(cloud, body):
    answer = cloud.ask('admin', 'POST', f'{HOSTS}/h1/action', body)
    assert answer.status_code == 400


@pytest.mark.parametrize('url', [URL, HOSTS, f'{HOSTS}/h1'])
def test_an_error_of_the_service_gives_503_without_details(cloud, url):
    cloud.requests.operations.error = exception.StoreAway('password')
    answer = cloud.ask('admin', 'GET', url)
    assert answer.status_code == 503
    assert 'password' not in answer.text
    cloud.requests.operations.error = None
    cloud.requests.rpc.broken = {'partition': {}, 'hosts': [{}], 'host': 3}
    assert cloud.ask('admin', 'GET', url).status_code == 503


def test_without_a_border_the_answer_says_so(cloud):
    cloud.requests.operations.error = exception.UnknownHost('no host moves')
    answer = cloud.ask('admin', 'GET', URL)
    assert answer.status_code == 404
    assert answer.json['itemNotFound']['message'] == 'no host moves'
