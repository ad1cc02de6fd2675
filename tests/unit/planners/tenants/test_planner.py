# SPDX-License-Identifier: Apache-2.0

"""Clouds in which one can see who has to be helped, and how."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner
from tests.fixtures import small_cloud

host, lies = small_cloud.host, small_cloud.placed_server


def cloud(cpus=4.0, **hosts):
    """Servers of each host: owner and CPUs wanted, as ``u3`` is."""
    servers, wants = [], {}
    for name, there in hosts.items():
        asked = [float(each[1:]) for each in there]
        level = min(1.0, cpus / sum(asked)) if asked else 1.0
        for n, (each, wanted) in enumerate(zip(there, asked, strict=True)):
            uuid = f'{name}{n}{each[0]}'
            servers.append(lies(uuid, name, memory=1024))
            # As many CPUs as wanted are the weight: all lack alike.
            wants[uuid] = tenants.ServerWant(
                each[0], wanted, wanted * level, max(wanted, 0.1)
            )
    listed = [host(name, memory=100_000) for name in hosts]
    return tenants.Tenants(
        small_cloud.cloud_of_servers(listed, servers),
        wants,
        dict.fromkeys(hosts, cpus),
    )


def targets_by_server(plan):
    return {each.server: each.target for each in plan.plan.moves}


def tenants_with(given, uuid, **more):
    wants = dict(given.wants)
    wants[uuid] = dataclasses.replace(wants[uuid], **more)
    return dataclasses.replace(given, wants=wants)


def test_a_server_that_lacks_cpus_moves_to_where_there_is_room():
    plan = planner.plan(cloud(a=['u2', 'v4'], b=['w2']), 0.0)
    assert targets_by_server(plan) == {'a0u': 'b'}
    [helped] = plan.helped
    # Two and four of six on four CPUs: all have two thirds.
    assert helped.level == pytest.approx((2 / 3, 1.0))
    assert plan.worst == pytest.approx((2 / 3, 1.0))


def test_another_server_moves_if_that_helps_more():
    # u's own would find one CPU on b, and v's four there are no more.
    given = cloud(a=['u4', 'v2'], b=['w2'])
    assert targets_by_server(planner.plan(given, 0.0)) == {'a1v': 'b'}


def test_a_server_that_wants_more_than_is_due_is_not_the_worst_off():
    # h wants all there is and lacks most of it; u gets all that is due.
    given = cloud(a=['h8', 'h8', 'u1'], b=['h8', 'h8'])
    given = tenants_with(given, 'a2u', used_cpus=1.0, weight=100.0)
    plan = planner.plan(given, 0.0)
    assert targets_by_server(plan) == {}
    assert plan.worst[0] == 1.0


def test_no_server_ends_at_the_former_level_of_the_helped_server():
    # Where u's went, w would have what u has now.
    given = cloud(a=['u4', 'v4'], b=['w4'])
    plan = planner.plan(given, 0.0)
    assert targets_by_server(plan) == {}
    assert plan.worst[0] == plan.worst[1] < 1.0


def test_a_good_state_plans_nothing():
    plan = planner.plan(cloud(a=['u2', 'v2'], b=['w4']), 0.0)
    assert plan.plan.moves == ()
    assert plan.worst == (1.0, 1.0)
    assert planner.plan(cloud(), 0.0).worst == (1.0, 1.0)


def test_a_move_must_be_worth_its_memory():
    given = cloud(a=['u2', 'v4'], b=['w2'])
    dear = planner.TenantRules(price=0.4)
    assert targets_by_server(planner.plan(given, 0.0, dear)) == {}
    # u rises by a third, so that a price of 0.3 for 1 GiB is paid.
    fair = planner.TenantRules(price=0.3)
    assert targets_by_server(planner.plan(given, 0.0, fair)) == {'a0u': 'b'}


def test_all_moves_for_an_owner_together_must_reach_the_margin():
    given = cloud(a=['u2', 'v4'], b=['w2'])
    enough = planner.TenantRules(margin=0.33)
    assert targets_by_server(planner.plan(given, 0.0, enough)) == {'a0u': 'b'}
    assert (
        targets_by_server(
            planner.plan(given, 0.0, planner.TenantRules(margin=0.34))
        )
        == {}
    )
    # Four servers of two CPUs each, none of which alone is a quarter.
    small = cloud(8.0, a=['u2'] * 4 + ['v8'], b=[], c=['w2'])
    small = tenants_with(small, 'a4v', moved_at=0.0)
    rules = planner.TenantRules(margin=0.45)
    assert len(targets_by_server(planner.plan(small, 0.0, rules))) >= 2


def test_moves_with_too_little_total_gain_are_removed():
    given = tenants_with(cloud(a=['u8', 'v8'], b=['w1']), 'a1v', moved_at=0.0)
    given = tenants_with(
        given, 'b0w', used_cpus=1.0, weight=100.0, moved_at=0.0
    )
    given = dataclasses.replace(given, shares={'v': 0.5})
    # u would get three CPUs instead of two, of the 14/3 that are due.
    assert targets_by_server(planner.plan(given, 0.0)) == {'a0u': 'b'}
    plan = planner.plan(given, 0.0, planner.TenantRules(margin=0.25))
    assert targets_by_server(plan) == {}
    assert plan.worst == pytest.approx((3 / 7, 3 / 7))
    assert plan.helped == ()


def test_a_server_moved_lately_or_hardly_known_stays():
    given = cloud(a=['u2', 'v4'], b=['w2'])
    for more in ({'moved_at': 99.0}, {'seen_s': 60.0}):
        held = tenants_with(given, 'a0u', **more)
        assert 'a0u' not in targets_by_server(planner.plan(held, 100.0))
    later = tenants_with(given, 'a0u', moved_at=99.0)
    assert targets_by_server(planner.plan(later, 4000.0)) == {'a0u': 'b'}


def test_hosts_without_reports_are_not_changed():
    given = cloud(a=['u2', 'v4'], b=['w2'])
    for cpus in ({'a': 4.0}, {'b': 4.0}):
        deaf = dataclasses.replace(given, cpus=cpus)
        assert targets_by_server(planner.plan(deaf, 0.0)) == {}


def test_a_host_gives_its_observed_supply():
    # a gave three CPUs to who wanted six: the host itself has the fourth.
    given = cloud(a=['u2', 'v4'], b=['w2'])
    given = tenants_with(given, 'a0u', used_cpus=1.0)
    given = tenants_with(given, 'a1v', used_cpus=2.0)
    assert planner.plan(given, 0.0).helped[0].level[0] == pytest.approx(0.5)


def test_shares_decide_the_worst_owner():
    # Equal parts for both are too little for u, to whom three are due.
    given = cloud(a=['u4', 'v4'], b=[])
    given = dataclasses.replace(given, shares={'u': 3.0})
    assert planner.plan(given, 0.0).helped[0].owner in 'uv'
    full = cloud(a=['u4', 'v4'])
    assert planner.plan(full, 0.0).worst[0] == 1.0
    full = dataclasses.replace(full, shares={'u': 3.0})
    assert planner.plan(full, 0.0).worst[0] == pytest.approx(2 / 3)


def test_the_number_of_moves_stays_within_the_limit():
    given = cloud(a=['u2', 'v4'], b=['x2', 'y4'], c=[], d=[])
    assert len(targets_by_server(planner.plan(given, 0.0))) == 2
    assert (
        len(
            targets_by_server(
                planner.plan(given, 0.0, planner.TenantRules(most=1))
            )
        )
        == 1
    )


def test_moves_found_so_far_count_when_the_effort_is_over():
    given = cloud(a=['u2', 'v4'], b=['x2', 'y4'], c=[], d=[])
    assert planner.plan(given, 0.0).is_whole
    plan = planner.plan(given, 0.0, planner.TenantRules(effort=2))
    assert not plan.is_whole
    assert len(targets_by_server(plan)) == 1


@pytest.mark.parametrize(
    'more',
    [{'wanted_cpus': -1.0}, {'used_cpus': float('nan')}, {'weight': 0.0}],
)
def test_impossible_numbers_are_named(more):
    numbers = {'wanted_cpus': 1.0, 'used_cpus': 1.0, 'weight': 1.0, **more}
    [name] = more
    with pytest.raises(exception.BadSnapshot, match=name):
        tenants.ServerWant('u', **numbers)


def test_hosts_without_cpus_and_owners_without_share_are_named():
    given = cloud(a=['u1'])
    for name in ('cpus', 'shares'):
        with pytest.raises(exception.BadSnapshot, match='of x must be above'):
            dataclasses.replace(given, **{name: {'x': 0.0}})
