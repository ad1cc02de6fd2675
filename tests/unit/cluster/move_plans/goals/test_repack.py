# SPDX-License-Identifier: Apache-2.0

"""All servers are packed from scratch, now and then."""

from nova_fairness.cluster.move_plans.goals import repack
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller

world = test_service.world
cloud = test_plan_controller.cloud
S = test_plan_controller.S
G = test_plan_controller.G


def test_all_servers_are_repacked_at_intervals(cloud):
    """Some of it waits on the host that is emptied."""
    test_plan_controller.drafted(cloud, repack.RepackGoal(every_s=1000.0))
    cloud.hosts('h1', 'h2', 'h3', vcpu=6)
    for host, sizes in (('h1', (3, 1)), ('h2', (3, 1)), ('h3', (2, 2))):
        for n, vcpus in enumerate(sizes):
            cloud.lies(f'{host}-{n}', host, vcpus)
    cloud.begin()
    plan = cloud.go()
    assert (plan.goal, plan.promised.emptied) == (G.REPACK, 1)
    cloud.go(12)
    assert len({*cloud.at().values()}) == 2
    [plan] = cloud.world.store.plans.newest_plans()
    assert plan.state is S.DONE
    at = cloud.at()
    for uuid in at.keys() - {host: uuid for uuid, host in at.items()}.values():
        cloud.fake.remove(uuid)
    while cloud.world.now < plan.changed_at + 1000.0:
        assert len(cloud.world.store.plans.newest_plans()) == 1
        cloud.go()
    cloud.go(9)
    assert [each.state for each in cloud.world.store.plans.newest_plans()] == [
        S.DONE, S.DONE,
    ]  # fmt: skip
    assert len({*cloud.at().values()}) == 1
