# SPDX-License-Identifier: Apache-2.0

"""The two metrics that compare users by what they use of their quota."""

import numpy as np
import pytest

from nova_fairness.measure import metric
from nova_fairness.measure.metrics import asset
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.measure.metrics import uniform

DOMINANT = dominant_share.DominantShareMetric()
ASSET = asset.AssetFairnessMetric()
UNIFORM = uniform.UniformMetric()


def demands(usage, supply=(100.0, 10.0), users=2):
    usage = np.array(usage, dtype=float)
    return metric.Demands(
        usage=usage,
        endowment=np.zeros_like(usage),
        supply=np.array(supply),
        node=np.zeros(len(usage), dtype=np.intp),
        user_count=users,
    )


def totals(usage, quota, supply=(100.0, 10.0)):
    usage = np.array(usage, dtype=float)
    return metric.Totals(
        instance_heaviness=np.full(len(usage), 99.0),
        usage=usage,
        endowment=np.full(usage.shape, 7.0),
        quota=np.array(quota, dtype=float),
        supply=np.array(supply),
    )


@pytest.mark.parametrize(
    ('chosen', 'expected'),
    [
        # A whole quota is 50 of the first and 5 of the second resource.
        (DOMINANT, [1.0, 0.4, 0.0]),
        (ASSET, [0.6, 0.4, 0.0]),
        (UNIFORM, [0, 0, 0]),
    ],
)
def test_vm_is_weighed_by_its_part_of_an_equal_quota(chosen, expected):
    got = chosen.instances(demands([[10, 5], [20, 2], [0, 0]]))
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize(
    ('chosen', 'expected'),
    [(DOMINANT, [1.0, 0.8]), (ASSET, [0.6, 0.5]), (UNIFORM, [0, 0])],
)
def test_user_is_weighed_by_the_part_of_the_own_quota(chosen, expected):
    got = chosen.users(totals([[10, 5], [40, 1]], [[50, 5], [50, 5]]))
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize('chosen', [DOMINANT, ASSET])
def test_user_with_the_larger_quota_is_lighter_for_the_same_usage(chosen):
    got = chosen.users(totals([[30, 3], [30, 3]], [[75, 7.5], [25, 2.5]]))
    np.testing.assert_allclose(got, [0.4, 1.2])


def test_dominant_share_of_a_sum_is_not_the_sum_of_dominant_shares():
    vms = [[50, 0], [0, 5]]
    assert DOMINANT.instances(demands(vms)).sum() == 2
    user = totals([np.sum(vms, axis=0)], [[50, 5]])
    assert DOMINANT.users(user).tolist() == [1]


@pytest.mark.parametrize(
    ('chosen', 'vm', 'user'), [(DOMINANT, 0.2, 0.2), (ASSET, 0.1, 0.1)]
)
def test_a_missing_resource_makes_no_user_heavy(chosen, vm, user):
    supply = (100.0, 0.0)
    got = chosen.instances(demands([[10, 5]], supply))
    np.testing.assert_allclose(got, [vm])
    got = chosen.users(totals([[10, 5]], [[50, 0]], supply))
    np.testing.assert_allclose(got, [user])


@pytest.mark.parametrize('chosen', [DOMINANT, ASSET])
def test_vms_of_a_user_are_treated_alike(chosen):
    of_users = np.array([0.5, 0.5, 0.1])
    got = chosen.combine(of_users, np.array([0.4, 0.1, 0.1]))
    np.testing.assert_array_equal(got, of_users)
    assert got is not of_users
