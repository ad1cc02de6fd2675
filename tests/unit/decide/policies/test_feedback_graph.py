# SPDX-License-Identifier: Apache-2.0

"""The default policy where users connect several nodes."""

import numpy as np
import pytest

from fairness_lab.measures import distance
from nova_fairness.decide.policies import feedback
from tests.unit.decide import cloud as plant

SMALL = {
    'chain of 2': plant.chain(2),
    'chain of 3': plant.chain(3),
    'chain of 5': plant.chain(5),
    'ring of 3': plant.ring(3),
    'ring of 5': plant.ring(5),
    'star of 3': plant.star(3),
    'star of 5': plant.star(5),
    **{
        f'drawn {seed}': plant.drawn(5, 5, 3 + seed % 4, seed)
        for seed in range(6)
    },
}


def plain():
    """Make a policy that only follows the error."""
    policy = feedback.FeedbackPolicy()
    policy.momentum, policy.gain = 0.0, 0.7
    return policy


@pytest.mark.parametrize('given', SMALL.values(), ids=SMALL)
def test_up_to_five_nodes_need_ten_rounds(given):
    trace = plant.run(given, feedback.FeedbackPolicy())
    best = given.best()
    needed = distance.rounds_until(trace.lacking(best))
    assert needed is not None
    assert needed <= 10
    assert trace.overshoot(best) <= 0.1


@pytest.mark.parametrize('given', SMALL.values(), ids=SMALL)
def test_no_capacity_is_lost(given):
    trace = plant.run(given, feedback.FeedbackPolicy(), noise=0.02)
    np.testing.assert_allclose(trace.used, given.cpus.sum(), rtol=1e-9)


@pytest.mark.parametrize('nodes', [5, 10])
def test_momentum_halves_the_rounds_of_a_chain(nodes):
    given = plant.chain(nodes)
    best = given.best()
    fast = plant.run(given, feedback.FeedbackPolicy(), rounds=60)
    slow = plant.run(given, plain(), rounds=60)
    needed = distance.rounds_until(fast.lacking(best))
    assert needed is not None
    assert slow.lacking(best)[2 * needed] > distance.WITHIN


@pytest.mark.parametrize('name', ['chain of 3', 'ring of 5', 'star of 5'])
@pytest.mark.parametrize('seed', range(3))
def test_a_third_of_the_reports_lost_and_all_late_does_no_harm(name, seed):
    given = SMALL[name]
    trace = plant.run(
        given,
        feedback.FeedbackPolicy(),
        loss=1 / 3,
        late=1,
        noise=0.01,
        seed=seed,
        rounds=60,
    )
    assert trace.lacking(given.best())[30:].max() <= 0.1


@pytest.mark.parametrize('name', ['chain of 3', 'ring of 5', 'drawn 3'])
@pytest.mark.parametrize('noise', [0.0, 0.01, 0.02])
def test_weights_stay_constant_after_settling(name, noise):
    trace = plant.run(
        SMALL[name], feedback.FeedbackPolicy(), noise=noise, rounds=110
    )
    assert distance.largest_weight_swing(trace.weights[80:]) <= 0.05


NARROW = plant.Cloud([4.0], [(0, 0)] + [(0, 1)] * 6 + [(0, 2)] * 30)
"""Even the largest ratio of weights leaves user 0 lighter than user 1."""

WIDE = {
    'one node': NARROW,
    **{f'drawn {seed}': plant.drawn(10, 10, 4, seed) for seed in (0, 4, 5)},
}
"""Where weights end at bounds: nodes differ in size, users are few."""


@pytest.mark.parametrize('given', WIDE.values(), ids=WIDE)
def test_ten_rounds_are_enough_where_weights_end_at_bounds(given):
    trace = plant.run(given, feedback.FeedbackPolicy(), rounds=60)
    lacking = trace.lacking(given.best())
    needed = distance.rounds_until(lacking)
    assert needed is not None
    assert needed <= 10
    assert lacking[40:].max() <= 0.01


@pytest.mark.parametrize('given', WIDE.values(), ids=WIDE)
@pytest.mark.parametrize('noise', [0.01, 0.02])
def test_noise_does_not_make_those_at_bounds_restless(given, noise):
    trace = plant.run(given, feedback.FeedbackPolicy(), rounds=70, noise=noise)
    assert trace.lacking(given.best())[40:].max() <= distance.WITHIN
    assert distance.largest_weight_swing(trace.weights[40:]) <= 0.1


def test_users_of_two_nodes_yield_only_while_heavier():
    trace = plant.run(NARROW, feedback.FeedbackPolicy(), rounds=60)
    loner, middle, crowd = trace.weights[-1][[0, 1, 7]]
    assert loner == pytest.approx(plant.RATIO**0.5, rel=0.01)
    assert crowd == pytest.approx(plant.RATIO**-0.5, rel=0.01)
    assert crowd <= middle < loner
