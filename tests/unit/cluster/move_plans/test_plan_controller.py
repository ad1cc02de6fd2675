# SPDX-License-Identifier: Apache-2.0

"""Plans of moves are found, approved and carried out on a fake cloud; the
store and the queue are real."""

import dataclasses
import itertools
import re
import tempfile
import threading

import hypothesis
from hypothesis import strategies as st
import pytest

from nova_fairness import exception
from nova_fairness.cluster.move_plans import host_power
from nova_fairness.cluster.move_plans import plan_controller
from nova_fairness.cluster.move_plans import plan_executor
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.move_plans.goals import balance
from nova_fairness.cluster.move_plans.goals import consolidate
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import border as border_module
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import rules
from tests.fixtures import border
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service

world = test_service.world
Killed = test_service.Killed
S, M, C, G = model.PlanState, model.MoveState, model.PlanCause, model.Goal
EVERY_S = 10.0
AUTO = plan_controller.Mode.AUTO


def chosen(*names):
    return tuple(registry.GOALS[each]() for each in names)


class Cloud:
    """What outlives a process, and the process of now."""

    def __init__(self, world):
        self.world, self.fake = world, world.cloud
        self.limits = plan_executor.ExecutionLimits(cloud=9, host=9)
        self.resting = host_power.HostPowerOptions(after_s=30.0)
        self.powered = []
        self.lacking = None
        self.rules = plan_controller.PlanOptions(
            AUTO,
            chosen(G.CONSOLIDATE),
            hold_s=0.0,
            rest_s=3600.0,
        )
        self._names = (f'p{n}' for n in itertools.count())

    def begin(self):
        """A new process takes over from one that is silent."""
        world, apis = self.world, self.fake.apis
        clock = lambda: world.now  # noqa: E731
        self.nova = nova.Nova(apis.nova)
        self.mobility = live_migrations.LiveMigrations(apis.nova)
        self.service = world.process(next(self._names))
        self.service.cycle()
        world.tick += 31
        self.service.cycle()
        self.resting_hosts = host_power.HostPower(
            self.nova, self.resting, clock, self._power
        )
        self.moving = plan_controller.PlanController(
            world.store,
            self.service,
            self.nova,
            self.mobility,
            plan_executor.PlanExecutor(
                world.store.plans,
                self.nova,
                self.mobility,
                self.limits,
                clock,
            ),
            self.resting_hosts,
            self.rules,
            clock,
            threading.Event(),
            EVERY_S,
            self.lacking,
            lambda: world.store.nodes.read_hosts()[0].values(),
        )

    def _power(self, command, longest_s):
        self.powered.append(tuple(command))
        host = self.service_of(command[-1])
        host['state'] = command[-2]
        return 0

    def go(self, cycles=1):
        for _ in range(cycles):
            self.world.now += EVERY_S
            self.service.cycle()
            self.moving.cycle()
        return self.plan()

    def plan(self):
        found = self.world.store.plans.newest_plans()
        return found[0] if found else None

    def hosts(self, *names, vcpu=8, **more):
        for name in names:
            self.fake.add_host(name, vcpu, **more)

    def service_of(self, host):
        return self.fake.hypervisors[fake_cloud.name_uuid(host)]

    def lies(self, name, host, vcpus=2, **more):
        """A server that runs."""
        server = fake_cloud.name_uuid(name)
        flavor = {
            'vcpus': vcpus, 'ram': 100, 'disk': 0, 'ephemeral': 0,
            **more.pop('flavor', {}),
        }  # fmt: skip
        self.fake.add_server(server, flavor=flavor, **more)
        self.fake.build(server, host, {'VCPU': vcpus, 'MEMORY_MB': 100})
        return server

    def at(self):
        return {
            uuid: each['OS-EXT-SRV-ATTR:host']
            for uuid, each in self.fake.servers.items()
        }

    def asked(self):
        return [
            uuid for uuid, what in self.fake.acted if what == 'os-migrateLive'
        ]

    def states(self):
        return [(each.state, each.cause) for each in self.plan().moves]


@pytest.fixture
def cloud(world):
    return Cloud(world)


@pytest.fixture
def half(cloud):
    """One of two hosts could be emptied."""
    cloud.hosts('h1', 'h2')
    cloud.servers = [cloud.lies('a', 'h1', 4), cloud.lies('b', 'h2', 2)]
    return cloud


