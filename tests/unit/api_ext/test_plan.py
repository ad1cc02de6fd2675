# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness import exception
from tests.unit.api_ext import fake_requests

URL = '/fairness/plans'
FIRST, SECOND = fake_requests.PLANS


def test_operators_see_plans_page_by_page(cloud):
    first = cloud.ask('auditor', 'GET', f'{URL}?limit=1')
    [link] = first.json['plans_links']
    path = '/fairness' + link['href'].partition('/fairness')[2]
    second = cloud.ask('auditor', 'GET', path)
    found = [each.json['plans'][0]['uuid'] for each in (first, second)]
    assert found == [FIRST, SECOND]
    assert 'plans_links' not in second.json
    assert cloud.ask('alice', 'GET', URL).status_code == 403


def test_a_plan_is_approved_and_stopped_by_administrators(cloud):
    url = f'{URL}/{FIRST}/action'
    for action, state in (('approve', 'approved'), ('stop', 'stopped')):
        body = {action: None}
        assert cloud.ask('auditor', 'POST', url, body).status_code == 403
        answer = cloud.ask('admin', 'POST', url, body)
        assert answer.status_code == 202
        assert answer.json['plan']['state'] == state
        again = cloud.ask('admin', 'POST', url, body)
        assert again.status_code == 409
        assert state in again.json['conflictingRequest']['message']
    shown = cloud.ask('auditor', 'GET', f'{URL}/{FIRST.upper()}').json['plan']
    assert shown['moves'][0]['state'] == 'moved'


def test_a_plan_that_empties_a_host_can_be_requested(cloud):
    assert (
        cloud.ask('auditor', 'POST', URL, {'empty': 'h1'}).status_code == 403
    )
    answer = cloud.ask('admin', 'POST', URL, {'empty': 'h1'})
    assert (answer.status_code, answer.json['plan']['subject']) == (202, 'h1')
    answer = cloud.ask('admin', 'POST', URL, {'empty': 'h9'})
    assert answer.status_code == 404
    assert 'h9' in answer.json['itemNotFound']['message']
    for body in ({}, {'empty': ''}, {'empty': 3}, {'fill': 'h1'}):
        assert cloud.ask('admin', 'POST', URL, body).status_code == 400


@pytest.mark.parametrize(
    'body', [{}, {'fly': None}, {'stop': 3}, {'stop': None, 'approve': None}]
)
def test_an_unknown_action_is_refused(cloud, body):
    answer = cloud.ask('admin', 'POST', f'{URL}/{FIRST}/action', body)
    assert answer.status_code == 400


def test_an_unknown_plan_gives_404(cloud):
    gone = fake_requests.REDS
    for method, url, body in (
        ('GET', f'{URL}/{gone}', None),
        ('GET', f'{URL}?marker={gone}', None),
        ('POST', f'{URL}/{gone}/action', {'stop': None}),
    ):
        answer = cloud.ask('admin', method, url, body)
        assert answer.status_code == 404
        assert gone in answer.json['itemNotFound']['message']


@pytest.mark.parametrize('url', [URL, f'{URL}/{FIRST}'])
def test_an_error_of_the_service_gives_503_without_details(cloud, url):
    cloud.requests.operations.error = exception.StoreAway('password')
    answer = cloud.ask('admin', 'GET', url)
    assert answer.status_code == 503
    assert 'password' not in answer.text
    cloud.requests.operations.error = None
    cloud.requests.rpc.broken = {'plans': [{}], 'plan': 3}
    assert cloud.ask('admin', 'GET', url).status_code == 503
