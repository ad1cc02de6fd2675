# SPDX-License-Identifier: Apache-2.0

"""Shares of accounts, over HTTP."""

import pytest

from nova_fairness import exception
from nova_fairness.model import reason
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


def test_managers_divide_their_accounts_among_all_right_below(
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
def test_an_invalid_share_in_a_body_is_refused(cloud, body):
    answer = cloud.ask('admin', 'PUT', '/fairness/shares', body)
    assert answer.status_code == 400


def test_a_share_refused_by_the_service_returns_the_reason(cloud):
    cloud.requests.operations.error = exception.UnknownAccount('p')
    assert put(cloud, 'admin', 'p', None).status_code == 404
    cloud.requests.operations.error = exception.UnknownAccount(
        'account beta: nothing was set'
    )
    answer = put(cloud, 'admin', 'beta')
    assert answer.status_code == 404
    assert 'account beta: nothing was set' in answer.text
    cloud.requests.operations.error = exception.AccountUnchecked(
        'Keystone cannot be asked'
    )
    answer = put(cloud, 'admin', 'beta')
    assert answer.status_code == 503
    assert 'Keystone cannot be asked' in answer.text
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


def test_a_marker_of_hidden_shares_gives_404(cloud):
    for marker in ('physics', 'none'):
        url = f'/fairness/shares?marker={marker}'
        assert cloud.ask('alice', 'GET', url).status_code == 404


def tried(cloud, who, path='shares', **change):
    body = {'account': f'{fake_cloud.RED}/u', **change, 'dry_run': True}
    return cloud.ask(who, 'PUT', f'/fairness/{path}', body)


def test_a_dry_run_needs_the_right_to_change_and_changes_nothing(
    cloud, monkeypatch
):
    operations, changes = cloud.requests.operations, {
        'shares': {'share': 2.0}, 'limits': {'budget': 3.0}
    }  # fmt: skip
    for path, change in changes.items():
        for who in ('alice', 'auditor'):
            assert tried(cloud, who, path, **change).status_code == 403
        told = tried(cloud, 'admin', path, **change).json
        assert operations.tried[-1] == (told['account'], change)
        assert len(told['dry_run']['requests']) == 2
        assert told.items() >= change.items()
    assert operations.done == []
    assert tried(cloud, 'admin', 'limits').status_code == 400


def test_a_dry_run_shows_a_manager_only_the_own_project(cloud, monkeypatch):
    roles = [*fake_cloud.MEMBER, 'manager']
    monkeypatch.setitem(fake_cloud.TOKENS['alice'], 'roles', roles)
    told = tried(cloud, 'alice', share=2.0).json['dry_run']
    owners = [each['project_id'] for each in told['requests']]
    assert (owners, told['not_named_count']) == ([fake_cloud.RED], 1)
    assert cloud.requests.operations.audiences[-1] is reason.Audience.MANAGER
    assert fake_cloud.BLUE not in str(told)


def test_a_dry_run_shows_only_counts_without_the_right_to_list(
    cloud, monkeypatch
):
    monkeypatch.setitem(fake_cloud.TOKENS['alice'], 'roles', ['manager'])
    told = tried(cloud, 'alice', share=2.0).json['dry_run']
    assert (told['requests'], told['not_named_count']) == ([], 2)


def test_a_second_simultaneous_dry_run_gets_retry_after(cloud):
    cloud.requests.operations.error = exception.Busy('another one goes on')
    answer = tried(cloud, 'admin', share=2.0)
    assert (answer.status_code, answer.headers['Retry-After']) == (503, '5')
    assert 'another one goes on' in answer.text


@pytest.mark.parametrize('text', ['age', 'age=x', '=1', 'age=inf', 'age=1,'])
def test_invalid_parameters_of_an_order_are_refused(cloud, text):
    url = f'/fairness/orders/fifo/preview?parameters={text}'
    assert cloud.ask('admin', 'GET', url).status_code == 400
    assert cloud.requests.operations.tried == []
