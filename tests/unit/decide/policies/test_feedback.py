# SPDX-License-Identifier: Apache-2.0

"""The default policy on a simulated node."""

import numpy as np
import pytest

from nova_fairness.decide.policies import feedback
from nova_fairness.testing import policy_contract
from tests.unit.decide import plant

NOISES = (0.0, 0.01, 0.02)
SEEDS = range(5)
TWO_AGAINST_ONE = [0, 0, 1]


def constant_load(count):
    return lambda step: [plant.HUNGRY] * count


def widest_swing(weights, rounds=30):
    """Largest peak-to-peak of any weight in so many rounds."""
    return max(
        float((part.max(axis=0) / part.min(axis=0) - 1).max())
        for part in (
            weights[k : k + rounds] for k in range(len(weights) - rounds + 1)
        )
    )


class TestFeedbackPolicy(policy_contract.PolicyContract):
    def make_policy(self):
        return feedback.FeedbackPolicy()


@pytest.mark.parametrize('noise', NOISES)
@pytest.mark.parametrize('seed', SEEDS)
def test_two_users_are_equal_within_six_rounds_and_stay_so(noise, seed):
    trace = plant.run(
        TWO_AGAINST_ONE, constant_load(3), noise=noise, seed=seed
    )
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert share[0] == pytest.approx(2 / 3)
    assert np.abs(share[6:] - 0.5).max() <= 0.03
    assert share.min() >= 0.45
    assert widest_swing(trace.weights[10:]) <= 0.05


@pytest.mark.parametrize('decay', [0.25, 0.5, 1.0])
def test_other_smoothing_is_slower_and_still_stable(decay):
    trace = plant.run(TWO_AGAINST_ONE, constant_load(3), decay=decay, seed=3)
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[15:] - 0.5).max() <= 0.03
    # With a factor of 0.25 usage lags more than the policy makes up for.
    assert share.min() >= 0.3


@pytest.mark.parametrize('seed', SEEDS)
def test_greediness_ends_where_all_are_equally_heavy(seed):
    trace = plant.run(
        TWO_AGAINST_ONE, constant_load(3), metric=plant.greediness, seed=seed
    )
    final = trace.shares[-20:].mean(axis=0)
    heaviness = plant.greediness(final, np.array(TWO_AGAINST_ONE), 2)
    assert np.ptp(heaviness) < 0.05
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[12:] - share[-1]).max() <= 0.03


@pytest.mark.parametrize('metric', [plant.dominant_share, plant.greediness])
@pytest.mark.parametrize('noise', NOISES)
def test_one_against_thirty_stops_at_the_bound(metric, noise):
    users = [0] + [1] * 30
    trace = plant.run(users, constant_load(31), metric=metric, noise=noise)
    settled = trace.weights[12:]
    assert np.ptp(settled, axis=0).max() == 0
    assert settled[0, 0] == pytest.approx(20**0.5, rel=0.01)
    np.testing.assert_allclose(settled[0, 1:], 20**-0.5, rtol=0.01)
    assert trace.shares[-1, 0] == pytest.approx(0.4, abs=0.01)


def test_the_bound_is_reached_also_from_one_side():
    users = [0] + [1] * 30
    trace = plant.run(users, constant_load(31), start=[4.47] + [1.0] * 30)
    assert trace.shares[-1, 0] == pytest.approx(0.4, abs=0.01)


def test_a_bound_does_not_leave_anything_wound_up():
    # The light user at the bound turns heavy: his weight falls in the very
    # round, as if it had been there by choice.
    users = [0] + [1] * 30
    trace = plant.run(
        users,
        constant_load(31),
        elsewhere=lambda step: [9.0 if step >= 40 else 0.0] + [0.0] * 30,
        rounds=60,
    )
    assert trace.weights[40, 0] == pytest.approx(20**0.5, rel=0.01)
    assert trace.weights[41, 0] < 0.8 * 20**0.5
    assert trace.weights[49, 0] == pytest.approx(20**-0.5, rel=0.01)


def test_a_lone_busy_vm_at_the_lowest_weight_gets_all_and_does_not_move():
    start = [20**-0.5, 1.0, 2.0]
    trace = plant.run(
        [0, 0, 1], lambda step: [1, 0, 0], start=start, rounds=40
    )
    assert trace.shares[:, 0].min() >= 0.97
    np.testing.assert_array_equal(
        trace.weights, trace.weights[:1].repeat(40, 0)
    )