def test_a_host_is_emptied_and_the_gain_is_kept(half):
    half.begin()
    plan = half.go()
    assert (plan.state, plan.goal) == (S.PROPOSED, G.CONSOLIDATE)
    assert plan.promised == model.PlanOutcome(
        hosts_before=2, hosts_after=1,
        spread_before=pytest.approx(0.125), spread_after=pytest.approx(0.375),
        emptied=1, moves=1, memory_mb=100,
    )  # fmt: skip
    assert plan.empties == ('h2',)
    plan = half.go(2)
    assert (plan.state, plan.cause) == (S.DONE, C.ALL_ENDED)
    assert half.states() == [(M.MOVED, C.ARRIVED)]
    assert set(half.at().values()) == {'h1'}
    plan = half.go(4)
    assert plan.won == plan.promised
    assert not plan.is_open
    assert len(half.world.store.plans.newest_plans()) == 1
    assert len(half.asked()) == 1


def metadata(cloud, server):
    return cloud.fake.servers[server].get('metadata') or {}


def test_owners_read_metadata_before_and_after_a_move(half):
    half.fake.migrates_at_once = False
    half.begin()
    half.go(2)
    _, server = half.servers
    [key] = metadata(half, server)
    begun = metadata(half, server)[key]
    assert key == plan_executor.MOVING
    assert re.fullmatch(r'[0-9-]{10}T[0-9:]{8}Z consolidate', begun)
    half.fake.end_migration(server)
    half.go(2)
    assert half.states() == [(M.MOVED, C.ARRIVED)]
    [key] = metadata(half, server)
    assert key == plan_executor.MOVED
    assert metadata(half, server)[key] > begun


def test_a_failed_move_leaves_no_metadata(half):
    half.fake.migrates_at_once = False
    half.begin()
    half.go(2)
    _, server = half.servers
    half.fake.end_migration(server, 'error')
    half.go()
    [move] = half.world.store.plans.newest_plans()[-1].moves
    assert (move.state, move.cause) == (M.FAILED, C.MIGRATION_FAILED)
    assert metadata(half, server) == {}


def test_a_server_that_accepts_no_metadata_still_moves(half):
    _, server = half.servers
    half.fake.broken[f'POST /servers/{server}/metadata'] = 409
    half.begin()
    half.go(4)
    assert half.states() == [(M.MOVED, C.ARRIVED)]
    assert metadata(half, server) == {}


@pytest.mark.parametrize(
    ('told', 'moves'),
    [
        ({'pinned_availability_zone': 'z1'}, True),
        ({'pinned_availability_zone': 'z2'}, False),
        ({'pinned_availability_zone': None}, True),
        (
            {
                'pinned_availability_zone': None,
                'os-extended-volumes:volumes_attached': [{'id': 'v'}],
            },
            False,
        ),
        # Nova is of a release that does not tell.
        ({}, False),
    ],
)
def test_a_server_pinned_to_a_zone_stays_there(cloud, told, moves):
    cloud.hosts('h1')
    cloud.hosts('h2', zone='z2')
    cloud.lies('a', 'h1', 4, pinned_availability_zone='z1')
    cloud.lies('b', 'h2', 2, **told)
    cloud.begin()
    plan = cloud.go(3)
    assert (plan is not None) is moves
    assert ('h2' not in cloud.at().values()) is moves


def test_a_server_pinned_meanwhile_is_not_moved(half):
    half.fake.hypervisors[fake_cloud.name_uuid('h1')]['zone'] = 'z2'
    server = half.fake.servers[half.servers[1]]
    server['pinned_availability_zone'] = None
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.APPROVE
    )
    half.begin()
    plan = half.go()
    half.moving.approve(plan.uuid)
    # The look that the service had is older.
    look = half.nova.servers(half.world.now)
    half.nova.servers = lambda _: look
    server['pinned_availability_zone'] = 'z1'
    half.go()
    assert half.states() == [(M.SKIPPED, C.NO_ROOM)]
    assert half.plan().moves[0].text == 'it is pinned to zone z1'
    assert half.asked() == []


