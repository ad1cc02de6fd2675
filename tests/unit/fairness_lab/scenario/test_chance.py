# SPDX-License-Identifier: Apache-2.0


"""Chance that is arithmetic."""

import numpy as np

from fairness_lab.scenario import chance


def test_numbers_of_chance_equal_recorded_values():
    # Kept results depend on them: the first outputs of SplitMix64 for the
    # seed 0 are published, and this is the first of them, as a part of 1.
    first = 0xE220A8397B1DCDAF
    assert chance.uniform(0) == (first >> 11) * 2.0**-53


def test_the_key_alone_determines_a_random_number():
    many = chance.uniform(7, np.arange(1000), 3)
    assert many[17] == chance.uniform(7, 17, 3)
    assert chance.uniform(7, 17, 3) != chance.uniform(7, 3, 17)
    assert chance.uniform(8, 17, 3) != chance.uniform(7, 17, 3)


def test_numbers_are_spread_evenly():
    drawn = chance.uniform(1, np.arange(100_000))
    assert ((drawn >= 0) & (drawn < 1)).all()
    counts, _ = np.histogram(drawn, 100, (0, 1))
    # Three standard deviations of 1000 are 95.
    assert abs(counts - 1000).max() < 150


def test_random_numbers_of_neighbouring_keys_are_uncorrelated():
    drawn = chance.uniform(1, np.arange(300)[:, None], np.arange(300)[None, :])
    for first, second in (
        (drawn[1:], drawn[:-1]),
        (drawn[:, 1:], drawn[:, :-1]),
    ):
        related = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(related) < 0.02
