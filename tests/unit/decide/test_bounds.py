# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.decide import round as decide_round
from nova_fairness.testing import policy_contract

NEUTRAL = policy_contract.neutral(1)


def column(*values):
    return np.array(values)[:, np.newaxis] * NEUTRAL


@pytest.mark.parametrize(
    ('wanted', 'previous', 'expected'),
    [
        (1.2, 1.0, 1.2),
        (9.0, 1.0, 4.0),
        (0.1, 1.0, 0.25),
        (9.0, 4.0, np.sqrt(20)),
        (0.01, 0.3, 1 / np.sqrt(20)),
    ],
)
def test_a_weight_goes_as_far_as_step_and_ratio_allow(
    wanted, previous, expected
):
    result = decide_round.bound_weights(
        column(wanted), column(previous), 20.0, 4.0
    )
    np.testing.assert_allclose(result, column(expected))


@pytest.mark.parametrize('seed', range(20))
def test_no_two_weights_are_further_apart_than_the_ratio(seed):
    generator = np.random.default_rng(seed)
    previous = np.exp(generator.normal(0, 4, size=(30, 4)))
    wanted = np.exp(generator.normal(0, 4, size=(30, 4)))
    held = generator.random(30) < 0.5
    wanted[held] = previous[held]
    ratio = float(generator.uniform(1, 50))
    result = decide_round.bound_weights(wanted, previous, ratio, 1.5)
    assert (
        result.max(axis=0) <= result.min(axis=0) * ratio * (1 + 1e-9)
    ).all()


def test_a_lower_ratio_brings_in_a_held_weight_at_once():
    wide = column(4.0, 0.25)
    result = decide_round.bound_weights(wide, wide, 4.0, 1.01)
    np.testing.assert_allclose(result, column(2.0, 0.5))


def test_a_ratio_of_one_makes_all_equal():
    result = decide_round.bound_weights(
        column(3.0, 0.5), column(1.0, 1.0), 1.0, 4.0
    )
    np.testing.assert_array_equal(result, column(1.0, 1.0))


def test_bounding_does_not_change_its_arguments():
    wanted, previous = column(9.0), column(1.0)
    decide_round.bound_weights(wanted, previous, 2.0, 2.0)
    np.testing.assert_array_equal(wanted, column(9.0))
    np.testing.assert_array_equal(previous, column(1.0))


@pytest.mark.parametrize(('ratio', 'step'), [(0.9, 2.0), (2.0, 0.5)])
def test_limits_below_one_are_refused(ratio, step):
    with pytest.raises(ValueError, match='at least 1'):
        decide_round.bound_weights(NEUTRAL, NEUTRAL, ratio, step)