def test_a_good_state_makes_no_plan_in_100_cycles(cloud):
    cloud.rules = dataclasses.replace(
        cloud.rules,
        goals=chosen(G.RESCUE, G.CONSOLIDATE),
        rest_s=0.0,
    )
    cloud.hosts('h1', 'h2', 'h3')
    for n in range(7):
        cloud.lies(f's{n}', 'h1' if n < 4 else 'h2', 2)
    cloud.begin()
    assert cloud.go(100) is None
    assert cloud.asked() == []


def test_an_even_cloud_is_not_balanced(cloud):
    cloud.rules = dataclasses.replace(
        cloud.rules, goals=chosen(G.BALANCE), rest_s=0.0
    )
    cloud.hosts('h1', 'h2')
    for n in range(4):
        cloud.lies(f's{n}', ('h1', 'h2')[n % 2], 2)
    cloud.begin()
    assert cloud.go(100) is None


def test_a_moved_server_is_not_moved_back_at_once(cloud):
    cloud.rules = dataclasses.replace(cloud.rules, goals=chosen(G.BALANCE))
    cloud.hosts('h1', 'h2')
    servers = [cloud.lies(f's{n}', 'h1', 2) for n in range(4)]
    cloud.begin()
    cloud.go(6)
    assert sorted(cloud.at().values()) == ['h1', 'h1', 'h2', 'h2']
    moved = cloud.asked()
    for uuid in servers:
        if uuid not in moved:
            cloud.fake.remove(uuid)
    cloud.lies('new', 'h2', 4)
    cloud.go(10)
    assert cloud.asked() == [*moved, fake_cloud.name_uuid('new')]
    cloud.world.now += 3600.0
    cloud.go(10)
    assert len(cloud.world.store.plans.newest_plans()) >= 2


def test_plans_are_proposed_only_after_the_hold_time(half):
    half.rules = dataclasses.replace(half.rules, hold_s=35.0)
    half.begin()
    assert half.go(4) is None
    assert half.go().state is S.PROPOSED


def test_a_recommended_plan_is_not_started(half):
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.RECOMMEND, lasts_s=100.0
    )
    half.begin()
    uuid = half.go(5).uuid
    with pytest.raises(exception.IllegalStep, match='mode is recommend'):
        half.moving.approve(uuid)
    half.go(7)
    ended = half.world.store.plans.read_plan(uuid)
    assert (ended.state, ended.cause) == (S.EXPIRED, C.LATE)
    assert half.asked() == []


def test_an_operator_approves_and_stops_a_plan(half):
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.APPROVE
    )
    half.fake.migrates_at_once = False
    half.begin()
    plan = half.go(3)
    assert plan.state is S.PROPOSED
    assert half.moving.approve(plan.uuid).state is S.APPROVED
    assert half.go().state is S.RUNNING
    assert half.moving.stop(plan.uuid).state is S.STOPPED
    # What moves is not called back, and what became of it is told.
    assert half.states() == [(M.MOVING, C.ASKED)]
    half.go()
    half.fake.end_migration(half.servers[1])
    half.go(4)
    ended = half.world.store.plans.read_plan(plan.uuid)
    assert (ended.state, ended.moves[0].state) == (S.STOPPED, M.MOVED)
    assert ended.won.moves == 1
    with pytest.raises(exception.IllegalStep) as refused:
        half.moving.stop(plan.uuid)
    assert str(refused.value) == (
        f'plan {plan.uuid} is stopped already: 1 of 1 move ended'
    )
    with pytest.raises(exception.UnknownPlan):
        half.moving.stop('nothing')


def test_a_proposal_ends_when_its_servers_are_elsewhere(half):
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.APPROVE
    )
    half.begin()
    uuid = half.go().uuid
    half.fake.build(half.servers[1], 'h1', {'VCPU': 2, 'MEMORY_MB': 100})
    half.go()
    ended = half.world.store.plans.read_plan(uuid)
    assert (ended.state, ended.cause) == (S.EXPIRED, C.NO_USE)


@pytest.mark.parametrize('asked', [False, True])
def test_a_successor_of_a_killed_process_requests_each_move_once(half, asked):
    half.fake.migrates_at_once = False
    half.begin()
    half.go()

    def dies(server, target):
        if asked:
            nova.Nova.live_migrate(half.nova, server, target)
        raise Killed

    half.nova.live_migrate = dies
    with pytest.raises(Killed):
        half.go()
    assert half.states() == [(M.MOVING, C.ASKED)]
    half.begin()
    half.go(2)
    assert len(half.asked()) == asked
    half.world.now += 100.0
    half.go(3)
    assert len(half.asked()) == 1
    assert half.states() == [(M.MOVING, C.ASKED)]
    half.fake.end_migration(half.servers[1])
    half.go(4)
    assert half.states() == [(M.MOVED, C.ARRIVED)]
    assert half.plan().state is S.DONE
    assert len(half.fake.migrations) == 1


