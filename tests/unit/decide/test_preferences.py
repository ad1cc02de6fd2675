# SPDX-License-Identifier: Apache-2.0

"""What owners give to their own VMs moves nothing between users."""

import numpy as np
import pytest

from nova_fairness.decide import preferences
from nova_fairness.model import instance
from nova_fairness.model import resources

COLUMNS = len(resources.CONTROLS)
RATIO = np.full(COLUMNS, 20.0)
USERS = np.array([0, 0, 0, 1, 1])


def weights_with_preferences(
    weights, preference, sizes=1.0, users=USERS, ratio=RATIO
):
    column = np.array(weights, dtype=np.float64)[:, np.newaxis]
    return preferences.divide_by_preference(
        np.repeat(column, COLUMNS, 1),
        np.array(preference, dtype=np.float64),
        np.full((len(column), COLUMNS), 1.0) * np.array(sizes).reshape(-1, 1),
        users,
        ratio,
    )


def test_a_users_part_is_divided_in_proportion_to_preference():
    found = weights_with_preferences([1, 1, 1, 1, 1], [1, 2, 1, 1, 1])
    assert found[:3, 0] == pytest.approx([0.75, 1.5, 0.75])


def test_users_without_preference_keep_weights_of_the_policy():
    found = weights_with_preferences([1, 1, 1, 0.3, 2.0], [1, 2, 1, 5, 5])
    assert found[3:, 0].tolist() == [0.3, 2.0]


def test_sizes_count_so_that_kernel_units_are_divided():
    found = weights_with_preferences([1, 1], [1, 2], [4, 1], np.array([0, 0]))
    units = np.array([4, 1]) * found[:, 0]
    assert units.sum() == pytest.approx(5)
    assert found[1, 0] == pytest.approx(2 * found[0, 0])


@pytest.mark.parametrize('seed', range(40))
def test_the_sum_of_a_user_stays_and_bounds_hold(seed):
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 12))
    users = chance.integers(0, 4, count)
    ratio = np.resize([20.0, 4.0, 1.0, 50.0], COLUMNS)
    reach = np.sqrt(ratio)
    weights = np.exp(chance.uniform(-2, 2, (count, COLUMNS)))
    weights = np.clip(weights, 1 / reach, reach)
    sizes = np.exp(chance.uniform(0, 4, (count, COLUMNS)))
    preference = np.exp(chance.uniform(-4, 4, count))
    found = preferences.divide_by_preference(
        weights, preference, sizes, users, ratio
    )
    for user in range(4):
        rows = users == user
        before = (sizes * weights)[rows].sum(axis=0)
        after = (sizes * found)[rows].sum(axis=0)
        assert after == pytest.approx(before, rel=1e-9)
    assert (found <= reach * (1 + 1e-9)).all()
    assert (found >= (1 - 1e-9) / reach).all()


def test_a_preferred_vm_never_gets_less_than_a_sibling():
    found = weights_with_preferences(
        [1, 1, 1], [100, 1, 3], users=np.array([0, 0, 0])
    )
    assert found[0, 0] >= found[2, 0] >= found[1, 0]
    assert found[0, 0] / found[1, 0] <= 20 * (1 + 1e-9)


def test_order_of_rows_changes_nothing():
    weights, wished = [0.5, 1, 2, 1, 1], [9, 1, 3, 2, 1]
    order = np.array([4, 2, 0, 3, 1])
    plain = weights_with_preferences(weights, wished)
    turned = weights_with_preferences(
        np.array(weights)[order], np.array(wished)[order], users=USERS[order]
    )
    assert turned == pytest.approx(plain[order])


def test_equal_preferences_have_no_effect():
    chosen = preferences.has_unequal_preferences(
        np.array([3.0, 3, 3, 1, 2]), USERS
    )
    assert chosen.tolist() == [False, False, False, True, True]


def test_preferences_on_an_empty_node_have_no_effect():
    empty = np.zeros(0, dtype=np.intp)
    assert (
        preferences.has_unequal_preferences(np.zeros(0), empty).tolist() == []
    )
    assert weights_with_preferences([], [], np.ones(0), empty).shape == (
        0,
        COLUMNS,
    )


def test_preferences_of_sibling_vms_keep_their_sum():
    values = np.array([1.0, 4.0, 2.0, 7.0, 8.0])
    sizes = np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    chosen = np.array([True, True, True, False, False])
    found = preferences.means_of_users(values, sizes, USERS, chosen)
    assert found[:3] == pytest.approx([2.0, 2.0, 2.0])
    assert found[3:].tolist() == [7.0, 8.0]


def test_a_missing_preference_counts_as_one():
    vms = [
        instance.Incarnation(instance.Instance(uuid, uuid, 1, 1), 1, 1)
        for uuid in ('a', 'b')
    ]
    found = preferences.preferences_of_vms(vms, {'b': 3.0, 'gone': 9.0})
    assert found.tolist() == [1.0, 3.0]
