# SPDX-License-Identifier: Apache-2.0

"""Every URL with every kind of token: what each one gets."""

import itertools

import pytest

from api_ext import routes
from tests.unit.api_ext import fake_cloud
from tests.unit.api_ext import fake_requests

RED, BLUE, ALICE = fake_cloud.RED, fake_cloud.BLUE, fake_cloud.ALICE
DOMAIN = 'd0' * 16
READER, MEMBER = ['reader'], ['reader', 'member']
MANAGER = [*MEMBER, 'manager']
ADMIN = [*MANAGER, 'admin']
RED_REQUEST, LENT = fake_requests.REDS, fake_requests.LENT

KINDS = {
    'unscoped': {'roles': []},
    # No Keystone gives these: a scope is what a role is for.
    'unscoped manager': {'roles': MANAGER},
    'unscoped admin': {'roles': ADMIN},
    'system reader': {'system_scope': 'all', 'roles': READER},
    'system admin': {'system_scope': 'all', 'roles': ADMIN},
    'domain reader': {'domain_id': DOMAIN, 'roles': READER},
    'domain manager': {'domain_id': DOMAIN, 'roles': MANAGER},
    'domain admin': {'domain_id': DOMAIN, 'roles': ADMIN},
    'reader': {'project_id': RED, 'roles': READER},
    'member': {'project_id': RED, 'roles': MEMBER},
    'manager': {'project_id': RED, 'roles': MANAGER},
    'admin': {'project_id': '9' * 32, 'roles': ADMIN},
    'no role': {'project_id': RED, 'roles': []},
    'other': {'project_id': BLUE, 'roles': MEMBER},
    'other manager': {'project_id': BLUE, 'roles': MANAGER},
    'service': {'project_id': '8' * 32, 'roles': ['service']},
}
"""Tokens; in the red project all are Alice's."""

ADMINS = ('system admin', 'admin')
OPERATORS = (*ADMINS, 'system reader')
READERS = ('reader', 'member', 'manager')
OTHERS = ('other', 'other manager')
EVERYBODY = (*OPERATORS, *READERS, *OTHERS)
NO_PROJECT = tuple(kind for kind in KINDS if 'project_id' not in KINDS[kind])


def codes(*sets):
    """Codes by kind; others get 403."""
    return {kind: code for code, kinds in sets for kind in kinds}


OF_OPERATORS = codes((200, OPERATORS))
OF_ADMINS = codes((202, ADMINS))
OWN_LIST = codes((200, ('admin', *READERS, *OTHERS)), (400, NO_PROJECT))
HIDDEN = {**codes((404, KINDS)), **codes((200, (*OPERATORS, *READERS)))}
PLAN = fake_requests.PLANS[0]

