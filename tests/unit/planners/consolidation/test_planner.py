# SPDX-License-Identifier: Apache-2.0

"""Clouds in which one can see what is best."""

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout
from nova_fairness.planners.consolidation import optimum
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves
from nova_fairness.shares import programs
from tests.fixtures import small_cloud

ask, host, lies = (
    small_cloud.waiting_request,
    small_cloud.host,
    small_cloud.placed_server,
)


def filled(**hosts):
    """Eight VCPUs each; VCPUs of the servers on each host."""
    servers = [
        lies(f'{name}{n}', name, vcpu)
        for name, sizes in hosts.items()
        for n, vcpu in enumerate(sizes)
    ]
    return small_cloud.cloud_of_servers(
        [host(name) for name in hosts], servers
    )


def targets_by_server(plan):
    return {each.server: each.target for each in plan.moves}


def rules_with_depth(levels):
    return rules_module.ConsolidationRules(depth=displacement.Depth(levels))


def test_the_least_used_host_is_emptied_onto_the_fullest():
    plan = planner.consolidate(filled(a=[4], b=[5], c=[2]))
    assert targets_by_server(plan) == {'c0': 'b'}
    assert plan.busy == (3, 2)
    assert plan.off == ('c',)
    assert plan.cost_mb == 100


@pytest.mark.parametrize(('levels', 'moves'), [(1, 0), (2, 3)])
def test_a_smaller_one_makes_room_for_a_larger_one(levels, moves):
    # c's 3 fits nowhere; where a's 1 goes to b, it fits on a.
    snapshot = filled(a=[5, 1], b=[6], c=[3, 1])
    plan = planner.consolidate(snapshot, rules_with_depth(levels))
    assert len(plan.moves) == moves
    if moves:
        assert targets_by_server(plan) == {'a1': 'b', 'c0': 'a', 'c1': 'b'}
        assert [each.wave for each in plan.moves] == [1, 2, 3]


def test_three_levels_make_room_for_each_other():
    # 4 needs what 3 leaves, which needs what 2 leaves.
    snapshot = filled(a=[2, 5], b=[3, 2, 2], c=[6], d=[4])
    assert planner.consolidate(snapshot, rules_with_depth(2)).moves == ()
    plan = planner.consolidate(snapshot, rules_with_depth(3))
    assert targets_by_server(plan) == {'a0': 'c', 'b0': 'a', 'd0': 'b'}
    assert plan.busy == (4, 3)


@pytest.fixture
def short_of_memory():
    """Host b has too little memory; c has a server that needs none."""
    wanted = request.Demand((('VCPU', 2),))
    free = cluster.Running(
        'c', 'p', wanted.amounts, 0.0, uuid='c0', demand=wanted
    )
    full = [lies(f'b{n}', 'b', 1, memory=3000) for n in range(4)]
    return small_cloud.cloud_of_servers([host('b'), host('c')], [*full, free])


def test_a_host_short_of_memory_takes_servers_that_need_none(short_of_memory):
    assert targets_by_server(planner.consolidate(short_of_memory)) == {
        'c0': 'b'
    }
    rescue = planner.rescue(short_of_memory, ask('new', 7))
    assert targets_by_server(rescue) == {'c0': 'b'}


def test_a_host_that_cannot_be_emptied_gives_servers_to_fuller_hosts():
    snapshot = filled(a=[5, 2], b=[4, 1])
    assert planner.consolidate(snapshot).moves == ()
    plan = planner.consolidate(
        snapshot, rules_module.ConsolidationRules(partial=True)
    )
    assert targets_by_server(plan) == {'b1': 'a'}


def test_the_configured_number_of_empty_hosts_is_kept():
    snapshot = small_cloud.cloud_of_servers(
        [host('a'), host('b', vcpu=16), host('c')]
    )
    plan = planner.consolidate(
        snapshot, rules_module.ConsolidationRules(spare=1)
    )
    assert plan.off == ('a', 'c')


def test_fixed_servers_are_never_moved():
    group = request.Group('g', request.Rule.TOGETHER)
    for more in (
        {'demand': None},
        {'demand': small_cloud.demand(host='a')},
        {'demand': small_cloud.demand(zone='z')},
    ):
        servers = [lies('s', 'a', **more), lies('t', 'b', 2)]
        hosts = [host('a', zone='z'), host('b')]
        snapshot = small_cloud.cloud_of_servers(hosts, servers)
        assert targets_by_server(planner.consolidate(snapshot)) in (
            {},
            {'t': 'a'},
        )
    servers = [
        lies('s', 'a', bound=group),
        lies('t', 'a', bound=group),
        lies('u', 'b', 8),
        lies('v', 'c', 4),
    ]
    hosts = [host('a', vcpu=3), host('b'), host('c')]
    assert (
        planner.consolidate(small_cloud.cloud_of_servers(hosts, servers)).moves
        == ()
    )


def test_two_servers_that_swap_hosts_have_no_sequence_of_moves():
    snapshot = filled(a=[8], b=[7])
    made = layout.HostLayout(snapshot, weighers.fullest)
    for n, row in ((0, layout.NOWHERE), (1, 0), (0, 1)):
        made.put(n, row)
    assert rules_module.plan_from_layout(made, rules_module.USUAL) is None


def test_a_rescue_moves_the_smallest_servers():
    snapshot = filled(a=[4, 3], b=[5, 1])
    plan = planner.rescue(snapshot, ask('r', 3))
    assert targets_by_server(plan) == {'b1': 'a'}
    assert planner.rescue(snapshot, ask('r', 4)) is None
    assert planner.rescue(filled(a=[4], b=[]), ask('r', 8)).moves == ()


