# SPDX-License-Identifier: Apache-2.0

"""What holds for every migration plan."""

import collections
import dataclasses
import random

import hypothesis
from hypothesis import strategies as st

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import balance
from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import planner
from nova_fairness.planners.consolidation import repack
from nova_fairness.planners.consolidation import rules as rules_module
from nova_fairness.planners.consolidation import waves as waves_module
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import order
from tests.fixtures import effort
from tests.fixtures import small_cloud

APART = request.Group('apart', request.Rule.APART)
TWO = request.Group('two', request.Rule.APART, 2)
TOGETHER = request.Group('together', request.Rule.TOGETHER)
GOALS = {
    'consolidate': planner.consolidate,
    'repack': repack.repack,
    'balance': balance.balance,
}
goals = st.sampled_from(list(GOALS))


@st.composite
def hosts(draw):
    return [
        small_cloud.host(
            f'h{n}',
            vcpu=draw(st.sampled_from([4, 8, 8, 8])),
            memory=draw(st.sampled_from([400, 800, 800])),
            used=draw(st.sampled_from([0, 0, 0, 1])),
            zone=draw(st.sampled_from(['z1', 'z1', 'z2'])),
            traits=frozenset(draw(st.sampled_from([(), ('T',), ('T',)]))),
            aggregates=frozenset(draw(st.sampled_from([('a',), ('a', 'b')]))),
            takes=draw(st.integers(0, 9)) > 0,
        )
        for n in range(draw(st.integers(0, 6)))
    ]


groups = st.sampled_from([None] * 8 + [APART, TWO, TOGETHER])
wishes = st.sampled_from(
    [{}] * 8
    + [
        {'zone': 'z1'},
        {'required': frozenset({'T'})},
        {'forbidden': frozenset({'T'})},
        {'aggregates': (frozenset({'b', 'c'}),)},
        {'host': 'h0'},
    ]
)


@st.composite
def clouds(draw):
    """Servers on hosts that have what they need, and room for them."""
    listed = draw(hosts())
    left = {
        each.name: [vcpu - used[0], memory]
        for each, (vcpu, memory), used in listed
    }
    members = collections.Counter()
    servers = []
    for n in range(draw(st.integers(0, 14)) if listed else 0):
        vcpu = draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4]))
        memory = draw(st.sampled_from([100, 100, 200, 300]))
        name = draw(st.sampled_from(sorted(left)))
        group = draw(groups)
        if left[name][0] < vcpu or left[name][1] < memory:
            continue
        if group in (APART, TWO):
            members[group.uuid, name] += 1
            if members[group.uuid, name] > group.per_host:
                continue
        left[name][0] -= vcpu
        left[name][1] -= memory
        demand = small_cloud.demand(vcpu, memory, **draw(wishes))
        if draw(st.integers(0, 9)) == 0:
            demand = None
        servers.append(
            small_cloud.placed_server(
                f's{n:02}', name, vcpu, memory, demand=demand, bound=group
            )
        )
    return small_cloud.cloud_of_servers(
        listed, servers, step=draw(st.sampled_from([1, 1, 1, 2]))
    )


rules = st.builds(
    rules_module.ConsolidationRules,
    rule=st.sampled_from(list(weighers.RULES.values())),
    depth=st.builds(displacement.Depth, st.integers(1, 3), st.integers(1, 3)),
    concurrency=st.builds(
        waves_module.MoveConcurrency, st.integers(1, 4), st.integers(1, 2)
    ),
    dearest_mb=st.sampled_from([None, None, 300]),
    partial=st.booleans(),
    spare=st.integers(0, 2),
)


def places(snapshot):
    return {each.uuid: each.host for each in snapshot.running}


def breaks(snapshot, before):
    """Servers that moved to where they must not be."""
    hosts = hosts_module.Hosts(snapshot)
    counts = collections.Counter(
        (each.bound.uuid, each.host) for each in snapshot.running if each.bound
    )
    together = collections.Counter(
        each.bound.uuid for each in snapshot.running if each.bound
    )
    found = []
    for each in snapshot.running:
        if before[each.uuid] == each.host:
            continue
        [row] = hosts.rows([each.host])
        if each.demand is None or row not in hosts.shape(each.demand).rows:
            found.append(each)
        elif each.bound and each.bound.rule is request.Rule.APART:
            if counts[each.bound.uuid, each.host] > each.bound.per_host:
                found.append(each)
        elif each.bound and together[each.bound.uuid] > 1:
            found.append(each)
    return found