ROUTES = {
    'listPlugins': ('', None, codes((200, EVERYBODY))),
    'showDocument': ('/openapi.json', None, codes((200, EVERYBODY))),
    'listWaits': ('/waits', None, OWN_LIST),
    'showStatus': ('/status', None, OF_OPERATORS),
    'showCapacity': ('/capacity', None, codes((200, EVERYBODY))),
    'actOnHost': ('/cmp1/action', {'pause': None}, OF_ADMINS),
    'listHosts': ('/hosts', None, OF_OPERATORS),
    'showHost': ('/hosts/cmp1', None, OF_OPERATORS),
    'previewHost': ('/hosts/cmp1/preview', None, OF_OPERATORS),
    'listUsers': ('/users', None, OF_OPERATORS),
    'showUser': (f'/users/{ALICE}', None,
                 codes((200, (*OPERATORS, *READERS)))),
    'listProjects': ('/projects', None, OF_OPERATORS),
    'showProject': (f'/projects/{RED}', None,
                    codes((200, (*OPERATORS, *READERS)))),
    'showInstance': (f'/instances/{fake_cloud.ALICES}', None, HIDDEN),
    'listRequests': ('/requests', None, OWN_LIST),
    'showRequest': (f'/requests/{RED_REQUEST}', None, HIDDEN),
    'actOnRequest': (
        f'/requests/{RED_REQUEST}/action', {'cancel': None},
        {
            **codes((404, KINDS)), **codes((403, ('system reader', 'reader'))),
            **codes((202, (*ADMINS, 'member', 'manager'))),
        },
    ),
    'listShares': ('/shares', None, OWN_LIST),
    'setShare': ('/shares', {'account': f'{RED}/u', 'share': 1},
                 codes((200, (*ADMINS, 'manager')))),
    'listLimits': ('/limits', None, OWN_LIST),
    'setLimits': ('/limits', {'account': f'{RED}/u', 'budget': 1},
                  codes((200, (*ADMINS, 'manager')))),
    'previewOrder': ('/orders/fifo/preview', None, OF_OPERATORS),
    'listGroups': ('/groups', None, OWN_LIST),
    'createGroup': (
        '/groups', {'name': 'web', 'project_id': RED, 'rate': 1},
        codes((200, (*ADMINS, 'member', 'manager'))),
    ),
    'setGroup': (
        '/groups', {'name': 'batch', 'project_id': RED, 'rate': 2},
        codes((200, (*ADMINS, 'member', 'manager'))),
    ),
    'listPrices': ('/prices', None, codes((200, EVERYBODY))),
    'listPricesOfHost': ('/hosts/cmp1/prices', None, OF_OPERATORS),
    'listPreemptions': ('/preemptions', None, OWN_LIST),
    'showPreemption': (f'/preemptions/{LENT}', None,
                       HIDDEN | codes((200, OTHERS))),
    'showPartition': ('/partition', None, OF_OPERATORS),
    'setTarget': ('/partition', {'target': 1}, codes((200, ADMINS))),
    'listPartitionHosts': ('/partition/hosts', None, OF_OPERATORS),
    'showPartitionHost': ('/partition/hosts/h1', None, OF_OPERATORS),
    'actOnPartitionHost': ('/partition/hosts/h1/action', {'move': None},
                           OF_ADMINS),
    'listPlans': ('/plans', None, OF_OPERATORS),
    'createPlan': ('/plans', {'empty': 'h1'}, OF_ADMINS),
    'showPlan': (f'/plans/{PLAN}', None, OF_OPERATORS),
    'actOnPlan': (f'/plans/{PLAN}/action', {'approve': None}, OF_ADMINS),
}  # fmt: skip
"""Path below ``/fairness``, body, and codes by kind of token."""


def as_kind(monkeypatch, kind):
    values = {'user_id': ALICE, **KINDS[kind]}
    if kind in (*OTHERS, 'service', 'admin') or kind in NO_PROJECT:
        values['user_id'] = 'e' * 32
    monkeypatch.setitem(fake_cloud.TOKENS, kind, values)
    return kind


def ask(cloud, monkeypatch, kind, name):
    url, body, _ = ROUTES[name]
    [route] = [each for each in routes.ROUTES if each.name == name]
    who = as_kind(monkeypatch, kind)
    return cloud.ask(who, route.method, f'/fairness{url}', body)


def test_the_table_of_token_tests_has_every_route():
    assert {each.name for each in routes.ROUTES} == set(ROUTES)


@pytest.mark.parametrize('name', ROUTES)
def test_a_route_answers_each_kind_of_token_as_described(
    tmp_path, monkeypatch, name
):
    found = {}
    for kind in KINDS:
        cloud = fake_cloud.FakeCloud(tmp_path)
        found[kind] = ask(cloud, monkeypatch, kind, name).status_code
    assert found == {**dict.fromkeys(KINDS, 403), **ROUTES[name][2]}
    url, body, _ = ROUTES[name]
    [route] = [each for each in routes.ROUTES if each.name == name]
    answer = cloud.ask(None, route.method, f'/fairness{url}', body)
    assert answer.status_code == 401


ALL = [name for name, (_, _, by_kind) in ROUTES.items() if by_kind is OWN_LIST]


@pytest.mark.parametrize('name', ALL)
def test_lists_of_all_projects_are_for_operators(cloud, monkeypatch, name):
    url = f'/fairness{ROUTES[name][0]}?all_projects=true'
    found = {
        kind: cloud.ask(as_kind(monkeypatch, kind), 'GET', url).status_code
        for kind in KINDS
    }
    assert found == {**dict.fromkeys(KINDS, 403), **OF_OPERATORS}