class Mortal:
    """Does what another does, and dies before or after one of its effects."""

    def __init__(self, effects, is_after):
        self._left, self._is_after = effects, is_after
        self.is_dead = False

    def of(self, do):
        def mortal(*arguments):
            self._left -= 1
            dies = not self._left
            if not dies or self._is_after:
                found = do(*arguments)
            if dies:
                self.is_dead = True
                raise Killed
            return found

        return mortal


@pytest.mark.repeated
@pytest.mark.parametrize('is_after', [False, True], ids=['before', 'after'])
@pytest.mark.parametrize('effects', range(1, 12))
def test_a_plan_continues_after_a_crash_at_any_effect(half, effects, is_after):
    """A plan is added, written, and two servers are asked for."""
    half.servers.append(half.lies('c', 'h2', 1))
    half.begin()
    mortal, plans = Mortal(effects, is_after), half.world.store.plans
    plans.add, plans.write = mortal.of(plans.add), mortal.of(plans.write)
    half.nova.live_migrate = mortal.of(half.nova.live_migrate)
    for _ in range(8):
        try:
            half.go()
        except Killed:
            half.begin()
            # What was not seen to be asked for is doubted for a while.
            half.world.now += 61.0
    half.go(8)
    assert mortal.is_dead
    [plan] = plans.newest_plans()
    assert (plan.state, plan.won.emptied) == (S.DONE, 1)
    assert [each.state for each in plan.moves] == [M.MOVED, M.MOVED]
    assert sorted(half.asked()) == sorted(half.servers[1:])
    assert len(half.fake.migrations) == 2
    assert set(half.at().values()) == {'h1'}


def test_a_failed_migration_is_recorded_and_the_server_is_skipped(half):
    _set(half, half.servers[0], locked=True)
    half.fake.migrates_at_once = False
    half.begin()
    half.go(2)
    half.fake.end_migration(half.servers[1], 'error')
    plan = half.go()
    assert half.states() == [(M.FAILED, C.MIGRATION_FAILED)]
    assert (plan.state, plan.text) == (S.FAILED, 'Nova says error')
    assert half.go(10).uuid == plan.uuid
    assert half.plan().won.emptied == 0
    assert len(half.fake.migrations) == 1


def test_a_server_moved_by_an_administrator_first_is_skipped(half):
    half.fake.migrates_at_once = False
    half.hosts('h3', vcpu=2)
    half.begin()
    half.go()
    half.fake.begin_migration(half.servers[1], 'h3')
    plan = half.go(2)
    assert plan.state is S.RUNNING
    assert half.states() == [(M.PENDING, None)]
    half.fake.end_migration(half.servers[1])
    half.go()
    ended = half.world.store.plans.read_plan(plan.uuid)
    assert (ended.state, ended.cause) == (S.DONE, C.ALL_ENDED)
    assert (ended.moves[0].state, ended.moves[0].cause) == (
        M.SKIPPED, C.ELSEWHERE,
    )  # fmt: skip
    assert half.asked() == []


def test_a_simultaneous_move_by_an_administrator_is_detected(half):
    half.hosts('h3', vcpu=2)
    half.fake.migrates_at_once = False
    half.begin()
    half.go()
    ask = half.nova.live_migrate

    def late(server, target):
        half.fake.begin_migration(server, 'h3')
        ask(server, target)

    half.nova.live_migrate = late
    half.go()
    assert half.states() == [(M.PENDING, C.BUSY)]
    half.fake.end_migration(half.servers[1])
    half.go(2)
    assert half.states() == [(M.SKIPPED, C.ELSEWHERE)]
    assert len(half.fake.migrations) == 1


