# SPDX-License-Identifier: Apache-2.0

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
def test_the_jain_index_needs_a_list_of_values(values):
    with pytest.raises(ValueError, match='at least one value'):
        jain.jain_index(values)


@pytest.mark.parametrize('wrong', [-1.0, float('nan'), float('inf')])
def test_useless_value_is_named(wrong):
    with pytest.raises(ValueError, match=f'>= 0, got {wrong}'):
        jain.jain_index([1.0, wrong])
