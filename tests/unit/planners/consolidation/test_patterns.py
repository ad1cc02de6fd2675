# SPDX-License-Identifier: Apache-2.0

"""Packings by patterns are packings, and nothing is better than the bound."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.model import request
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import columns
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import knapsack
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.consolidation import patterns
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.shares import programs
from tests.fixtures import effort
from tests.fixtures import small_cloud
from tests.unit.planners.consolidation import test_properties as properties

ROOM = np.array([[8, 8], [4, 8]])
NONE = 99
"""Of hosts: servers do not fit on them."""
KINDS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(any),
    min_size=1,
    max_size=4,
    unique=True,
)


def task(sizes, counts, hosts, room=ROOM, cost=(1.0, 1.0)):
    counts = np.array(counts)
    return columns.PackingTask(
        np.array(sizes),
        counts,
        room,
        np.tile(counts, (len(room), 1)),
        programs.Sorts(np.array(hosts), np.array(cost)),
    )


def fewest(items, hosts, bins=()):
    """By trying all."""
    if not items:
        return len(bins)
    (a, b), *rest = items
    tried = [NONE]
    for n, (left, other) in enumerate(bins):
        if a <= left and b <= other and (left, other) not in bins[:n]:
            new = (left - a, other - b)
            tried.append(fewest(rest, hosts, (*bins[:n], new, *bins[n + 1 :])))
    for q, number in enumerate(hosts):
        left, other = ROOM[q].tolist()
        if number and a <= left and b <= other:
            fewer = (*hosts[:q], number - 1, *hosts[q + 1 :])
            new = (left - a, other - b)
            tried.append(fewest(rest, fewer, (*bins, new)))
    return min(tried)


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
    KINDS, st.tuples(st.integers(1, 6), st.integers(1, 6)), st.data()
)
def test_patterns_need_as_few_hosts_as_exhaustive_search(kinds, hosts, draw):
    counts = [draw.draw(st.integers(1, 2)) for _ in kinds]
    items = [
        each for each, n in zip(kinds, counts, strict=True) for _ in range(n)
    ]
    hypothesis.assume(len(items) <= 6)
    best = fewest(items, hosts)
    made = task(kinds, counts, hosts)
    found = columns.pack(made)
    if found is None:
        assert best == NONE
        return
    assert (found.counts.sum(axis=0) == made.counts).all()
    assert (found.counts @ made.sizes <= ROOM[found.sort]).all()
    assert (np.bincount(found.sort, minlength=2) <= hosts).all()
    assert found.bound <= best == len(found.sort)


def test_hosts_that_are_in_use_anyway_are_filled_first():
    found = columns.pack(task([(4, 4)], [3], [5, 2], cost=(1.0, 0.0)))
    assert sorted(found.sort.tolist()) == [0, 1, 1]
    assert found.bound == 1


@pytest.mark.repeated
@pytest.mark.parametrize('seed', range(40))
def test_powers_of_two_are_packed_on_as_few_hosts_as_can_be(seed):
    chance = np.random.default_rng(seed)
    items = 2 ** chance.integers(0, 4, (int(chance.integers(5, 150)), 2))
    sizes, counts = np.unique(items, axis=0, return_counts=True)
    found = columns.pack(
        task(sizes, counts, [200], np.array([[16, 16]]), (1.0,))
    )
    assert len(found.sort) == found.bound


def test_a_table_that_would_be_too_large_has_coarser_units():
    sizes = np.array([[3001, 2999, 1], [5003, 4001, 7], [2003, 6007, 5]])
    room, most = np.array([16_000, 16_001, 20]), np.array([4, 4, 4])
    host = knapsack.KnapsackHost(sizes, room, most)
    assert not host.is_exact
    assert host.cells <= knapsack.CELLS
    found = host.pattern(np.array([0.3, 0.4, 0.35]), most)
    assert found.any()
    assert (found @ sizes <= room).all()


def test_a_class_that_others_use_up_sooner_needs_no_cells():
    sizes, most = np.array([[1, 2], [2, 3]]), np.array([9, 9])
    assert knapsack.KnapsackHost(sizes, np.array([100, 10]), most).cells == 11


def test_the_best_result_at_the_end_of_the_work_budget_counts(monkeypatch):
    monkeypatch.setattr(columns, '_ROUNDS', 0)
    made = task([(3, 3), (5, 5), (1, 2)], [4, 4, 4], [12, 3])
    found = columns.pack(made)
    assert found.bound == 0
    assert (found.counts.sum(axis=0) == made.counts).all()
    assert (found.counts @ made.sizes <= ROOM[found.sort]).all()


def lifted(snapshot):
    made = layout_module.HostLayout(snapshot, weighers.fullest)
    items = [int(n) for n in np.flatnonzero(made.may_move)]
    for n in items:
        made.put(n, layout_module.NOWHERE)
    return made, items


@hypothesis.settings(deadline=None, max_examples=effort.count_to_try(200))
@hypothesis.given(properties.clouds(), st.integers(1, 3), st.integers(1, 3))
def test_constraints_are_kept_with_any_patterns(snapshot, kinds, sorts):
    made, items = lifted(snapshot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, '_KINDS', kinds)
        patch.setattr(patterns, '_SORTS', sorts)
        rows = np.flatnonzero(made.hosts.takes).tolist()
        is_whole = patterns.fill(made, items, rows)
    assert is_whole == bool((made.at != layout_module.NOWHERE).all())
    assert (made.free >= np.minimum(made.hosts.free, 0)).all()
    for n in items:
        row = int(made.at[n])
        if row == layout_module.NOWHERE:
            continue
        assert row in made.items[n].shape.rows
        assert made.keeps_apart(n, row, -1)


def test_a_group_whose_servers_are_alike_keeps_apart_in_patterns():
    group = request.Group('g', request.Rule.APART)
    servers = [
        small_cloud.placed_server(f's{n}', f'h{n}', 2, bound=group)
        for n in range(2)
    ]
    servers += [small_cloud.placed_server(f't{n}', 'h2', 3) for n in range(2)]
    hosts = [small_cloud.host(f'h{n}') for n in range(4)]
    made, items = lifted(small_cloud.cloud_of_servers(hosts, servers))
    assert patterns.fill(made, items, range(4))
    assert made.busy.sum() == 2
    assert made.at[0] != made.at[1]


def test_hosts_of_two_kinds_are_chosen_by_their_patterns():
    # 6 and 5 fill a large one, and 3 and 3 a small one, of both classes.
    hosts = [
        small_cloud.host(f'{"l" if n < 3 else "s"}{n}', 11 if n < 3 else 6)
        for n in range(6)
    ]
    servers = [
        small_cloud.placed_server('a', 'l0', 6),
        small_cloud.placed_server('b', 'l1', 5),
        small_cloud.placed_server('c', 'l2', 3),
        small_cloud.placed_server('d', 's3', 3),
    ]
    plan = repack.repack(small_cloud.cloud_of_servers(hosts, servers))
    assert plan.busy == (4, 2)


def test_a_request_without_other_help_has_hosts_repacked():
    sizes = [(1, 4), (1, 2), (4, 8), (8, 4), (4, 1), (2, 2)]
    tight = rules_module.ConsolidationRules(
        depth=displacement.Depth(1, 1, 0, tight=4)
    )
    alone = rules_module.ConsolidationRules(depth=displacement.Depth(1, 1, 0))
    hosts = [small_cloud.host(f'h{n}', 8, 800) for n in range(5)]
    servers = [
        small_cloud.placed_server(f's{n}', f'h{n % 4}', *((v, 100 * m)))
        for n, (v, m) in enumerate(sizes[:2] + sizes[4:])
    ]
    snapshot = small_cloud.cloud_of_servers(hosts[:4], servers)
    asked = small_cloud.waiting_request('r', 8, memory=800)
    assert planner.rescue(snapshot, asked, alone) is None
    plan = planner.rescue(snapshot, asked, tight)
    later = small_cloud.cloud_after_moves(snapshot, plan.moves)
    assert (later.inventory.used == 0).all(axis=1).any()


def no_whole_numbers(*_, **__):
    raise exception.SolverFailed('no time')


@pytest.mark.parametrize(
    ('choose', 'hosts'),
    [
        (programs.solve_integer_program, 8),
        (lambda *_, **__: None, 9),
        (no_whole_numbers, 9),
    ],
    ids=['found', 'none', 'failed'],
)
def test_whole_numbers_of_all_patterns_are_tried_where_hosts_are_missing(
    monkeypatch, choose, hosts
):
    monkeypatch.setattr(columns.programs, 'choose', choose)
    sizes = np.array([(7, 3), (5, 11), (7, 11), (6, 9), (9, 3), (9, 2)])
    made = task(sizes, [1, 4, 4, 4, 4, 3], [50], np.array([(22, 22)]), (1.0,))
    found = columns.pack(made)
    assert (found.bound, len(found.sort)) == (8, hosts)
    assert (found.counts.sum(axis=0) == made.counts).all()
    assert (found.counts @ sizes <= 22).all()


def test_no_order_is_sought_of_packings_that_send_more_than_a_plan(
    monkeypatch,
):
    hosts = [small_cloud.host(f'h{n}', 8, 8000) for n in range(2)]
    servers = [
        small_cloud.placed_server(name, host, 2)
        for name, host in [('a', 'h0'), ('b', 'h0'), ('c', 'h1')]
    ]
    layout = layout_module.HostLayout(
        small_cloud.cloud_of_servers(hosts, servers), weighers.fullest
    )
    real, ordered = rules_module.plan_from_layout, []

    def made(layout, rules, **more):
        ordered.append(layout.at.tolist())
        return real(layout, rules, **more)

    monkeypatch.setattr(repack.rules_module, 'made', made)
    packed = [(1, np.array(at)) for at in ([1, 1, 1], [0, 0, 0])]
    plan = repack._cheapest_plan(layout, rules_module.USUAL, packed)
    assert {move.target for move in plan.moves} == {'h0'}
    assert ordered == [[0, 0, 0]]


def test_servers_on_hosts_that_take_none_stay():
    hosts = [small_cloud.host(f'h{n}', takes=False) for n in range(2)]
    servers = [small_cloud.placed_server(f's{n}', f'h{n}') for n in range(2)]
    snapshot = small_cloud.cloud_of_servers(hosts, servers)
    made, items = lifted(snapshot)
    assert not patterns.fill(made, items, [])
    assert repack.repack(snapshot).moves == ()
