# SPDX-License-Identifier: Apache-2.0

"""Max-min fair division by bounded weights."""

import dataclasses

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from fairness_lab.ideal import ideal
from nova_fairness.model import resources
from nova_fairness.shares import maxmin
from tests.unit.shares import clouds

RATIO = clouds.RATIO
REACH = np.log(RATIO)
NEAR = maxmin.SHARPEST * REACH + 1e-3
"""By how much the logarithms of what competitors have may differ, and what is
left of the last step."""

SEEDS = strategies.integers(0, 2**32 - 1)
CPU = resources.RESOURCES.index('cpu_time')
H = 99.0

HAND_MADE = {
    'two VMs against one share evenly between users': (
        ([0, 0, 0], [0, 0, 1], [H, H, H], [1]),
        [0.25, 0.25, 0.5],
    ),
    'a user of two nodes leaves two thirds to the others': (
        ([0, 0, 1, 1], [0, 1, 0, 2], [H, H, H, H], [1, 1]),
        [1 / 3, 2 / 3, 1 / 3, 2 / 3],
    ),
    'a user who wants little gets it, the rest is divided': (
        ([0, 0, 0], [0, 1, 2], [0.2, H, H], [1]),
        [0.2, 0.4, 0.4],
    ),
    'a user with plenty elsewhere is at the least weight': (
        ([0, 0, 1], [0, 1, 0], [H, H, 50], [1, 100]),
        [1 / 21, 20 / 21, 50],
    ),
    'and weighs by his vCPUs': (
        ([0, 0, 1], [0, 1, 0], [H, H, 50], [1, 100], [2, 1, 1]),
        [2 / 22, 20 / 22, 50],
    ),
    'beside one who has all he wants, too': (
        ([0, 0, 0, 1], [0, 1, 2, 0], [H, 0.3, H, 50], [1, 100]),
        [0.7 / 21, 0.3, 0.7 * 20 / 21, 50],
    ),
    'he gets what is left when all others have all they want': (
        ([0, 0, 1], [0, 1, 0], [H, 0.5, 50], [1, 100]),
        [0.5, 0.5, 50],
    ),
    'one who would have all he wants is not quite let': (
        ([0, 0, 1], [0, 1, 0], [H, 0.9, 50], [0.92, 100]),
        [0.92 / 21, 0.92 * 20 / 21, 50],
    ),
    'along a chain a small node costs the other end as much': (
        ([0, 0, 1, 1, 2], [0, 1, 1, 2, 2], [H] * 5, [1, 1, 0.4]),
        [0.8, 0.2, 0.6, 0.4, 0.4],
    ),
    'no VM wants anything': (([0], [0], [0], [1]), [0]),
    'there is plenty': (([0, 0], [0, 1], [0.4, 0.6], [1]), [0.4, 0.6]),
}


def divide(rows, ratio=RATIO, **more):
    return maxmin.divide(rows, clouds.share(rows), ratio, **more)


def of_users(rows, found):
    return np.bincount(rows.owner, found.got, len(rows.user))


@pytest.mark.parametrize(
    ('made', 'expected'), HAND_MADE.values(), ids=HAND_MADE
)
def test_bounded_division_equals_hand_computed_values(made, expected):
    found = divide(clouds.rows(*made))
    assert found.got == pytest.approx(expected, rel=0.015)


def test_a_given_least_rate_does_not_depend_on_the_highest_rate():
    # Without it the user with plenty elsewhere gets 1 / 21.
    rows = clouds.rows([0, 0, 1], [0, 1, 0], [H, H, 50], [1, 100])
    floor = np.array([np.log(0.2), np.nan])
    found = divide(dataclasses.replace(rows, floor=floor))
    assert found.got == pytest.approx([0.2, 0.8, 50], rel=0.015)
    nowhere = dataclasses.replace(rows, floor=np.full(2, np.nan))
    np.testing.assert_array_equal(divide(nowhere).got, divide(rows).got)


def test_the_bounds_of_weights_alone_divide_where_all_must_be_alike():
    rows = clouds.rows([0, 0, 1], [0, 1, 0], [H, H, 1], [1, 1])
    assert divide(rows, 1.0).got == pytest.approx([0.5, 0.5, 1])


