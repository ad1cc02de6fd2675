# SPDX-License-Identifier: Apache-2.0

"""Hosts move between fakes of both sides; the store is real."""

import itertools
import json
import threading

import pytest
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster import event_notifications
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.border import cloud_hosts
from nova_fairness.cluster.border import controller
from nova_fairness.cluster.border import departure_notices
from nova_fairness.cluster.border import host_drain
from nova_fairness.cluster.border import hosts_file
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.cluster.store import tables
from nova_fairness.cluster.usage import pledges
from nova_fairness.model import border as border_module
from nova_fairness.model import eviction
from nova_fairness.planners.border import demand
from tests.fixtures import effort
from tests.fixtures import fake_batch
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service

world = test_service.world
Killed = test_service.Killed
N, V = border_module.HostState, border_module.BorderVerb
TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(projects=frozenset({'spare'}))
)
RULES = demand.BorderRules(
    patience_s=60, stay_s=0.0, most_per_day=9, ttl_s=1500
)
EVERY_S = 30.0
HALF_LIFE_S = 3600.0
MARK = f'{border_module.MARK}: it belongs to batch'
HOSTS = """
hosts:
- {name: h1, batch: b-h1, cores: 8}
- {name: h2, batch: b-h2, cores: 8}
"""


class Border:
    """Both sides, what outlives a process, and the process of now.

    h1 works for the batch system, h2 for the cloud.
    """

    def __init__(self, world, path):
        self.world = world
        self.batch = fake_batch.FakeBatch(('b-h1', 'b-h2'))
        self.batch.drain('b-h2', MARK)
        for name in ('h1', 'h2'):
            world.cloud.add_host(name, 8)
        self.service_of('h1').update(status='disabled', reason=MARK)
        self.path = path / 'partition.yaml'
        self.path.write_text(HOSTS)
        self.rules = RULES
        self.late = ()
        self.moves = False
        self.features = path / 'features'
        self.features.mkdir()
        self._names = (f'p{n}' for n in itertools.count())
        self.begin()

    def service_of(self, host):
        return self.world.cloud.hypervisors[fake_cloud.name_uuid(host)]

    def begin(self):
        """A new process takes over from one that is silent."""
        world, apis = self.world, self.world.cloud.apis
        clock = lambda: world.now  # noqa: E731
        nova = nova_module.Nova(apis.nova)
        room = placement_module.Placement(apis.placement)
        patience = evictor.EvictionTimeouts()
        leaves = world.store.leaves
        self.service = world.process(next(self._names), terms=TERMS)
        self.service.cycle()
        world.tick += 31
        self.service.cycle()
        self.moving = controller.BorderController(
            world.store,
            self.service,
            hosts_file.open_watched_file(self.path),
            self.batch,
            cloud_hosts.CloudSide(nova, room, leaves, patience, self.moves),
            host_drain.HostDrain(
                leaves,
                nova,
                evictor.Evictor(
                    leaves,
                    nova,
                    room,
                    glance.Images(apis.glance, world.store.pseudonyms),
                    clock,
                    patience,
                    notice_channels.channels_before_steps(nova),
                ),
                clock,
                host_drain.Actions(late=self.late),
            ),
            departure_notices.DepartureNotices(apis.nova, self.features),
            self.rules,
            clock,
            threading.Event(),
            EVERY_S,
            self.pledging(),
        )

    def pledging(self):
        found = pledges.PledgeKeeper(self.world.store, self.batch, HALF_LIFE_S)
        self.service.charging.counted = found.counted
        return found

    def go(self, cycles=1, every_s=EVERY_S):
        for _ in range(cycles):
            self.world.now += every_s
            self.service.cycle()
            self.moving.cycle()
            assert self.in_both() == []
        return self.states()

    def states(self):
        found, _ = self.world.store.nodes.read_hosts()
        return tuple(each.state.value for each in found.values())

    def node(self, host):
        return self.world.store.nodes.read_host(host)

    def in_both(self):
        """Hosts on which both sides have or may start something."""
        lie = {
            each['OS-EXT-SRV-ATTR:host']
            for each in self.world.cloud.servers.values()
        }
        nova = self.world.cloud.hypervisors
        gone = border_module.SideStatus(False)
        return [
            host
            for host in ('h1', 'h2')
            if self.batch.places.get(f'b-{host}', gone).used
            and (
                nova.get(fake_cloud.name_uuid(host), {}).get('status')
                == 'enabled'
                or host in lie
            )
        ]

    def run_server(self, name, host, vcpus=4, project='p'):
        """A server that was asked for and runs."""
        world = self.world
        server = world.post(name, vcpus, project=project)
        self.service.cycle()
        world.cloud.servers[server]['flavor'] = {
            'vcpus': vcpus, 'ram': 100, 'disk': 0,
        }  # fmt: skip
        need = {'VCPU': vcpus, 'MEMORY_MB': 100}
        world.cloud.build(server, host, need)
        self.service.cycle()
        return server

    def faults(self):
        return ' '.join(self.moving.last().faults)


