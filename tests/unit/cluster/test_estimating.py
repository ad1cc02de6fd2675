# SPDX-License-Identifier: Apache-2.0

"""Estimates in pauses, on a clock that is turned by hand."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster import estimating
from nova_fairness.planners.fairqueue import planner
from tests.fixtures import small_cloud
from tests.unit.planners.fairqueue import test_backfill

SNAPSHOT = small_cloud.cloud(
    [small_cloud.host('a', used=8)],
    [small_cloud.ask('r', 8)],
    running=(test_backfill.runs('a', 8, 50.0),),
    lifetimes=small_cloud.last(60, 8),
)
PLAN = planner.plan(SNAPSHOT, 100.0)


class Pauses:
    """Every plan takes a second; a pause leaves time for three."""

    def __init__(self):
        self.tick = 0.0
        self.plans = 0
        self.error = None
        self.made = estimating.Estimating(
            self.plan, lambda _: 1.0, lambda: self.tick
        )

    def plan(self, snapshot, now):
        self.tick += 1.0
        self.plans += 1
        if self.error:
            raise self.error
        return planner.plan(snapshot, now)

    def work(self):
        self.made.work(SNAPSHOT, PLAN, 100.0, 2.5 / estimating.PART)


@pytest.fixture
def pauses():
    return Pauses()


def test_work_goes_on_in_the_next_pause(pauses):
    for _ in range(6):
        pauses.work()
        assert pauses.made.made(100.0) == {}
    assert pauses.plans == 18
    pauses.work()
    assert pauses.plans == 20
    assert pauses.made.made(100.0)['r'].p50 == 110.0


def test_estimates_are_made_at_a_lower_rate_than_plans(pauses):
    for _ in range(7):
        pauses.work()
    pauses.tick = estimating.EVERY_S - 0.5
    pauses.work()
    assert pauses.plans == 20
    pauses.tick = estimating.EVERY_S
    pauses.work()
    assert pauses.plans == 23
    # The old ones are told meanwhile, as long as they can come true.
    assert pauses.made.made(110.0)
    assert pauses.made.made(110.5) == {}


def test_another_leader_begins_anew(pauses):
    for _ in range(7):
        pauses.work()
    pauses.made.forget()
    assert pauses.made.made(100.0) == {}
    pauses.work()
    assert pauses.plans == 23


def test_a_planner_that_fails_is_asked_again_later(pauses):
    pauses.error = exception.PluginMisbehaved('no')
    with pytest.raises(exception.PluginMisbehaved):
        pauses.work()
    pauses.error = None
    pauses.work()
    assert pauses.plans == 1
    pauses.tick = estimating.EVERY_S
    for _ in range(7):
        pauses.work()
    assert pauses.made.made(100.0)