@hypothesis.settings(deadline=None, max_examples=effort.count_to_try(300))
@hypothesis.given(goals, clouds(), rules)
def test_a_completed_plan_respects_all_bounds_and_needs_no_other(
    goal, snapshot, rules
):
    plan = GOALS[goal](snapshot, rules)
    # Room for each in its turn is checked while they move.
    later = small_cloud.cloud_after_moves(snapshot, plan.moves)
    assert not breaks(later, places(snapshot))
    assert GOALS[goal](later, rules).moves == ()


@hypothesis.settings(deadline=None)
@hypothesis.given(goals, clouds(), rules)
def test_simultaneous_moves_stay_within_the_limit(goal, snapshot, rules):
    plan = GOALS[goal](snapshot, rules)
    waves = collections.Counter(each.wave for each in plan.moves)
    assert sorted(waves) == list(range(1, len(waves) + 1))
    assert max(waves.values(), default=0) <= rules.concurrency.cloud
    ends = collections.Counter(
        (each.wave, host)
        for each in plan.moves
        for host in (each.source, each.target)
    )
    assert max(ends.values(), default=0) <= rules.concurrency.host


@hypothesis.settings(deadline=None)
@hypothesis.given(goals, clouds(), rules, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_sequence_of_its_inputs(
    goal, snapshot, rules, chance: random.Random
):
    servers = list(snapshot.running)
    chance.shuffle(servers)
    rows = list(range(len(snapshot.providers)))
    chance.shuffle(rows)
    other = dataclasses.replace(
        snapshot,
        running=tuple(servers),
        providers=tuple(snapshot.providers[row] for row in rows),
        inventory=cluster.Inventory(
            *(
                getattr(snapshot.inventory, field.name)[rows]
                for field in dataclasses.fields(cluster.Inventory)
            )
        ),
    )
    assert GOALS[goal](other, rules) == GOALS[goal](snapshot, rules)


def count_used_hosts(snapshot):
    return int((snapshot.inventory.used > 0).any(axis=1).sum())


@hypothesis.settings(deadline=None)
@hypothesis.given(st.sampled_from(['consolidate', 'repack']), clouds(), rules)
def test_hosts_in_use_are_those_that_the_plan_tells(goal, snapshot, rules):
    plan = GOALS[goal](snapshot, rules)
    later = small_cloud.cloud_after_moves(snapshot, plan.moves)
    assert plan.busy == (count_used_hosts(snapshot), count_used_hosts(later))
    assert plan.busy[1] <= plan.busy[0]
    empty = {
        each.name
        for each, used in zip(
            later.providers, later.inventory.used, strict=True
        )
        if each.takes and not used.any()
    }
    assert set(plan.off) <= empty
    assert len(plan.off) == max(len(empty) - rules.spare, 0)


@hypothesis.settings(deadline=None)
@hypothesis.given(clouds(), rules)
def test_moves_to_empty_hosts_are_no_dearer_than_allowed(snapshot, rules):
    rules = dataclasses.replace(rules, dearest_mb=300, partial=False)
    plan = planner.consolidate(snapshot, rules)
    emptied = plan.busy[0] - plan.busy[1]
    assert plan.cost_mb <= 300 * emptied


@hypothesis.settings(deadline=None)
@hypothesis.given(
    clouds(),
    rules,
    st.integers(1, 8),
    st.integers(1, 2),
    groups,
    st.sampled_from(['', 'z2']),
)
def test_a_rescued_request_fits_afterwards(
    snapshot, rules, vcpu, count, group, zone
):
    asked = small_cloud.waiting_request(
        'r',
        count=count,
        group=group,
        demand=small_cloud.demand(vcpu, 100, zone=zone),
    )
    snapshot = dataclasses.replace(snapshot, member_hosts=members(snapshot))
    plan = planner.rescue(snapshot, asked, rules)
    if plan is None:
        assert not fits(snapshot, asked)
        return
    later = small_cloud.cloud_after_moves(snapshot, plan.moves)
    later = dataclasses.replace(later, member_hosts=members(later))
    assert not breaks(later, places(snapshot))
    assert fits(later, asked)
    assert rules.dearest_mb is None or plan.cost_mb <= rules.dearest_mb


def members(snapshot):
    found = {}
    for each in snapshot.running:
        if each.bound:
            found.setdefault(each.bound.uuid, []).append(each.host)
    return {uuid: tuple(names) for uuid, names in found.items()}


def fits(snapshot, asked):
    unit = order.Unit((asked,))
    there = capacity.FreeRoom(snapshot)
    return there.never(unit) is None and there.find(unit) is not None
