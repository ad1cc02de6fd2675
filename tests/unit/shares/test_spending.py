# SPDX-License-Identifier: Apache-2.0

"""Rates in force, and funds that are charged to the last unit."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.shares import spending

Account = cluster.Account


def runs(uuid, pays='', project='p', user='u'):
    return cluster.Running(
        'h', project, (), 0.0, user=user, uuid=uuid, pays=pays
    )


def groups(*listed):
    return {(each.project, each.name): each for each in listed}


def test_a_rate_is_divided_among_the_servers_of_its_group():
    found = spending.rates_in_force(
        groups(market.SpendingGroup('p', 'web', 70.0, 2)),
        [runs('a', 'web'), runs('b', 'web'), runs('c'), runs('d', 'db')],
        (),
        1000,
    )
    assert found == {'a': 35_000, 'b': 35_000, 'c': 1000, 'd': 1000}


def test_a_rate_is_divided_by_the_larger_of_stated_and_present_count():
    given = groups(market.SpendingGroup('p', 'web', 60.0, 3))
    one = spending.rates_in_force(given, [runs('a', 'web')], (), 1)
    assert one == {'a': 20_000}
    many = [runs(f's{n}', 'web') for n in range(6)]
    assert set(spending.rates_in_force(given, many, (), 1).values()) == {
        10_000
    }


def test_a_group_belongs_to_one_project():
    given = groups(market.SpendingGroup('p', 'web', 60.0))
    assert spending.rates_in_force(given, [runs('a', 'web', 'q')], (), 1) == {
        'a': 1
    }


def test_an_account_without_funds_has_the_lowest_rate():
    given = groups(market.SpendingGroup('p', 'web', 60.0, 2))
    both = [runs('a', 'web', user='u'), runs('b', 'web', user='v')]
    found = spending.rates_in_force(given, both, {'p/u'}, 500)
    assert found == {'a': 500, 'b': 30_000}


def test_no_server_has_less_than_the_lowest_rate():
    given = groups(market.SpendingGroup('p', 'web', 0.001, 100))
    assert spending.rates_in_force(given, [runs('a', 'web')], (), 700) == {
        'a': 700
    }


TREE = (Account('top', funds=1.0), Account('p', 'top', funds=0.5))


def test_a_charge_is_taken_from_all_accounts_above():
    funds = spending.Funds(TREE, {})
    assert funds.charge('p/u', spending.UNIT // 4) == spending.UNIT // 4
    assert funds.left == {
        'top': 3 * spending.UNIT // 4,
        'p': spending.UNIT // 4,
    }
    assert not funds.is_empty('p/u')
    assert funds.charge('p/u', spending.UNIT) == spending.UNIT // 4
    assert funds.left['p'] == 0
    assert funds.is_empty('p/u')
    assert funds.charge('p/u', 1) == 0
    assert funds.spent == {'p/u': spending.UNIT // 2}


def test_an_account_without_own_funds_spends_without_limit():
    funds = spending.Funds(TREE, {})
    assert funds.charge('q/u', 10**30) == 10**30
    assert not funds.is_empty('q/u')


def test_funds_below_the_spent_amount_leave_zero():
    funds = spending.Funds(
        [Account('p', funds=1.0)], {'p/u': 3 * spending.UNIT}
    )
    assert funds.left['p'] < 0
    assert funds.is_empty('p/u')
    assert funds.charge('p/u', 5) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(['p/u', 'p/v', 'q/u', 'top/x']),
            st.integers(0, spending.UNIT // 3),
        )
    )
)
def test_charges_add_up_and_nothing_is_ever_below_zero(charges):
    funds = spending.Funds(TREE, {})
    done = [(who, funds.charge(who, units)) for who, units in charges]
    for (who, units), (_, owed) in zip(done, charges, strict=True):
        assert units <= owed, who
    assert sum(funds.spent.values()) == sum(units for _, units in done)
    assert min(funds.left.values()) >= 0
    again = spending.Funds(TREE, funds.spent)
    assert (again.left, again.spent) == (funds.left, funds.spent)


@pytest.mark.parametrize(
    ('name', 'rate', 'count', 'text'),
    [
        ('', 1.0, 1, 'a name of 1 to 100'),
        ('a/b', 1.0, 1, 'without a slash'),
        ('x' * 101, 1.0, 1, 'a name of 1 to 100'),
        ('web', 0.0, 1, 'rate of group web must be a number from 0.001'),
        ('web', float('nan'), 1, 'rate of group web'),
        ('web', 1.0, 0, 'count of group web must be from 1'),
        ('web', 1.0, 10**6, 'count of group web'),
    ],
)
def test_an_invalid_group_is_named(name, rate, count, text):
    with pytest.raises(exception.BadArgument, match=text):
        market.SpendingGroup('p', name, rate, count)
