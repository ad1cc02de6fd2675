# SPDX-License-Identifier: Apache-2.0

"""Plans of markets on clouds with little room, judged on their own."""

import random

import pytest

from nova_fairness.model import market
from nova_fairness.planners.market import planner
from tests.unit.planners import tight_clouds


def given(seed):
    """A market on a tight cloud; it knows no server groups."""
    chance = random.Random(seed)
    snapshot = tight_clouds.cloud(seed)
    bids = {
        each.uuid: market.Bid(
            chance.choice([0.1, 1.0, 1.0, 3.0, 10.0]),
            demand=each.demand,
            cost=chance.choice([1.0, 2.0, 7.5]),
        )
        for each in snapshot.running
        if each.bound is None
    }
    return market.MarketState(snapshot, bids)


def level(snapshot, bids, lowest=1.0):
    """Mean level at which currency is spent, from its definition."""
    column = snapshot.classes.index('VCPU')
    capacity = {
        each.name: int(snapshot.inventory.capacity[row, column])
        for row, each in enumerate(snapshot.providers)
    }
    mean = sum(capacity.values()) / len(capacity)
    rates = {
        each.uuid: bids[each.uuid].rate if each.uuid in bids else lowest
        for each in snapshot.running
    }
    price = dict.fromkeys(capacity, 0.0)
    for each in snapshot.running:
        price[each.host] += rates[each.uuid]
    total = sum(rates.values())
    spent = sum(
        rates[each.uuid] * price[each.host] / (capacity[each.host] / mean)
        for each in snapshot.running
    )
    return spent * len(capacity) / total**2


def follow(seed, rules):
    """How often plans moved something, until one moved nothing."""
    made = given(seed)
    snapshot = made.cloud
    for count in range(tight_clouds.MOST_REPLANS + 1):
        now = market.MarketState(snapshot, made.bids)
        found = planner.plan(now, 0.0, rules)
        if not found.moves:
            return count
        reached = tight_clouds.judged(snapshot, found.moves)
        before, after = (level(e, made.bids) for e in (snapshot, reached))
        assert after < before
        assert found.level == pytest.approx((before, after))
        there = {each.uuid: each.host for each in reached.running}
        assert there == {u: each.host for u, each in found.stands.items()}
        snapshot = reached
    raise AssertionError('plans do not come to an end')


@pytest.mark.repeated
@pytest.mark.parametrize('seed', range(25))
def test_all_planned_moves_are_needed_and_improve_the_cloud(seed):
    for each in range(seed * 50, seed * 50 + 50):
        margin = (0.0, 0.02, 0.1)[each % 3]
        slack = (0.0, 0.3)[each % 2]
        assert follow(each, planner.MarketRules(margin, slack)) <= 3