@given(SEEDS)
def test_a_division_gives_all_there_is_and_not_more(seed):
    rows = clouds.cloud(seed)
    found = divide(rows)
    nodes = len(rows.supply)
    given_ = np.bincount(rows.node, found.got, nodes)
    asked = np.bincount(rows.node, rows.wanted, nodes)
    assert (found.got >= 0).all()
    assert (found.got <= rows.wanted * (1 + 1e-9)).all()
    assert given_ == pytest.approx(np.minimum(asked, rows.supply), rel=1e-6)


@given(SEEDS, strategies.sampled_from([1.0, 2.0, 20.0, 1000.0]))
def test_a_kernel_with_these_weights_divides_like_that(seed, ratio):
    """There is one level for all of a node who have less than they want."""
    rows = clouds.cloud(seed)
    found = divide(rows, ratio)
    assert (found.log <= 1e-9).all()
    assert (found.log >= -np.log(ratio) - 1e-9).all()
    rate = np.log(found.got / rows.size) - found.log
    waits = found.got < rows.wanted * (1 - 1e-9)
    for node in np.unique(rows.node[waits]):
        here = rows.node == node
        level = rate[here & waits]
        assert np.ptp(level) < 1e-6
        content = rate[here & ~waits]
        assert (content <= level.max() + 1e-6).all()


@given(SEEDS)
def test_competing_users_are_equally_heavy_but_for_those_at_the_least(seed):
    rows = clouds.cloud(seed)
    found = divide(rows)
    assert found.sharpness <= maxmin.SHARPEST
    heavy = np.log(of_users(rows, found))[rows.owner]
    # Bounds are rounded off: near them weights are not quite those sought.
    waits = found.got < rows.wanted * (1 - 2 * maxmin.STAGES[-1][1])
    at_least = found.log < -REACH + 1e-6
    for node in np.unique(rows.node[waits]):
        here = (rows.node == node) & waits
        free = heavy[here & ~at_least]
        if free.size:
            assert np.ptp(free) < NEAR + maxmin.STAGES[-1][1]
            least = heavy[here & at_least]
            assert (least > free.max() - NEAR - maxmin.STAGES[-1][1]).all()


@given(SEEDS, strategies.floats(1e-3, 1e6))
def test_units_of_capacity_do_not_matter(seed, unit):
    rows = clouds.cloud(seed)
    other = dataclasses.replace(
        rows, wanted=rows.wanted * unit, supply=rows.supply * unit
    )
    weigh = clouds.share(other, quota=unit)
    scaled = maxmin.divide(other, weigh, RATIO)
    assert scaled.got / unit == pytest.approx(divide(rows).got, rel=1e-3)


@given(SEEDS)
def test_the_order_of_users_does_not_matter(seed):
    rows = clouds.cloud(seed)
    order = np.random.default_rng(seed).permutation(len(rows.user))
    other = dataclasses.replace(rows, owner=order[rows.owner])
    assert divide(other).got == pytest.approx(divide(rows).got, rel=1e-3)


@pytest.mark.parametrize('seed', range(12))
def test_the_division_equals_the_ideal_of_a_linear_program(seed):
    rows = clouds.cloud(seed, most_nodes=4, most_users=5, most_vms=14)
    count, width = len(rows.node), len(resources.RESOURCES)
    capacity = np.zeros((len(rows.supply), width))
    demand, size = np.zeros((count, width)), np.ones((count, width))
    capacity[:, CPU], demand[:, CPU] = rows.supply, rows.wanted
    size[:, CPU] = rows.size
    best = ideal.ideal(
        ideal.Wishes(
            capacity=capacity,
            demand=demand,
            node=rows.node,
            user=rows.owner,
            coupled=np.zeros((count, width), dtype=bool),
            size=size,
            quota=np.ones((len(rows.user), width)),
            exempt=np.zeros(count, dtype=bool),
        ),
        'cpu_time',
        RATIO,
    )
    mine = of_users(rows, divide(rows))
    assert mine == pytest.approx(best.share, rel=0.03)


def in_portions(rows, steps):
    """Search in some steps at a time, and give what each came to."""
    found = [divide(rows, steps=steps)]
    while found[-1].rest is not None:
        assert len(found) < 200
        found.append(divide(rows, begin=found[-1].rest, steps=steps))
    return found


