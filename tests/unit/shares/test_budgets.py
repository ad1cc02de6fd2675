# SPDX-License-Identifier: Apache-2.0

"""Budgets of accounts by period."""

import datetime as dt

import pytest

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.shares import budgets
from tests.fixtures import small_cloud

HOUR_S = 3600.0
P = budgets.Period


def at(text):
    return dt.datetime.fromisoformat(text + '+00:00').timestamp()


NOW = at('2026-02-18T12:00:00')  # a Wednesday
ENDS = (at('2026-03-01T00:00:00'), at('2026-04-01T00:00:00'))
ACCOUNTS = (
    cluster.Account('physics', budget_hours=100.0),
    cluster.Account('p', 'physics'),
    cluster.Account('p/u', 'p', budget_hours=10.0),
)
TERMS = budgets.BudgetTerms()


def opened(accounts=ACCOUNTS, spent=None, terms=TERMS, at_s=NOW, **more):
    snapshot = small_cloud.cloud([], accounts=accounts, **more)
    return budgets.open_budgets(snapshot, terms, spent or {}, at_s, NOW)


def spending(accounts=ACCOUNTS, **more):
    return budgets.BudgetUse(opened(accounts, **more), accounts)


def running_server(vcpu=1, ends_at=None, **more):
    amounts = small_cloud.demand(vcpu).amounts
    return cluster.Running('h', 'p', amounts, 0.0, 'u', 's', ends_at, **more)


def lasts(hours, vcpu=1, **more):
    return small_cloud.waiting_request(
        'r', vcpu, time_limit_s=hours * HOUR_S, **more
    )


@pytest.mark.parametrize(
    ('period', 'now', 'starts'),
    [
        (P.DAY, '2026-02-18T12:00', ('02-18', '02-19', '02-20')),
        (P.WEEK, '2026-02-18T12:00', ('02-16', '02-23', '03-02')),
        (P.WEEK, '2026-02-16T00:00', ('02-16', '02-23', '03-02')),
        (P.MONTH, '2026-01-31T23:59', ('01-01', '02-01', '03-01')),
        (P.MONTH, '2026-02-01T00:00', ('02-01', '03-01', '04-01')),
    ],
)
def test_periods_follow_the_calendar(period, now, starts):
    wanted = tuple(at(f'2026-{each}T00:00:00') for each in starts)
    assert period.around(at(now)) == wanted


def test_an_account_without_a_budget_spends_without_limit():
    accounts = (cluster.Account('p'),)
    assert opened(accounts) is None
    free = budgets.BudgetUse(None, accounts)
    assert free.lacking([lasts(1e6)], NOW) is None
    assert free.left() is None


def test_a_budget_is_divided_into_used_committed_and_left():
    running = (
        running_server(2, NOW + 2 * HOUR_S),
        running_server(1, NOW + HOUR_S),
    )
    found = opened(spent={'p/u': 3 * HOUR_S}, running=running)
    physics, _, user = (budgets.budget_parts(each, found) for each in ACCOUNTS)
    assert user == pytest.approx((3 * HOUR_S, 5 * HOUR_S, 2 * HOUR_S))
    assert physics == pytest.approx((0, 5 * HOUR_S, 95 * HOUR_S))


def test_an_account_without_a_budget_divides_none():
    assert budgets.budget_parts(ACCOUNTS[1], opened()) is None
    assert budgets.budget_parts(ACCOUNTS[0], None) is None


def test_servers_without_an_end_commit_the_rest_of_the_period_only():
    account = cluster.Account('p/u', 'p', budget_hours=1.0)
    found = opened((account,), running=(running_server(2),))
    used_s, committed_s, left_s = budgets.budget_parts(account, found)
    assert (used_s, left_s) == (0, 0)
    assert committed_s == pytest.approx(2 * (ENDS[0] - NOW))


