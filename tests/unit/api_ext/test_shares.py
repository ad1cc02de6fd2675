# SPDX-License-Identifier: Apache-2.0

"""Shares of accounts, over HTTP."""

import pytest

from nova_fairness import exception
from tests.unit.api_ext import fake_cloud


def names(answer):
    assert answer.status_code == 200, answer.json
    return [each['name'] for each in answer.json['shares']]


def test_shares_of_the_own_project_are_seen_and_no_others(cloud):
    assert names(cloud.ask('alice', 'GET', '/fairness/shares')) == ['1' * 32]
    assert names(cloud.ask('carol', 'GET', '/fairness/shares')) == ['2' * 32]
    url = '/fairness/shares?all_projects=true'
    assert len(names(cloud.ask('auditor', 'GET', url))) == 3
    for who in ('alice', 'nobody'):
        assert cloud.ask(who, 'GET', url).status_code == 403
    assert cloud.ask('nobody', 'GET', '/fairness/shares').status_code == 403


def put(cloud, who, account, share=2.0):
    body = {'account': account, 'share': share}
    return cloud.ask(who, 'PUT', '/fairness/shares', body)


def test_managers_divide_their_project_and_administrators_all(
    cloud, monkeypatch
):
    red, blue = fake_cloud.RED, fake_cloud.BLUE
    assert put(cloud, 'admin', red).json == {'account': red, 'share': 2.0}
    for who in ('alice', 'auditor'):
        assert put(cloud, who, f'{red}/{fake_cloud.BOB}').status_code == 403
    monkeypatch.setitem(
        fake_cloud.TOKENS['alice'], 'roles', [*fake_cloud.MEMBER, 'manager']
    )
    assert put(cloud, 'alice', f'{red}/{fake_cloud.BOB}').status_code == 200
    others = (red, f'{blue}/{fake_cloud.CAROL}', 'physics', f'{red}x')
    for account in others:
        assert put(cloud, 'alice', account).status_code == 403


def test_managers_divide_what_they_manage_among_all_right_below(
    cloud, monkeypatch
):
    red, blue = fake_cloud.RED, fake_cloud.BLUE
    cloud.requests.operations.parents = {blue: red, 'group': blue}
    # A project above others, or a domain: its parent.
    for scope in ('project_id', 'domain_id'):
        with monkeypatch.context() as patched:
            alice = fake_cloud.TOKENS['alice']
            patched.setitem(alice, 'project_id', None)
            patched.setitem(alice, scope, red)
            assert put(cloud, 'alice', blue).status_code == 403
            patched.setitem(alice, 'roles', [*fake_cloud.MEMBER, 'manager'])
            assert put(cloud, 'alice', blue).json['share'] == 2.0
            for account in (red, 'group', 'unknown'):
                assert put(cloud, 'alice', account).status_code == 403
            # Who owns more takes it from others: that is an operator's.
            body = {'account': blue, 'nominal': {'VCPU': 9}}
            answer = cloud.ask('alice', 'PUT', '/fairness/limits', body)
            assert answer.status_code == 403


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'account': 'p'},
        {'account': '', 'share': 1},
        {'account': 'p/', 'share': 1},
        {'account': 'p/u/v', 'share': 1},
        {'account': 'p', 'share': -1},
        {'account': 'p', 'share': 1e10},
        {'account': 'p', 'share': '1'},
        {'account': 'p', 'share': 1, 'parent': 'q'},
    ],
)
def test_a_body_that_is_no_share_is_refused(cloud, body):
    answer = cloud.ask('admin', 'PUT', '/fairness/shares', body)
    assert answer.status_code == 400


def test_a_share_that_the_service_refuses_says_why(cloud):
    cloud.requests.operations.error = exception.UnknownAccount('p')
    assert put(cloud, 'admin', 'p', None).status_code == 404
    cloud.requests.operations.error = exception.BadShares(
        '100000 shares can be set'
    )
    answer = put(cloud, 'admin', 'p')
    assert answer.status_code == 400
    assert '100000 shares' in answer.text


@pytest.mark.parametrize(
    ('what', 'key'), [('shares', 'name'), ('limits', 'account')]
)
def test_the_account_above_a_project_is_told_to_operators_only(
    cloud, what, key
):
    red = '1' * 32
    cloud.requests.operations.parents = {red: 'secret group'}
    told = cloud.ask('alice', 'GET', f'/fairness/{what}')
    assert [(each[key], each['parent']) for each in told.json[what]] == [
        (red, None)
    ]
    assert 'secret' not in told.text
    url = f'/fairness/{what}?all_projects=true'
    [own] = [
        each
        for each in cloud.ask('admin', 'GET', url).json[what]
        if each[key] == red
    ]
    assert own['parent'] == 'secret group'


def test_shares_come_in_pages(cloud):
    url = '/fairness/shares?all_projects=true&limit=2'
    first = cloud.ask('admin', 'GET', url)
    [link] = first.json['shares_links']
    path = '/fairness' + link['href'].partition('/fairness')[2]
    second = cloud.ask('admin', 'GET', path)
    assert names(first) + names(second) == ['physics', '1' * 32, '2' * 32]
    assert 'shares_links' not in second.json


def test_a_marker_of_shares_that_may_not_be_seen_is_not_there(cloud):
    for marker in ('physics', 'none'):
        url = f'/fairness/shares?marker={marker}'
        assert cloud.ask('alice', 'GET', url).status_code == 404
