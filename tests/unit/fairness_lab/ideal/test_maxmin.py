# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies
import pytest

from fairness_lab.ideal import maxmin

CLOSE = 1e-9

amounts = strategies.floats(0.0, 4.0)
weights = strategies.floats(0.1, 10.0)
vms = strategies.lists(
    strategies.tuples(strategies.sampled_from('xyz'), amounts),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ('capacity', 'demand', 'weight', 'expected'),
    [
        (1.0, {'a': 1, 'b': 1}, {'a': 1, 'b': 1}, {'a': 0.5, 'b': 0.5}),
        (1.0, {'a': 0.2, 'b': 9}, {'a': 1, 'b': 1}, {'a': 0.2, 'b': 0.8}),
        (1.0, {'a': 9, 'b': 9}, {'a': 3, 'b': 1}, {'a': 0.75, 'b': 0.25}),
        (1.0, {'a': 0.1, 'b': 0.2}, {'a': 1, 'b': 1}, {'a': 0.1, 'b': 0.2}),
        (0.0, {'a': 1.0}, {'a': 1}, {'a': 0.0}),
        (1.0, {}, {}, {}),
    ],
)
def test_water_filling_computes_the_common_level(
    capacity, demand, weight, expected
):
    got = maxmin.water_fill(capacity, demand, weight)
    assert got == pytest.approx(expected)


@hypothesis.given(
    strategies.floats(0.0, 8.0),
    strategies.lists(strategies.tuples(amounts, weights), min_size=1),
)
def test_filling_is_work_conserving_and_max_min_fair(capacity, wanted):
    demand = {str(place): item[0] for place, item in enumerate(wanted)}
    weight = {str(place): item[1] for place, item in enumerate(wanted)}
    got = maxmin.water_fill(capacity, demand, weight)
    whole = min(capacity, sum(demand.values()))
    assert sum(got.values()) == pytest.approx(whole, abs=CLOSE)
    level = max(got[name] / weight[name] for name in got)
    for name in got:
        assert 0 <= got[name] <= demand[name] + CLOSE
        if got[name] < demand[name] - CLOSE:
            assert got[name] / weight[name] == pytest.approx(level, abs=1e-6)


def one_node(capacity, demand, owner, user_weight):
    """A cloud of one node."""
    node = dict.fromkeys(demand, 'n')
    return maxmin.IdealCloud({'n': capacity}, demand, node, owner, user_weight)


@hypothesis.given(strategies.floats(0.1, 4.0), vms)
def test_no_vm_below_its_demand_could_have_more(capacity, wanted):
    owner = {str(place): item[0] for place, item in enumerate(wanted)}
    demand = {str(place): item[1] for place, item in enumerate(wanted)}
    got = maxmin.allocate(one_node(capacity, demand, owner, {'x': 2.0}))
    whole = min(capacity, sum(demand.values()))
    assert sum(got.values()) == pytest.approx(whole, abs=CLOSE)
    for hungry in got:
        assert got[hungry] <= demand[hungry] + CLOSE
        if got[hungry] >= demand[hungry] - CLOSE:
            continue
        mine = [vm for vm in got if owner[vm] == owner[hungry]]
        assert got[hungry] == pytest.approx(max(got[vm] for vm in mine))


def test_users_come_first_and_their_vms_second():
    owner = {'a1': 'a', 'a2': 'a', 'b1': 'b'}
    demand = dict.fromkeys(owner, 1.0)
    got = maxmin.allocate(one_node(1.0, demand, owner, {}))
    assert got == pytest.approx({'a1': 0.25, 'a2': 0.25, 'b1': 0.5})


def test_cpu_time_that_a_user_leaves_goes_to_the_others():
    owner = {'a1': 'a', 'b1': 'b', 'b2': 'b'}
    demand = {'a1': 0.1, 'b1': 0.2, 'b2': 1.0}
    got = maxmin.allocate(one_node(1.0, demand, owner, {}))
    assert got == pytest.approx({'a1': 0.1, 'b1': 0.2, 'b2': 0.7})


