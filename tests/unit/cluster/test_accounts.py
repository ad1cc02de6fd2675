# SPDX-License-Identifier: Apache-2.0

"""Accounts of the file and what was set of them, on a real store."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster import accounts as accounts_module
from nova_fairness.cluster.casts import times
from nova_fairness.model import cluster
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


def test_the_shortest_of_all_accounts_above_counts(accounts):
    granted = accounts.times(900.0)
    assert granted('p', 'ann') == times.Times(60.0, 600.0)
    assert granted('p', 'bob') == times.Times(7200.0, 600.0)
    assert granted('other', 'eve') == times.Times(None, 900.0)


def test_what_is_set_counts_before_the_file(accounts, epoch):
    accounts.change('physics', {'time_limit_s': 30.0}, epoch)
    accounts.change('q/eve', {'longest_wait_s': 5.0, 'share': 2.0}, epoch)
    granted = accounts.times(None)
    assert granted('p', 'ann') == times.Times(30.0, 600.0)
    assert granted('q', 'eve') == times.Times(None, 5.0)
    accounts.change('physics', {'time_limit_s': None}, epoch)
    assert accounts.times(None)('p', 'bob') == times.Times(7200.0, 600.0)
    accounts.change('q/eve', {'longest_wait_s': None}, epoch)
    assert accounts.times(None)('q', 'eve') == times.Times()
    assert {each.name: each.share for each in accounts.present()}['q/eve'] == 2


@pytest.mark.parametrize('limit_s', [0.0, -1.0, 1e10, float('nan')])
def test_a_time_that_is_none_is_refused_whole(accounts, epoch, limit_s):
    with pytest.raises(exception.BadShares, match='time limit of account'):
        accounts.change('p', {'share': 3.0, 'time_limit_s': limit_s}, epoch)
    assert accounts.present() == FILE


def test_what_was_not_set_is_not_taken_back(accounts, epoch):
    with pytest.raises(exception.UnknownAccount, match='physics'):
        accounts.change('physics', {'time_limit_s': None}, epoch)