@pytest.fixture
def border(world, tmp_path):
    made = Border(world, tmp_path)
    assert made.go(2) == ('batch', 'cloud')
    return made


def test_where_hosts_stand_is_found_by_looking(border):
    found = border.node('h1')
    assert [each.event.value for each in found.history] == ['find_in_batch']
    assert border.moving.last().faults == ()


def test_jobs_end_before_their_host_goes_to_the_cloud(border):
    job = border.batch.submit('b-h1', gone_at=border.world.now + 600)
    border.moving.move('h1')
    assert border.go(2) == ('leaving_batch', 'cloud')
    border.go()
    assert not border.batch.places['b-h1'].takes
    assert border.go(5) == ('leaving_batch', 'cloud')
    border.batch.end(job)
    assert border.go() == ('cloud', 'cloud')
    border.go()
    assert border.service_of('h1')['status'] == 'enabled'
    reason = border.batch.places['b-h1'].reason
    assert reason == 'nova-fairness: it goes to cloud'


def test_servers_end_before_their_host_goes_to_the_batch_system(border):
    server = border.run_server('s1', 'h2')
    border.moving.move('h2')
    border.go(4)
    service = border.service_of('h2')
    assert (service['status'], service['reason']) == (
        'disabled',
        'nova-fairness: it goes to batch',
    )
    assert border.go(8) == ('batch', 'leaving_cloud')
    border.world.cloud.remove(server)
    border.go(3)
    assert border.states() == ('batch', 'batch')
    border.go()
    assert border.batch.places['b-h2'].takes


def test_jobs_and_servers_are_told_how_long_their_host_is_there(border):
    server = border.run_server('s1', 'h2')
    told = border.world.cloud.servers[server].setdefault('metadata', {})
    border.moving.move('h2')
    border.go(4)
    until = f'{border.node("h2").until:.0f}'
    assert told['TTL'] == until
    path = border.features / 'b-h2/shutdowntime'
    assert path.read_text() == until
    border.moving.cancel('h2')
    border.go()
    assert 'TTL' not in told
    assert not path.exists()


def test_work_that_nova_may_have_begun_is_waited_for(border):
    border.moving.move('h2')
    while border.service_of('h2')['status'] == 'enabled':
        border.go()
    border.world.now -= EVERY_S - 5
    assert border.go() == ('batch', 'leaving_cloud')
    # Nova chose the host before; Placement has the claim, no list the server.
    claim = {fake_cloud.name_uuid('h2'): {'VCPU': 1}}
    border.world.cloud.write('claim', claim, 'p')
    assert border.go(5) == ('batch', 'leaving_cloud')
    border.world.cloud.write('claim', {}, 'p')
    assert border.go() == ('batch', 'batch')


