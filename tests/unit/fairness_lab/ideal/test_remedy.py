# SPDX-License-Identifier: Apache-2.0

"""Shares that users could have without harm to poorer users."""

import numpy as np
import pytest

from fairness_lab.ideal import remedy
from nova_fairness.shares import filling
from tests.unit.fairness_lab.ideal import wishes as build

CPU = build.R.index('cpu_time')
RATIO = 20.0


def judged(wishes, log):
    """Divide by weights: shares of users then, and those they could have."""
    got, _ = filling.fill(
        wishes.capacity[:, CPU],
        wishes.node,
        wishes.demand[:, CPU],
        wishes.size[:, CPU] * np.exp(log),
    )
    received = np.zeros(wishes.demand.shape)
    received[:, CPU] = got
    return remedy.harmless_shares(wishes, received, RATIO)


def test_users_with_equal_parts_can_have_no_more():
    wishes = build.cpu_only([1.0], [(0, 0, 1.0), (0, 1, 1.0)])
    had, could = judged(wishes, [0.0, 0.0])
    np.testing.assert_allclose(had, [1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(could, had, rtol=1e-3)


def test_a_user_can_rise_to_where_the_richer_one_is_as_poor():
    wishes = build.cpu_only([1.0], [(0, 0, 1.0), (0, 1, 1.0)])
    had, could = judged(wishes, [np.log(3.0), 0.0])
    np.testing.assert_allclose(had, [1.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(could, [1.5, 1.0], rtol=1e-3)


def test_a_user_rises_no_higher_than_weights_reach():
    vms = [(0, 0, 1.0)] + [(0, 1, 1.0)] * 30
    had, could = judged(build.cpu_only([1.0], vms), np.zeros(31))
    # The largest weight is 20 times the others: 20 of 50 parts.
    assert could[0] / 2 == pytest.approx(0.4, rel=1e-3)
    assert had[0] / 2 == pytest.approx(1 / 31)


def test_a_user_does_not_rise_at_the_cost_of_a_poorer_one():
    vms = [(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0), (1, 2, 1.0)]
    wishes = build.cpu_only([1.0, 4.0], vms)
    had, could = judged(wishes, [0.0, 0.0, 0.0, 0.0])
    assert could[0] > had[0]
    np.testing.assert_allclose(could[1:], had[1:], rtol=1e-3)
