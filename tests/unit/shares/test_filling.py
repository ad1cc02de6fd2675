# SPDX-License-Identifier: Apache-2.0


"""Dividing one resource: work-conserving, demand-limited, max-min."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from nova_fairness.shares import filling

AMOUNTS = strategies.floats(0, 1e9, allow_subnormal=False)
SHARES = strategies.floats(1e-3, 1e5)


@strategies.composite
def requests(draw):
    """Draw capacities of some nodes, and VMs on them."""
    nodes = draw(strategies.integers(1, 4))
    count = draw(strategies.integers(1, 20))
    rows = draw(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, nodes - 1), AMOUNTS, SHARES
            ),
            min_size=count,
            max_size=count,
        )
    )
    capacity = draw(strategies.lists(AMOUNTS, min_size=nodes, max_size=nodes))
    node, demand, shares = zip(*rows, strict=True)
    return (
        np.array(capacity),
        np.array(node, dtype=np.intp),
        np.array(demand),
        np.array(shares),
    )


@hypothesis.given(requests())
def test_no_vm_gets_more_than_it_wants_and_no_node_gives_too_much(given):
    capacity, node, demand, _ = given
    got, _ = filling.fill(*given)
    assert (got >= 0).all()
    assert (got <= demand).all()
    used = np.bincount(node, got, len(capacity))
    assert (used <= capacity * (1 + 1e-9) + 1e-300).all()


@hypothesis.given(requests())
def test_no_wanted_capacity_stays_idle(given):
    capacity, node, demand, _ = given
    got, _ = filling.fill(*given)
    used = np.bincount(node, got, len(capacity))
    wanted = np.bincount(node, demand, len(capacity))
    most = np.minimum(capacity, wanted)
    np.testing.assert_allclose(used, most, rtol=1e-9, atol=1e-9)


@hypothesis.given(requests())
def test_a_vm_that_wants_more_has_as_much_per_share_as_any_other(given):
    _, node, demand, shares = given
    got, level = filling.fill(*given)
    for row in np.flatnonzero(got < demand * (1 - 1e-9)):
        here = node == node[row]
        best = (got[here] / shares[here]).max()
        assert got[row] / shares[row] >= best * (1 - 1e-9)
        assert got[row] / shares[row] == pytest.approx(level[node[row]])


@hypothesis.given(requests(), strategies.randoms())
def test_a_node_does_not_depend_on_the_others(given, chance):
    capacity, node, demand, shares = given
    whole, _ = filling.fill(*given)
    chosen = chance.randrange(len(capacity))
    mine = node == chosen
    alone, _ = filling.fill(
        capacity[[chosen]],
        np.zeros(mine.sum(), dtype=np.intp),
        demand[mine],
        shares[mine],
    )
    np.testing.assert_allclose(whole[mine], alone, rtol=1e-12)


CASES = {
    'all get what they want': (10, [1, 2, 3], [1, 1, 1], [1, 2, 3]),
    'equal parts': (9, [9, 9, 9], [1, 1, 1], [3, 3, 3]),
    'in proportion': (8, [9, 9], [1, 3], [2, 6]),
    'one is satisfied and the others share the rest': (
        9,
        [1, 9, 9],
        [1, 1, 1],
        [1, 4, 4],
    ),
    'satisfied one after the other': (
        10,
        [1, 3, 9],
        [4, 2, 1],
        [1, 3, 6],
    ),
    'nothing to give': (0, [1, 1], [1, 1], [0, 0]),
    'no VM wants anything': (5, [0, 0], [1, 1], [0, 0]),
}


@pytest.mark.parametrize(
    ('capacity', 'demand', 'shares', 'expected'), CASES.values(), ids=CASES
)
def test_memory_is_divided_by_weight(capacity, demand, shares, expected):
    got, _ = filling.fill(
        np.array([float(capacity)]),
        np.zeros(len(demand), dtype=np.intp),
        np.array(demand, dtype=float),
        np.array(shares, dtype=float),
    )
    assert got.tolist() == pytest.approx(expected)