def test_a_host_is_not_closed_while_the_queue_sends_something_there(border):
    border.world.post('s1', 4)
    border.service.cycle()
    assert border.world.conductor.sent == ['cast-s1']
    border.moving.move('h2')
    assert border.go(6) == ('batch', 'leaving_cloud')
    assert border.service_of('h2')['status'] == 'enabled'
    # Nothing else is sent there meanwhile.
    border.world.post('s2', 1)
    border.go(2)
    assert border.world.conductor.sent == ['cast-s1']
    server = fake_cloud.name_uuid('s1')
    need = {'VCPU': 4, 'MEMORY_MB': 100}
    border.world.cloud.build(server, 'h2', need)
    border.go(2)
    assert border.service_of('h2')['status'] == 'disabled'


def test_a_host_goes_where_something_waits_and_comes_back(border):
    border.run_server('s1', 'h2', 8)
    border.world.post('s2', 4)
    border.go(6)
    assert border.states() == ('cloud', 'cloud')
    border.go(2)
    assert border.world.conductor.sent == ['cast-s1', 'cast-s2']
    server = fake_cloud.name_uuid('s2')
    need = {'VCPU': 4, 'MEMORY_MB': 100}
    border.world.cloud.build(server, 'h1', need)
    border.go(4)
    border.world.cloud.remove(server)
    assert border.go(5) == ('cloud', 'cloud')
    border.batch.submit('b-h1', now=border.world.now)
    border.go(8)
    assert border.states() == ('batch', 'cloud')
    causes = [each.cause.value for each in border.node('h1').history]
    assert causes.count('demand') == 2


def test_no_host_goes_for_a_demand_it_could_not_hold(border):
    border.world.post('s2', 9)
    assert border.go(8) == ('batch', 'cloud')
    assert border.node('h1').version == 1


def test_no_host_goes_for_requests_that_use_only_the_rest(border):
    border.run_server('s1', 'h2', 8)
    border.world.post('s2', 4, project='spare')
    assert border.go(8) == ('batch', 'cloud')


def test_a_preemptible_server_gets_its_notice_and_comes_back(border):
    server = border.run_server('s1', 'h2', project='spare')
    border.moving.move('h2')
    border.go(5)
    leave = border.world.store.leaves.newest_of_servers([server])[server]
    assert (leave.state.value, leave.cause.value) == ('told', 'host')
    assert leave.why.sentence == 'its host h2 goes to the batch system'
    metadata = border.world.cloud.servers[server]['metadata']
    assert metadata['fairness:leaves_why'] == (
        'its host goes to the batch system'
    )
    border.go(7, 5 * EVERY_S)
    assert border.states() == ('batch', 'batch')
    asked = [action for _, action in border.world.cloud.acted]
    assert asked[:2] == ['shelve', 'unshelve']


def test_a_server_need_not_leave_when_its_host_stays(border):
    server = border.run_server('s1', 'h2', project='spare')
    border.moving.move('h2')
    border.go(5)
    border.moving.cancel('h2')
    border.go(2)
    leave = border.world.store.leaves.newest_of_servers([server])[server]
    assert leave.state is eviction.EvictionState.SPARED
    assert border.states() == ('batch', 'cloud')
    assert border.service_of('h2')['status'] == 'enabled'
    assert border.world.cloud.acted == []


def test_servers_are_moved_away_only_where_that_is_allowed(border):
    border.run_server('s1', 'h2')
    border.moving.move('h1')
    border.go(5)
    border.moving.move('h2')
    assert border.go(8) == ('cloud', 'leaving_cloud')
    assert border.world.cloud.acted == []
    border.moves = True
    border.begin()
    border.go(4)
    assert border.states() == ('cloud', 'batch')
    assert [each for _, each in border.world.cloud.acted] == ['os-migrateLive']


def test_a_server_stays_and_so_does_its_host_when_time_is_over(border):
    server = border.run_server('s1', 'h2')
    border.moving.move('h2')
    border.go(12, 5 * EVERY_S)
    assert border.states() == ('batch', 'cloud')
    last = border.node('h2').history[-1]
    assert (last.event.value, last.cause.value) == ('expire', 'late')
    assert server in last.text
    border.go()
    assert border.service_of('h2')['status'] == 'enabled'
    assert border.world.cloud.acted == []


