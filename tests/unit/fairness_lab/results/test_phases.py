# SPDX-License-Identifier: Apache-2.0

import math

import pytest

from fairness_lab.results import phases


def test_the_interval_of_a_known_sample():
    # mean 0, standard deviation 0.01, n = 10: 2.262 * 0.01 / sqrt(10)
    part = 0.01 * math.sqrt(9 / 10)
    low, high = phases.confidence([part, -part] * 5)
    assert high == pytest.approx(2.262 * 0.01 / math.sqrt(10))
    assert low == pytest.approx(-high)


@pytest.mark.parametrize('values', [[], [0.1]])
def test_too_few_values_have_no_interval(values):
    assert phases.confidence(values) is None


@pytest.mark.parametrize(
    ('freedom', 'expected'),
    [(1, 12.706), (9, 2.262), (24, 2.086), (999, 1.98)],
)
def test_between_table_rows_the_wider_interval_counts(freedom, expected):
    assert phases.t_quantile(freedom) == expected


def test_a_difference_is_relative():
    assert phases.PhasePair(200.0, 198.0).difference == pytest.approx(-0.01)
