# SPDX-License-Identifier: Apache-2.0

"""Cycles on a real store beside a fake cloud and a fake conductor."""

import dataclasses
import functools
import gc
import itertools
import json
import pathlib

from cryptography import fernet
import pytest

from nova_fairness import exception
from nova_fairness.cluster import clocks as clocks_module
from nova_fairness.cluster import leader_election
from nova_fairness.cluster import quarantine
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.accounts import accounts as accounts_module
from nova_fairness.cluster.admission import dispatcher
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.admission import scheduler
from nova_fairness.cluster.assembly import service_parts
from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import cycle_tasks
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import preemption
from nova_fairness.cluster.eviction import retirement
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.eviction import watermark
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.cluster.openstack import tokens
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.cluster.usage import charging
from nova_fairness.cluster.usage import spending
from nova_fairness.model import cast as cast_module
from nova_fairness.model import envelope
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import planner
from nova_fairness.runtime import supervision
from nova_fairness.shares import budgets
from nova_fairness.shares import measured
from tests.fixtures import fake_cloud
from tests.fixtures import small_store

R, S = reason.Reason, request.State
NEED = {'VCPU': 4, 'MEMORY_MB': 100}
NOTICE_S = evictor.EvictionTimeouts().notice_s


class Killed(BaseException):
    """The process ends here."""


class FakeConductor(dispatcher.Sender):
    """Counts what it is sent."""

    def __init__(self):
        self.sent = []
        self.forced = []
        self.without = []
        self.away = False
        self.drained = True
        self.listens = True

    def connect(self):
        if self.away:
            raise exception.BrokerAway('no broker')

    def send(self, cast):
        if not self.listens:
            raise exception.NoListener('no queue')
        self.sent.append(cast.uuid)
        self.forced.append(_named(cast, 'force_hosts'))
        self.without.append(_named(cast, 'ignore_hosts'))

    def is_drained(self):
        if self.away:
            raise exception.BrokerAway('no broker')
        return self.drained


def _named(cast, field):
    """Hosts in a field of what a build asks for."""
    try:
        message = envelope.parse_message(cast.body)
    except exception.Unreadable:
        return []
    specs = message['args'].get('request_specs') or []
    found = [each['nova_object.data'].get(field) for each in specs]
    # Nova reads what it wrote itself; of another form it is nothing here.
    return [host for each in found if isinstance(each, list) for host in each]


def marked(cast):
    headers = {cast_module.DOUBTFUL: 1}
    return dataclasses.replace(
        cast, properties={'application_headers': headers}
    )


def closing(store):
    return (
        store.nodes.hosts_leaving_cloud()
        | store.plans.hosts_to_empty(registry.CLOSING)
        | store.plans.hosts_in_use_by_plans(registry.HOLDING)
    )


class World:
    """Everything that outlives a process."""

    def __init__(self, path):
        self.cloud = fake_cloud.FakeCloud()
        self.conductor = FakeConductor()
        self.order = order_module.OldestFirst()
        self.accounts = ()
        self.half_life_s = 86400.0
        self.charged = 0.0
        self.charge = measured.Charge.ALLOCATED
        self.measured = None
        self.making = preemption.PreemptionOptions()
        self.idle = {}
        self.idling = idle_reclaim.IdleOptions()
        self.warnings = at_risk.AtRiskOptions()
        self.following = lambda *_: []
        self.retiring = retirement.RetirementOptions()
        self.freeing = watermark.WatermarkOptions()
        self.binds = False
        self.plan = None
        self.now = 1000.0
        self.tick = 0.0
        self.database_time = None
        self._read = self.now, self.tick, 0.0
        file = pathlib.Path(path) / small_store.NAME
        small_store.fill(file)
        self.engine = database.open_engine(f'sqlite:///{file}')
        # Whoever closes the last connection waits for the disk.
        self._kept = self.engine.connect()
        sealer = sealing.Sealer((fernet.Fernet.generate_key().decode(),))
        self.store = store_module.Store(self.engine, sealer)

    def close(self):
        """Let what its cycles left be collected."""
        self._kept.close()
        self.engine.dispose()
        gc.unfreeze()

    def process(self, name='one', store=None, at_end=None, **rules):
        """A new process."""
        store = store or self.store
        clocks = clocks_module.Clocks(
            lambda: self.now, self.steady, lambda: self.database_time
        )
        elected = leader_election.Election(
            store, name, 30.0, clocks.now, lambda: self.tick
        )
        outside = service_parts.Surroundings(
            store,
            self.cloud.apis,
            self.conductor,
            elected,
            clocks,
            lambda: self.tick,
        )
        made = service_parts.build_collaborators(
            outside, self.chosen(store, at_end)
        )
        return service_module.Service(
            made, service_module.ServiceOptions(**rules)
        )

    def chosen(self, store, at_end):
        """What operators chose."""
        return service_parts.Choices(
            plan=self.plan
            or functools.partial(planner.plan, order=self.order),
            quarantine=quarantine.Quarantine(lambda: self.tick),
            accounts=lambda _, store: accounts_module.Accounts(
                store, lambda: self.accounts
            ),
            charging=lambda store, reader: charging.LedgerKeeper(
                store,
                reader,
                self.half_life_s,
                budgets.BudgetTerms(preemptible=self.charged),
                spending.SpendingGroups(store, 1.0, 86400.0),
                self.charge,
                lambda _: self.measured,
            ),
            chores=self.chores,
            limits={},
            closed_hosts=lambda: closing(store),
            falls_back=True,
            accepts_expired=True,
            binds_hosts=self.binds,
            eviction_timeouts=evictor.EvictionTimeouts(),
            time_limit_options=at_end or time_limits.TimeLimitOptions(),
            preemption_options=self.making,
        )

    def chores(self, store, nova, leaves):
        return cycle_tasks.CycleTasks(
            idle_reclaim.IdleReclaim(leaves, lambda _: self.idle, self.idling),
            at_risk.RiskWarnings(
                store,
                notice_channels.channels_before_steps(nova),
                self.warnings,
            ),
            lambda *given: self.following(*given),
            retirement.Retirement(nova, leaves, self.retiring),
            watermark.Watermark(leaves, self.freeing),
        )

    def steady(self):
        """A clock that never steps.

        Where a test moves one of its two clocks alone, time passes by that
        one, and by this. Where it moves both, the wall clock has stepped by
        what they differ.
        """
        now, tick, steady = self._read
        if self.now != now:
            steady += (self.tick - tick) or (self.now - now)
        self._read = self.now, self.tick, steady
        return steady

    def go(self, by_s):
        """Let time pass by all clocks."""
        self.now += by_s
        self.tick += by_s

    def post(self, name, vcpu=4, project='the-project', hints=None):
        """A user asks for a server; the relay holds the cast."""
        server = fake_cloud.name_uuid(name)
        self.cloud.add_server(server, project)
        self.store.store_message(build(name, server, vcpu, project, hints))
        return server

    def state(self, server):
        return self.store.request(server).request.state

    def hosts(self, name):
        server = fake_cloud.name_uuid(name)
        return self.store.request(server).hosts

    def reason(self, server):
        return self.store.request(server).why.reason


