# SPDX-License-Identifier: Apache-2.0

"""The ideal against hand-made cases, brute force and its own definition."""

import dataclasses
import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
import numpy as np
import pytest

from fairness_lab.ideal import bounded
from fairness_lab.ideal import columns
from fairness_lab.ideal import highs
from fairness_lab.ideal import ideal
from fairness_lab.ideal import maxmin
from fairness_lab.ideal import program
from nova_fairness import exception
from nova_fairness.shares import filling
from tests.unit.fairness_lab.ideal import wishes as build

H = build.HUNGRY

CPU_CASES = {
    'two VMs against one share evenly between users': (
        [1.0],
        [(0, 0, H), (0, 0, H), (0, 1, H)],
        [0.5, 0.5],
    ),
    'a user with a node of his own leaves the shared one': (
        [1.0, 1.0],
        [(0, 0, H), (1, 0, H), (0, 1, H)],
        [1.0, 1.0],
    ),
    'a small node of his own is made up for': (
        [1.0, 0.2],
        [(0, 0, H), (1, 0, H), (0, 1, H)],
        [0.6, 0.6],
    ),
    'a user who wants little gets it, the rest is divided': (
        [1.0],
        [(0, 0, 0.2), (0, 1, H), (0, 2, H)],
        [0.2, 0.4, 0.4],
    ),
    'a small node at one end of a chain costs the other end as much': (
        [1.0, 1.0, 0.4],
        [(0, 0, H), (0, 1, H), (1, 1, H), (1, 2, H), (2, 2, H)],
        [0.8, 0.8, 0.8],
    ),
    'a crowd that cannot leave its node is poorer than the others': (
        [1.0, 4.0],
        [(0, 0, H), (0, 1, H), (0, 2, H), (1, 2, H)],
        [0.5, 0.5, 4.0],
    ),
    'a user with a little elsewhere gets so much less here': (
        [1.0, 0.1],
        [(0, 0, H), (0, 1, H), (0, 2, H), (1, 2, H), (1, 3, 0.05)],
        [0.35, 0.35, 0.35, 0.05],
    ),
    'no VM wants anything': ([1.0], [(0, 0, 0.0)], [0.0]),
    'a VM that is not there counts for nothing': (
        [1.0],
        [(-1, 0, H), (0, 1, H)],
        [0.0, 1.0],
    ),
}


@pytest.mark.parametrize(
    ('capacity', 'vms', 'expected'), CPU_CASES.values(), ids=CPU_CASES
)
def test_cpu_time_is_divided_as_by_hand(capacity, vms, expected):
    wishes = build.cpu_only(capacity, vms)
    found = ideal.ideal(wishes, 'cpu_time')
    np.testing.assert_allclose(
        build.amounts(wishes, found), expected, atol=1e-4
    )


def test_a_user_with_twice_the_quota_gets_twice_as_much():
    wishes = build.cpu_only([3.0], [(0, 0, H), (0, 1, H)], weights=[2.0, 1.0])
    found = ideal.ideal(wishes)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [2.0, 1.0], atol=1e-4
    )
    np.testing.assert_allclose(found.share, 1.0, atol=1e-4)


def test_dominant_resource_fairness_as_in_its_first_example():
    # 9 CPUs and 18 GB; tasks of <1, 4> and <3, 1>: three and two of them.
    wishes = build.wishes_for_resources(
        [{'cpu_time': 9.0, 'memory': 18.0}],
        [
            (0, 0, {'cpu_time': 100.0, 'memory': 400.0}),
            (0, 1, {'cpu_time': 300.0, 'memory': 100.0}),
        ],
        coupled=True,
    )
    found = ideal.ideal(wishes)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [3.0, 6.0], atol=1e-4
    )
    np.testing.assert_allclose(
        build.amounts(wishes, found, 'memory'), [12.0, 2.0], atol=1e-4
    )
    np.testing.assert_allclose(found.share, 2 * 2 / 3, atol=1e-4)


def test_a_user_with_much_of_one_resource_leaves_another_to_the_poorer():
    wishes = build.wishes_for_resources(
        [{'cpu_time': 1.0, 'disk_read': 1.0}],
        [
            (0, 0, {'cpu_time': 1.0, 'disk_read': 0.9}),
            (0, 1, {'disk_read': 0.7}),
        ],
    )
    found = ideal.ideal(wishes)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [1.0, 0.0], atol=1e-4
    )
    np.testing.assert_allclose(
        build.amounts(wishes, found, 'disk_read'), [0.3, 0.7], atol=1e-4
    )


