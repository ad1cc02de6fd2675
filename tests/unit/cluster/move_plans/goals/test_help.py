# SPDX-License-Identifier: Apache-2.0

"""An owner who gets too little of its CPUs is helped."""

import dataclasses

from nova_fairness.cluster.move_plans.goals import help as help_module
from nova_fairness.model import tenants
from nova_fairness.planners.tenants import planner as tenants_planner
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller

world = test_service.world
cloud = test_plan_controller.cloud
S = test_plan_controller.S
G = test_plan_controller.G


class FakeLacking:
    """Agents that say the same, wherever servers lie."""

    def __init__(self, wants):
        self.wants, self.shares = wants, None

    def tenants(self, cloud, moved_at, shares):
        self.shares = shares
        here = {each.host for each in cloud.running}
        hosts = {each.name: 4.0 for each in cloud.providers}
        got = 4.0 if len(here) > 1 else 2.0
        wants = {
            uuid: tenants.ServerWant(owner, 4.0, got)
            for uuid, owner in self.wants.items()
        }
        return tenants.Tenants(cloud, wants, hosts, shares)


def test_an_owner_with_too_little_is_helped(cloud):
    cloud.rules = dataclasses.replace(
        cloud.rules, goals=test_plan_controller.chosen(G.HELP), rest_s=0.0
    )
    cloud.hosts('h1', 'h2')
    servers = [cloud.lies(f's{n}', 'h1', 4, user=f'u{n}') for n in range(2)]
    cloud.lacking = FakeLacking(
        {uuid: f'u{n}' for n, uuid in enumerate(servers)}
    )
    cloud.begin()
    plan = cloud.go()
    assert (plan.goal, plan.state) == (G.HELP, S.PROPOSED)
    assert plan.text.startswith(
        f'{plan.subject} gets 1.00 in place of 0.50 of what is due'
    )
    assert cloud.go().text == plan.text
    cloud.go(6)
    assert sorted(cloud.at().values()) == ['h1', 'h2']
    assert len(cloud.world.store.plans.newest_plans()) == 1
    assert cloud.lacking.shares['u0'] == cloud.lacking.shares['u1'] > 0


def helped(cloud, wants):
    """Three owners on one of two hosts; what agents tell is as of before."""
    cloud.rules = dataclasses.replace(
        cloud.rules,
        goals=(
            help_module.HelpGoal(tenants_planner.TenantRules(seen_s=300.0)),
        ),
        rest_s=0.0,
    )
    cloud.hosts('h1', 'h2', vcpu=16)
    for n in range(3):
        cloud.lies(f's{n}', 'h1', 4, user=f'u{n}')
    told = {fake_cloud.name_uuid(f's{n}'): f'u{n}' for n in wants}
    cloud.lacking = StaleLacking(told)
    cloud.begin()


class StaleLacking(FakeLacking):
    """Agents that never see what moves come to."""

    def tenants(self, cloud, moved_at, shares):
        hosts = {each.name: 4.0 for each in cloud.providers}
        wants = {
            uuid: tenants.ServerWant(owner, 4.0, 4.0 / 3, seen_s=900.0)
            for uuid, owner in self.wants.items()
        }
        return tenants.Tenants(cloud, wants, hosts, shares)


def test_no_server_is_helped_again_before_agents_saw_its_moves(cloud):
    helped(cloud, range(3))
    cloud.go(5)
    [plan] = cloud.world.store.plans.newest_plans()
    assert (plan.goal, plan.state) == (G.HELP, S.DONE)
    count = len(cloud.asked())
    cloud.hosts('h3', vcpu=16)
    # They are asked once a minute.
    cloud.go(32)
    assert len(cloud.asked()) == count
    cloud.go(8)
    assert len(cloud.asked()) > count


def test_help_ignores_observations_from_before_the_last_move(cloud):
    cloud.fake.migrates_at_once = False
    helped(cloud, range(3))
    cloud.go(3)
    looks = cloud.nova.servers

    def ends_after_the_look(now):
        found = looks(now)
        for each in cloud.asked():
            cloud.fake.end_migration(each)
        return found

    cloud.nova.servers = ends_after_the_look
    cloud.go()
    [plan] = cloud.world.store.plans.newest_plans()
    assert (plan.goal, plan.state) == (G.HELP, S.DONE)


def test_help_ignores_hosts_with_servers_unknown_to_agents(cloud):
    helped(cloud, range(3))
    cloud.lies('new', 'h2', 4, user='u3')
    assert cloud.go(5) is None
