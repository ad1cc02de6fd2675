# SPDX-License-Identifier: Apache-2.0

import numpy as np

from nova_fairness.shares import grouping


def test_rows_of_each_group_are_added_up():
    group = np.array([1, 0, 1])
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    got = grouping.sum_by(group, values, 3)
    np.testing.assert_array_equal(got, [[3, 4], [6, 8], [0, 0]])


def test_vectors_are_added_up_as_well():
    got = grouping.sum_by(np.array([1, 1]), np.array([1.5, 2.0]), 2)
    assert got.tolist() == [0, 3.5]


def test_no_rows_are_zeros_of_the_right_type():
    none = np.zeros(0, dtype=np.intp)
    for values in (np.zeros(0), np.zeros((0, 4))):
        got = grouping.sum_by(none, values, 2)
        assert got.shape == (2, *values.shape[1:])
        assert got.dtype == np.float64


def test_groups_that_have_rows_are_numbered():
    names, number = grouping.number_present_groups(np.array([7, 2, 7, 4]))
    assert names.tolist() == [2, 4, 7]
    assert number.tolist() == [2, 0, 2, 1]


def test_where_there_are_no_rows_no_group_is_numbered():
    names, number = grouping.number_present_groups(np.zeros(0, dtype=np.intp))
    assert (len(names), len(number)) == (0, 0)
