# SPDX-License-Identifier: Apache-2.0

"""Whoever starts stays within the budgets of all above."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import estimates
from nova_fairness.planners.fairqueue import planner
from nova_fairness.shares import budgets
from tests.fixtures import small_cloud

HOUR_S = 3600.0
NOW = 0.0
ACCOUNTS = (
    cluster.Account('all', budget_hours=30.0),
    cluster.Account('p', 'all', budget_hours=20.0),
    cluster.Account('p/u', 'p', budget_hours=15.0),
    cluster.Account('q', 'all', budget_hours=15.0),
)


def cloud(requests, accounts=ACCOUNTS, **more):
    snapshot = small_cloud.cloud(
        [small_cloud.host('h', 64)], requests, accounts=accounts, **more
    )
    terms = budgets.BudgetTerms(budgets.Period.DAY)
    left = budgets.open_budgets(snapshot, terms, {}, NOW, NOW)
    return dataclasses.replace(snapshot, budgets=left)


def request_with_limit(name, hours=None, **more):
    limit_s = None if hours is None else hours * HOUR_S
    return small_cloud.waiting_request(name, time_limit_s=limit_s, **more)


def started_requests(plan):
    return [each.request for each in plan.actions]


def test_a_request_without_budget_is_told_so_and_delays_no_other():
    requests = (
        request_with_limit('first', 10),
        request_with_limit('second', 10),
        request_with_limit('third', 5),
    )
    plan = planner.plan(cloud(requests), NOW)
    assert started_requests(plan) == ['first', 'third']
    waits = plan.waiting['second']
    assert waits.why == reason.why(
        reason.Reason.BUDGET_SPENT, 'p/u', asked=10.0, left=0.0
    )
    assert waits.why.sentence == (
        'it may use up to 10 unit-hours, and the budget of p/u has 0 left'
    )
    assert waits.reserved is None


def test_requests_within_guaranteed_quota_use_the_budget_too():
    snapshot = cloud(
        (request_with_limit('r', 16),),
        limits={'p': small_cloud.guaranteed(64, 10_000)},
    )
    assert not planner.plan(snapshot, NOW).actions


def test_a_request_without_an_end_is_charged_until_the_period_ends():
    requests = (request_with_limit('r'),)
    assert not planner.plan(cloud(requests), NOW).actions
    rich = (cluster.Account('p', budget_hours=24.0),)
    assert started_requests(planner.plan(cloud(requests, rich), NOW)) == ['r']


def test_no_start_is_estimated_without_a_budget():
    requests = (
        request_with_limit('large', 10, vcpu=64),
        request_with_limit('r', 16),
    )
    snapshot = cloud(requests)
    plan = planner.plan(snapshot, NOW)
    steps = estimates.estimate_starts(
        snapshot, plan, NOW, planner.plan, lambda _: 1.0, None
    )
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value == {}


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(['p', 'q', 'free']),
            st.integers(1, 4),
            st.one_of(st.none(), st.floats(0.1, 12)),
            st.integers(1, 2),
        ),
        max_size=12,
    )
)
def test_budgets_are_never_exceeded_and_block_no_fitting_request(wanted):
    requests = tuple(
        request_with_limit(
            f'r{n}', hours, vcpu=vcpu, project=project, count=count
        )
        for n, (project, vcpu, hours, count) in enumerate(wanted)
    )
    snapshot = cloud(requests)
    plan = planner.plan(snapshot, NOW)
    spending = budgets.BudgetUse(snapshot.budgets, snapshot.accounts)
    by_uuid = {each.uuid: each for each in requests}
    for uuid in started_requests(plan):
        spending.take(by_uuid[uuid], NOW)
    left = spending.left().left
    assert all(min(each) >= -1e-6 for each in left.values())
    for uuid, waits in plan.waiting.items():
        if waits.why.reason is reason.Reason.BUDGET_SPENT:
            assert spending.lacking([by_uuid[uuid]], NOW)