def test_a_server_is_ended_after_its_time_where_an_operator_says_so(border):
    border.rules = demand.BorderRules(stay_s=0.0, ttl_s=1500, end_vms=True)
    border.late = (eviction.EvictionAction.DELETE,)
    border.begin()
    server = border.run_server('s1', 'h2')
    border.go()
    border.moving.move('h2')
    border.go(13, 5 * EVERY_S)
    told = border.world.cloud.servers[server]['metadata']
    assert told[notice_channels.LEAVES_BY] == 'delete'
    border.go(7, 5 * EVERY_S)
    assert server not in border.world.cloud.servers
    assert border.states() == ('batch', 'batch')


@pytest.mark.repeated
@pytest.mark.parametrize('host', ['h1', 'h2'])
@pytest.mark.parametrize('cycles', range(5))
def test_a_move_can_be_cancelled_at_any_point(border, host, cycles):
    border.batch.submit('b-h1', gone_at=border.world.now + 9e9)
    border.run_server('s1', 'h2')
    border.moving.move(host)
    border.go(cycles)
    assert border.moving.cancel(host).state.value in ('batch', 'cloud')
    border.go(2)
    assert border.states() == ('batch', 'cloud')
    assert border.batch.places['b-h1'].takes
    assert border.service_of('h2')['status'] == 'enabled'


@pytest.mark.parametrize('verb', [V.CLOSE, V.STEP])
def test_a_move_that_was_cancelled_just_now_is_not_made(
    border, verb, monkeypatch
):
    border.moving.move('h1')
    if verb is V.CLOSE:
        border.go()
    look = border.batch.read_hosts

    def cancelling():
        border.moving.cancel('h1')
        monkeypatch.undo()
        return look()

    monkeypatch.setattr(border.batch, 'read_hosts', cancelling)
    border.go()
    assert border.batch.places['b-h1'].takes
    assert border.node('h1').state is N.BATCH


@pytest.mark.repeated
@pytest.mark.parametrize('side', ['batch', 'nova', 'placement', 'other form'])
@pytest.mark.parametrize('cycles', [0, 2, 4])
def test_nothing_moves_while_one_side_is_away(
    border, side, cycles, monkeypatch
):
    border.moving.move('h1')
    border.moving.move('h2')
    border.go(cycles)
    before = border.states()
    if side == 'batch':
        border.batch.is_away = True
    elif side == 'other form':
        monkeypatch.setattr(border.batch, 'read_hosts', _unreadable)
    else:
        path = {'nova': 'GET /os-services', 'placement': 'GET /resource'}
        border.world.cloud.broken[path[side]] = 503
    for _ in range(5):
        border.world.now += EVERY_S
        if side in ('batch', 'other form'):
            border.service.cycle()
        border.moving.cycle()
    gone_on = border.states() != before
    # What the queue saw of Placement counts for a while.
    assert not gone_on or side == 'placement'
    assert 'gives no answer that can be read: nothing moves' in border.faults()
    border.batch.is_away = False
    border.world.cloud.broken.clear()
    monkeypatch.undo()
    assert border.go(10) == ('cloud', 'batch')


def _unreadable():
    raise exception.BatchUnreadable('sinfo --json wrote the form v0.0.41')


def test_a_host_that_one_side_does_not_know_stays_and_it_is_said(border):
    border.path.write_text(HOSTS + '- {name: h3, cores: 8}\n')
    border.world.cloud.add_host('h3')
    border.go(3)
    assert 'h3: it cannot move: batch does not know it' in border.faults()
    border.moving.move('h3')
    border.go()
    assert border.node('h3').state is N.CLOUD
    assert border.node('h3').history[-1].event.value == 'refuse'


@pytest.mark.parametrize('cycles', [0, 1, 2, 4])
def test_a_host_that_vanishes_from_its_new_side_stays_where_it_is(
    border, cycles
):
    border.batch.submit('b-h1', gone_at=border.world.now + 9e9)
    border.moving.move('h1')
    border.go(cycles)
    nova, uuid = border.world.cloud.hypervisors, fake_cloud.name_uuid('h1')
    service = nova.pop(uuid)
    border.go(2)
    assert border.states() == ('batch', 'cloud')
    border.go()
    assert 'h1: it cannot move: cloud does not know it' in border.faults()
    assert border.batch.places['b-h1'].takes
    last = border.node('h1').history[-1]
    assert (last.event.value, last.cause.value) in (
        ('refuse', 'obstacle'),
        ('cancel', 'obstacle'),
    )
    nova[uuid] = service
    border.moving.move('h1')
    assert border.go(2) == ('leaving_batch', 'cloud')


