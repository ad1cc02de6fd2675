# SPDX-License-Identifier: Apache-2.0

"""Estimates of a simulated cloud against what came."""

from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import judgement
from nova_fairness.planners.fairqueue import order as order_module
from tests.unit.fairness_lab.queue_sim import small_clouds

WHOLE = small_clouds.WHOLE


def judged(requests, **settings):
    cloud = small_clouds.cloud(requests, estimates_s=10.0, **settings)
    simulation = engine.Simulation(cloud, order_module.OldestFirst())
    judge = judgement.QueueJudge(cloud)
    for moment in simulation.moments(50.0):
        judge.see(moment)
    return judge.result(simulation).summary['estimates']


def test_estimates_are_exact_for_equal_lifetimes():
    # Five ends are known before the first estimate.
    found = judged([(0, 0, WHOLE, 50)] * 12)
    assert found['count'] > 0
    assert (found['by_p50'], found['by_p90']) == (1, 1)
    assert (found['off_s'], found['by_p90_alone']) == (0, 1)


def test_a_request_without_an_estimate_is_not_judged():
    assert judged([(0, 0, WHOLE, 900)] * 3) is None


def test_a_request_that_expires_after_its_promise_was_not_in_time():
    # They last as the five before, but for the one that goes on for ever.
    requests = [(0, 0, WHOLE, 50)] * 6 + [(310, 0, WHOLE, 900)]
    requests += [(320, 1, WHOLE, 50)]
    found = judged(requests, longest_wait_s=400)
    assert found['late_s'] > 0
    assert found['by_p90'] < 1
