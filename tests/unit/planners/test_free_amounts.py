# SPDX-License-Identifier: Apache-2.0

"""Amounts that come and go on hosts."""

import numpy as np
import pytest

from nova_fairness.planners import free_amounts

ONE = np.array([2, 3])


@pytest.fixture
def left():
    return free_amounts.FreeAmounts(np.array([[4, 2, 8], [4, 3, 2]]))


def test_amounts_given_back_are_free_again(left):
    left.take(1, ONE)
    assert left.free.tolist() == [[4, 0, 8], [4, 0, 2]]
    left.give_back(1, ONE)
    assert left.free.tolist() == [[4, 2, 8], [4, 3, 2]]


def test_given_amounts_stay_unchanged(left):
    tried = free_amounts.FreeAmounts(left.free)
    tried.take(0, ONE)
    assert left.free[:, 0].tolist() == [4, 4]


def test_a_host_has_amounts_if_every_class_is_enough(left):
    assert [left.has(row, ONE) for row in range(3)] == [True, True, False]
    asked = ONE[:, np.newaxis]
    assert left.having(np.array([2, 1]), asked).tolist() == [False, True]


def test_a_host_short_of_one_class_has_room_for_servers_without_it(left):
    left.take(2, np.array([0, 3]))
    assert left.has(2, np.array([1, 0]))
    assert not left.has(2, np.array([1, 1]))
    asked = np.array([[1, 1], [0, 1]])
    assert left.having(np.array([2, 2]), asked).tolist() == [True, False]
