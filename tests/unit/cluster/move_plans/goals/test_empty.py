# SPDX-License-Identifier: Apache-2.0

"""A host is emptied that an operator names, and what is left on it."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans.goals import balance
from nova_fairness.cluster.move_plans.goals import empty
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import plans as model
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller
from tests.unit.cluster.move_plans.goals import small_plan

world = test_service.world
cloud = test_plan_controller.cloud
half = test_plan_controller.half
S = test_plan_controller.S
M = test_plan_controller.M
C = test_plan_controller.C
G = test_plan_controller.G


def server(uuid, host, name=''):
    return nova.Server(uuid, 'p', 'u', 'ACTIVE', '', host, name=name)


def test_servers_without_a_move_are_left_on_their_host():
    plan = small_plan.plan(
        model.Goal.EMPTY, [small_plan.move('s1')], subject='h1'
    )
    servers = [
        server('s1', 'h1', 'moves'),
        server('s2', 'h1', 'web'),
        server('s3', 'h1'),
        server('s4', 'h2', 'other'),
    ]
    assert empty.EmptyHostGoal.left(plan, servers) == ['web', 's3']


def test_servers_whose_moves_failed_stay_on_their_host():
    moves = [
        small_plan.move('s1', 'h1', M.FAILED, C.REFUSED),
        small_plan.move('s2', 'h1', M.SKIPPED, C.LOCKED),
        small_plan.move('s3', 'h1', M.SKIPPED, C.SERVER_GONE),
        small_plan.move('s4', 'h1', M.MOVED, C.ARRIVED),
        # It made room on another host.
        small_plan.move('s5', 'h2', M.FAILED, C.REFUSED),
    ]
    plan = small_plan.plan(model.Goal.EMPTY, moves, subject='h1')
    assert empty.EmptyHostGoal.kept(plan) == {'s1', 's2'}


def test_only_hosts_named_by_an_operator_are_emptied():
    assert empty.EmptyHostGoal().drafts(None) == ()


def test_an_operator_has_a_host_emptied_and_it_is_disabled(half):
    half.rules = dataclasses.replace(half.rules, goals=())
    half.begin()
    half.go()
    with pytest.raises(exception.UnknownHost):
        half.moving.empty('h9')
    plan = half.moving.empty('h1')
    assert (plan.goal, plan.subject, plan.cause) == (
        G.EMPTY, 'h1', C.OPERATOR,
    )  # fmt: skip
    half.go()
    with pytest.raises(exception.IllegalStep, match='stop it before'):
        half.moving.empty('h2')
    half.go(5)
    assert half.plan().won.emptied == 1
    assert set(half.at().values()) == {'h2'}
    found = half.service_of('h1')
    assert found['status'] == 'disabled'
    assert found['reason'] == f'{host_power.EMPTIED}: by plan {plan.uuid}'
    with pytest.raises(exception.IllegalStep, match='nothing on host h1'):
        half.moving.empty('h1')


@pytest.fixture
def crowded(cloud):
    """On the first host are two servers that find no room elsewhere."""
    cloud.rules = dataclasses.replace(
        cloud.rules,
        goals=(balance.BalanceGoal(spread=0.05, margin=0.0),),
        rest_s=0.0,
    )
    cloud.hosts('h1', 'h2')
    cloud.servers = [
        cloud.lies('small', 'h1', 2),
        cloud.lies('large', 'h1', 4),
        cloud.lies('kept', 'h1', 1, locked=True),
        cloud.lies('other', 'h2', 5),
    ]
    names = ('web', 'db', 'vault', 'x')
    for uuid, name in zip(cloud.servers, names, strict=True):
        cloud.fake.servers[uuid]['name'] = name
    cloud.begin()
    look(cloud)
    return cloud


def look(cloud):
    """Let a process see the cloud, and do nothing."""
    cloud.world.now += test_plan_controller.EVERY_S
    cloud.service.cycle()
    cloud.moving._last = cloud.moving._observe()


def test_a_plan_names_staying_servers_and_reasons(crowded):
    plan = crowded.moving.empty('h1')
    assert [each.server for each in plan.moves] == [crowded.servers[0]]
    told = {each.name: each.sentence for each in plan.stays}
    assert told == {
        'db': 'db: no other host has room for it, or may take it',
        'vault': 'vault: the server is locked, or bound to its host:'
        ' it is locked',
    }
    assert crowded.plan() == plan


def test_a_partly_emptied_host_stays_disabled_until_released(crowded):
    uuid = crowded.moving.empty('h1').uuid
    plan = crowded.go(6)
    assert (plan.uuid, plan.state, plan.cause) == (
        uuid,
        S.PARTIAL,
        C.SOME_STAY,
    )
    assert plan.text == 'db, vault stay on host h1'
    assert (plan.won.moves, plan.won.emptied) == (1, 0)
    # Balance would move one back, and the queue would start one there.
    asked = crowded.world.post('asked', vcpu=1)
    blocked = crowded.world.post('larger', vcpu=2)
    crowded.go(30)
    assert crowded.at()[crowded.servers[0]] == 'h2'
    assert crowded.world.hosts('asked') == ('h2',)
    assert crowded.world.state(blocked) is test_service.S.WAITING
    assert crowded.world.store.plans.newest_plans() == [plan]
    assert crowded.service_of('h1')['status'] == 'enabled'
    crowded.moving.stop(uuid)
    crowded.go(2)
    assert crowded.world.hosts('larger') == ('h1',)
    assert asked in crowded.at()


def test_many_staying_servers_fit_into_the_database_column(crowded):
    for n in range(90):
        uuid = crowded.lies(f'kept{n}', 'h1', 1, locked=True)
        crowded.fake.servers[uuid]['name'] = '\N{OX}' * 255
    look(crowded)
    crowded.moving.empty('h1')
    plan = crowded.go(6)
    assert (plan.state, plan.cause) == (S.PARTIAL, C.SOME_STAY)
    assert 'and 72 more' in plan.text
    # MariaDB refuses a longer text, in every cycle, and nothing goes on.
    assert len(plan.text.encode()) < 2**16


def test_a_host_that_becomes_empty_later_is_disabled(crowded):
    uuid = crowded.moving.empty('h1').uuid
    crowded.go(6)
    for server in crowded.servers[1:3]:
        crowded.fake.remove(server)
    crowded.go(8)
    plan = crowded.world.store.plans.read_plan(uuid)
    assert (plan.state, plan.won.emptied) == (S.DONE, 1)
    assert not plan.is_open
    assert crowded.service_of('h1')['status'] == 'disabled'


def test_a_failed_move_leaves_its_host_partly_emptied(crowded):
    for server in crowded.servers[1:3]:
        crowded.fake.remove(server)
    crowded.lies('small2', 'h1', 1)
    look(crowded)
    crowded.fake.migrates_at_once = False
    plan = crowded.moving.empty('h1')
    assert plan.stays == ()
    crowded.go(2)
    crowded.fake.end_migration(crowded.servers[0], 'error')
    crowded.fake.end_migration(fake_cloud.name_uuid('small2'))
    plan = crowded.go(3)
    assert (plan.state, plan.cause) == (S.PARTIAL, C.SOME_STAY)
    assert crowded.servers[0] in plan.text


def test_a_new_plan_replaces_the_plan_that_emptied_a_host_partly(
    crowded,
):
    first = crowded.moving.empty('h1').uuid
    crowded.go(6)
    crowded.fake.remove(crowded.servers[3])
    look(crowded)
    second = crowded.moving.empty('h1')
    assert [each.server for each in second.moves] == [crowded.servers[1]]
    ended = crowded.world.store.plans.read_plan(first)
    assert (ended.state, ended.cause) == (S.STOPPED, C.REPLACED)


def test_emptying_a_host_without_movable_servers_is_refused(crowded):
    crowded.fake.remove(crowded.servers[0])
    look(crowded)
    with pytest.raises(exception.IllegalStep) as refused:
        crowded.moving.empty('h1')
    assert 'db: no other host has room' in str(refused.value)
    assert 'vault: the server is locked' in str(refused.value)
