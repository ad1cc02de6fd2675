# SPDX-License-Identifier: Apache-2.0

"""Servers move so that a rate buys as much of every host."""

from nova_fairness.cluster.api import requests
from nova_fairness.cluster.move_plans.goals import market
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller

world = test_service.world
cloud = test_plan_controller.cloud
S = test_plan_controller.S
G = test_plan_controller.G


def test_market_moves_make_a_rate_buy_equally_much_on_every_host(cloud):
    test_plan_controller.drafted(cloud, market.MarketGoal())
    cloud.hosts('h1', 'h2', vcpu=16)
    pays = {'fairness:group': 'web'}
    dear = [cloud.lies(f'd{n}', 'h1', metadata=pays) for n in range(2)]
    cheap = [cloud.lies(f'c{n}', 'h2') for n in range(2)]
    cloud.begin()
    answers = requests.ClusterOperations(cloud.world.store, cloud.service)
    answers.create_group('the-project', 'web', 200.0, 2)
    plan = cloud.go()
    assert (plan.goal, plan.state) == (G.MARKET, S.PROPOSED)
    assert plan.text == (
        'the mean price at which owners buy falls from 1.96 to 1.00; it is 1'
        ' where all hosts are as dear for their size'
    )
    cloud.go(8)
    at = cloud.at()
    assert {at[each] for each in dear} == {'h1', 'h2'}
    assert {at[each] for each in cheap} == {'h1', 'h2'}
    [plan] = cloud.world.store.plans.newest_plans()
    assert plan.state is S.DONE
    # Of a good state there is no plan, and of another price there is.
    cloud.go(20)
    assert len(cloud.world.store.plans.newest_plans()) == 1


def test_market_moves_skip_servers_of_binding_groups(cloud):
    test_plan_controller.drafted(cloud, market.MarketGoal())
    cloud.hosts('h1', 'h2', vcpu=16)
    pays = {'fairness:group': 'web'}
    both = [cloud.lies(f'd{n}', 'h1', metadata=pays) for n in range(2)]
    cloud.fake.groups['g'] = both
    cloud.fake.policies['g'] = {'policy': 'affinity', 'rules': {}}
    cloud.begin()
    answers = requests.ClusterOperations(cloud.world.store, cloud.service)
    answers.create_group('the-project', 'web', 200.0, 2)
    assert cloud.go(3) is None