def test_an_idle_light_vm_does_not_climb():
    trace = plant.run([0, 1, 2], lambda step: [1, 1, 0], noise=0.02)
    np.testing.assert_array_equal(trace.weights[:, 2], 1.0)


def test_a_spike_leaves_no_trace_when_contention_returns():
    quiet = range(15, 25)
    trace = plant.run(
        TWO_AGAINST_ONE,
        lambda step: [1, 0, 0] if step in quiet else [1, 1, 1],
    )
    assert trace.shares[15:25, 0].min() >= 0.97
    assert np.ptp(trace.weights[16:25], axis=0).max() == 0
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[28:] - 0.5).max() <= 0.03


@pytest.mark.parametrize('limited', [0.05, 0.1, 0.2, 0.3])
@pytest.mark.parametrize('seed', SEEDS)
def test_contenders_share_the_rest_of_a_satisfied_user(limited, seed):
    users = [0, 0, 1, 2]
    trace = plant.run(users, lambda step: [1, 1, 1, limited], seed=seed)
    rest = (1 - limited) / 2
    assert np.abs(trace.of_user(users, 2)[8:] - limited).max() <= 0.03
    assert np.abs(trace.of_user(users, 0)[8:] - rest).max() <= 0.03
    assert widest_swing(trace.weights[10:]) <= 0.05


def test_a_satisfied_user_above_his_part_is_lowered_until_he_waits():
    trace = plant.run(TWO_AGAINST_ONE, lambda step: [0.3, 0.3, 1])
    assert not trace.wanting[0, 0]
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[8:] - 0.5).max() <= 0.03


def test_vms_that_the_metric_treats_as_one_end_with_one_weight():
    trace = plant.run(
        TWO_AGAINST_ONE, constant_load(3), start=[4.47, 0.22, 1.0]
    )
    assert trace.weights[15, 0] == pytest.approx(trace.weights[15, 1], 0.011)
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[15:] - 0.5).max() <= 0.03


def test_a_user_that_became_light_recovers_within_a_few_rounds():
    start = [20**-0.5, 20**-0.5, 20**0.5]
    trace = plant.run(TWO_AGAINST_ONE, constant_load(3), start=start)
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert share[0] < 0.1
    assert np.abs(share[8:] - 0.5).max() <= 0.03


def test_a_user_heavy_elsewhere_leaves_the_node_to_equal_others():
    users = [0, 0, 1, 2]
    trace = plant.run(
        users, constant_load(4), elsewhere=lambda step: [3, 3, 0, 0]
    )
    assert trace.weights[-1, 0] == pytest.approx(20**-0.5, rel=0.01)
    one, other = trace.of_user(users, 1), trace.of_user(users, 2)
    assert np.abs(one - other)[10:].max() <= 0.03


@pytest.mark.parametrize('user_count', [2, 30, 1000])
def test_speed_does_not_depend_on_the_size_of_the_cloud(user_count):
    trace = plant.run(TWO_AGAINST_ONE, constant_load(3), user_count=user_count)
    share = trace.of_user(TWO_AGAINST_ONE, 0)
    assert np.abs(share[6:] - 0.5).max() <= 0.03


@pytest.mark.parametrize('noise', NOISES)
def test_many_equal_users_are_left_at_neutral(noise):
    trace = plant.run(range(30), constant_load(30), noise=noise)
    np.testing.assert_allclose(trace.weights, 1.0, rtol=0.06)
    drift = np.log(trace.weights[-1]).mean()
    assert abs(drift) < 0.01


def test_a_policy_without_direction_brings_history_back_to_neutral():
    def uniform(shares, user, users):
        return np.zeros(len(shares))

    trace = plant.run(
        [0, 1, 2], constant_load(3), metric=uniform, start=[4.0, 0.25, 0.5]
    )
    np.testing.assert_allclose(trace.weights[-1], 1.0, rtol=0.011)


def test_nothing_moves_without_contention():
    situation = policy_contract.situation_of([2.0, 0.1], contended=False)
    previous = policy_contract.neutral(2) * [[3.0], [0.4]]
    weights, _ = feedback.FeedbackPolicy()(situation, previous, {}, 10.0)
    np.testing.assert_array_equal(weights, previous)


def test_a_weight_at_most_doubles_or_halves_in_a_round():
    situation = policy_contract.situation_of([1e9, -1e9])
    previous = policy_contract.neutral(2)
    weights, _ = feedback.FeedbackPolicy()(situation, previous, {}, 10.0)
    assert weights.max() <= 2.0
    assert weights.min() >= 0.5