def test_the_dominant_resource_may_turn_out_to_be_another():
    # User 0 wants most of CPU time but is alone with the disk.
    others = [(0, user, {'cpu_time': 1.0}) for user in range(1, 10)]
    wishes = build.wishes_for_resources(
        [{'cpu_time': 1.0, 'disk_read': 1.0}],
        [(0, 0, {'cpu_time': 1.0, 'disk_read': 0.5}), *others],
    )
    found = ideal.ideal(wishes)
    assert found.share[0] == pytest.approx(5.0)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [0.0] + [1 / 9] * 9, atol=1e-4
    )


def test_asset_fairness_counts_all_resources():
    wishes = build.wishes_for_resources(
        [{'cpu_time': 1.0, 'disk_read': 1.0}],
        [
            (0, 0, {'cpu_time': 1.0, 'disk_read': 0.4}),
            (0, 1, {'cpu_time': 1.0}),
        ],
    )
    found = ideal.ideal(wishes, ideal.ASSET)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [0.3, 0.7], atol=1e-4
    )


def test_weights_bound_the_part_of_one_against_thirty():
    wishes = build.cpu_only([1.0], [(0, 0, H)] + [(0, 1, H)] * 30)
    free = ideal.ideal(wishes, 'cpu_time')
    bounded = ideal.ideal(wishes, 'cpu_time', 20.0)
    np.testing.assert_allclose(build.amounts(wishes, free), 0.5, atol=1e-4)
    np.testing.assert_allclose(
        build.amounts(wishes, bounded), [0.4, 0.6], atol=1e-4
    )


def test_with_equal_weights_the_kernel_alone_divides():
    vms = [(0, 0, 0.1), (0, 0, H, 2.0), (0, 1, H), (0, 1, 0.3)]
    wishes = build.cpu_only([1.0], vms)
    bounded = ideal.ideal(wishes, 'cpu_time', 1.0)
    # 0.9 by sizes 2, 1 and 1: 0.45, 0.225 and 0.225.
    np.testing.assert_allclose(
        build.amounts(wishes, bounded), [0.55, 0.45], atol=1e-4
    )


def test_bounds_without_effect_do_not_change_the_ideal():
    wishes = build.cpu_only(
        [1.0, 1.0], [(0, 0, H), (1, 0, H), (0, 1, H), (1, 2, 0.3)]
    )
    free = ideal.ideal(wishes)
    bounded = ideal.ideal(wishes, max_weight_ratio=1e6)
    np.testing.assert_allclose(free.share, bounded.share, atol=1e-5)


def test_an_unknown_share_is_refused_with_those_that_are_known():
    with pytest.raises(exception.UnknownShare, match=r"'gpu'.*cpu_time"):
        ideal.ideal(build.cpu_only([1.0], [(0, 0, H)]), 'gpu')


def test_the_ideal_of_equal_wishes_is_cached():
    found = ideal.CachedIdeal('cpu_time', None, most=2)
    wishes = [
        build.cpu_only([1.0], [(0, 0, demand)]) for demand in (0.1, 0.2, 0.3)
    ]
    first = found(wishes[0])
    assert found(build.cpu_only([1.0], [(0, 0, 0.1)])) is first
    found(wishes[1])
    found(wishes[2])
    assert found(wishes[0]) is not first


@strategies.composite
def clouds(draw, nodes=4, users=4, vms=9):
    m = draw(strategies.integers(1, nodes))
    capacity = draw(
        strategies.lists(
            strategies.sampled_from([0.5, 1.0, 2.0, 4.0]),
            min_size=m,
            max_size=m,
        )
    )
    rows = draw(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, m - 1),
                strategies.integers(0, users - 1),
                strategies.sampled_from([0.1, 0.3, 0.7, 1.5, H]),
                strategies.sampled_from([1.0, 2.0, 4.0]),
            ),
            min_size=1,
            max_size=vms,
        )
    )
    weights = draw(
        strategies.lists(
            strategies.sampled_from([1.0, 2.0]),
            min_size=users,
            max_size=users,
        )
    )
    # Every user has a VM, so that users are numbered without gaps.
    owners = sorted({row[1] for row in rows})
    rows = [(n, owners.index(u), d, s) for n, u, d, s in rows]
    return build.cpu_only(capacity, rows, weights=weights[: len(owners)])


@settings(max_examples=25, deadline=None)
@given(clouds())
def test_the_ideal_agrees_with_filling_nodes_in_turn(wishes):
    nodes, names = range(len(wishes.capacity)), range(len(wishes.node))
    cpu = build.R.index('cpu_time')
    cloud = maxmin.IdealCloud(
        capacity={str(n): wishes.capacity[n, cpu] for n in nodes},
        demand={str(vm): wishes.demand[vm, cpu] for vm in names},
        node={str(vm): str(wishes.node[vm]) for vm in names},
        owner={str(vm): str(wishes.user[vm]) for vm in names},
        user_weight={
            str(user): row[cpu] for user, row in enumerate(wishes.quota)
        },
    )
    parts = maxmin.allocate(cloud)
    expected = np.bincount(
        wishes.user, [parts[str(vm)] for vm in names], len(wishes.quota)
    )
    found = ideal.ideal(wishes, 'cpu_time')
    np.testing.assert_allclose(
        build.amounts(wishes, found), expected, atol=2e-4
    )