def two_nodes(**changes):
    """Users 1 and 2 on node 1, users 2 and 3 on node 2."""
    demand = {'a': 1.0, 'b1': 1.0, 'b2': 0.4, 'c': 0.4, **changes}
    return maxmin.IdealCloud(
        {'n1': 1.0, 'n2': 1.0},
        demand,
        {'a': 'n1', 'b1': 'n1', 'b2': 'n2', 'c': 'n2'},
        {'a': 'A', 'b1': 'B', 'b2': 'B', 'c': 'C'},
        {},
    )


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({}, {'a': 0.7, 'b1': 0.3, 'b2': 0.4, 'c': 0.4}),
        ({'b2': 0.0}, {'a': 0.5, 'b1': 0.5, 'b2': 0.0, 'c': 0.4}),
        ({'a': 0.2}, {'a': 0.2, 'b1': 0.8, 'b2': 0.4, 'c': 0.4}),
        (
            {'b2': 1, 'c': 1},
            {'a': 2 / 3, 'b1': 1 / 3, 'b2': 1 / 3, 'c': 2 / 3},
        ),
        ({'b2': 1, 'c': 0}, {'a': 1.0, 'b1': 0.0, 'b2': 1.0, 'c': 0.0}),
    ],
)
def test_use_of_a_user_on_another_node_counts(changes, expected):
    assert maxmin.allocate(two_nodes(**changes)) == pytest.approx(expected)


clouds = strategies.lists(
    strategies.tuples(
        strategies.sampled_from('xyz'),
        strategies.sampled_from('lmn'),
        strategies.floats(0.0, 2.0),
    ),
    min_size=1,
    max_size=9,
)


@hypothesis.given(clouds, strategies.floats(0.3, 3.0))
def test_no_user_takes_from_a_poorer_user_with_larger_wants(wanted, heavy):
    keys = [str(place) for place in range(len(wanted))]
    owner = dict(zip(keys, (item[0] for item in wanted), strict=True))
    node = dict(zip(keys, (item[1] for item in wanted), strict=True))
    demand = dict(zip(keys, (item[2] for item in wanted), strict=True))
    capacity = {'l': 1.0, 'm': 0.5, 'n': 2.0}
    weight = {'x': heavy, 'y': 1.0, 'z': 1.0}
    got = maxmin.allocate(
        maxmin.IdealCloud(capacity, demand, node, owner, {'x': heavy})
    )
    total = {
        user: sum(got[vm] for vm in got if owner[vm] == user) / weight[user]
        for user in weight
    }
    for name, cpus in capacity.items():
        here = [vm for vm in got if node[vm] == name]
        whole = min(cpus, sum(demand[vm] for vm in here))
        assert sum(got[vm] for vm in here) == pytest.approx(whole, abs=1e-6)
        hungry = [vm for vm in here if got[vm] < demand[vm] - 1e-4]
        fed = [vm for vm in here if got[vm] > 1e-4]
        for vm in hungry:
            poorer = total[owner[vm]] + 1e-3
            assert all(
                total[owner[other]] <= poorer
                for other in fed
                if owner[other] != owner[vm]
            )


def one_against(count):
    owner = {'light': 'a', **{f'h{place}': 'b' for place in range(count)}}
    demand = dict.fromkeys(owner, 1.0)
    return demand, owner, {}, dict.fromkeys(owner, 1)


def most(demand, owner, weight, vcpus, ratio):
    cloud = one_node(1.0, demand, owner, weight)
    return maxmin.bounded(cloud, maxmin.allocate(cloud), vcpus, ratio)


@pytest.mark.parametrize(
    ('count', 'ratio', 'expected'),
    [
        (30, 20.0, 20 / 50),
        (10, 20.0, 0.5),
        (30, 1.0, 1 / 31),
        (20, 20.0, 0.5),
    ],
)
def test_the_light_user_gets_as_much_as_the_bound_allows(
    count, ratio, expected
):
    got = most(*one_against(count), ratio)
    assert got['a'] == pytest.approx(expected)


@hypothesis.given(strategies.integers(1, 40), strategies.floats(1.0, 100.0))
def test_a_bounded_part_is_never_above_the_max_min_part(count, ratio):
    got = most(*one_against(count), ratio)
    assert got['a'] <= 0.5 + CLOSE


def test_a_large_vm_needs_less_weight():
    demand, owner, weight, vcpus = one_against(30)
    vcpus['light'] = 2
    got = most(demand, owner, weight, vcpus, 10.0)
    assert got['a'] == pytest.approx(20 / 50)


def test_a_bound_holds_on_every_node_alone():
    cloud = two_nodes()
    fair = maxmin.allocate(cloud)
    got = maxmin.bounded(cloud, fair, dict.fromkeys(fair, 1), 1.0)
    assert got == pytest.approx({'A': 0.5, 'B': 0.7, 'C': 0.4})