def test_a_host_that_vanishes_from_its_old_side_is_waited_for(border):
    border.batch.submit('b-h1', gone_at=border.world.now + 9e9)
    border.moving.move('h1')
    border.go(4)
    place = border.batch.places.pop('b-h1')
    assert border.go(3) == ('leaving_batch', 'cloud')
    assert 'h1: its service of batch is away; it waits' in border.faults()
    assert border.service_of('h1')['status'] == 'disabled'
    # When its time to live is over it belongs to its old side again.
    border.go(12, 5 * EVERY_S)
    last = border.node('h1').history[-1]
    assert (last.event.value, last.state) == ('expire', N.BATCH)
    assert 'h1: it cannot move: batch does not know it' in border.faults()
    border.batch.places['b-h1'] = place
    border.go(2)
    assert border.batch.places['b-h1'].takes
    assert border.faults() == ''


def test_two_names_for_one_host_are_not_taken_over(border, caplog):
    border.path.write_text(HOSTS + '- {name: h3, cloud: h2, cores: 8}\n')
    border.go()
    assert "the cloud name 'h2' is used by more than one host" in caplog.text
    assert border.states() == ('batch', 'cloud')


def test_a_renamed_host_is_looked_for_again(border):
    border.path.write_text(HOSTS.replace('name: h1,', 'name: n1, cloud: h1,'))
    border.go(2)
    found, _ = border.world.store.nodes.read_hosts()
    assert sorted(found) == ['h2', 'n1']
    assert found['n1'].state is N.BATCH


def test_other_names_of_a_host_are_taken_over(border):
    border.path.write_text(HOSTS.replace('b-h1', 'other'))
    border.go()
    assert 'batch does not know it' in border.faults()
    border.batch.places['other'] = border.batch.places['b-h1']
    border.go(2)
    assert border.faults() == ''
    assert border.node('h1').host.batch == 'other'


def test_a_host_without_description_is_given_back(border):
    border.batch.submit('b-h1')
    border.moving.move('h1')
    border.go(3)
    assert not border.batch.places['b-h1'].takes
    border.path.write_text(HOSTS.replace('- {name: h1', '# {name: h1'))
    border.go(4)
    assert border.node('h1') is None
    assert border.batch.places['b-h1'].takes


def edit(border, **values):
    with border.world.engine.begin() as connection:
        connection.execute(
            sa.update(tables.NODES)
            .where(tables.NODES.c.host == 'h1')
            .values(**values)
        )


@pytest.mark.parametrize(
    'values',
    [
        {'state': 'both'},
        {'history': 'not JSON'},
        {'history': json.dumps([[1.0, 'ask', 'cloud', 'whim', '']])},
    ],
)
def test_a_row_that_was_made_unreadable_is_told_and_left(border, values):
    edit(border, **values)
    before = border.batch.places['b-h1']
    border.go(3)
    assert 'h1: its row cannot be read' in border.faults()
    assert border.batch.places['b-h1'] == before
    with pytest.raises(exception.UnknownHost, match='h1'):
        border.moving.move('h1')
    with border.world.engine.begin() as connection:
        row = tables.NODES.c.host == 'h1'
        connection.execute(sa.delete(tables.NODES).where(row))
    assert border.go(2) == ('batch', 'cloud')


@pytest.mark.repeated
@pytest.mark.parametrize('state', [*N])
def test_a_state_edited_by_hand_brings_no_host_into_both(border, state):
    border.batch.submit('b-h1')
    edit(border, state=state.value)
    border.go(12)
    assert border.states()[0] in ('batch', 'leaving_batch')
    assert border.batch.places['b-h1'].work