SEES = (*OPERATORS, *READERS)
PATHS = {
    '{host}': ('cmp1', 'nohost'),
    '{uuid}': (RED_REQUEST, RED_REQUEST.replace('1', '9')),
    '{id}': (ALICE, '7' * 32),
}


@pytest.mark.parametrize('kind', KINDS)
def test_a_refusal_does_not_reveal_existing_objects(cloud, monkeypatch, kind):
    who = as_kind(monkeypatch, kind)
    for route in routes.ROUTES:
        for place, (there, not_there) in PATHS.items():
            if place not in route.path:
                continue
            body = ROUTES[route.name][1]
            answers = [
                cloud.ask(
                    who, route.method, route.path.replace(place, n), body
                )
                for n in (there, not_there)
            ]
            # Whoever may see it may know that it is there.
            sees = route.name == 'actOnRequest' and kind in SEES
            if answers[0].status_code < 400 or sees:
                continue
            texts = [
                answer.text.replace(name, '')
                for answer, name in zip(
                    answers, (there, not_there), strict=True
                )
            ]
            assert answers[0].status_code == answers[1].status_code, route
            assert texts[0] == texts[1], (kind, route.name)


NOBODYS = ('None', 'none', 'null', 'False', 'default')


@pytest.mark.parametrize(
    ('kind', 'account', 'user'),
    list(
        itertools.product(
            [kind for kind in KINDS if kind not in ADMINS],
            (*NOBODYS, BLUE, 'physics', '8' * 32),
            ('', '/u', '/None'),
        )
    ),
)
def test_an_account_that_is_not_the_callers_is_not_set(
    cloud, monkeypatch, kind, account, user
):
    if kind == 'other manager' and (account, user != '') == (BLUE, True):
        return
    who = as_kind(monkeypatch, kind)
    for url, value in (('shares', {'share': 9}), ('limits', {'budget': 9})):
        body = {'account': account + user, **value}
        answer = cloud.ask(who, 'PUT', f'/fairness/{url}', body)
        assert answer.status_code == 403
    assert cloud.requests.operations.done == []


@pytest.mark.parametrize('kind', ['domain manager', 'domain admin'])
def test_a_token_of_a_domain_sets_shares_right_below_it(
    cloud, monkeypatch, kind
):
    who = as_kind(monkeypatch, kind)
    cloud.requests.operations.parents = {RED: DOMAIN, BLUE: 'd1' * 16}
    found = {}
    for account in (RED, BLUE, f'{DOMAIN}/u', f'{RED}/u', DOMAIN, 'd1' * 16):
        body = {'account': account, 'share': 2}
        answer = cloud.ask(who, 'PUT', '/fairness/shares', body)
        found[account] = answer.status_code
    assert [account for account, code in found.items() if code == 200] == [
        RED,
        f'{DOMAIN}/u',
    ]
    assert set(found.values()) == {200, 403}


def test_each_caller_gets_the_audience_of_its_role(cloud, monkeypatch):
    wanted = {
        'reader': 'MEMBER', 'manager': 'MANAGER', 'admin': 'OPERATOR',
        'system reader': 'OPERATOR',
    }  # fmt: skip
    for kind, audience in wanted.items():
        cloud.requests.operations.audiences.clear()
        url = f'/fairness/requests/{RED_REQUEST}'
        assert (
            cloud.ask(as_kind(monkeypatch, kind), 'GET', url).status_code
            == 200
        )
        [told] = cloud.requests.operations.audiences
        assert told.name == audience


def test_an_action_answers_as_its_caller_may_read(cloud, monkeypatch):
    url = f'/fairness/requests/{RED_REQUEST}/action'
    who = as_kind(monkeypatch, 'member')
    assert cloud.ask(who, 'POST', url, {'cancel': None}).status_code == 202
    assert {each.name for each in cloud.requests.operations.audiences} == {
        'MEMBER'
    }
