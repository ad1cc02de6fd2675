# SPDX-License-Identifier: Apache-2.0

"""Formulas of distance, on numbers that can be checked by hand."""

import numpy as np
import pytest

from fairness_lab.measures import distance

IDEAL = np.array([[0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    ('share', 'worst', 'apart'),
    [
        ([0.5, 0.5, 0.0], 0.0, 0.0),
        ([0.25, 0.75, 0.0], 0.5, 0.25),
        ([0.0, 1.0, 0.0], 1.0, 0.5),
        ([0.4, 0.5, 0.1], 0.2, 0.1),
    ],
)
def test_the_worst_lack_and_the_distance_are_as_by_hand(share, worst, apart):
    given = np.array([share])
    assert distance.largest_lack(given, IDEAL)[0] == pytest.approx(worst)
    assert distance.distance(given, IDEAL)[0] == pytest.approx(apart)


def test_an_unknown_ideal_gives_no_judgement():
    share, unknown = np.array([[0.3, 0.7]]), np.array([[np.nan, np.nan]])
    assert np.isnan(distance.largest_lack(share, unknown)[0])
    assert np.isnan(distance.distance(share, unknown)[0])
    assert np.isnan(distance.jain_indices(share, unknown)[0])


def test_distances_without_wants_are_zero():
    nothing = np.zeros((1, 2))
    assert distance.largest_lack(nothing, nothing)[0] == 0.0
    assert distance.distance(nothing, nothing)[0] == 0.0
    assert distance.jain_indices(nothing, nothing)[0] == 1.0


def test_the_fairness_index_does_not_penalize_small_wants():
    ideal = np.array([[0.1, 0.9]])
    assert distance.jain_indices(ideal, ideal)[0] == pytest.approx(1.0)
    other = distance.jain_indices(np.array([[0.1, 0.0]]), ideal)[0]
    assert other == pytest.approx(0.5)


@pytest.mark.parametrize(
    ('lacking', 'expected'),
    [
        ([0.0, 0.01], 0),
        ([0.3, 0.2, 0.04, 0.03], 2),
        ([0.3, 0.04, 0.06, 0.03], 3),
        ([0.3, 0.04, 0.06], None),
        ([0.3, np.nan, 0.01], 2),
    ],
)
def test_rounds_count_until_the_worst_user_stays_close(lacking, expected):
    assert distance.rounds_until(np.array(lacking)) == expected


def test_overshoot_is_the_part_beyond_the_ideal():
    share = np.array([[0.2, 0.8], [0.55, 0.45], [0.5, 0.5]])
    ideal = np.full((3, 2), 0.5)
    assert distance.overshoot(share, ideal) == pytest.approx(0.1)
    far = np.array([[2.0, 0.5], [0.4, 0.5], [0.5, 0.5]])
    assert distance.overshoot(far, ideal) == pytest.approx(0.1 / 1.5)
    assert distance.overshoot(ideal, ideal) == 0.0
    assert distance.overshoot(share, np.zeros((3, 2))) == 0.0


def test_oscillation_and_swing_are_relative():
    share = np.array([[0.45, 0.0], [0.55, 0.0]])
    assert distance.oscillation(share) == pytest.approx(0.2)
    assert distance.largest_weight_swing(
        np.array([[1.0, 2.0], [1.1, 2.0]])
    ) == pytest.approx(0.1)
    assert distance.largest_weight_swing(np.zeros((0, 2))) == 0.0


@pytest.mark.parametrize(
    ('changed', 'expected'),
    [
        ([True, False, False], [(0, 3)]),
        ([True, False, True, False], [(0, 2), (2, 4)]),
        ([False, True], [(0, 1), (1, 2)]),
    ],
)
def test_periods_are_between_changes_of_the_load(changed, expected):
    assert distance.periods_of_constant_demand(changed) == expected


@pytest.mark.parametrize('power', [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_fitted(power):
    sizes = [3, 10, 30, 100]
    rounds = [4 * size**power for size in sizes]
    assert distance.exponent(sizes, rounds) == pytest.approx(power)
