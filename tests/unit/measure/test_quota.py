# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from nova_fairness.measure import quota


@pytest.mark.parametrize(
    ('weights', 'expected'),
    [
        ([1, 1], [[50, 20], [50, 20]]),
        ([3, 1], [[75, 30], [25, 10]]),
        ([7], [[100, 40]]),
    ],
)
def test_supply_is_divided_by_weight(weights, expected):
    got = quota.divide_by_weights(np.array([100.0, 40.0]), np.array(weights))
    np.testing.assert_allclose(got, expected)


def test_without_users_there_is_no_quota():
    assert quota.divide_by_weights(np.ones(6), np.ones(0)).shape == (0, 6)


@pytest.mark.parametrize('wrong', [0, -1, float('nan'), float('inf')])
def test_useless_weight_is_named_with_its_user(wrong):
    with pytest.raises(ValueError, match='quota weight of user 1 must be'):
        quota.divide_by_weights(np.ones(6), np.array([1, wrong]))


def test_overcommit_multiplies_the_supply():
    got = quota.with_overcommit(np.array([10.0, 4.0]), np.array([16.0, 1.5]))
    assert got.tolist() == [160, 6]


@pytest.mark.parametrize('wrong', [0, -1, float('nan'), float('inf')])
def test_useless_factor_is_named_with_its_resource(wrong):
    with pytest.raises(ValueError, match='factor of resource 1 must be'):
        quota.with_overcommit(np.ones(2), np.array([1, wrong]))
