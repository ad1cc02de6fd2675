# SPDX-License-Identifier: Apache-2.0

"""Requests that are drawn."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.queue_sim import streams
from fairness_lab.queue_sim import workload

DAY_S = 86400.0
CAPACITY = np.array([1_000_000, 1000])
SMALL, LARGE = workload.Size(1, 1000), workload.Size(4, 1000, servers=2)
PLAIN = streams.StreamRecipe(
    name='p',
    count=1,
    share=1.0,
    users=1,
    demand=0.5,
    sizes=((SMALL, 1.0),),
    lifetime_s=600.0,
    spread=streams.LifetimeDistribution.EXPONENTIAL,
    burst=1.0,
    active_periods_s=((0.0, DAY_S),),
    deleted=0.0,
)


def drawn(seed=1, **changes):
    recipe = dataclasses.replace(PLAIN, **changes)
    return streams.draw_stream([recipe], CAPACITY, seed)


def held(stream):
    """Mean part of the cloud that all would hold, (c,)."""
    amounts = np.array([each.amounts for each in stream.sizes])[stream.size]
    return stream.lifetime_s @ amounts / DAY_S / CAPACITY


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    first, same, other = drawn(1), drawn(1), drawn(2)
    np.testing.assert_array_equal(first.asked_s, same.asked_s)
    np.testing.assert_array_equal(first.lifetime_s, same.lifetime_s)
    assert len(first) != len(other) or (first.asked_s != other.asked_s).any()


@pytest.mark.parametrize('spread', list(streams.LifetimeDistribution))
def test_demand_is_the_average_allocation(spread):
    tolerance = (
        0.15 if spread is streams.LifetimeDistribution.HEAVY_TAILED else 0.03
    )
    stream = drawn(spread=spread)
    assert held(stream)[1] == pytest.approx(0.5, rel=tolerance)
    assert (np.diff(stream.asked_s) >= 0).all()
    assert 0 <= stream.asked_s[0] <= stream.asked_s[-1] < DAY_S


def test_demand_is_that_of_the_most_wanted_class():
    stream = drawn(sizes=((SMALL, 3.0), (LARGE, 1.0)))
    # On average 2.75 VCPUs and 1.25 GB of a cloud with as many thousands.
    assert held(stream)[1] == pytest.approx(0.5, rel=0.05)
    assert np.mean(stream.size == 1) == pytest.approx(0.25, abs=0.02)


def test_a_fixed_lifetime_is_drawn_exactly():
    assert set(
        drawn(spread=streams.LifetimeDistribution.FIXED).lifetime_s
    ) == {600.0}


def test_bursts_come_at_once_and_change_no_demand():
    stream = drawn(burst=20.0)
    _, counts = np.unique(stream.asked_s, return_counts=True)
    assert counts.mean() == pytest.approx(20, rel=0.1)
    assert held(stream)[1] == pytest.approx(0.5, rel=0.1)


def test_an_absent_user_asks_for_nothing():
    active = ((0.0, 0.25 * DAY_S), (0.5 * DAY_S, DAY_S))
    stream = drawn(active_periods_s=active)
    away = (stream.asked_s >= 0.25 * DAY_S) & (stream.asked_s < 0.5 * DAY_S)
    assert not away.any()
    assert held(stream)[1] == pytest.approx(0.5 * 0.75, rel=0.05)


def test_a_part_is_deleted_within_a_lifetime_of_asking():
    stream = drawn(deleted=0.3)
    gone = np.isfinite(stream.deleted_s)
    assert gone.mean() == pytest.approx(0.3, abs=0.02)
    after = (stream.deleted_s - stream.asked_s)[gone]
    assert (after >= 0).all()
    assert (after <= stream.lifetime_s[gone]).all()


def test_projects_and_users_in_the_order_of_the_recipes():
    recipes = [
        dataclasses.replace(PLAIN, name='a', count=2, users=2, share=3.0),
        dataclasses.replace(PLAIN, name='b'),
    ]
    owners = streams.owners(recipes)
    assert owners.projects == ('a-1', 'a-2', 'b')
    assert owners.shares == (3.0, 3.0, 1.0)
    assert owners.users == ('user-1', 'user-2', 'user-1', 'user-2', 'user-1')
    assert owners.project == (0, 0, 1, 1, 2)
    stream = streams.draw_stream(recipes, CAPACITY, 1)
    assert np.bincount(stream.user).min() > 0.2 * len(stream) / 5
    # Two projects of one kind ask at moments of their own.
    first, second = (stream.asked_s[stream.user // 2 == p] for p in (0, 1))
    assert not np.isin(first, second).any()