def test_a_target_by_hand_comes_before_demand(border):
    border.moving.aim(2)
    border.go(5)
    assert border.states() == ('cloud', 'cloud')
    border.moving.aim(0)
    border.go(8)
    assert border.states() == ('batch', 'batch')
    border.moving.aim(None)
    assert border.world.store.nodes.read_target().hosts is None
    with pytest.raises(exception.IllegalStep, match='0 to 2'):
        border.moving.aim(3)


def test_an_impossible_move_is_refused_in_words(border):
    border.path.write_text(HOSTS.replace('b-h2,', 'b-h2, fixed: true,'))
    border.go()
    for do, host, said in (
        (border.moving.move, 'h2', 'fixed'),
        (border.moving.move, 'h9', 'there is h1, h2'),
        (border.moving.cancel, 'h1', 'batch'),
    ):
        with pytest.raises(exception.FairnessError, match=said):
            do(host)


def test_a_process_that_does_not_lead_moves_no_host(border):
    other = Border.__new__(Border)
    other.__dict__.update(border.__dict__)
    other.service = border.world.process('other')
    border.service.cycle()
    other.service.cycle()
    other.moving = border.moving
    border.moving._service = other.service
    assert not border.moving.cycle()
    for do in (border.moving.last, lambda: border.moving.move('h1')):
        with pytest.raises(exception.NotLeading):
            do()


@pytest.mark.parametrize('host', ['h1', 'h2'])
def test_a_controller_without_a_look_moves_and_cancels_nothing(border, host):
    """What is refused is not done: whoever asks again would ask twice."""
    border.moving.move('h2')
    before = border.states()
    border.begin()
    ask = requests.ClusterOperations(
        border.world.store, border.service, None, border.moving
    )
    with pytest.raises(exception.NotLeading, match='not looked'):
        (ask.move if host == 'h1' else ask.stay)(host)
    assert border.states() == before == ('batch', 'batch_asked')


def test_every_step_is_counted_and_told(border):
    told = []
    watch = event_notifications.BorderWatch(
        border.world.store, border.moving, told.extend, 'c1'
    )
    border.moving.move('h1')
    border.go(5)
    events = [each.event.rpartition('.')[2] for each in told]
    assert events == ['ask', 'accept', 'arrive']
    assert {each.payload['name'] for each in told} == {'h1'}
    seen = watch.border()
    assert seen.steps['ask', 'operator'] == 1
    assert seen.states == {'cloud': 2}
    assert seen.cores['cloud', 'capacity'] == 16.0
    assert (seen.seen_at, seen.faults) == (border.world.now, 0)
    border.moving._last = None
    border.moving._service = border.world.process('other')
    assert watch.border().seen_at is None


def test_operators_are_told_all_of_it(border):
    job = border.batch.submit('b-h1', gone_at=border.world.now + 60)
    ask = requests.ClusterOperations(
        border.world.store, border.service, None, border.moving
    )
    border.go()
    told = ask.border()['partition']
    assert told['states']['batch'] == told['states']['cloud'] == 1
    assert (told['target'], told['faults']) == (None, [])
    assert told['batch']['used'] == 1.0
    listed = ask.hosts(None, 1)
    assert [each['name'] for each in listed['hosts']] == ['h1']
    assert listed['more']
    assert [each['name'] for each in ask.hosts('h1', 9)['hosts']] == ['h2']
    moved = ask.move('h1')['host']
    assert (moved['state'], moved['bound_for']) == ('cloud_asked', 'cloud')
    assert moved['history'][-1]['cause'] == 'operator'
    assert [each['name'] for each in moved['work']] == [job]
    assert ask.stay('h1')['host']['state'] == 'batch'
    assert ask.aim(2) == {'target': 2}
    assert ask.border()['partition']['target'] == 2
    with pytest.raises(exception.UnknownHost, match='h9'):
        ask.host('h9')


def test_without_a_border_the_answer_says_so(border):
    ask = requests.ClusterOperations(border.world.store, border.service)
    for do in (ask.border, lambda: ask.hosts(None, 1), lambda: ask.move('h')):
        with pytest.raises(exception.UnknownHost, match='no batch system'):
            do()


