# SPDX-License-Identifier: Apache-2.0

"""Foresight where some VMs have a weight of 1."""

import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.measure.metrics import dominant_share
from nova_fairness.model import foresight as foresight_model
from nova_fairness.shares import exempt_levels
from nova_fairness.shares import filling
from nova_fairness.shares import maxmin
from tests.unit.decide import test_foresight as build

RATIO = 20.0
METRIC = dominant_share.DominantShareMetric()


def cloud(rows, cpus):
    """Rows: (node, user, CPUs wanted, vCPUs, exempt)."""
    present = sorted({user for _, user, *_ in rows})
    rows = [(row[0], present.index(row[1]), *row[2:]) for row in rows]
    pairs: dict[tuple[int, int], float] = {}
    for node, user, wanted, *_ in rows:
        pairs[node, user] = pairs.get((node, user), 0.0) + wanted
    known = build.make(METRIC, pairs, cpus)
    cells = sorted(pairs)
    order = sorted(rows, key=lambda row: (cells.index(row[:2]), row[4]))
    demand = foresight_model.CpuDemand(
        cell=np.array([cells.index(row[:2]) for row in order]),
        wanted=np.array([row[2] * build.ONE for row in order]),
        vcpus=np.array([float(row[3]) for row in order]),
        exempt=np.array([row[4] for row in order], dtype=bool),
    )
    return dataclasses.replace(known, demand=demand)


def searched(known, steps=decide_foresight.STEPS):
    found = decide_foresight.search_division(known, RATIO, None, steps)
    for _ in range(400):
        if found.is_over:
            return found
        found = decide_foresight.search_division(known, RATIO, found, steps)
    raise AssertionError('the search does not end')


def of_users(known, end):
    return np.bincount(known.user, end.due) / build.ONE


WIDE = [
    (0, 0, 2.0, 16, True),
    (0, 1, 1.0, 1, False),
    (1, 0, 2.0, 2, False),
    (1, 2, 2.0, 2, False),
]
"""An exempt VM of 16 vCPUs, beside which one vCPU cannot have half."""


def test_an_exempt_vm_that_has_much_counts_on_other_nodes():
    known = cloud(WIDE, [2, 2])
    plain = dataclasses.replace(
        known,
        demand=dataclasses.replace(
            known.demand, exempt=np.zeros_like(known.demand.exempt)
        ),
    )
    had = of_users(plain, searched(plain).end)
    got = of_users(known, searched(known).end)
    exempt = 2 * 16 / (16 + RATIO**0.5)
    assert had[2] == pytest.approx(1.5, rel=0.01)
    assert got[1] == pytest.approx(2 - exempt, rel=0.01)
    assert got[[0, 2]] == pytest.approx(1 + exempt / 2, rel=0.01)


def test_a_user_at_the_least_weight_does_not_hold_an_exempt_vm_down():
    # Users 0 and 1 are light. User 2 has much on node 1, so that all weights
    # but one are bound; with these bounds both light users can have the same.
    rows = [
        (0, 0, 1.0, 1, True),
        (0, 1, 1.0, 1, False),
        (0, 2, 1.0, 1, False),
        (1, 2, 1.0, 1, False),
    ]
    known = cloud(rows, [1, 2])
    got = of_users(known, searched(known).end)
    even = 1 / (2 + RATIO**-0.5)
    assert got[:2] == pytest.approx([even, even], rel=0.01)


rows = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 3),
        strategies.integers(0, 4),
        strategies.floats(0.05, 1.0),
        strategies.integers(1, 4),
        strategies.booleans(),
    ),
    min_size=1,
    max_size=20,
).map(lambda rows: [(n, u, part * v, v, e) for n, u, part, v, e in rows])