@pytest.mark.parametrize(
    ('change', 'cause'),
    [
        (lambda cloud, uuid: cloud.fake.remove(uuid), C.SERVER_GONE),
        (lambda cloud, uuid: _set(cloud, uuid, locked=True), C.LOCKED),
        (lambda cloud, uuid: _set(cloud, uuid, status='SHUTOFF'), C.BUSY),
        (
            lambda cloud, _: cloud.service_of('h1').update(status='disabled'),
            C.HOST_CLOSED,
        ),
        (lambda cloud, _: cloud.lies('new', 'h1', 3), C.NO_ROOM),
        (lambda cloud, uuid: cloud.group('h1', uuid), C.NO_ROOM),
    ],
)
def test_each_move_is_checked_immediately_before_it_begins(
    half, change, cause
):
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.APPROVE
    )
    half.group = lambda _, uuid: (
        half.fake.groups.update(g=[uuid, half.servers[0]]),
        half.fake.policies.update(g={'policy': 'anti-affinity'}),
    )
    half.begin()
    half.moving.approve(half.go().uuid)
    change(half, half.servers[1])
    half.go()
    assert half.states() == [(M.SKIPPED, cause)]
    assert half.plan().state is S.DONE
    assert half.asked() == []


def _set(cloud, uuid, **more):
    cloud.fake.servers[uuid].update(more)


@pytest.mark.parametrize(
    'more',
    [
        {'locked': True},
        {'status': 'SHUTOFF'},
        {'OS-EXT-STS:task_state': 'rebooting'},
        {'flavor': {'extra_specs': {'hw:cpu_policy': 'dedicated'}}},
        {'flavor': {'extra_specs': {'pci_passthrough:alias': 'gpu:1'}}},
        {'flavor': {'extra_specs': {'trait:CUSTOM_H2': 'required'}}},
        {'flavor': {'extra_specs': {'trait:CUSTOM_H1': 'forbidden'}}},
    ],
)
def test_a_server_that_may_not_move_stays(half, more):
    flavor = half.fake.servers[half.servers[1]]['flavor']
    flavor |= more.pop('flavor', {})
    _set(half, half.servers[1], **more)
    half.lies('stays', 'h1', 1, locked=True)
    half.begin()
    assert half.go(3) is None


@pytest.mark.parametrize('state', [border_module.HostState.LEAVING_CLOUD])
def test_hosts_managed_by_others_are_left_out(half, state):
    world = half.world
    half.begin()
    epoch = half.service.leads()
    nodes = world.store.nodes
    nodes.add(dataclasses.replace(border.node('x').host, cloud='h2'), epoch, 1)
    assert half.go(3) is None
    half.service_of('h1').update(status='disabled', reason='watcher_drained')
    assert half.go(3) is None


def test_the_number_of_simultaneous_moves_is_bounded(cloud):
    cloud.limits = plan_executor.ExecutionLimits(cloud=2, host=1)
    cloud.fake.migrates_at_once = False
    cloud.hosts('h1', 'h2', 'h3', vcpu=16)
    cloud.lies('stays', 'h1', 4)
    small = [cloud.lies(f's{n}', f'h{2 + n // 2}', 1) for n in range(4)]
    cloud.begin()
    cloud.go(3)
    assert len(cloud.asked()) == 1
    cloud.fake.end_migration(cloud.asked()[0])
    for _ in range(12):
        cloud.go()
        moving = [
            each
            for each in cloud.fake.migrations
            if each['status'] == 'running'
        ]
        assert len(moving) <= 1
        for each in moving:
            cloud.fake.end_migration(each['instance_uuid'])
    assert {cloud.at()[uuid] for uuid in small} == {'h1'}


def test_migrations_by_others_count_towards_the_bound(half):
    half.limits = plan_executor.ExecutionLimits(cloud=1, host=9)
    half.hosts('h3', 'h4', vcpu=2)
    other = half.lies('other', 'h3', 2, locked=True)
    half.fake.migrates_at_once = False
    half.begin()
    half.go()
    half.fake.begin_migration(other, 'h4')
    half.go(3)
    assert half.asked() == []
    half.fake.end_migration(other)
    half.go()
    assert len(half.asked()) == 1


