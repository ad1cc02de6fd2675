# SPDX-License-Identifier: Apache-2.0

"""How fair a run was."""

import numpy as np
import pytest

from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import judgement
from nova_fairness.planners.fairqueue import order as order_module
from tests.unit.fairness_lab.queue_sim import small_clouds

ONE, WHOLE = small_clouds.ONE, small_clouds.WHOLE


def judged(cloud, every_s=100.0):
    simulation = engine.Simulation(cloud, order_module.OldestFirst())
    judge = judgement.QueueJudge(cloud)
    for moment in simulation.moments(every_s):
        judge.see(moment)
    return judge.result(simulation)


def test_the_error_is_half_if_half_of_the_cloud_is_misallocated():
    """Both have a share of 1 and want all; one has all."""
    cloud = small_clouds.cloud([(0, 0, WHOLE, 5000), (1, 1, WHOLE, 5000)])
    found = judged(cloud)
    for name in ('share_error_now', 'share_error'):
        assert found.summary[name]['mean'] == pytest.approx(0.5)
    # Of those who wait there is one alone.
    assert found.summary['share_error_wanting']['largest'] == 0
    # 2 of what is due, and nothing: (2 + 0)^2 / (2 x (4 + 0)).
    assert found.summary['jain']['mean'] == pytest.approx(0.5)
    assert found.tables['projects']['held_part'].tolist() == [1, 0]
    assert found.tables['projects']['entitled_part'].tolist() == [0.5, 0.5]
    assert found.tables['users']['dominant_share'].tolist() == [1, 0]


def test_the_error_depends_on_shares():
    requests = [(0, 0, ONE, 5000)] * 3 + [(0, 1, ONE, 5000)] * 4
    found = judged(small_clouds.cloud(requests, shares=(3.0, 1.0)))
    assert found.summary['share_error']['largest'] == pytest.approx(0)
    assert found.summary['jain']['mean'] == pytest.approx(1)


def test_unwanted_room_used_by_others_is_no_error():
    found = judged(small_clouds.cloud([(0, 0, WHOLE, 5000)]))
    assert found.summary['share_error']['largest'] == 0


def test_a_share_of_zero_is_entitled_to_the_rest():
    requests = [(0, 0, ONE, 5000)] * 4 + [(0, 1, ONE, 5000)]
    found = judged(small_clouds.cloud(requests, shares=(0.0, 1.0)))
    # The last one waits for a VCPU that the first has beyond its right.
    assert found.summary['share_error']['end'] == pytest.approx(0.25)


def test_an_error_decays_as_use_does():
    """One has all for 100 s, the other all after it; half-life 100 s."""
    requests = [(0, 0, WHOLE, 100), (1, 1, WHOLE, 5000)]
    error = judged(small_clouds.cloud(requests)).tables['series'][
        'share_error'
    ]
    # At 100 s the end has happened and the start has not: nothing is held.
    assert error[0] == 0
    assert (np.diff(error[1:]) <= 0).all()


def test_wait_times_are_given_by_user_and_size():
    requests = [
        (0, 0, WHOLE, 95),
        (0, 1, ONE, 20),
        (5, 1, ONE, 20, 50),
        (900, 1, WHOLE, 500),
        (905, 0, WHOLE, 500),
    ]
    cloud = small_clouds.cloud(requests, longest_wait_s=50)
    found = judged(cloud)
    waiting = found.summary['waiting']
    assert (waiting['requests'], waiting['started']) == (5, 2)
    assert (waiting['expired'], waiting['mean_s']) == (2, 0)
    assert waiting['longest_s'] == 50
    users = found.tables['users']
    assert users['requests'].tolist() == [2, 3]
    assert users['started'].tolist() == [1, 1]
    sizes = found.tables['sizes']
    assert sizes['size'] == ['4 VCPU, 4 GiB', '1 VCPU, 1 GiB']
    assert sizes['started'].tolist() == [2, 0]
    assert np.isnan(sizes['mean_s'][1])


def test_the_p95_wait_covers_only_started_requests():
    requests = [(0, 0, ONE, 11)] * 4 + [(0, 0, ONE, 11)] * 4
    found = judged(small_clouds.cloud(requests))
    assert found.summary['waiting']['mean_s'] == 10
    assert found.summary['waiting']['p95_s'] == 20
    assert found.summary['requests']['ended'] == 8


def test_utilisation_is_told_of_all_time_and_of_the_settled_part():
    requests = [(0, 0, WHOLE, 100), (500, 0, WHOLE, 500)]
    found = judged(small_clouds.cloud(requests))
    assert found.summary['settled_s'] == 200
    assert found.summary['utilisation'] == {
        'mean': pytest.approx(0.6),
        'settled_mean': pytest.approx(500 / 800),
    }


def test_a_cloud_without_requests_is_judged():
    found = judged(small_clouds.cloud([]))
    assert found.summary['waiting']['mean_s'] is None
    assert found.summary['waiting']['longest_s'] is None
    assert found.summary['share_error']['mean'] == 0
    assert found.summary['jain']['mean'] == 1


def test_work_lost_to_others_is_a_part_of_all_use():
    """One user's server leaves after 690 s, another's would, too."""
    requests = [(0, 0, WHOLE, 2000), (0, 1, WHOLE, 2000), (600, 2, WHOLE, 300)]
    cloud = small_clouds.cloud(
        requests, hosts=2, shares=(1.0, 2.0, 1.0), preemptible={0, 1}
    )
    found = judged(cloud)
    left = found.tables['users']['servers_left'].tolist()
    assert left == [1, 0, 0]
    assert found.summary['made_room'] == {
        'servers': 1,
        'lost_part': pytest.approx(690 / (690 + 300 + 10 + 1000)),
        'follows_share': pytest.approx(1),
    }
