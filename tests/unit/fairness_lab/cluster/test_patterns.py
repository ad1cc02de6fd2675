# SPDX-License-Identifier: Apache-2.0

"""Packings by patterns are packings, and nothing is better than the bound."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from fairness_lab.cluster import packing
from fairness_lab.cluster import patterns

CAPACITY = np.array([8, 8])
KINDS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(any),
    min_size=1,
    max_size=4,
    unique=True,
)


def fewest(items, bins=()):
    """By trying all."""
    if not items:
        return len(bins)
    (a, b), *rest = items
    tried = [fewest(rest, (*bins, (8 - a, 8 - b)))]
    for n, (left, other) in enumerate(bins):
        if a <= left and b <= other and (left, other) not in bins[:n]:
            new = (left - a, other - b)
            tried.append(fewest(rest, (*bins[:n], new, *bins[n + 1 :])))
    return min(tried)


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(KINDS, st.data())
def test_as_few_hosts_as_trying_all_finds(kinds, draw):
    counts = [draw.draw(st.integers(1, 2)) for _ in kinds]
    sizes, count = np.array(kinds), np.array(counts)
    found = patterns.packed(sizes, count, CAPACITY, 5.0)
    assert (found.hosts.sum(axis=0) == count).all()
    assert (found.hosts @ sizes <= CAPACITY).all()
    items = [
        each for each, n in zip(kinds, counts, strict=True) for _ in range(n)
    ]
    best = fewest(items)
    assert found.bound <= best == len(found.hosts)


def test_servers_that_can_stay_do():
    kind, at = np.array([0, 1, 0, 0]), np.array([2, 0, 2])
    # The last of them is new; one of those on the third host is too many.
    new = patterns.settled(np.array([[2, 0], [1, 1]]), kind, at, 3)
    assert new[:3].tolist() == [2, 0, 2]
    assert new[3] == 0


@pytest.fixture
def mix():
    return packing.Mix(300, 40, 0.2, packing.Sizes.POWERS)


def test_plans_by_patterns_need_no_more_hosts_than_any(mix):
    strategy = packing.Strategy(every=10, has_repack=True, has_patterns=True)
    run = packing.Packing(mix, strategy, 30, 1)
    for n, _ in enumerate(run.run(), 1):
        used = run.snapshot().inventory.used
        assert (used >= 0).all()
        assert (used <= packing.HOST).all()
        if n % 10 == 0:
            assert run.outcome.busy[-1] == run.least()


def test_who_found_no_room_gets_it_where_any_packing_has_it(mix):
    refused = {}
    for has_patterns in (False, True):
        strategy = packing.Strategy(has_rescue=True, has_patterns=has_patterns)
        run = packing.Packing(mix, strategy, 8, 1)
        for _ in run.run():
            assert (run.snapshot().inventory.used <= packing.HOST).all()
        refused[has_patterns] = run.outcome.refused
    assert refused[True] <= refused[False]
    assert refused[False] > 0