def test_a_plan_that_takes_too_long_expires_and_moving_servers_are_awaited(
    cloud,
):
    cloud.rules = dataclasses.replace(cloud.rules, lasts_s=50.0)
    cloud.limits = plan_executor.ExecutionLimits(cloud=1, host=1)
    cloud.fake.migrates_at_once = False
    cloud.hosts('h1', 'h2', vcpu=16)
    cloud.lies('a', 'h1', 8)
    small = [cloud.lies(f's{n}', 'h2', 1) for n in range(2)]
    cloud.begin()
    uuid = cloud.go().uuid
    cloud.go(8)
    plan = cloud.world.store.plans.read_plan(uuid)
    assert (plan.state, plan.cause) == (S.EXPIRED, C.LATE)
    assert {each.state for each in plan.moves} == {M.MOVING, M.SKIPPED}
    cloud.fake.end_migration(cloud.asked()[0])
    cloud.go(4)
    plan = cloud.world.store.plans.read_plan(uuid)
    assert {each.state for each in plan.moves} == {M.MOVED, M.SKIPPED}
    assert plan.won.moves == 1
    assert small


def test_an_endless_migration_is_aborted(half):
    half.fake.migrates_at_once = False
    half.limits = plan_executor.ExecutionLimits(
        cloud=9, host=9, longest_s=60.0
    )
    _set(half, half.servers[0], locked=True)
    half.begin()
    half.go(5)
    assert half.states() == [(M.MOVING, C.ASKED)]
    half.go(6)
    assert half.states() == [(M.FAILED, C.CANCELLED)]
    assert half.plan().moves[0].sent_mb == 1024


def test_traffic_of_a_move_counts_for_the_next(half):
    half.fake.migrates_at_once = False
    half.rules = dataclasses.replace(half.rules, rest_s=0.0)
    half.begin()
    half.go(3)
    half.fake.end_migration(half.servers[1], 'error')
    half.go(5)
    assert half.plan().promised.memory_mb == 1024


def drafted(cloud, goal):
    cloud.rules = dataclasses.replace(cloud.rules, goals=(goal,), rest_s=0.0)


@pytest.mark.parametrize('is_running', [False, True])
def test_a_plan_whose_goal_is_not_wanted_any_more_ends(half, is_running):
    half.fake.migrates_at_once = False
    half.rules = dataclasses.replace(
        half.rules,
        mode=plan_controller.Mode.AUTO
        if is_running
        else plan_controller.Mode.APPROVE,
    )
    half.begin()
    uuid = half.go(2).uuid
    half.rules = dataclasses.replace(
        half.rules, goals=(balance.BalanceGoal(margin=0.0),)
    )
    half.begin()
    half.go(2)
    ended = half.world.store.plans.read_plan(uuid)
    assert (ended.state, ended.cause) == (S.EXPIRED, C.NOT_A_GOAL)
    if is_running:
        half.fake.end_migration(half.servers[1])
    half.lies('c', 'h1', 2)
    half.go(5)
    assert half.plan().goal is G.BALANCE


def test_nothing_starts_on_a_host_that_is_being_emptied(half):
    half.fake.migrates_at_once = False
    half.begin()
    half.go(2)
    asked = half.world.post('asked', vcpu=8)
    half.go(3)
    assert half.world.state(asked) is test_service.S.WAITING
    half.moving.stop(half.plan().uuid)
    half.fake.end_migration(half.servers[1])
    half.go(3)
    assert half.world.hosts('asked') == ('h2',)


def test_only_the_leader_carries_out_plans(half):
    half.begin()
    other = half.moving
    half.go()
    half.world.store.take_over(half.service.leads(), 'other', 5.0)
    half.service = half.moving._service
    with pytest.raises((exception.NotLeading, exception.Deposed)):
        other.stop(half.plan().uuid)
    assert half.plan().state is S.PROPOSED


def test_empty_hosts_except_spares_are_powered_off_and_return(cloud):
    cloud.resting = host_power.HostPowerOptions(
        True, 30.0, 1, ('/bin/power', 'x'), 5.0
    )
    cloud.rules = dataclasses.replace(cloud.rules, goals=())
    cloud.hosts('h1', 'h2', 'h3', 'h4', vcpu=8)
    cloud.lies('a', 'h1', 2)
    cloud.service_of('h4').update(status='disabled', reason='by hand')
    cloud.begin()
    cloud.go(8)
    rests = [
        host
        for host in ('h1', 'h2', 'h3', 'h4')
        if (cloud.service_of(host).get('reason') or '').startswith(
            host_power.MARK
        )
    ]
    assert rests == ['h3']
    assert cloud.powered == []
    cloud.go(8)
    assert cloud.powered == [('/bin/power', 'x', 'down', 'h3')]
    # Someone takes the spare one: another gets ready.
    cloud.lies('b', 'h2', 2)
    cloud.go(3)
    assert cloud.powered[1:] == [('/bin/power', 'x', 'up', 'h3')]
    assert cloud.service_of('h3')['status'] == 'enabled'
    assert cloud.service_of('h4')['reason'] == 'by hand'