@pytest.mark.repeated
@settings(deadline=None, max_examples=30)
@given(rows)
def test_weights_can_give_each_result(drawn):
    known = cloud(drawn, [2.0] * 4)
    end = searched(known).end
    assert np.isfinite(end.log).all()
    wanted = np.bincount(known.demand.cell, known.demand.wanted)
    assert (end.due <= wanted * (1 + 1e-6)).all()
    given_ = np.bincount(known.node, end.due, 4)
    asked = np.bincount(known.node, wanted, 4)
    supply, _ = decide_foresight._usable_supply(known)
    assert given_ == pytest.approx(
        np.where(end.short, np.minimum(asked, supply), asked), rel=1e-6
    )
    # An exempt VM has at least what it has beside highest weights.
    demand = known.demand
    log = np.where(demand.exempt, 0.0, np.log(RATIO) / 2)
    least, _ = filling.fill(
        np.where(end.short, supply, np.inf),
        known.node[demand.cell],
        demand.wanted,
        demand.vcpus * np.exp(log),
    )
    # Beside exempt VMs a common factor of the other weights counts.
    weights = np.exp(np.where(demand.exempt, 0.0, end.log[demand.cell]))
    got, _ = filling.fill(
        np.where(end.short, supply, np.inf),
        known.node[demand.cell],
        demand.wanted,
        demand.vcpus * weights,
    )
    due = np.bincount(demand.cell, got, len(known.node))
    assert due == pytest.approx(end.due, rel=1e-6)
    left = np.where(demand.exempt, least, 0.0)
    fixed = np.bincount(demand.cell, left, len(known.node))
    assert (end.due >= fixed * (1 - 1e-6)).all()


@pytest.mark.repeated
@settings(deadline=None, max_examples=15)
@given(rows)
def test_no_turn_leaves_the_lightest_worse_off_than_the_first(drawn):
    known = cloud(drawn, [2.0] * 4)
    found = searched(known)
    if found.turns is None:
        return
    before = exempt_levels.TURNS
    try:
        exempt_levels.TURNS = 1
        first = searched(known)
    finally:
        exempt_levels.TURNS = before
    assert not exempt_levels.is_fairer(
        first.turns.best_heaviness, found.turns.best_heaviness
    )


@pytest.mark.repeated
@settings(deadline=None, max_examples=10)
@given(rows)
def test_a_search_split_into_many_calls_has_the_same_result(drawn):
    known = cloud(drawn, [2.0] * 4)
    whole, parts = searched(known), searched(known, 3)
    if whole.turns is not None:
        heavy = whole.turns.best_heaviness
        assert parts.turns.finished_turns == whole.turns.finished_turns
        assert np.sort(parts.turns.best_heaviness)[0] == pytest.approx(
            np.sort(heavy)[0], rel=0.02, abs=1e-6
        )


def test_where_no_exempt_vm_competes_nothing_changes():
    rows = [(0, 0, 2.0, 2, False), (0, 1, 2.0, 2, False), (1, 1, 1, 1, True)]
    known = cloud(rows, [2, 2])
    found = searched(known)
    assert found.turns is None
    assert found.end.sharpness == maxmin.SHARPEST


def test_a_search_continues_from_the_best_levels_after_a_change():
    before = searched(cloud(WIDE, [2, 2]))
    rows = [*WIDE, (1, 2, 0.5, 1, False)]
    after = decide_foresight.search_division(
        cloud(rows, [2, 2]), RATIO, before, 1
    )
    assert before.turns.best_levels is not None
    assert not after.is_over
    assert after.turns.finished_turns == (
        exempt_levels.TURNS - exempt_levels.AGAIN
    )
    assert after.turns.levels[0] == before.turns.best_levels[0]


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_levels_follow_while_wants_change_at_each_call(seed):
    chance = np.random.default_rng(seed)
    wide = [
        (
            int(node),
            user,
            2.0,
            int(chance.choice([1, 2, 4])),
            chance.random() < 0.2,
        )
        for user in range(40)
        for node in chance.permutation(20)[:4]
    ]

    def changed():
        rows = [
            (
                *row[:2],
                min(row[3], row[2]) * chance.uniform(0.98, 1.0),
                *row[3:],
            )
            for row in wide
        ]
        return cloud(rows, [4] * 20)

    found, useful = None, []
    for _ in range(120):
        known = changed()
        found = decide_foresight.search_division(known, RATIO, found, 2)
        useful.append(found.is_useful)
    first = useful.index(True)
    assert all(useful[first:])
    whole = searched(known).end
    assert of_users(known, found.end).min() == pytest.approx(
        of_users(known, whole).min(), rel=0.1
    )


@pytest.mark.parametrize(
    ('heavy', 'expected'),
    [
        ([3, 1, 2], False),
        ([3, 1.1, 2], True),
        ([9, 0.9, 9], False),
        ([1.001, 2, 3.5], True),
        ([1.001, 2, 2.5], False),
    ],
)
def test_a_division_is_better_if_the_lightest_have_more(heavy, expected):
    heavy = np.array(heavy, dtype=float)
    assert exempt_levels.is_fairer(heavy, np.array([1.0, 2, 3])) is expected
