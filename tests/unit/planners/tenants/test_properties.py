# SPDX-License-Identifier: Apache-2.0

"""What holds for every plan that helps owners."""

import dataclasses
import random

import hypothesis
from hypothesis import strategies as st
import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import tenants
from nova_fairness.planners import weighers
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.planners.tenants import cpu_levels
from nova_fairness.planners.tenants import planner
from nova_fairness.shares import filling
from tests.fixtures import effort
from tests.fixtures import small_cloud
from tests.unit.planners.consolidation import test_properties as moving

OWNERS = 'uvwx'


@st.composite
def clouds(draw):
    """Servers that want something of hosts whose CPUs are known."""
    snapshot = draw(moving.clouds())
    wants = {
        each.uuid: tenants.ServerWant(
            draw(st.sampled_from(OWNERS)),
            draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])),
            0.0,
            draw(st.sampled_from([0.25, 1.0, 1.0, 2.0])),
            seen_s=draw(st.sampled_from([900.0, 900.0, 900.0, 30.0])),
        )
        for each in snapshot.running
        if draw(st.integers(0, 9)) > 0
    }
    cpus = {
        each.name: draw(st.sampled_from([2.0, 4.0]))
        for each in snapshot.providers
        if draw(st.integers(0, 9)) > 0
    }
    shares = {name: draw(st.sampled_from([1.0, 2.0])) for name in OWNERS}
    return divided_cloud(tenants.Tenants(snapshot, wants, cpus, shares))


def divided_cloud(given):
    """The cloud after each host has divided its CPUs among its servers."""
    names = {each.name: n for n, each in enumerate(given.cloud.providers)}
    listed = [
        each
        for each in given.cloud.running
        if each.uuid in given.wants and each.host in given.cpus
    ]
    wants = [given.wants[each.uuid] for each in listed]
    got, _ = filling.fill(
        np.array([given.cpus.get(name, 0.0) for name in names]),
        np.array([names[each.host] for each in listed], np.intp),
        np.array([each.wanted_cpus for each in wants]),
        np.array([each.weight for each in wants]),
    )
    new = {
        each.uuid: dataclasses.replace(want, used_cpus=float(one))
        for each, want, one in zip(listed, wants, got, strict=True)
    }
    return dataclasses.replace(given, wants={**given.wants, **new})


def cloud_after_plan(given, plan):
    cloud = small_cloud.cloud_after_moves(given.cloud, plan.plan.moves)
    return divided_cloud(dataclasses.replace(given, cloud=cloud))


def levels(given):
    layout = layout_module.HostLayout(given.cloud, weighers.emptiest)
    field = cpu_levels.CpuLevels(given, layout)
    return dict(zip(field.owners, field.levels.tolist(), strict=True))


rules = st.builds(
    planner.TenantRules,
    margin=st.sampled_from([0.0, 0.02, 0.05, 0.2]),
    price=st.sampled_from([0.0, 0.0005, 0.1]),
    most=st.none(),
    concurrency=st.builds(
        moving.waves_module.MoveConcurrency,
        st.integers(1, 4),
        st.integers(1, 2),
    ),
)


@hypothesis.settings(deadline=None, max_examples=effort.count_to_try(300))
@hypothesis.given(clouds(), rules)
def test_a_completed_plan_respects_all_bounds_and_needs_no_other(given, rules):
    plan = planner.plan(given, 0.0, rules)
    # Room for each in its turn is checked while they move.
    later = cloud_after_plan(given, plan)
    assert not moving.breaks(later.cloud, moving.places(given.cloud))
    assert planner.plan(later, 0.0, rules).plan.moves == ()


@hypothesis.settings(deadline=None, max_examples=effort.count_to_try(300))
@hypothesis.given(clouds(), rules)
def test_moves_raise_levels_from_the_lowest_upwards(given, rules):
    plan = planner.plan(given, 0.0, rules)
    before, after = levels(given), levels(cloud_after_plan(given, plan))
    if not plan.plan.moves:
        return
    lost = {u for u in before if after[u] < before[u] - 1e-9}
    # Whoever gets less is better off than somebody was who was helped.
    least = min(each.level[0] for each in plan.helped)
    assert all(after[u] > least for u in lost)
    assert sorted(after.values()) >= [
        each - 1e-9 for each in sorted(before.values())
    ]
    assert abs(min(after.values(), default=1.0) - plan.worst[1]) < 1e-9
    for each in plan.helped:
        assert each.level[1] >= each.level[0] + rules.margin - 1e-9


@hypothesis.settings(deadline=None)
@hypothesis.given(clouds(), st.integers(1, 3))
def test_moves_stay_within_the_limit_and_skip_unknown_servers(given, most):
    plan = planner.plan(given, 0.0, planner.TenantRules(most=most))
    assert len(plan.plan.moves) <= most
    for each in plan.plan.moves:
        assert given.wants[each.server].seen_s >= 600.0
        assert {each.source, each.target} <= set(given.cpus)


@hypothesis.settings(deadline=None)
@hypothesis.given(clouds(), rules, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_sequence_of_its_inputs(
    given, rules, chance: random.Random
):
    servers = list(given.cloud.running)
    chance.shuffle(servers)
    rows = list(range(len(given.cloud.providers)))
    chance.shuffle(rows)
    other = dataclasses.replace(
        given.cloud,
        running=tuple(servers),
        providers=tuple(given.cloud.providers[row] for row in rows),
        inventory=cluster.Inventory(
            *(
                getattr(given.cloud.inventory, each.name)[rows]
                for each in dataclasses.fields(cluster.Inventory)
            )
        ),
    )
    wants = list(given.wants.items())
    chance.shuffle(wants)
    shuffled = tenants.Tenants(other, dict(wants), given.cpus, given.shares)
    assert planner.plan(shuffled, 0.0, rules) == planner.plan(
        given, 0.0, rules
    )


@hypothesis.settings(deadline=None)
@hypothesis.given(clouds(), rules, st.permutations(OWNERS))
def test_names_of_owners_change_nothing(given, rules, others):
    name = dict(zip(OWNERS, others, strict=True))
    renamed = dataclasses.replace(
        given,
        wants={
            uuid: dataclasses.replace(want, owner=name[want.owner])
            for uuid, want in given.wants.items()
        },
        shares={name[each]: share for each, share in given.shares.items()},
    )
    before = planner.plan(given, 0.0, rules)
    after = planner.plan(renamed, 0.0, rules)
    assert after.plan == before.plan
    assert after.worst == before.worst
