# SPDX-License-Identifier: Apache-2.0

"""Accounts of the file and what was set of them, on a real store."""

import types

import pytest

from nova_fairness import exception
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.messages import times
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.unit.cluster import test_service

world = test_service.world
FILE = (
    cluster.Account('physics', time_limit_s=7200.0, longest_wait_s=600.0),
    cluster.Account('p', 'physics'),
    cluster.Account('p/ann', 'p', time_limit_s=60.0),
)


@pytest.fixture
def accounts(world):
    return accounts_module.Accounts(world.store, lambda: FILE)


@pytest.fixture
def epoch(world):
    return world.store.take_over(0, 'one', 1.0)


def test_the_shortest_time_limit_of_all_parent_accounts_counts(accounts):
    granted = accounts.times(900.0)
    assert granted('p', 'ann') == times.RequestLimits(60.0, 600.0)
    assert granted('p', 'bob') == times.RequestLimits(7200.0, 600.0)
    assert granted('other', 'eve') == times.RequestLimits(None, 900.0)


def test_a_set_value_overrides_the_file(accounts, epoch):
    accounts.change('physics', {'time_limit_s': 30.0}, epoch)
    accounts.change('q/eve', {'longest_wait_s': 5.0, 'share': 2.0}, epoch)
    granted = accounts.times(None)
    assert granted('p', 'ann') == times.RequestLimits(30.0, 600.0)
    assert granted('q', 'eve') == times.RequestLimits(None, 5.0)
    accounts.change('physics', {'time_limit_s': None}, epoch)
    assert accounts.times(None)('p', 'bob') == times.RequestLimits(
        7200.0, 600.0
    )
    accounts.change('q/eve', {'longest_wait_s': None}, epoch)
    assert accounts.times(None)('q', 'eve') == times.RequestLimits()
    assert {each.name: each.share for each in accounts.present()}['q/eve'] == 2


@pytest.mark.parametrize('limit_s', [0.0, -1.0, 1e10, float('nan')])
def test_an_invalid_time_refuses_the_whole_change(accounts, epoch, limit_s):
    with pytest.raises(exception.BadShares, match='time limit of account'):
        accounts.change('p', {'share': 3.0, 'time_limit_s': limit_s}, epoch)
    assert accounts.present() == FILE


def test_unsetting_an_unset_value_is_refused(accounts, epoch):
    with pytest.raises(exception.UnknownAccount, match='physics'):
        accounts.change('physics', {'time_limit_s': None}, epoch)


BAD = [
    {'windows': [{'begins': '0 0 1 1 * 0 2030', 'lasts': 3600}]},
    {'windows': [{'begins': '@yearly', 'lasts': 3600}]},
    {'windows': [{'begins': 'R R * * *', 'lasts': 3600}]},
    {'windows': [{'begins': '*/0 * * * *', 'lasts': 3600}]},
    {'windows': [{'begins': '0 0 30 2 *', 'lasts': 3600}]},
    {'windows': [{'begins': '0 0 * * *', 'lasts': 1e300}]},
    {'windows': [{'begins': '0 0 * * *', 'lasts': 10**400}]},
    {'windows': [{'begins': '0 0 * * *', 'lasts': 60, 'zone': 'Gone/Away'}]},
    {'windows': [{'begins': '0 0 * * *', 'lasts': 60, 'zone': '../../x'}]},
    {'windows': [{'begins': 5, 'lasts': 60}]},
    {'windows': 'always'},
    {'time_limit_s': 'long'},
    {'time_limit_s': 1e12},
    {'longest_wait_s': [1]},
    {'budget_hours': -1},
    {'funds': {}},
    {'share': 1e300},
    {'share': None},
    {'ceiling': {'VCPU': 10**400}},
    {'ceiling': {'nonsense': 1}},
    {'nominal': {'VCPU': 1}},
    {'parent': 'evil/u'},
    {'half_life': 3},
    [],
    'nothing',
]