def test_a_too_expensive_rescue_is_not_planned():
    snapshot = filled(a=[4, 3], b=[5, 1])
    rules = rules_module.ConsolidationRules(dearest_mb=99)
    assert planner.rescue(snapshot, ask('r', 3), rules) is None


def test_repacking_moves_blocking_servers_first():
    servers = [
        lies('a0', 'a', 5),
        lies('a1', 'a', 2),
        lies('b0', 'b', 3),
        lies('b1', 'b', 4),
        lies('c0', 'c', 2),
    ]
    snapshot = small_cloud.cloud_of_servers(
        [host('a'), host('b'), host('c', vcpu=4)], servers
    )
    assert planner.consolidate(snapshot, rules_with_depth(1)).moves == ()
    plan = repack.repack(snapshot)
    assert plan.busy == (3, 2)
    # 2 and 3 would change places, so 2 waits beside the other 2 meanwhile.
    assert [(each.server, each.target) for each in plan.moves] == [
        ('a1', 'c'),
        ('b0', 'a'),
        ('a1', 'b'),
        ('c0', 'b'),
    ]


def test_a_server_makes_room_for_one_that_must_move_and_comes_back():
    # 5 and 3 would change places; there is room only once 1 is away.
    snapshot = filled(a=[5, 1], b=[3, 3], c=[7])
    made = layout.HostLayout(snapshot, weighers.fullest)
    concurrency = waves.MoveConcurrency(9, 9)
    assert waves.plan_waves(made, [(0, 1), (2, 0)], concurrency) is None
    assert waves.plan_waves(
        made, [(0, 1), (2, 0)], concurrency, detours=True
    ) == [
        [(1, 2)],
        [(2, 0)],
        [(0, 1)],
        [(1, 0)],
    ]


@pytest.fixture
def wasteful():
    """Four hosts in use; three are enough, which no heuristic finds.

    They are of a group, of more than one size: these have no patterns.
    """
    group = request.Group('g', request.Rule.APART, 8)
    sizes = {'a': [2, 4], 'b': [2, 3], 'c': [2, 4], 'd': [3, 4]}
    servers = [
        lies(f'{name}{n}', name, vcpu, bound=group)
        for name, each in sizes.items()
        for n, vcpu in enumerate(each)
    ]
    return small_cloud.cloud_of_servers(
        [host(name) for name in sizes], servers
    )


CHOOSE = programs.solve_integer_program


def raises(*_):
    raise exception.SolverFailed('no memory is left')


OVER = {
    'nothing was found': lambda *_: None,
    'the solver fails': raises,
}


@pytest.mark.parametrize('over', OVER)
def test_heuristics_plan_when_the_time_of_the_search_is_over(
    wasteful, over, monkeypatch
):
    alone = repack.repack(wasteful)
    searched = repack.repack(wasteful, search_s=60.0)
    assert searched.busy == (4, 3)
    assert searched.is_whole
    assert alone.is_whole
    monkeypatch.setattr(programs, 'solve_integer_program', OVER[over])
    plan = repack.repack(wasteful, search_s=60.0)
    assert not plan.is_whole
    assert (plan.moves, plan.busy) == (alone.moves, alone.busy)


def test_a_consolidation_search_ends_in_time(wasteful):
    limits = []

    def choose(cost, most, rows, longest_s=None):
        limits.append(longest_s)
        return CHOOSE(cost, most, rows, longest_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, 'solve_integer_program', choose)
        repack.repack(wasteful, search_s=7.0)
    assert limits == [7.0]


def test_the_fullest_host_gives_until_all_are_even_enough():
    plan = balance.balance(filled(a=[2, 2, 2, 2], b=[], c=[2]))
    assert sorted(targets_by_server(plan).values()) == ['b', 'b']
    assert balance.balance(filled(a=[3], b=[3], c=[2])).moves == ()
    even = balance.BalanceTolerance(spread=1.0)
    assert not balance.balance(filled(a=[4, 4], b=[]), tolerance=even).moves


sizes = st.lists(
    st.lists(st.integers(1, 8), max_size=3).filter(lambda s: sum(s) <= 8),
    min_size=1,
    max_size=4,
)


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(sizes)
def test_the_optimum_equals_exhaustive_search(drawn):
    snapshot = filled(**{f'h{n}': each for n, each in enumerate(drawn)})
    found = optimum.fewest(snapshot)
    items = sorted((s for each in drawn for s in each), reverse=True)
    best = _fewest(items, [])
    assert (found.found, found.bound) == (best, best)
    plan = repack.repack(snapshot)
    made = layout.HostLayout(snapshot, weighers.fullest)
    assert optimum.lower_bound(made) <= best <= plan.busy[1]


def _fewest(items, bins):
    if not items:
        return len(bins)
    first, *rest = items
    tried = [_fewest(rest, [*bins, 8 - first])]
    for n, left in enumerate(bins):
        if left >= first:
            other = [*bins[:n], left - first, *bins[n + 1 :]]
            tried.append(_fewest(rest, other))
    return min(tried)


def test_servers_that_keep_apart_need_a_host_each():
    group = request.Group('g', request.Rule.APART)
    servers = [lies(f's{n}', f'h{n}', bound=group) for n in range(3)]
    hosts = [host(f'h{n}') for n in range(4)]
    snapshot = small_cloud.cloud_of_servers(hosts, servers)
    assert optimum.fewest(snapshot) == optimum.FewestHosts(3, 3)
    assert planner.consolidate(snapshot).moves == ()