class Mortal:
    """Counts what is done to both sides and the store; dies after one.

    So whoever dies before the next one does.
    """

    def __init__(self, border, at):
        self._at, self._count = at, 0
        store, nova = border.world.store, nova_module.Nova
        self._patch = pytest.MonkeyPatch()
        for place, name in (
            (border.batch, 'drain'),
            (border.batch, 'undrain'),
            (store.nodes, 'step'),
            (nova, 'disable'),
            (nova, 'enable'),
            (nova, 'write_metadata'),
            (nova, 'request_action'),
            (store.leaves, 'add'),
            (store.leaves, 'step'),
        ):
            do = getattr(place, name)
            self._patch.setattr(place, name, self._dying(do))

    def _dying(self, do):
        def called(*arguments, **named):
            found = do(*arguments, **named)
            self._count += 1
            if self._count > self._at:
                raise Killed
            return found

        return called

    def undo(self):
        self._patch.undo()


def there_and_back(border):
    """h2 goes to the batch system, its preemptible server leaves, and back.

    Whoever died in between goes on where it was.
    """
    history = [each.state for each in border.node('h2').history]
    for state in (N.BATCH, N.CLOUD)[N.BATCH in history :]:
        node = border.node('h2')
        if node.state is not state and node.state not in border_module.MOVING:
            border.moving.move('h2')
        for _ in range(30):
            border.go(1, 5 * EVERY_S)
            if border.node('h2').state is state:
                break


def test_a_controller_that_begins_after_a_kill_goes_on(tmp_path):
    """Kills after things that are done, one after the other."""
    at, killed = 0, True
    while killed:
        path = tmp_path / str(at)
        path.mkdir()
        border = Border(test_service.World(path), path)
        border.go(2)
        border.run_server('s1', 'h2', project='spare')
        mortal, killed = Mortal(border, at), False
        try:
            there_and_back(border)
        except Killed:
            killed = True
        mortal.undo()
        if killed:
            assert border.in_both() == []
            border.begin()
            border.go()
            there_and_back(border)
        border.go(2)
        assert border.states() == ('batch', 'cloud'), at
        assert border.batch.places['b-h1'].takes
        assert border.service_of('h2')['status'] == 'enabled'
        assert not border.batch.places['b-h2'].takes
        border.world.close()
        at += effort.STEP
    assert at > 12


@pytest.mark.parametrize('error', [MemoryError(), KeyError('x')])
def test_a_batch_system_that_fails_gives_no_answer_and_ends_nothing(
    border, monkeypatch, error
):
    def fails():
        raise error

    monkeypatch.setattr(border.batch, 'read_hosts', fails)
    border.go()
    assert 'the batch system: its answer cannot be read' in border.faults()
    assert border.service.quarantine.counts()['part'] == 1
    monkeypatch.undo()
    border.go()
    assert 'cannot be read' not in border.faults()


def test_a_host_that_fails_keeps_no_other_back(border, monkeypatch):
    do = border.moving._execute_action

    def fails(action, snapshot, epoch):
        if action.host == 'h1':
            raise TypeError
        do(action, snapshot, epoch)

    monkeypatch.setattr(border.moving, '_execute_action', fails)
    border.moving.move('h1')
    border.moving.move('h2')
    border.go(2)
    assert 'h1: TypeError' in border.faults()
    assert border.states()[1] != 'cloud'


@pytest.mark.parametrize(
    'part', ['_write_notices', '_read_sides', '_read_hosts']
)
def test_the_loop_of_the_border_goes_on_after_every_failure(
    border, monkeypatch, part
):
    stopped = border.moving._stopped
    left = [3]

    def wait(_):
        left[0] -= 1
        if not left[0]:
            stopped.set()

    def fails(*_):
        raise RecursionError

    monkeypatch.setattr(stopped, 'wait', wait)
    monkeypatch.setattr(border.moving, part, fails)
    border.moving.run()
    assert left == [0]
    assert border.service.quarantine.failures()['part'] == 3
