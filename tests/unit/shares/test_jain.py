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

import pytest

from nova_fairness.shares import jain


@pytest.mark.parametrize(
    ('values', 'expected'),
    [
        ([1, 1, 1, 1], 1.0),
        ([1, 0, 0, 0], 0.25),
        ([1, 1, 0, 0], 0.5),
        ([1, 2, 3], 36 / 42),
        ([5], 1.0),
        ([0, 0], 1.0),
        ([1e300, 1e300], 1.0),
        ([1e-300, 0], 0.5),
    ],
)
def test_index_says_how_equal_values_are(values, expected):
    assert jain.jain_index(values) == pytest.approx(expected)


@pytest.mark.parametrize('values', [[], [[1, 2]]])
def test_one_list_of_values_is_needed(values):
    with pytest.raises(ValueError, match='at least one value'):
        jain.jain_index(values)


@pytest.mark.parametrize('wrong', [-1.0, float('nan'), float('inf')])
def test_useless_value_is_named(wrong):
    with pytest.raises(ValueError, match=f'>= 0, got {wrong}'):
        jain.jain_index([1.0, wrong])