@pytest.mark.repeated
@pytest.mark.parametrize('own', BAD)
def test_an_unusable_value_sets_its_own_account_aside(world, own):
    process = world.process()
    process.cycle()
    epoch = world.store.leader().epoch
    given = {'evil/u': own, 'victim': {'share': 2.0}}
    world.store.set_account_settings(
        records.AccountSettings(given, world.store.account_settings().version),
        epoch,
    )
    evil = world.post('evil', 1, 'evil')
    victim = world.post('victim', 1, 'victim')
    for again in (process, world.process()):
        world.now += 5
        again.cycle()
    assert world.state(victim) is request.State.STARTING
    assert world.state(evil) is request.State.WAITING
    assert world.reason(evil) is reason.Reason.ACCOUNT_SET_ASIDE
    accounts = process.accounts
    assert list(accounts.set_aside) == ['evil/u']
    shares = {each.name: each.share for each in accounts.present()}
    assert shares['victim'] == 2.0
    asked = requests.ClusterOperations(world.store, process)
    [told] = [
        each
        for each in asked.limits('evil', None, 10)['limits']
        if each['account'] == 'evil/u'
    ]
    assert told['fault'] == accounts.set_aside['evil/u']
    # Others can still be set, and its owner mends it.
    asked.set_limits('victim', {'budget': 5.0})
    if isinstance(own, dict):
        mended = dict.fromkeys(own)
        process.change(lambda e: accounts.change('evil/u', mended, e))
        world.now += 5
        process.cycle()
        assert world.state(evil) is request.State.STARTING
        assert accounts.set_aside == {}


@pytest.mark.parametrize('own', [each for each in BAD if each])
def test_an_unusable_value_is_refused_when_it_is_set(accounts, epoch, own):
    if not isinstance(own, dict) or None in own.values():
        return
    with pytest.raises(exception.BadShares, match='evil/u'):
        accounts.change('evil/u', own, epoch)
    assert accounts.present() == FILE


def test_a_project_has_room_for_so_many_accounts_of_its_own(world, epoch):
    made = accounts_module.Accounts(world.store, most=3)
    for number in range(3):
        made.change(f'p/{number}', {'share': 1.0}, epoch)
    with pytest.raises(exception.IllegalStep, match='for 3 users'):
        made.change('p/more', {'share': 1.0}, epoch)
    made.change('p/1', {'share': 3.0}, epoch)
    made.change('q/1', {'share': 1.0}, epoch)
    made.change('p/1', {'share': None}, epoch)
    made.change('p/more', {'share': 1.0}, epoch)


def _away(_):
    raise exception.CloudAway('identity answers 503')


def test_an_account_without_possible_projects_is_refused(world):
    process = world.process()
    process.cycle()
    process.accounts = accounts_module.Accounts(
        world.store, lambda: FILE, exists={'p1', 'p1/ann'}.__contains__
    )
    asked = requests.ClusterOperations(world.store, process)
    for name in ('p1', 'p1/ann', 'physics', 'p/ann'):
        assert asked.set_share(name, 2.0)['account'] == name
    before = world.store.account_settings().accounts
    for name in ('beta', 'p1/eve', 'physics/eve'):
        with pytest.raises(exception.UnknownAccount, match=f'{name}: nothing'):
            asked.set_share(name, 2.0)
        with pytest.raises(exception.UnknownAccount, match='as PROJECT/USER'):
            asked.set_limits(name, {'budget': 2.0})
    assert world.store.account_settings().accounts == before


def test_settings_of_a_deleted_account_can_be_removed(world, epoch):
    accounts = accounts_module.Accounts(world.store, exists=_away)
    accounts.change('gone', {'share': 3.0}, epoch)
    accounts.require('gone', {'share': None})


def test_an_account_that_used_something_is_known_without_keystone(
    world, monkeypatch
):
    accounts = accounts_module.Accounts(world.store, exists=_away)
    with pytest.raises(exception.AccountUnchecked, match='p/ann'):
        accounts.require('p/ann', {'share': 1.0})
    used = types.SimpleNamespace(parts={'p/ann': {}})
    monkeypatch.setattr(world.store, 'read_ledger', lambda: used)
    accounts.require('p/ann', {'share': 1.0})


def test_while_keystone_is_away_nothing_is_set_and_the_log_says_why(
    world, caplog
):
    accounts = accounts_module.Accounts(world.store, lambda: _away(None))
    with pytest.raises(exception.AccountUnchecked, match='try again'):
        accounts.require('p', {'share': 1.0})
    assert 'identity answers 503' in caplog.text