@given(SEEDS, strategies.integers(1, 9))
def test_a_search_without_steps_goes_on_and_ends_at_the_same(seed, steps):
    rows = clouds.cloud(seed)
    found, whole = in_portions(rows, steps)[-1], divide(rows)
    assert whole.rest is None
    assert found.sharpness == whole.sharpness
    assert found.got == pytest.approx(whole.got, rel=0.03)


def test_a_search_with_too_few_steps_says_so():
    rows = clouds.cloud(3, most_nodes=5, most_users=6)
    sharp = [divide(rows, steps=steps).sharpness for steps in range(1, 40)]
    assert sharp[0] >= maxmin.STAGES[0][0]
    assert sharp[-1] == maxmin.SHARPEST
    assert sharp == sorted(sharp, reverse=True)


def test_a_search_that_finds_no_end_says_so():
    """Nobody's heaviness can be followed that jumps about."""
    rows = clouds.rows([0, 0], [0, 1], [H, H], [1])
    chance = np.random.default_rng(1)

    def weigh(got):
        return 10 ** chance.uniform(-3, 3, 2), np.ones(2)

    found = maxmin.divide(rows, weigh, RATIO)
    assert found.sharpness > maxmin.SHARPEST
    assert found.got.sum() == pytest.approx(1)
    assert (np.abs(found.log) <= REACH + 1e-9).all()


def test_no_step_asks_a_metric_more_than_a_few_times():
    rows = clouds.cloud(3, most_nodes=5, most_users=6)
    asked, weigh = [], clouds.share(rows)

    def counting(got):
        asked.append(1)
        return weigh(got)

    maxmin.divide(rows, counting, RATIO, steps=1)
    assert 1 <= len(asked) <= 6


def test_an_owner_of_a_cell_is_made_heavier_by_other_cells_of_their_user():
    """Two cells of user 0, weighed each by what the user has in all."""
    rows = maxmin.DemandRows(
        node=np.array([0, 0, 1, 1]),
        owner=np.arange(4),
        user=np.array([0, 1, 0, 2]),
        wanted=np.full(4, H),
        size=np.ones(4),
        supply=np.ones(2),
    )

    def weigh(got):
        return np.bincount(rows.user, got)[rows.user], np.ones(4)

    found = maxmin.divide(rows, weigh, RATIO)
    expected = [1 / 3, 2 / 3, 1 / 3, 2 / 3]
    assert found.got == pytest.approx(expected, rel=0.01)


def test_weights_are_equal_if_heaviness_does_not_depend_on_them():
    rows = clouds.cloud(5)
    zero = np.zeros(len(rows.user))
    found = maxmin.divide(rows, lambda got: (zero, zero), RATIO)
    assert found.got == pytest.approx(divide(rows, 1.0).got)
    assert np.ptp(found.log) < 1e-9


def one_step_a_round(rounds=6, nodes=200):
    """Lack of the worst user when wants change and one step is taken."""
    chance = np.random.default_rng(7)
    node = np.concatenate([chance.permutation(nodes) for _ in range(20)])
    order = np.argsort(node, kind='stable')
    size = chance.choice([1.0, 2.0, 4.0], len(node))
    wanted = size * chance.uniform(0.1, 1.0, len(node))
    supply = chance.choice([2.0, 4.0, 8.0], nodes)
    first = clouds.rows(node[order], order // 4, wanted, supply, size)
    at, lacks = divide(first).at, []
    for _ in range(rounds):
        noise = np.exp(chance.normal(0.0, 0.02, len(node)))
        rows = dataclasses.replace(first, wanted=wanted * noise)
        begin = maxmin.with_other_rows(at)
        found = divide(rows, begin=begin, steps=1)
        best = of_users(rows, divide(rows))
        lacks.append(float((1 - of_users(rows, found) / best).max()))
        at = found.at
    return max(lacks)


def test_one_step_a_round_leaves_no_user_behind(monkeypatch):
    assert one_step_a_round() < 0.003
    monkeypatch.setattr(
        maxmin, '_take_repair_steps', lambda point, width: point
    )
    assert one_step_a_round() > 0.008
