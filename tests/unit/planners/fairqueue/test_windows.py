# SPDX-License-Identifier: Apache-2.0

"""Requests of accounts that may start at certain times only."""

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud

HOUR_S = 3600.0
NIGHT = cluster.Window('0 20 * * *', 10 * HOUR_S)
ACCOUNTS = (cluster.Account('p', windows=(NIGHT,)), cluster.Account('q'))


def plan_at(hour):
    """The plan at an hour of a day; both requests fit."""
    requests = (
        small_cloud.waiting_request('night', 8, project='p'),
        small_cloud.waiting_request('day', 1, project='q'),
    )
    snapshot = small_cloud.cloud(
        [small_cloud.host('h', 9)],
        requests,
        accounts=ACCOUNTS,
        limits={'p': small_cloud.guaranteed(8, 1000)},
    )
    return planner.plan(snapshot, hour * HOUR_S)


def test_a_request_outside_of_its_window_waits_and_keeps_no_other_back():
    plan = plan_at(12.0)
    assert [each.request for each in plan.actions] == ['day']
    waits = plan.waiting['night']
    assert waits.why == reason.why(
        reason.Reason.WINDOW_CLOSED, 'p', opens_h=8.0
    )
    assert waits.why.sentence == (
        'requests of p start at certain times, next in 8 h'
    )
    assert waits.reserved is None


def test_a_request_within_its_time_window_starts():
    for hour in (20.0, 24.0 + 5.9):
        [first, *_] = plan_at(hour).actions
        assert first.request == 'night'
    assert 'night' in plan_at(24.0 + 6.0).waiting


def test_the_reported_opening_time_of_a_window_is_stable():
    told = {
        dict(plan_at(12 + s / HOUR_S).waiting['night'].why.numbers)['opens_h']
        for s in range(0, 360, 30)
    }
    assert told == {8.0}