def build(
    name, server, vcpu, project='the-project', hints=None, specs=None, **more
):
    def versioned(kind, **fields):
        return {
            'nova_object.name': kind,
            'nova_object.version': '1.0',
            'nova_object.data': fields,
        }

    flavor = versioned(
        'Flavor',
        name='small',
        vcpus=vcpu,
        memory_mb=100,
        extra_specs=specs or {},
    )
    spec = versioned(
        'RequestSpec',
        instance_uuid=server,
        project_id=project,
        user_id='u',
        flavor=flavor,
        scheduler_hints=hints,
        **more,
    )
    message = {
        'method': 'schedule_and_build_instances',
        'version': '1.17',
        '_context_auth_token': f'token-{name}',
        'args': {'request_specs': [spec]},
    }
    body = {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    return cast_module.Cast(
        f'cast-{name}', message['method'], 1.0, 'conductor',
        json.dumps(body).encode(), {},
    )  # fmt: skip


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.cloud.add_host('h1', 4)
    yield made
    made.close()


def test_a_request_starts_and_is_followed_to_its_end(world):
    server, one = world.post('r1'), world.process()
    assert one.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert (world.state(server), world.reason(server)) == (S.STARTING, R.SENT)
    assert world.cloud.holds() == []
    one.cycle()
    assert world.state(server) is S.STARTING
    assert world.store.read_message('cast-r1') is not None
    world.cloud.build(server, 'h1', NEED)
    one.cycle()
    assert world.state(server) is S.ACTIVE
    assert world.store.read_message('cast-r1') is None
    world.cloud.remove(server)
    one.cycle()
    assert world.state(server) is S.ENDED
    assert world.conductor.sent == ['cast-r1']


def test_a_request_without_room_waits_and_starts_when_there_is_some(world):
    one, other = world.post('r1'), world.post('r2')
    first, second = sorted((one, other))
    process = world.process()
    process.cycle()
    # The first builds and has claimed nothing yet: its room counts as taken.
    process.cycle()
    assert len(world.conductor.sent) == 1
    assert world.state(second) is S.WAITING
    assert world.reason(second) is R.SHARED_PART_TAKEN
    world.cloud.build(first, 'h1', NEED)
    process.cycle()
    assert len(world.conductor.sent) == 1
    world.cloud.remove(first)
    process.cycle()
    assert len(world.conductor.sent) == 2
    assert world.state(second) is S.STARTING


def test_partial_cycles_follow_sent_requests(world, monkeypatch):
    monkeypatch.setattr(scheduler, 'MANY', 0)
    first, second = sorted((world.post('r1'), world.post('r2')))
    process = world.process()
    process.cycle()
    world.cloud.build(first, 'h1', NEED)
    world.now += 5
    process.cycle()
    assert world.state(first) is S.ACTIVE
    world.cloud.remove(first)
    third = world.post('r3', 4)
    process.cycle()
    assert world.state(first) is S.ENDED
    assert world.state(second) is S.STARTING
    assert world.state(third) is S.WAITING


def test_partial_cycles_do_not_search_deleted_servers(world, monkeypatch):
    monkeypatch.setattr(scheduler, 'MANY', 0)
    first, second = sorted((world.post('r1'), world.post('r2')))
    process = world.process()
    process.cycle()
    world.cloud.build(first, 'h1', NEED)
    process.cycle()
    world.cloud.remove(second)
    process.cycle()
    assert world.state(second) is S.WAITING
    world.now += 60
    process.cycle()
    process.cycle()
    assert world.state(second) is S.ENDED


def test_a_successor_counts_building_servers_on_their_hosts(world):
    server = world.post('r1')
    world.process().cycle()
    other = world.post('r2')
    successor = world.process('two')
    assert not successor.cycle()
    world.tick += 31
    assert successor.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert world.reason(other) is R.SHARED_PART_TAKEN
    # Where there is room besides, others start meanwhile.
    world.cloud.add_host('h2', 4)
    successor.cycle()
    assert world.conductor.sent == ['cast-r1', 'cast-r2']
    assert world.state(server) is S.STARTING


class TestInDoubt:
    """A process died while it sent, or a broker lost what it confirmed."""

    @pytest.fixture(params=['before', 'after', 'confirmed'])
    def doubtful(self, world, request):
        """A request that may have been sent: Nova does not list its server."""
        server, one = world.post('r1'), world.process()
        with pytest.MonkeyPatch.context() as patched:
            if request.param != 'confirmed':
                patched.setattr(
                    FakeConductor, 'send', self.dying(request.param)
                )
                with pytest.raises(Killed):
                    one.cycle()
            else:
                one.cycle()
        world.tick += 31
        successor = world.process('two', doubt_s=60.0)
        assert not successor.cycle()
        world.tick += 31
        assert successor.cycle()
        return server, successor, list(world.conductor.sent)

    @staticmethod
    def dying(when):
        def send(conductor, cast):
            if when == 'after':
                conductor.sent.append(cast.uuid)
            raise Killed

        return send

    def test_a_request_in_doubt_waits_again_if_nova_lacks_it(
        self, world, doubtful
    ):
        server, process, sent = doubtful
        world.tick += 59
        process.cycle()
        assert world.conductor.sent == sent
        world.tick += 2
        process.cycle()
        assert world.state(server) is S.WAITING
        process.cycle()
        assert world.conductor.sent == [*sent, 'cast-r1']
        assert world.state(server) is S.STARTING
        assert world.cloud.holds() == []

    @pytest.mark.parametrize('evidence', ['queue', 'claim', 'host', 'error'])
    def test_a_request_in_doubt_is_not_resent_while_nova_may_have_it(
        self, world, doubtful, evidence
    ):
        server, process, sent = doubtful
        world.tick += 61
        if evidence == 'queue':
            world.conductor.drained = False
        elif evidence == 'claim':
            host = fake_cloud.name_uuid('h1')
            world.cloud.write(server, {host: NEED}, 'the-project')
        elif evidence == 'host':
            world.cloud.build(server, 'h1', NEED)
        else:
            world.cloud.servers[server]['status'] = 'ERROR'
        process.cycle()
        process.cycle()
        assert world.conductor.sent == sent
        reasons = {'host': R.STARTED, 'error': R.NO_VALID_HOST}
        assert world.reason(server) is reasons.get(evidence, R.IN_DOUBT)

    def test_a_request_stays_in_doubt_while_the_broker_is_away(
        self, world, doubtful
    ):
        server, process, sent = doubtful
        world.tick += 61
        world.conductor.away = True
        with pytest.raises(exception.BrokerAway):
            process.cycle()
        assert world.conductor.sent == sent
        assert world.state(server) in (S.SENDING, S.STARTING)

    def test_other_requests_start_while_one_is_in_doubt(self, world, doubtful):
        _, process, sent = doubtful
        world.cloud.add_host('h2', 4)
        world.post('r2')
        process.cycle()
        assert world.conductor.sent == [*sent, 'cast-r2']

    def test_a_server_that_was_deleted_is_cleaned_up_once(
        self, world, doubtful
    ):
        server, process, sent = doubtful
        was_sending = world.state(server) is S.SENDING
        world.cloud.remove(server)
        for _ in range(4):
            process.cycle()
        assert world.state(server) is S.ENDED
        again = ['cast-r1'] if was_sending else []
        assert world.conductor.sent == [*sent, *again]
        assert world.store.read_message('cast-r1') is None


def test_messages_that_cannot_be_decrypted_keep_none_behind_them_waiting(
    world, monkeypatch
):
    monkeypatch.setattr(intake, '_AT_ONCE', 2)
    sealer = sealing.Sealer((fernet.Fernet.generate_key().decode(),))
    other = store_module.Store(world.engine, sealer)
    for n in range(5):
        other.store_message(
            build(f'other{n}', fake_cloud.name_uuid(f'o{n}'), 1)
        )
    server = world.post('r1')
    world.process().cycle()
    assert world.state(server) is S.STARTING
    assert len(world.store.messages_without_request(9)) == 5


@pytest.mark.parametrize('number', [1, 12])
def test_room_that_a_deposed_leader_kept_too_late_is_freed(world, number):
    servers = [world.post(f'r{n}') for n in range(number)]
    intake.admit_messages(world.store, world.now)
    late = world.store.request(servers[-1]).request
    placement_module.Placement(world.cloud.apis[0]).reserve(
        late, [_tree(world, 'h1')]
    )
    assert len(world.cloud.holds()) == 1
    process = world.process()
    for _ in range(4):
        process.cycle()
    assert world.cloud.holds() == []
    assert len(world.conductor.sent) == 1


def _tree(world, host):
    trees = placement_module.Placement(world.cloud.apis[0]).provider_trees()
    return trees[fake_cloud.name_uuid(host)]


def test_while_conductor_does_not_listen_nothing_is_in_doubt(world):
    server, process = world.post('r1'), world.process()
    world.conductor.listens = False
    for _ in range(2):
        with pytest.raises(exception.NoListener):
            process.cycle()
        assert world.state(server) is S.RESERVED
    world.conductor.listens = True
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert world.state(server) is S.STARTING


class TestThatMayHavePassed:
    """A relay died that let builds pass."""

    @pytest.fixture
    def server(self, world):
        server = fake_cloud.name_uuid('r1')
        world.cloud.add_server(server)
        world.store.store_message(marked(build('r1', server, 4)))
        return server

    def test_a_possibly_passed_build_is_not_sent_if_nova_has_it(
        self, world, server
    ):
        process = world.process(doubt_s=60.0)
        process.cycle()
        assert world.state(server) is S.SENDING
        world.cloud.build(server, 'h1', NEED)
        for _ in range(3):
            world.tick += 61
            process.cycle()
        assert world.state(server) is S.ACTIVE
        assert world.conductor.sent == []

    def test_a_possibly_passed_build_is_sent_if_nova_lacks_it(
        self, world, server
    ):
        process = world.process(doubt_s=60.0)
        for _ in range(5):
            process.cycle()
        assert world.conductor.sent == []
        for _ in range(3):
            world.tick += 25
            process.cycle()
        process.cycle()
        assert world.conductor.sent == ['cast-r1']
        assert world.state(server) is S.STARTING


def test_a_lost_unshelve_is_detected(world):
    # A server that was not offloaded has its host all the time.
    shelved = nova_module.Server('s', 'p', 'u', 'SHELVED', 'unshelving', 'h1')
    assert not shelved.is_settled
    for rests in ('SHELVED', 'SHELVED_OFFLOADED'):
        assert nova_module.Server('s', 'p', 'u', rests, '', '').is_settled
    placed = nova_module.Server(
        's', 'p', 'u', 'SHELVED_OFFLOADED', 'spawning', 'h1'
    )
    assert placed.is_settled


def test_room_that_is_lost_in_between_is_waited_for(world):
    server = world.post('r1')
    world.cloud.broken['POST /allocations'] = 409
    process = world.process()
    process.cycle()
    assert (world.state(server), world.reason(server)) == (
        S.WAITING,
        R.ROOM_LOST,
    )
    world.cloud.broken.clear()
    process.cycle()
    assert world.conductor.sent == ['cast-r1']


class TestAHostVanishes:
    """An operator deletes its compute service."""

    def test_a_request_without_a_host_tells_so_and_starts_once_one_comes(
        self, world
    ):
        world.cloud.add_host('h2', 4)
        small, large = world.post('r1', 1), world.post('r2', 5)
        world.cloud.remove_host('h1')
        world.cloud.remove_host('h2')
        process = world.process()
        process.cycle()
        for server in (small, large):
            assert world.state(server) is S.WAITING
            assert world.reason(server) is R.NO_HOST_MATCHES
        world.cloud.add_host('h3', 1)
        process.cycle()
        assert world.state(small) is S.STARTING
        assert world.reason(large) is R.TOO_LARGE

    def test_another_host_is_found_if_the_chosen_one_vanishes(
        self, world, monkeypatch
    ):
        server, process = world.post('r1'), world.process()
        keep = placement_module.Placement.reserve

        def late(placement, *arguments):
            monkeypatch.undo()
            world.cloud.remove_host('h1')
            keep(placement, *arguments)

        monkeypatch.setattr(placement_module.Placement, 'reserve', late)
        process.cycle()
        assert world.state(server) is S.WAITING
        assert world.reason(server) is R.ROOM_LOST
        assert (world.cloud.holds(), world.conductor.sent) == ([], [])
        world.cloud.add_host('h2', 4)
        process.cycle()
        assert world.conductor.sent == ['cast-r1']

    def test_requests_continue_after_a_build_on_a_vanished_host_fails(
        self, world
    ):
        server, process = world.post('r1'), world.process()
        process.cycle()
        world.cloud.remove_host('h1')
        world.cloud.add_host('h2', 4)
        other = world.post('r2')
        process.cycle()
        # Nova may still take another host for it.
        assert world.state(server) is S.STARTING
        assert world.reason(other) is R.SHARED_PART_TAKEN
        world.cloud.servers[server]['status'] = 'ERROR'
        process.cycle()
        assert world.reason(server) is R.NO_VALID_HOST
        process.cycle()
        assert world.conductor.sent == ['cast-r1', 'cast-r2']


@pytest.mark.parametrize(
    'begin',
    ['POST /allocations', 'GET /allocations', 'DELETE /allocations', 'GET /s'],
)
def test_a_cloud_that_is_away_loses_and_doubles_nothing(world, begin):
    server, process = world.post('r1'), world.process()
    world.cloud.broken[begin] = 503
    for _ in range(2):
        try:
            process.cycle()
        except exception.CloudAway:
            assert begin == 'GET /s'
    world.cloud.broken.clear()
    process.cycle()
    process.cycle()
    assert world.state(server) is S.STARTING
    assert world.conductor.sent == ['cast-r1']
    assert world.cloud.holds() == []


def test_a_broker_that_is_away_loses_nothing(world):
    server, process = world.post('r1'), world.process()
    world.conductor.away = True
    with pytest.raises(exception.BrokerAway):
        process.cycle()
    assert world.state(server) is S.WAITING
    assert world.cloud.holds() == []
    world.conductor.away = False
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert world.cloud.holds() == []


def test_a_failed_start_is_reported_to_the_owner(world):
    server, process = world.post('r1'), world.process()
    process.cycle()
    world.cloud.servers[server]['status'] = 'ERROR'
    process.cycle()
    assert world.state(server) is S.FAILED
    assert world.reason(server) is R.NO_VALID_HOST


def test_requests_run_only_on_their_planned_hosts(world):
    names = {f'h{number}' for number in range(1, 8)}
    for name in names - {'h1'}:
        world.cloud.add_host(name, 4)
    for number in range(3):
        world.post(f'r{number}', vcpu=3)
    world.post('large', vcpu=9)
    process = world.process()
    process.cycle()
    sent = world.store.requests({S.STARTING})
    given = [set(each.hosts) for each in sent]
    may = [names.difference(each) for each in world.conductor.without]
    assert len(sent) == 3
    assert all(one <= other for one, other in zip(given, may, strict=True))
    # Each host is one's at most, and all of them are somebody's.
    assert sorted(itertools.chain(*may)) == sorted(names)
    # Nova has claimed nothing yet; another one is sent meanwhile.
    world.post('late', vcpu=1)
    process.cycle()
    [others] = world.conductor.without[3:]
    kept = set().union(*given)
    assert {*others} == kept - {*world.hosts('late')}


def test_servers_run_on_the_planned_hosts_if_nova_must_use_them(world):
    for name in ('h2', 'h3'):
        world.cloud.add_host(name, 4)
    world.binds = True
    process = world.process()
    world.post('r1', vcpu=3)
    process.cycle()
    [record] = world.store.requests({S.STARTING})
    [hosts] = world.conductor.without
    assert sorted([*hosts, *record.hosts]) == ['h1', 'h2', 'h3']


def test_a_waiting_server_deleted_by_its_user_leaves_nothing_behind(world):
    world.post('r0')
    server, process = world.post('r1', vcpu=99), world.process()
    process.cycle()
    assert world.state(server) is S.WAITING
    world.cloud.remove(server)
    process.cycle()
    # Nova cleans up what it finds deleted when it gets the message, and
    # claims no room for it meanwhile.
    sent = dict(zip(world.conductor.sent, world.conductor.forced, strict=True))
    assert sent == {'cast-r0': [], 'cast-r1': ['nova-fairness-nowhere']}
    process.cycle()
    assert world.state(server) is S.ENDED
    assert world.reason(server) is R.SERVER_DELETED


def test_a_request_that_waits_too_long_is_told_and_removed(world):
    server = world.post('r1', vcpu=99)
    process = world.process(terms=intake.AdmissionOptions(100.0))
    process.cycle()
    assert world.state(server) is S.EXPIRED
    assert server not in world.cloud.servers
    # Nova then forgets where it would have been.
    assert world.conductor.sent == ['cast-r1']
    assert world.conductor.forced == [['nova-fairness-nowhere']]
    assert world.store.read_message('cast-r1') is None


def test_an_expired_request_is_removed_even_if_nova_was_away(world):
    server = world.post('r1', vcpu=99)
    process = world.process(terms=intake.AdmissionOptions(100.0))
    world.cloud.broken['DELETE /servers'] = 503
    process.cycle()
    assert world.state(server) is S.EXPIRED
    assert server in world.cloud.servers
    world.cloud.broken.clear()
    world.tick += 62
    # Another process does it as well.
    successor = world.process('two')
    successor.cycle()
    world.tick += 31
    successor.cycle()
    assert server not in world.cloud.servers
    assert world.conductor.sent == ['cast-r1']


def test_a_request_that_ended_long_ago_is_forgotten(world):
    server, process = world.post('r1'), world.process(history_s=100.0)
    process.cycle()
    world.cloud.build(server, 'h1', NEED)
    process.cycle()
    world.now += 200
    process.cycle()
    assert world.state(server) is S.ACTIVE
    world.cloud.remove(server)
    process.cycle()
    assert world.state(server) is S.ENDED
    world.now += 101
    process.cycle()
    assert world.store.request(server) is None


def test_a_request_whose_message_is_gone_ends(world):
    server, process = world.post('r1'), world.process()
    world.conductor.away = True
    with pytest.raises(exception.BrokerAway):
        process.cycle()
    world.conductor.away = False
    world.store.delete_message('cast-r1')
    process.cycle()
    assert world.state(server) is S.FAILED
    assert server not in world.cloud.servers
    assert world.cloud.holds() == []


@pytest.mark.parametrize(('passes', 'sent'), [(True, 1), (False, 0)])
def test_an_unreadable_cast_passes_or_waits_as_chosen(world, passes, sent):
    torn = cast_module.Cast('torn', 'unshelve_instance', 1.0, 'k', b'{', {})
    world.store.store_message(torn)
    process = world.process(pass_unreadable=passes)
    process.cycle()
    process.cycle()
    assert len(world.conductor.sent) == sent
    found = world.store.requests(set(S))
    assert len(found) == 1
    if not passes:
        assert found[0].why.reason is R.UNREADABLE
        assert world.store.read_message('torn') == torn


def test_a_second_build_of_the_same_server_is_not_lost(world):
    server = world.post('r1', vcpu=99)
    world.store.store_message(build('again', server, 99))
    world.process(pass_unreadable=False).cycle()
    assert world.store.messages_without_request(9) == []
    assert len(world.store.requests(set(S))) == 2


def test_a_leader_that_was_deposed_while_it_slept_sends_nothing(world):
    server, process = world.post('r1'), world.process()
    keep = placement_module.Placement.reserve

    def sleep_long(self, *arguments):
        # Another process takes over while this one is stopped.
        world.store.take_over(world.store.leader().epoch, 'two', 2.0)
        keep(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(placement_module.Placement, 'reserve', sleep_long)
        with pytest.raises(exception.Deposed):
            process.cycle()
    assert world.conductor.sent == []
    assert world.cloud.holds() == []
    assert world.state(server) is S.RESERVED


def test_only_one_of_two_processes_acts(world):
    one, two = world.process('one'), world.process('two')
    assert (one.cycle(), two.cycle()) == (True, False)
    world.tick += 20
    assert (one.cycle(), two.cycle()) == (True, False)
    world.tick += 29
    assert not two.cycle()
    world.tick += 2
    assert two.cycle()
    assert not one.cycle()


class FakeDeath:
    """Ends the process before or after a step that the world sees."""

    def __init__(self, at):
        self._left = at

    def around(self, function):
        def call(*arguments, **named):
            self._pass()
            found = function(*arguments, **named)
            self._pass()
            return found

        return call

    def _pass(self):
        self._left -= 1
        if self._left == 0:
            raise Killed


def test_a_crash_anywhere_loses_and_duplicates_no_request(tmp_path):
    doubtful = 0
    for at in itertools.count(1):
        path = tmp_path / str(at)
        path.mkdir()
        world = World(path)
        world.cloud.add_host('h1', 4)
        server = world.post('r1')
        died = _run_until(world, FakeDeath(at))
        world.tick = 0.0
        successor = world.process('two')
        for _ in range(3):
            world.tick += 31
            successor.cycle()
        assert len(world.conductor.sent) <= 1
        assert world.cloud.holds() == []
        doubtful += world.state(server) is S.SENDING
        if world.conductor.sent:
            world.cloud.build(server, 'h1', NEED)
        world.tick += 601
        for _ in range(3):
            successor.cycle()
        assert world.conductor.sent == ['cast-r1']
        world.cloud.build(server, 'h1', NEED)
        successor.cycle()
        successor.cycle()
        assert world.state(server) is S.ACTIVE
        world.close()
        if not died:
            break
    assert at > 10
    assert doubtful <= 8


def _run_until(world, death):
    """Whether the process was killed in its first cycle."""
    with pytest.MonkeyPatch.context() as patched:
        for owner, name in (
            (store_module.Store, 'add_request'),
            (store_module.Store, 'step'),
            (store_module.Store, 'delete_message'),
            (placement_module.Placement, 'reserve'),
            (placement_module.Placement, 'release'),
            (FakeConductor, 'send'),
        ):
            function = getattr(owner, name)
            patched.setattr(owner, name, _method(death, function))
        try:
            world.process().cycle()
        except Killed:
            return True
    return False


def _method(death, function):
    wrapped = death.around(function)
    return lambda *arguments, **named: wrapped(*arguments, **named)


def test_a_user_with_a_revoked_token_gets_no_server_and_a_reason(world):
    world.cloud.add_host('h2', 4)
    revoked, other = world.post('r1'), world.post('r2')
    world.cloud.refused_tokens.add('token-r1')
    process = world.process()
    process.cycle()
    process.cycle()
    assert world.state(revoked) is S.EXPIRED
    assert world.reason(revoked) is R.TOKEN_REFUSED
    assert revoked not in world.cloud.servers
    assert world.cloud.holds() == []
    # Sent once its server was deleted, so that Nova throws away the rest.
    assert world.conductor.sent.count('cast-r1') == 1
    assert world.state(other) is S.STARTING
    process.cycle()
    assert len(world.conductor.sent) == 2


def forbidden(said):
    body = {'error': {'code': 403, 'title': 'Forbidden', 'message': said}}
    return 403, json.dumps(body)


NOT_ALLOWED = 'You are not authorized to perform the requested action'


def test_a_user_whose_trust_is_over_gets_no_server_and_delays_no_other(world):
    world.cloud.add_host('h2', 4)
    trusted, process = world.post('r1'), world.process()
    world.cloud.broken['GET /auth'] = forbidden(f'{NOT_ALLOWED}.')
    process.cycle()
    assert world.state(trusted) is S.EXPIRED
    assert world.reason(trusted) is R.TOKEN_REFUSED
    world.cloud.broken.clear()
    other = world.post('r2')
    process.cycle()
    assert world.state(other) is S.STARTING
    assert trusted not in world.cloud.servers
    assert world.cloud.holds() == []


def test_a_token_with_access_rules_is_recognized(world):
    told = []
    api = world.cloud.apis.keystone
    get = api.get
    api.get = lambda path, secret: told.append(secret) or get(path, secret)
    assert tokens.TokenValidator(api).is_accepted('a token')
    assert told[0]['OpenStack-Identity-Access-Rules'] == '1'


@pytest.mark.parametrize(
    'answer',
    [
        401,
        403,
        503,
        'nonsense',
        (403, '<p>this is a proxy'),
        forbidden(f'{NOT_ALLOWED}: identity:validate_token.'),
    ],
)
def test_a_keystone_that_does_not_answer_refuses_no_request(world, answer):
    server, process = world.post('r1'), world.process()
    world.cloud.broken['GET /auth'] = answer
    process.cycle()
    assert world.conductor.sent == []
    assert world.state(server) is S.RESERVED
    world.cloud.broken.clear()
    process.cycle()
    assert world.conductor.sent == ['cast-r1']
    assert world.cloud.holds() == []


@pytest.mark.parametrize('past_end', [True, False])
def test_tokens_that_ran_out_are_taken_where_services_take_them(
    world, past_end
):
    judge = tokens.TokenValidator(world.cloud.apis.keystone, past_end)
    assert judge.is_accepted('')
    assert not world.cloud.asked
    assert judge.is_accepted('a token')
    assert ('allow_expired=1' in judge._path) is past_end


class Waits:
    """Stands in for the event that ends a process: waits take no time."""

    def __init__(self, world, meanwhile):
        self._world = world
        self._meanwhile = iter(meanwhile)
        self._is_set = False

    def is_set(self):
        return self._is_set

    def wait(self, wait_s):
        self._world.tick += wait_s
        self._world.now += wait_s
        do = next(self._meanwhile, None)
        if do is None:
            self._is_set = True
        else:
            do()
        return self._is_set


def nothing():
    """What happens in most waits."""


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('hints', 'cycles'),
    [
        pytest.param([0] * 16, 4, id='none'),
        pytest.param([1] * 16, 16, id='one after the other'),
        pytest.param([9] * 16, 16, id='many at once'),
        pytest.param([0, 1] * 8, 8, id='some'),
    ],
)
def test_a_bounded_number_of_hints_starts_cycles_earlier(world, hints, cycles):
    process = world.process()
    meanwhile = [lambda n=n: [process.hint() for _ in range(n)] for n in hints]
    process.run(Waits(world, meanwhile), 2.0, supervision.ServiceManager())
    assert process.cycles == cycles + 1


@pytest.mark.repeated
@pytest.mark.parametrize('kind', ['lost', 'in time', 'twice', 'too early'])
def test_notifications_that_are_lost_or_come_twice_change_only_how_soon(
    world, kind
):
    servers = [world.post(f'r{n}') for n in range(4)]
    process = world.process()
    hints = {
        'lost': (0, 0),
        'in time': (0, 1),
        'twice': (0, 2),
        'too early': (1, 0),
    }
    before, after = hints[kind]

    def starting():
        return [each for each in servers if world.state(each) is S.STARTING]

    def begin():
        [server] = starting()
        world.cloud.build(server, 'h1', NEED)

    def end():
        for _ in range(before):
            process.hint()
        [server] = world.cloud.allocations
        world.cloud.remove(server)
        for _ in range(after):
            process.hint()

    waits = [nothing] * 4
    meanwhile = [begin, *waits, end, *waits] * len(servers)
    process.run(Waits(world, meanwhile), 2.0, supervision.ServiceManager())
    assert sorted(world.conductor.sent) == [f'cast-r{n}' for n in range(4)]
    assert {world.state(each) for each in servers} == {S.ENDED}


def test_clocks_that_jump_lose_nothing_and_double_nothing(world):
    world.cloud.add_host('h2', 4)
    first, second, third = (world.post(f'r{n}') for n in range(3))
    process = world.process(doubt_s=60.0)
    for jump_s in (0, 3600, -7200, 3600, 1e6, -2e6, 1e6, 5e8, -5e8):
        world.now += jump_s
        process.cycle()
    assert len(world.conductor.sent) == 2
    started = [
        each
        for each in (first, second, third)
        if world.state(each) is S.STARTING
    ]
    for server, host in zip(started, ('h1', 'h2'), strict=True):
        world.cloud.build(server, host, NEED)
    for jump_s in (-1e6, 2e6, -1e6):
        world.now += jump_s
        process.cycle()
    assert {world.state(each) for each in started} == {S.ACTIVE}
    world.cloud.remove(started[0])
    process.cycle()
    assert sorted(world.conductor.sent) == ['cast-r0', 'cast-r1', 'cast-r2']


def several(cast, servers):
    """The same build for several servers."""
    body = json.loads(cast.body)
    message = json.loads(body['oslo.message'])
    [spec] = message['args']['request_specs']
    message['args']['request_specs'] = [
        {
            **spec,
            'nova_object.data': {
                **spec['nova_object.data'],
                'instance_uuid': each,
            },
        }
        for each in servers
    ]
    body['oslo.message'] = json.dumps(message)
    return dataclasses.replace(cast, body=json.dumps(body).encode())


def posted_together(world, name, count, vcpu, hints=None):
    """A user asks for several servers at once."""
    servers = [fake_cloud.name_uuid(f'{name}-{n}') for n in range(count)]
    for each in servers:
        world.cloud.add_server(each)
    one = build(name, servers[0], vcpu, hints=hints)
    world.store.store_message(several(one, servers))
    return servers


@pytest.mark.parametrize('most', [1, 2, 3, 8])
def test_several_servers_on_a_host_start_with_any_allocation_of_one(
    world, most
):
    # With overcommitment one server gets less of a host than there is.
    root = world.cloud.add_host('h2', 8)
    world.cloud.providers[root]['inventories']['VCPU']['max_unit'] = most
    servers = posted_together(world, 'r1', 7, 1)
    process = world.process()
    process.cycle()
    assert world.state(servers[0]) is S.STARTING
    assert world.conductor.sent == ['cast-r1']
    assert world.cloud.holds() == []


def test_room_of_several_consumers_is_freed_despite_deaths_meanwhile(
    world, monkeypatch
):
    # Some of it was freed before: the rest is freed one by one.
    one_by_one = lambda *_: False  # noqa: E731
    monkeypatch.setattr(
        placement_module.Placement, '_release_in_one_call', one_by_one
    )
    root = world.cloud.add_host('h2', 8)
    world.cloud.providers[root]['inventories']['VCPU']['max_unit'] = 2
    servers = posted_together(world, 'r1', 7, 1)
    world.conductor.listens = False
    free = world.cloud.broken
    free['DELETE /allocations'] = 503
    world.process().cycle()
    assert len(world.cloud.holds()) > 1
    free.clear()
    world.conductor.listens = True
    other = world.process('two')
    # It sees the leader stand still first.
    assert not other.cycle()
    world.tick += 60
    other.cycle()
    other.cycle()
    assert world.cloud.holds() == []
    assert world.conductor.sent == ['cast-r1']
    assert world.state(servers[0]) is S.STARTING


def test_a_thousand_servers_of_one_request_wait_for_room_for_all(world):
    servers = posted_together(world, 'r1', 1000, 1)
    other = world.post('r2', 1)
    root = world.cloud.add_host('h2', 995, memory=10**6)
    # Of each server, not of all: Nova says how many CPUs the host has.
    world.cloud.providers[root]['inventories']['VCPU']['max_unit'] = 1
    process = world.process()
    process.cycle()
    assert world.state(servers[0]) is S.WAITING
    assert world.state(other) is S.STARTING
    assert world.cloud.holds() == []
    world.cloud.build(other, 'h1', {'VCPU': 1, 'MEMORY_MB': 100})
    world.cloud.add_host('h3', 2)
    world.cloud.asked.clear()
    process.cycle()
    assert world.state(servers[0]) is S.STARTING
    assert world.conductor.sent == ['cast-r2', 'cast-r1']
    # One by one they would be asked for longer than a lease lasts.
    assert sum('GET /servers/' in each for each in world.cloud.asked) < 9


def test_one_of_many_servers_that_runs_already_keeps_all_from_being_sent(
    world, monkeypatch
):
    world.cloud.add_host('h2', 64)
    servers = posted_together(world, 'r1', 30, 1)
    process = world.process()

    keep = placement_module.Placement.reserve

    def kept_and_built(*given):
        # After the look at the cloud, before the request is sent.
        keep(*given)
        world.cloud.build(servers[7], 'h2', {'VCPU': 1, 'MEMORY_MB': 100})

    monkeypatch.setattr(placement_module.Placement, 'reserve', kept_and_built)
    process.cycle()
    assert world.conductor.sent == []