@settings(max_examples=12, deadline=None)
@given(clouds(), strategies.sampled_from([1.0, 3.0, 20.0]))
def test_no_weights_do_better_than_the_bounded_ideal(wishes, ratio):
    """Try weights on all corners of what is allowed."""
    cpu = build.R.index('cpu_time')
    best = ideal.ideal(wishes, 'cpu_time', ratio).share
    generator = np.random.default_rng(1)
    free = ideal.ideal(wishes, 'cpu_time').share
    assert not is_better(best, free)
    for _ in range(25):
        power = generator.uniform(-0.5, 0.5, len(wishes.node))
        extreme = np.where(generator.random(len(power)) < 0.5, 0.5, -0.5)
        power = np.where(generator.random() < 0.5, power, extreme)
        got, _ = filling.fill(
            wishes.capacity[:, cpu],
            wishes.node,
            wishes.demand[:, cpu],
            wishes.size[:, cpu] * ratio**power,
        )
        share = np.bincount(wishes.user, got, len(wishes.quota))
        assert not is_better(share / wishes.quota[:, cpu], best)


def is_better(one, other, margin=1e-4):
    difference = np.sort(one) - np.sort(other)
    first = np.flatnonzero(np.abs(difference) > margin)
    return bool(len(first) and difference[first[0]] > 0)


@pytest.mark.repeated
@pytest.mark.parametrize('exempt', [None, [1, 0, 0, 0], [0, 1, 0, 1]])
@pytest.mark.parametrize('ratio', [1.0, 4.0])
@pytest.mark.parametrize('seed', range(6))
def test_brute_force_over_weights_finds_the_bounded_ideal(seed, ratio, exempt):
    generator = np.random.default_rng(seed)
    vms = [
        (0, user, float(generator.choice([0.2, 0.5, H])), 1.0 + user)
        for user in (0, 0, 1, 2)
    ]
    wishes = build.cpu_only([1.0], vms)
    if exempt is not None:
        wishes = dataclasses.replace(wishes, exempt=np.array(exempt) > 0)
    cpu = build.R.index('cpu_time')
    reach = np.linspace(-0.5, 0.5, 15) if ratio > 1 else [0.0]
    reaches = [[0.0] if is_exempt else reach for is_exempt in wishes.exempt]
    best = None
    for powers in itertools.product(*reaches):
        got, _ = filling.fill(
            wishes.capacity[:, cpu],
            wishes.node,
            wishes.demand[:, cpu],
            wishes.size[:, cpu] * ratio ** np.array(powers),
        )
        share = np.bincount(wishes.user, got, 3) / wishes.quota[:, cpu]
        if best is None or is_better(share, best):
            best = share
    found = ideal.ideal(wishes, 'cpu_time', ratio).share
    np.testing.assert_allclose(np.sort(found), np.sort(best), atol=0.12)
    assert not is_better(best, found)


def exempt_cloud(seed):
    generator = np.random.default_rng(seed)
    vms = [
        (
            int(generator.integers(0, 2)),
            int(generator.integers(0, 5)),
            float(generator.uniform(0.1, 1) * vcpus),
            float(vcpus),
        )
        for vcpus in generator.integers(1, 5, 12)
    ]
    wishes = build.cpu_only([3.0, 3.0], vms)
    return dataclasses.replace(wishes, exempt=generator.random(12) < 0.3)


@pytest.mark.parametrize('seed', [5, 13, 18, *range(30, 38)])
def test_the_agents_division_beside_exempt_vms_is_not_better(seed):
    wishes = exempt_cloud(seed)
    found = columns.columns(wishes, alike=True)
    cpu = build.R.index('cpu_time')
    counts = np.tile(build.R.vector(cpu_time=1.0), (len(wishes.quota), 1))
    guess = bounded._guess_satisfied_columns(wishes, found, 20.0, counts)
    assert guess is not None
    best = ideal.ideal(wishes, 'cpu_time', 20.0).share
    agents, best = np.sort(guess[1][:, cpu]), np.sort(best)
    apart = np.abs(agents - best) > bounded.CLEAR * np.maximum(agents, best)
    first = int(np.argmax(apart))
    assert not (apart[first] and agents[first] > best[first])


