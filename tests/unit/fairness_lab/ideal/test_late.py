# SPDX-License-Identifier: Apache-2.0

"""Weights of wants that are known, or were once true."""

import dataclasses

import numpy as np
import pytest

from fairness_lab.ideal import ideal
from fairness_lab.ideal import late
from tests.unit.fairness_lab.ideal import wishes as build

H = build.HUNGRY
CPU = build.R.index('cpu_time')
RATIO = 20.0


def with_demand(wishes, *demand):
    """The same VMs, which want other amounts of CPU time."""
    new = wishes.demand.copy()
    new[:, CPU] = demand
    return dataclasses.replace(wishes, demand=new)


def test_weights_of_true_wants_divide_a_chain_as_by_hand():
    wishes = build.cpu_only(
        [1.0, 1.0, 0.4],
        [(0, 0, H), (0, 1, H), (1, 1, H), (1, 2, H), (2, 2, H)],
    )
    weights = late.best_weights(wishes, wishes.demand[:, CPU], RATIO)
    # 2.4 CPUs for three users: each has all of a quota of 0.8.
    np.testing.assert_allclose(late.shares(wishes, weights), 1.0, atol=0.01)


@pytest.mark.parametrize('seed', range(8))
def test_weights_of_true_wants_reach_the_bounded_ideal(seed):
    chance = np.random.default_rng(seed)
    vms = [
        (int(chance.integers(3)), user, float(chance.uniform(0.1, 1.0)))
        for user in range(4)
        for _ in range(4)
    ]
    wishes = build.cpu_only([1.0, 1.0, 1.0], vms)
    weights = late.best_weights(wishes, wishes.demand[:, CPU], RATIO)
    best = ideal.ideal(wishes, max_weight_ratio=RATIO).share
    lacks = 1 - late.shares(wishes, weights) / best
    assert lacks.max() < 0.02


def test_weights_of_the_round_before_miss_a_vm_that_stopped():
    before = build.cpu_only([1.0], [(0, 0, H), (0, 0, H), (0, 1, H)])
    weights = late.best_weights(before, before.demand[:, CPU], RATIO)
    now = with_demand(before, 1.0, 0.0, 1.0)
    # The user with two VMs had half of the other's weight for each.
    np.testing.assert_allclose(
        late.shares(now, weights) / 2, [1 / 3, 2 / 3], atol=0.01
    )
    np.testing.assert_allclose(
        ideal.ideal(now, max_weight_ratio=RATIO).share / 2, 0.5, atol=0.01
    )


def test_an_absent_vm_has_weight_1_and_gets_nothing():
    wishes = build.cpu_only([1.0], [(0, 0, H), (0, 1, H), (0, 1, H)])
    gone = dataclasses.replace(wishes, node=np.array([0, 0, -1]))
    weights = late.best_weights(gone, gone.demand[:, CPU], RATIO)
    assert weights[2] == 1.0
    np.testing.assert_allclose(late.shares(gone, weights), 1.0, atol=0.01)


def test_memory_counts_in_the_dominant_share():
    wishes = build.many(
        [{'cpu_time': 1.0, 'memory': 4.0}],
        [
            (0, 0, {'cpu_time': 0.1, 'memory': 3.0}),
            (0, 1, {'cpu_time': 0.2, 'memory': 0.1}),
        ],
    )
    shares = late.shares(wishes, np.ones(2))
    # Quotas are half of the node: 3 of 2, and 0.2 of 0.5.
    np.testing.assert_allclose(shares, [1.5, 0.4])
