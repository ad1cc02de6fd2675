# SPDX-License-Identifier: Apache-2.0

"""Answers about a server that leaves for others and returns."""

import dataclasses

import pytest

from nova_fairness.cluster.api import requests
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.model import plans as plan_model
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from tests.fixtures import nova_casts
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption

world = test_service.world
process = test_preemption.process
spot = test_preemption.spot
go = test_preemption.run_cycles
NOTICE_S, LEAST_S = test_preemption.NOTICE_S, test_preemption.LEAST_S
MEMBER = reason.Audience.MEMBER


@pytest.fixture
def operations(world, process):
    return requests.ClusterOperations(world.store, process)


def shown_request(operations, uuid):
    return operations.request(uuid, MEMBER)['request']


def listed_standings(operations):
    return {
        each['uuid']: each['standing']
        for each in operations.requests(None, None, 9, None, MEMBER)[
            'requests'
        ]
    }


def test_a_server_that_runs_is_told_to_run(operations, spot):
    item = shown_request(operations, spot)
    assert (item['standing'], item['status']) == ('runs', 'runs')


def test_a_server_that_is_to_leave_is_told_when_and_that_it_returns(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    at = world.store.leaves.newest_of_servers([spot])[spot].at
    item = shown_request(operations, spot)
    assert item['standing'] == 'leaves'
    assert item['reason'] == 'makes_room'
    assert item['status'].startswith('leaves at 1970-01-01 ')
    assert at > world.now
    assert item['status'].endswith(
        ': it is shelved then, and returns by itself'
    )


def test_no_row_of_a_server_that_was_shelved_says_that_it_runs(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    assert world.state(spot) is test_service.S.ACTIVE
    item = shown_request(operations, spot)
    assert item['standing'] == 'away'
    assert item['status'].startswith('is shelved (it makes room for')
    assert 'it runs' not in item['explanation']
    assert listed_standings(operations)[spot] == 'away'


def test_a_server_that_returns_has_one_request_by_every_name(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    test_preemption.back(world, spot)
    process.cycle()
    item = shown_request(operations, spot)
    assert item['uuid'] != spot
    assert item['servers'] == [spot]
    assert item['standing'] == 'waits'
    assert item['status'].startswith('is shelved and waits for its turn: 1st')
    assert shown_request(operations, item['uuid']) == item
    assert spot not in listed_standings(operations)
    assert item['uuid'] in listed_standings(operations)
    held = operations.hold(spot, by_operator=True)['request']
    assert (held['uuid'], held['held_by']) == (item['uuid'], 'operator')


def test_a_request_of_a_deleted_server_is_at_no_moment_told_to_be_started(
    world, process, operations
):
    asked = world.post('r1', vcpu=99)
    process.cycle()
    world.cloud.remove(asked)
    told = []
    for _ in range(3):
        process.cycle()
        told.append(shown_request(operations, asked))
    assert {each['standing'] for each in told} == {'ended'}
    assert {each['reason'] for each in told} == {'server_deleted'}
    assert [each['status'] for each in told] == [
        'ends: its server was deleted',
        *['ended: its server was deleted'] * 2,
    ]


def test_every_server_of_a_build_finds_its_request(world, process, operations):
    specs = [nova_casts.spec(server=uuid) for uuid in nova_casts.UUIDS[:2]]
    for uuid in nova_casts.UUIDS[:2]:
        world.cloud.add_server(uuid, 'spare')
    world.store.store_message(nova_casts.build(specs))
    process.cycle()
    first, second = nova_casts.UUIDS[:2]
    assert (
        shown_request(operations, second)['uuid']
        == shown_request(operations, first)['uuid']
        == first
    )


class FakePlans:
    """A store of plans."""

    def __init__(self, *found):
        self.found = found

    def open_plans(self):
        return self.found


def open_plan(goal, state, subject, *moves):
    outcome = plan_model.PlanOutcome(2, 2, 0.5, 0.5, 0, 1, 100, 1)
    return plan_model.MigrationPlan(
        'the-plan', goal, subject, 0.0, 0.0, 9.0, moves, (), outcome,
        state=state,
    )  # fmt: skip


def test_a_request_is_told_of_the_plan_that_would_serve_it(world, process):
    operations = requests.ClusterOperations(
        world.store, process, planned=plan_controller.PlanController
    )
    asked = world.post('r1', vcpu=99)
    process.cycle()
    rescue, proposed = plan_model.Goal.RESCUE, plan_model.PlanState.PROPOSED
    world.store.plans = FakePlans(open_plan(rescue, proposed, asked))
    assert shown_request(operations, asked)['status'].endswith(
        'a migration plan would give it room and waits for the approval of an'
        ' operator'
    )
    assert operations.request(asked)['request']['status'].endswith(
        'plan the-plan would give it room and waits for approval'
    )
    running = dataclasses.replace(
        world.store.plans.found[0], state=plan_model.PlanState.RUNNING
    )
    world.store.plans = FakePlans(running)
    assert 'approval' not in shown_request(operations, asked)['status']


def test_a_server_on_its_way_is_told_to_be_migrated(world, process, spot):
    operations = requests.ClusterOperations(
        world.store, process, planned=plan_controller.PlanController
    )
    move = plan_model.Move(spot, 'h1', 'h2', 1, 100)
    balance, runs = plan_model.Goal.BALANCE, plan_model.PlanState.RUNNING
    world.store.plans = FakePlans(open_plan(balance, runs, '', move))
    assert shown_request(operations, spot)['standing'] == 'runs'
    moving = dataclasses.replace(move, state=plan_model.MoveState.MOVING)
    world.store.plans = FakePlans(open_plan(balance, runs, '', moving))
    item = shown_request(operations, spot)
    assert item['standing'] == 'moves'
    assert item['status'] == 'is being migrated to another host'


def test_states_of_requests_are_words(world, process, operations):
    asked = world.post('r1', project='rich')
    process.cycle()
    assert world.state(asked) is request_model.State.STARTING
    assert shown_request(operations, asked)['status'] == 'is being started'
    other = world.post('r2', vcpu=99)
    process.cycle()
    operations.cancel(other, by_operator=False)
    item = shown_request(operations, other)
    assert item['standing'] == 'ended'
    assert item['status'].startswith('cancelled: ')