def test_spent_and_expected_use_is_not_left():
    running = (
        running_server(2, NOW + 2 * HOUR_S),
        running_server(1, NOW + HOUR_S),
    )
    left = opened(spent={'p/u': 3 * HOUR_S}, running=running).left
    assert left['p/u'][0] == pytest.approx(2 * HOUR_S)
    assert left['physics'][0] == pytest.approx(95 * HOUR_S)
    assert left['p/u'][1] == 10 * HOUR_S


def test_a_server_without_an_end_counts_until_the_next_period_ends():
    left = opened(running=(running_server(1),)).left['physics']
    assert left[0] == 100 * HOUR_S - (ENDS[0] - NOW)
    assert left[1] == 100 * HOUR_S - (ENDS[1] - ENDS[0])


def test_use_that_is_not_charged_yet_is_still_to_be_paid():
    running = (running_server(1, NOW + HOUR_S),)
    left = opened(running=running, at_s=NOW - 60).left['p/u'][0]
    assert left == 9 * HOUR_S - 60


@pytest.mark.parametrize(
    ('asked', 'lack'),
    [
        (lasts(10), None),
        (lasts(5, vcpu=2), None),
        (lasts(5, count=2), None),
        (lasts(11), ('p/u', 11.0, 10.0)),
        (lasts(6, vcpu=2), ('p/u', 12.0, 10.0)),
        # The user lacks more of theirs than all of the faculty.
        (lasts(101), ('p/u', 101.0, 10.0)),
        (lasts(1e6, vcpu=0), None),
        (lasts(11, project='other'), None),
    ],
)
def test_a_request_beyond_the_rest_of_a_budget_lacks_it(asked, lack):
    found = spending().lacking([asked], NOW)
    told = found and (
        found.account,
        pytest.approx(found.asked_s / HOUR_S),
        found.left_s / HOUR_S,
    )
    assert told == lack


def test_a_start_is_taken_from_all_accounts_above():
    spent = spending()
    spent.take(lasts(6), NOW)
    assert spent.lacking([lasts(4)], NOW) is None
    assert spent.lacking([lasts(4.1)], NOW).account == 'p/u'
    assert spent.left().left['physics'][0] == 94 * HOUR_S


def test_requests_that_start_together_are_counted_together():
    both = [lasts(6), lasts(6)]
    assert spending().lacking(both, NOW).asked_s == 12 * HOUR_S


def test_the_next_period_is_charged_for_its_part():
    late = ENDS[0] - 2 * HOUR_S
    spent = spending(at_s=late)
    assert spent.lacking([lasts(12)], late) is None
    lack = spent.lacking([lasts(12.5)], late)
    assert (lack.asked_s, lack.left_s) == (10.5 * HOUR_S, 10 * HOUR_S)


def test_an_extension_costs_the_added_time():
    running = lasts(6)
    spent = spending(running=(running_server(1, NOW + 6 * HOUR_S),))
    lack = spent.extension_lack(running, NOW, 5 * HOUR_S)
    assert (lack.account, lack.asked_s, lack.left_s) == (
        'p/u', 5 * HOUR_S, 4 * HOUR_S
    )  # fmt: skip
    assert spent.extension_lack(running, NOW, 4 * HOUR_S) is None
    spent.take_extension(running, NOW, 4 * HOUR_S)
    assert spent.left().left['p/u'][0] == 0


def test_preemptible_use_counts_as_configured():
    band = request.Band.PREEMPTIBLE
    asked = lasts(30, band=band)
    assert spending().lacking([asked], NOW) is None
    half = budgets.BudgetTerms(preemptible=0.5)
    assert spending(terms=half).lacking([asked], NOW).asked_s == 15 * HOUR_S


def test_budget_units_are_weighted_by_resource_class():
    terms = budgets.BudgetTerms(weights={'MEMORY_MB': 0.5})
    lack = spending(terms=terms).lacking([lasts(1)], NOW)
    assert lack.asked_s == 50 * HOUR_S


def test_an_account_that_overspent_its_budget_has_nothing_left():
    spent = spending(spent={'p/u': 12 * HOUR_S})
    assert spent.lacking([lasts(1)], NOW).left_s == 0
