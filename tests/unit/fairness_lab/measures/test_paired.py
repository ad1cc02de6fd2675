# SPDX-License-Identifier: Apache-2.0

"""Intervals of paired differences."""

import math

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from fairness_lab.measures import paired

NUMBERS = st.lists(
    st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)),
    min_size=paired.FEWEST,
    max_size=12,
)


def test_an_interval_is_that_of_a_table_of_student():
    # Differences 1 to 10: mean 5.5, deviation 3.0277; t of 9 is 2.2622.
    found = paired.difference(range(1, 11), [0] * 10)
    half = 2.262157 * 3.027650 / math.sqrt(10)
    assert found.mean == 5.5
    assert found.low == pytest.approx(5.5 - half, abs=1e-5)
    assert found.high == pytest.approx(5.5 + half, abs=1e-5)
    assert not found.is_noise


def test_pairs_show_more_than_two_means():
    spread = [1.0, 20.0, 300.0, 4000.0]
    beside = [each + 0.5 + 0.01 * n for n, each in enumerate(spread)]
    assert not paired.difference(beside, spread).is_noise
    assert paired.difference(beside[::-1], spread).is_noise


@pytest.mark.parametrize(('apart', 'is_noise'), [(0, True), (2, False)])
def test_the_same_difference_of_all_pairs_has_no_spread(apart, is_noise):
    found = paired.difference([3 + apart, 5 + apart], [3, 5])
    assert (found.mean, found.low, found.high) == (apart, apart, apart)
    assert found.is_noise == is_noise


@hypothesis.given(NUMBERS)
def test_which_of_two_is_the_reference_changes_the_sign_alone(pairs):
    one, two = zip(*pairs, strict=True)
    there, back = paired.difference(one, two), paired.difference(two, one)
    assert there.mean == pytest.approx(-back.mean)
    assert there.low == pytest.approx(-back.high)
    assert there.low <= there.mean <= there.high
    assert there.is_noise == back.is_noise


def test_of_equal_things_one_in_twenty_looks_different():
    drawn = np.random.default_rng(1).normal(size=(1000, 2, 10))
    found = [paired.difference(*pair).is_noise for pair in drawn]
    assert 0.93 < sum(found) / len(found) < 0.97


@pytest.mark.parametrize(
    ('values', 'reference'),
    [([1], [2]), ([1, None], [2, 3]), ([1, 2], [math.nan, 3]), ([1, 2], [1])],
)
def test_numbers_without_interval_are_refused(values, reference):
    with pytest.raises(ValueError):
        paired.difference(values, reference)
