# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import numpy as np

from nova_fairness.measure import grouping


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