def test_levels_beside_exempt_vms_give_the_lightest_user_the_most():
    # By turns from least levels alone the user has 0.34.
    share = ideal.ideal(exempt_cloud(13), 'cpu_time', 20.0).share
    assert share.min() == pytest.approx(0.684, abs=0.01)


@settings(max_examples=25, deadline=None)
@given(clouds(), strategies.integers(0, 3))
def test_no_user_can_be_raised_without_lowering_a_poorer_one(wishes, place):
    """Users who must have less if one user gets more."""
    found = ideal.ideal(wishes, 'cpu_time').share
    user = place % len(found)
    other = with_more(wishes, found, user, 0.05)
    no_richer = found <= found[user] + 1e-9
    assert other is None or (found - other)[no_richer].max() > 1e-6


def with_more(wishes, share, user, more):
    """One user gets more, and the others the best of the rest."""
    cpu = build.R.index('cpu_time')
    quota = wishes.quota[:, cpu]
    wanted = share.copy()
    wanted[user] += more
    demand = np.zeros((len(wishes.capacity), len(share)))
    np.add.at(demand, (wishes.node, wishes.user), wishes.demand[:, cpu])
    most = np.minimum(demand, wishes.capacity[:, [cpu]]).sum(axis=0) / quota
    if most[user] < wanted[user]:
        return None
    # The user takes all he can; the others share what is left.
    first = demand[:, user].clip(max=wishes.capacity[:, cpu])
    need = wanted[user] * quota[user]
    taken = first * min(1.0, need / first.sum())
    rest = np.array(wishes.capacity)
    rest[:, cpu] -= taken
    others = dataclasses.replace(
        wishes,
        capacity=rest,
        demand=np.where((wishes.user == user)[:, None], 0.0, wishes.demand),
    )
    found = ideal.ideal(others, 'cpu_time').share
    found[user] = wanted[user]
    return found


def test_the_sum_of_coupled_use_counts_every_part():
    # One makes twice as much of a node's disk as of its CPU, and the other
    # the reverse: (2 + 1) x 1/3 of the node each.
    wishes = build.wishes_for_resources(
        [{'cpu_time': 3.0, 'disk_read': 3.0}],
        [
            (0, 0, {'cpu_time': 10.0, 'disk_read': 20.0}),
            (0, 1, {'cpu_time': 20.0, 'disk_read': 10.0}),
        ],
        coupled=True,
    )
    found = ideal.ideal(wishes, ideal.ASSET)
    np.testing.assert_allclose(
        build.amounts(wishes, found), [1.0, 2.0], atol=1e-4
    )
    np.testing.assert_allclose(found.share[0], found.share[1], atol=1e-4)


def test_a_program_that_the_solver_does_not_take_is_an_error():
    nothing = np.zeros(1)
    matrix = highs.Matrix(
        program.SparseEntries(np.array([3]), np.array([0]), np.array([1.0])),
        lower=nothing,
        upper=nothing,
    )
    with pytest.raises(exception.SolverFailed, match='HiGHS refuses'):
        highs.LinearProgram(nothing, nothing, matrix)


def test_a_cloud_too_large_to_be_bounded_gets_the_free_ideal(
    monkeypatch,
):
    wishes = build.cpu_only([1.0], [(0, 0, H)] * 9 + [(0, 1, H)])
    free = ideal.ideal(wishes, 'cpu_time').share
    assert ideal.ideal(wishes, 'cpu_time', 2.0).share[1] < 0.5 * free[1]
    monkeypatch.setattr(bounded, '_MOST', 0)
    np.testing.assert_allclose(
        ideal.ideal(wishes, 'cpu_time', 2.0).share, free
    )


COUNTS = np.ones((3, 1))


def test_a_negligible_gain_for_the_poorest_costs_the_next_nothing():
    # The first gives the poorest 0.3 % more, and takes 25 % from the next.
    ends = [
        np.array([[0.503], [0.6], [1.3]]),
        np.array([[0.9], [0.5015], [0.8]]),
    ]
    best = bounded._choose_best_end(ends, COUNTS, bounded.CLEAR)
    np.testing.assert_array_equal(best.parts, ends[1])
    assert not best.is_strict
    strict = bounded._choose_best_end(ends, COUNTS, 0.0)
    np.testing.assert_array_equal(strict.parts, ends[0])
    assert strict.is_strict


def test_a_noticeable_gain_for_the_poorest_counts():
    ends = [
        np.array([[0.9], [0.5015], [0.8]]),
        np.array([[0.51], [0.6], [1.3]]),
    ]
    best = bounded._choose_best_end(ends, COUNTS, bounded.CLEAR)
    np.testing.assert_array_equal(best.parts, ends[1])
    assert best.is_strict
