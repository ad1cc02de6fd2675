# SPDX-License-Identifier: Apache-2.0

"""Whether VMs get what their weights promise."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness.decide import effect


def competition(had, wanted, parts, vcpus=None):
    vcpus = [1.0] * len(had) if vcpus is None else vcpus
    return effect.Competition(*map(np.array, (had, wanted, parts, vcpus)))


PARTS = [1000.0, 10.0]
WANTED = [1.0, 1.0]


@pytest.mark.parametrize(
    ('had', 'followed'),
    [
        ([0.99, 0.01], 1.0),
        ([0.5, 0.5], 0.0),
        ([0.745, 0.255], 0.5),
        ([0.1, 0.9], 0.0),
    ],
)
def test_the_effect_is_between_weights_and_no_weights(had, followed):
    found = competition(had, WANTED, PARTS)
    assert found.followed_part() == pytest.approx(followed, abs=0.01)


@pytest.mark.parametrize(
    'found',
    [
        competition([0.4, 0.4], [0.4, 0.4], PARTS),
        competition([0.5, 0.5], WANTED, [10.0, 10.0]),
        competition([0.0, 0.0], WANTED, PARTS),
        competition([], [], []),
        competition([0.05, 0.95], [0.05, 1.0], PARTS),
    ],
    ids=['plenty', 'equal weights', 'nothing', 'no VM', 'one wants little'],
)
def test_no_effect_is_reported_where_weights_cannot_matter(found):
    assert found.followed_part() is None


amounts = st.floats(0.0, 4.0)


@hypothesis.given(
    st.lists(
        st.tuples(amounts, amounts, st.floats(0.1, 1e4), st.integers(1, 8)),
        max_size=8,
    )
)
def test_a_division_gives_away_the_supply_and_no_user_too_much(rows):
    had, more, parts, vcpus = (
        np.array([row[place] for row in rows], float) for place in range(4)
    )
    found = competition(had, had + more, parts, vcpus)
    given = found.divide(found.parts)
    assert given.sum() == pytest.approx(had.sum(), abs=1e-9)
    assert (given <= found.wanted + 1e-9).all()
    followed = found.followed_part()
    assert followed is None or 0.0 <= followed <= 1.0


def test_the_effect_needs_several_intervals_and_weighs_recent_ones():
    evidence = effect.Evidence()
    assert evidence.known_mean is None
    for _ in range(effect.ENOUGH - 1):
        evidence = evidence.with_interval(0.0)
        assert not evidence.shows_no_effect
    assert evidence.with_interval(0.0).shows_no_effect
    assert evidence.with_interval(None) == evidence
    for _ in range(8):
        evidence = evidence.with_interval(1.0)
    assert not evidence.with_interval(0.0).shows_no_effect
