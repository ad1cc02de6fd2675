# SPDX-License-Identifier: Apache-2.0

"""A request that fits nowhere finds room."""

import dataclasses
import types

import pytest

from nova_fairness.cluster.move_plans.goals import rescue
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller
from tests.unit.cluster.move_plans.goals import small_plan

world = test_service.world
cloud = test_plan_controller.cloud
S = test_plan_controller.S
M = test_plan_controller.M
G = test_plan_controller.G


def test_a_rescue_plan_makes_room_for_a_request_that_fits_nowhere(cloud):
    cloud.rules = dataclasses.replace(
        cloud.rules, goals=test_plan_controller.chosen(G.RESCUE)
    )
    cloud.hosts('h1', 'h2')
    for host in ('h1', 'h2'):
        cloud.lies(f'a-{host}', host, 2)
        cloud.lies(f'b-{host}', host, 2)
    cloud.begin()
    asked = cloud.world.post('asked', vcpu=6)
    cloud.go(8)
    plan = cloud.plan()
    assert (plan.goal, plan.subject) == (G.RESCUE, asked)
    assert plan.state is S.DONE
    assert [each.state for each in plan.moves] == [M.MOVED]
    assert cloud.world.state(asked) in (
        test_service.S.SENDING, test_service.S.STARTING,
    )  # fmt: skip
    assert plan.won.served == plan.promised.served == 1


PLAN = small_plan.plan(G.RESCUE, subject='r1')


def test_a_rescue_plan_stays_useful_while_its_request_waits():
    assert rescue.RescueGoal.is_of_use(PLAN, {'r1': None, 'r2': None})
    assert not rescue.RescueGoal.is_of_use(PLAN, {'r2': None})


@pytest.mark.parametrize(
    ('uuid', 'state', 'count'),
    [
        ('r1', test_service.S.WAITING, 0),
        ('r1', test_service.S.SENDING, 1),
        ('r1', test_service.S.STARTING, 1),
        ('r1', test_service.S.ACTIVE, 1),
        ('r2', test_service.S.ACTIVE, 0),
    ],
)
def test_a_rescue_plan_succeeds_when_its_request_starts(uuid, state, count):
    request = types.SimpleNamespace(uuid=uuid, state=state)
    found = [types.SimpleNamespace(request=request)]
    assert rescue.RescueGoal.served(PLAN, found) == count
