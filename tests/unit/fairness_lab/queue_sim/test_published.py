# SPDX-License-Identifier: Apache-2.0

"""What systems of the field showed of themselves, with our planner.

Clouds of twenty servers that are asked for much more than they have.
"""

import numpy as np
import pytest

from fairness_lab.queue_sim import engine
from nova_fairness.planners.fairqueue import orders
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE = small_clouds.ONE
SERVERS = 20


def crowded(shares, lifetimes, begin=None):
    """All ask for the whole cloud again and again, from a time on."""
    begin = begin or [0] * len(shares)
    requests = sorted(
        (begin[p] + 15 * n, p, ONE, float(lifetimes[n % len(lifetimes)]))
        for p in range(len(shares))
        for n in range(7 * SERVERS)
    )
    return small_clouds.cloud(
        requests, SERVERS // 4, 2000.0, shares=tuple(shares), half_life_s=200.0
    )


def servers_by_project(cloud, order):
    """(m, p) servers that each project had, every ten seconds."""
    simulation = engine.Simulation(cloud, order)
    return np.array([each.used[:, 1] for each in simulation.moments(10.0)])


@pytest.mark.parametrize('users', [2, 3])
def test_users_of_cloud_scheduler_get_equal_parts(users):
    # The last one comes when the others fill the cloud.
    begin = [0] * (users - 1) + [1000]
    cloud = crowded([1] * users, [300, 330, 360], begin)
    order = orders.Distribution(vcpus=1, memory=0)
    found = servers_by_project(cloud, order)
    assert found[90, -1] == 0
    assert found[90].sum() == SERVERS
    settled = found[150:]
    assert settled.sum(axis=1).min() == SERVERS
    assert np.abs(settled - SERVERS / users).max() <= 2


@pytest.mark.repeated
@pytest.mark.parametrize('users', [2, 3])
@pytest.mark.parametrize(
    'order', [orders.Distribution(vcpus=1, memory=0), orders.FairTree()]
)
def test_nothing_flips_where_all_end_at_once(users, order):
    """All servers live as long, so that every generation is dealt anew."""
    found = servers_by_project(crowded([1] * users, [300]), order)
    full = found[80:][found[80:].sum(axis=1) == SERVERS]
    assert len(full) > 60
    assert np.abs(np.diff(full, axis=0)).max() <= 2
    assert np.abs(full - SERVERS / users).max() <= 2


@pytest.mark.parametrize(
    ('order', 'within'),
    [(orders.Synergy(), 0.05), (orders.FairTree(), 0.02)],
    ids=['synergy', 'ours'],
)
def test_a_full_cloud_is_shared_as_synergy_says(order, within):
    found = servers_by_project(crowded([70, 30], [300, 330, 360]), order)[100:]
    assert found.sum(axis=1).min() == SERVERS
    part = found.mean(axis=0) / SERVERS
    assert part == pytest.approx([0.7, 0.3], abs=within)
