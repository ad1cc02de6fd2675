# SPDX-License-Identifier: Apache-2.0

"""Foresight where the best weight of a user differs from node to node."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.shares import exempt_levels
from nova_fairness.shares import filling
from tests.unit.decide import test_exempt_levels as build
from tests.unit.decide import test_foresight

CPUS = [8, 8, 8]


def group(node, user, count, vcpus):
    return [(node, user, float(vcpus), vcpus, False)] * count


WIDE = [
    *group(0, 0, 28, 8),
    *group(0, 1, 1, 1),
    *group(0, 2, 16, 1),
    *group(1, 0, 14, 8),
    *group(1, 1, 6, 1),
    *group(1, 2, 55, 1),
    *group(2, 0, 3, 8),
    *group(2, 1, 4, 1),
    *group(2, 2, 5, 1),
]
"""User 0 has VMs as wide as the nodes, and is at the least weight."""

OPPOSITE = [
    *group(0, 0, 27, 2),
    *group(0, 1, 7, 1),
    *group(0, 2, 1, 1),
    *group(1, 0, 34, 2),
    *group(1, 1, 7, 1),
    *group(1, 2, 5, 1),
]
"""Users 1 and 2 have more if user 1 has a higher weight on one node, and a
lower one on the other."""


def without_levels(known):
    """CPUs of users, and whether the nodes are divided."""
    found = decide_foresight.search_division(known, build.RATIO, None, 1)
    while found.free is None and not found.is_over:
        found = decide_foresight.search_division(known, build.RATIO, found, 1)
    return build.of_users(known, found.end)


def test_light_users_get_more_with_levels():
    known = build.cloud(WIDE, CPUS)
    found = build.searched(known)
    got = build.of_users(known, found.end)
    assert (got[1:] > 1.07 * without_levels(known)[1:]).all()
    assert got[1] == pytest.approx(got[2], rel=0.03)


def test_levels_of_two_nodes_move_in_opposite_directions(monkeypatch):
    known = build.cloud(OPPOSITE, [2, 2])
    got = build.of_users(known, build.searched(known).end)
    assert got == pytest.approx([4 / 3] * 3, rel=0.02)
    monkeypatch.setattr(exempt_levels, 'HALF', exempt_levels.TURNS + 1)
    of_one_price = build.of_users(known, build.searched(known).end)
    assert of_one_price[1:].max() < 0.97 * 4 / 3


def test_levels_are_searched_only_where_they_give_more():
    known = build.cloud(
        [*group(0, 0, 2, 2), *group(0, 1, 2, 1), *group(1, 1, 2, 1)], [2, 1]
    )
    assert build.searched(known).free is None


def test_a_search_in_small_parts_ends_where_one_call_ends():
    known = build.cloud(WIDE, CPUS)
    at_once, in_parts = build.searched(known), build.searched(known, 3)
    assert in_parts.free.turns.finished_turns == exempt_levels.TURNS
    assert build.of_users(known, in_parts.end) == pytest.approx(
        build.of_users(known, at_once.end), rel=0.02
    )


def test_the_division_does_not_depend_on_the_past():
    before = build.searched(build.cloud(WIDE, CPUS))
    changed = build.cloud([*WIDE[1:], *group(1, 3, 1, 1)], CPUS)
    found = decide_foresight.search_division(changed, build.RATIO, before)
    while not found.is_over:
        found = decide_foresight.search_division(changed, build.RATIO, found)
    fresh = build.searched(changed)
    for of in (found, fresh):
        assert of.free.turns.finished_turns == exempt_levels.TURNS
    assert found.end.due == pytest.approx(
        fresh.end.due, abs=0.1 * test_foresight.ONE
    )


rows = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 2),
        strategies.integers(0, 3),
        strategies.sampled_from([1, 1, 1, 8]),
        strategies.floats(0.3, 1.0),
        strategies.integers(1, 12),
    ),
    min_size=2,
    max_size=12,
).map(
    lambda rows: [
        (node, user, part * vcpus, vcpus, False)
        for node, user, vcpus, part, count in rows
        for _ in range(count)
    ]
)


@pytest.mark.repeated
@settings(max_examples=40)
@given(rows)
def test_no_division_is_less_fair_with_levels(rows):
    known = build.cloud(rows, [4, 4, 4])
    found = build.searched(known)
    if found.free is None:
        return
    got = build.of_users(known, found.end)
    assert not exempt_levels.is_fairer(without_levels(known), got)
    log, node = found.end.log, known.node
    for place in np.unique(node[found.end.short[node]]):
        here = log[node == place]
        assert np.ptp(here) <= np.log(build.RATIO) + 1e-6
    # The kernel gives with these weights what the search expects.
    demand = known.demand
    divided = np.bincount(node, found.end.due, len(found.end.short))
    given, _ = filling.fill(
        np.where(found.end.short, divided, np.inf),
        node[demand.cell],
        demand.wanted,
        demand.vcpus * np.exp(log[demand.cell]),
    )
    cells = np.bincount(demand.cell, given)
    assert cells == pytest.approx(found.end.due, rel=1e-3, abs=1e-6)
