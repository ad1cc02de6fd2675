# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import greediness


def demands(usage, endowment, supply=(100.0, 100.0), node=None, users=2):
    usage = np.array(usage, dtype=float)
    return metric.Demands(
        usage=usage,
        endowment=np.array(endowment, dtype=float),
        supply=np.array(supply),
        node=np.zeros(len(usage), dtype=np.intp)
        if node is None
        else np.array(node),
        user_count=users,
    )


HALVES = [[50, 50], [50, 50]]


def test_two_resources_of_a_hundred_for_two_users_weigh_a_hundredth():
    got = metric.norm(np.array([100.0, 100.0]), 2)
    np.testing.assert_allclose(got, [0.01, 0.01])


@pytest.mark.parametrize(
    ('usage', 'ratio', 'expected'),
    [
        ([[80, 20], [30, 50]], [-1, 0], [0.30, -0.20]),
        ([[60, 20], [30, 70]], [-0.5, -2 / 3], [-0.10, 0.10]),
        ([[50, 50], [50, 50]], [0, 0], [0, 0]),
        ([[60, 50], [60, 50]], [-1, 0], [0.10, 0.10]),
        ([[10, 10], [10, 10]], [0, 0], [0, 0]),
    ],
)
def test_credit_is_given_for_the_use_of_others(usage, ratio, expected):
    given = demands(usage, HALVES)
    excess = given.usage - given.endowment
    got = greediness.taken_ratio(
        np.maximum(excess, 0), np.minimum(excess, 0), given.node
    )
    np.testing.assert_allclose(got, [ratio])
    heaviness = greediness.GreedinessMetric().instances(given)
    np.testing.assert_allclose(heaviness, expected, atol=1e-15)


def test_no_user_is_credited_for_use_by_others_on_another_node():
    apart = demands([[80, 20], [30, 50]], HALVES, node=[0, 1])
    got = greediness.GreedinessMetric().instances(apart)
    np.testing.assert_allclose(got, [0.30, 0.0], atol=1e-15)


def test_many_nodes_at_once_equal_each_node_by_itself():
    usage = [[80, 20], [60, 20], [30, 50], [30, 70]]
    got = greediness.GreedinessMetric().instances(
        demands(usage, HALVES * 2, node=[3, 1, 3, 1])
    )
    np.testing.assert_allclose(got, [0.30, -0.10, -0.20, 0.10])


def totals(heaviness, endowment, quota, supply):
    return metric.Totals(
        instance_heaviness=np.array(heaviness, dtype=float),
        usage=np.zeros_like(np.array(endowment, dtype=float)),
        endowment=np.array(endowment, dtype=float),
        quota=np.array(quota, dtype=float),
        supply=np.array(supply, dtype=float),
    )


def test_user_without_vms_is_lighter_by_the_whole_quota():
    # cpu, disk read, disk written, net received, net sent, memory with the
    # overcommit ratios 16, 1, 1, 1, 1 and 1.5 of the original's defaults.
    plain = np.full(6, 100.0)
    overcommitted = plain * [16, 1, 1, 1, 1, 1.5]
    got = greediness.GreedinessMetric().users(
        totals([0, 0], np.zeros((2, 6)), [plain / 2] * 2, overcommitted)
    )
    np.testing.assert_allclose(got, [-0.7882, -0.7882], atol=5e-5)


def test_user_without_overcommit_starts_at_minus_one():
    got = greediness.GreedinessMetric().users(
        totals([0, 0], np.zeros((2, 2)), HALVES, [100, 100])
    )
    np.testing.assert_allclose(got, [-1, -1])


def test_user_is_the_sum_of_greediness_and_endowment_minus_quota():
    got = greediness.GreedinessMetric().users(
        totals([0.30, -0.20], [[80, 50], [20, 50]], HALVES, [100, 100])
    )
    # 0.30 + (80 + 50) / 100 - 1 and -0.20 + (20 + 50) / 100 - 1
    np.testing.assert_allclose(got, [0.60, -0.50])


def test_vm_is_treated_by_its_user_and_its_own_greediness():
    got = greediness.GreedinessMetric().combine(
        np.array([0.6, -0.5]), np.array([0.3, -0.2])
    )
    np.testing.assert_allclose(got, [0.9, -0.7])