def test_a_request_without_room_brings_a_host_back(cloud):
    cloud.resting = host_power.HostPowerOptions(True, 10.0, 0)
    cloud.rules = dataclasses.replace(cloud.rules, goals=())
    cloud.hosts('h1', 'h2', vcpu=8)
    cloud.lies('a', 'h1', 6)
    cloud.begin()
    cloud.go(6)
    assert cloud.service_of('h2')['status'] == 'disabled'
    cloud.world.post('asked', vcpu=4)
    cloud.go(4)
    assert cloud.world.hosts('asked') == ('h2',)
    assert cloud.powered == []


@hypothesis.settings(
    deadline=None, max_examples=6, phases=[hypothesis.Phase.generate]
)
@hypothesis.given(
    goal=st.sampled_from([G.CONSOLIDATE, G.BALANCE]),
    sizes=st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=7
    ),
    deaths=st.sets(st.integers(0, 12), max_size=3),
    fails=st.booleans(),
)
def test_no_host_has_too_many_moves_and_no_server_is_asked_twice(
    goal, sizes, deaths, fails
):
    with tempfile.TemporaryDirectory() as path:
        cloud = Cloud(test_service.World(path))
        cloud.rules = dataclasses.replace(cloud.rules, goals=chosen(goal))
        cloud.hosts('h0', 'h1', 'h2')
        left = dict.fromkeys(range(3), 8)
        for n, (row, vcpus) in enumerate(sizes):
            if vcpus <= left[row]:
                left[row] -= vcpus
                cloud.lies(f's{n}', f'h{row}', vcpus)
        cloud.fake.migrates_at_once = False
        cloud.begin()
        for look in range(14):
            if look in deaths:
                cloud.begin()
            cloud.go()
            running = [
                each
                for each in cloud.fake.migrations
                if each['status'] == 'running'
            ]
            for host in range(3):
                used = cloud.fake.used(
                    fake_cloud.name_uuid(f'h{host}'), 'VCPU'
                )
                used += sum(
                    cloud.fake.servers[each['instance_uuid']]['flavor'][
                        'vcpus'
                    ]
                    for each in running
                    if each['dest_compute'] == f'h{host}'
                )
                assert used <= 8
            for each in running:
                end = 'error' if fails and look % 2 else 'completed'
                cloud.fake.end_migration(each['instance_uuid'], end)
        plans = cloud.world.store.plans.newest_plans()
        told = sum(
            move.asked_at is not None for each in plans for move in each.moves
        )
        assert len(cloud.asked()) == len(cloud.fake.migrations) == told
        servers = cloud.asked()
        assert len(set(servers)) == len(servers)
        assert not any(each.is_moving for each in plans)
        cloud.world.close()


def test_plans_respect_the_bounds_of_the_planner(half):
    dear = rules.ConsolidationRules(dearest_mb=50)
    half.rules = dataclasses.replace(
        half.rules,
        goals=(consolidate.ConsolidationGoal(rules=dear),),
    )
    half.begin()
    assert half.go(3) is None


@pytest.mark.repeated
@pytest.mark.parametrize(
    'part', ['_advance_plan', '_search', '_observe', '_power_input']
)
@pytest.mark.parametrize('error', [MemoryError(), KeyError('x')])
def test_the_loop_of_plans_goes_on_after_every_failure(
    half, monkeypatch, part, error
):
    half.begin()
    half.go()
    stopped, left = half.moving._stopped, [3]

    def wait(_):
        left[0] -= 1
        if not left[0]:
            stopped.set()

    def fails(*_):
        raise error

    monkeypatch.setattr(stopped, 'wait', wait)
    monkeypatch.setattr(half.moving, part, fails)
    half.moving.run()
    assert left == [0]
    # Nothing new is looked for while something moves.
    assert half.service.quarantine.failures()['part'] >= 2
    monkeypatch.undo()
    stopped.clear()
    assert half.go(3).state is S.DONE
