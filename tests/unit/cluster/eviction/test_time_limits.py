# SPDX-License-Identifier: Apache-2.0

"""Servers whose time is up leave, beside a fake cloud; the store is real."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import time_limits
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import small_cloud
from tests.unit.cluster import test_service

world = test_service.world
A, S = eviction.EvictionAction, eviction.EvictionState
WHY = reason.why(reason.Reason.STARTED)
LIMIT_S, NOTICE_S = 1800.0, test_service.NOTICE_S


def at_end(*actions, extension_s=0.0):
    return time_limits.TimeLimitOptions(tuple(map(A, actions)), extension_s)


@pytest.fixture
def server(world):
    """A server that runs from 1000 on, for half an hour at most."""
    world.accounts = (cluster.Account('the-project', time_limit_s=LIMIT_S),)
    made, process = world.post('r1'), world.process()
    flavor = {'vcpus': 4, 'ram': 100, 'disk': 0}
    world.cloud.servers[made]['flavor'] = flavor
    process.cycle()
    world.cloud.build(made, 'h1', test_service.NEED)
    process.cycle()
    world.tick += 31
    return made


def leave(world, server):
    return world.store.leaves.newest_of_servers([server]).get(server)


def state(world, server):
    found = leave(world, server)
    return found and found.state


def metadata(world, server):
    return world.cloud.servers[server].get('metadata', {})


def go(world, process, until, every=60.0):
    while world.now < until:
        world.now += every
        process.cycle()


def test_the_owner_gets_a_notice_before_the_first_action(world, server):
    process = world.process('two')
    process.cycle()
    world.tick += 31
    go(world, process, 1000 + LIMIT_S - NOTICE_S - 60)
    assert (state(world, server), metadata(world, server)) == (None, {})
    go(world, process, 1000 + LIMIT_S - NOTICE_S)
    found = leave(world, server)
    assert found.state is S.TOLD
    assert found.at >= world.now + NOTICE_S
    assert found.why == reason.why(reason.Reason.TIME_IS_UP, limit_s=LIMIT_S)
    told = metadata(world, server)
    assert told[notice_channels.LEAVES_AT] == '1970-01-01T00:46:40Z'
    assert told[notice_channels.LEAVES_BY] == 'shelve'
    assert told[notice_channels.LEAVES_WHY] == 'it may run for 1800 s'
    ask = requests.ClusterOperations(world.store, process)
    assert ask.notices(['x', server]) == {'notices': {server: told}}
    go(world, process, found.at - 60)
    assert world.cloud.acted == []
    go(world, process, found.at)
    assert world.cloud.acted == [(server, 'shelve')]
    assert ask.notices([server])['notices'] == {server: told}
    world.cloud.remove(server)
    go(world, process, found.at + 120)
    assert ask.notices([server]) == {'notices': {}}


def process_of(world, *actions, **more):
    process = world.process('two', at_end=at_end(*actions, **more))
    process.cycle()
    world.tick += 31
    return process


def test_a_waiting_request_starts_on_the_room_at_the_time_limit(world, server):
    process, other = process_of(world, 'shelve'), world.post('r2')
    go(world, process, 1000 + LIMIT_S - 60)
    assert world.state(other) is test_service.S.WAITING
    reserved = process.last().plan.waiting[other].reserved
    assert reserved == cluster.Reservation(('h1',), 1000 + LIMIT_S)
    go(world, process, 1000 + LIMIT_S + 180)
    assert state(world, server) is S.GONE
    assert world.state(other) is test_service.S.STARTING


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('actions', 'snapshots', 'offloads', 'acted', 'ended', 'status'),
    [
        (['stop'], 1, 1, ['os-stop'], S.STAYS, 'SHUTOFF'),
        (['suspend'], 1, 1, ['suspend'], S.STAYS, 'SUSPENDED'),
        (['delete'], 1, 1, [], S.GONE, None),
        (['shelve', 'stop'], 1, 1, ['shelve'], S.GONE, 'SHELVED_OFFLOADED'),
        (
            ['shelve', 'delete'],
            1,
            0,
            ['shelve', 'shelveOffload'],
            S.GONE,
            'SHELVED_OFFLOADED',
        ),
        # The image is raw: its server is SHUTOFF, and has its room still.
        (['shelve'], 0, 1, ['shelve'], S.STAYS, 'SHUTOFF'),
        (['shelve', 'stop'], 0, 1, ['shelve'], S.STAYS, 'SHUTOFF'),
        (['shelve', 'delete'], 0, 1, ['shelve'], S.GONE, None),
        (['stop', 'delete'], 1, 1, ['os-stop'], S.GONE, None),
    ],
)
def test_further_actions_follow_until_the_room_is_free(
    world, server, actions, snapshots, offloads, acted, ended, status
):
    world.cloud.takes_no_snapshots = not snapshots
    world.cloud.offloads_at_once = bool(offloads)
    process = process_of(world, *actions)
    go(world, process, 1000 + LIMIT_S + 1200)
    assert world.cloud.acted == [(server, each) for each in acted]
    assert state(world, server) is ended
    assert world.cloud.servers.get(server, {}).get('status') == status
    is_free = server not in world.cloud.allocations
    assert is_free is (ended is S.GONE)


def test_an_action_that_nova_refuses_is_followed_by_the_next(world, server):
    world.cloud.broken[f'POST /servers/{server}/action'] = 409
    process = process_of(world, 'shelve', 'stop', 'delete')
    go(world, process, 1000 + LIMIT_S + 180)
    assert state(world, server) is S.GONE


def test_no_further_action_is_taken_while_nova_does_not_answer(world, server):
    world.cloud.broken[f'POST /servers/{server}/action'] = 503
    process = process_of(world, 'shelve', 'delete')
    go(world, process, 1000 + LIMIT_S + 180)
    assert state(world, server) is S.ACTING
    assert leave(world, server).action is A.SHELVE
    world.cloud.broken.clear()
    go(world, process, world.now + 120)
    assert world.cloud.acted == [(server, 'shelve')]
    assert state(world, server) is S.GONE


def test_a_task_of_nova_on_the_server_is_waited_for(world, server):
    process = process_of(world, 'shelve', 'delete')
    go(world, process, 1000 + LIMIT_S - 60)
    busy = world.cloud.servers[server]
    busy['OS-EXT-STS:task_state'] = 'image_snapshot'
    go(world, process, 1000 + LIMIT_S + 120)
    assert state(world, server) is S.TOLD
    busy['OS-EXT-STS:task_state'] = None
    go(world, process, world.now + 120)
    assert world.cloud.acted == [(server, 'shelve')]


def test_an_endless_nova_task_does_not_block_the_room_for_ever(world, server):
    process = process_of(world, 'shelve', 'delete')
    busy = world.cloud.servers[server]
    go(world, process, 1000 + LIMIT_S - 60)
    busy['OS-EXT-STS:task_state'] = 'image_snapshot'
    go(world, process, 1000 + LIMIT_S + 1200)
    assert state(world, server) is S.GONE


def test_a_server_that_accepts_no_metadata_still_leaves(world, server):
    world.cloud.broken[f'POST /servers/{server}/metadata'] = 409
    process = process_of(world, 'delete')
    go(world, process, 1000 + LIMIT_S - 60)
    assert state(world, server) is S.CHOSEN
    go(world, process, 1000 + LIMIT_S + 240)
    assert state(world, server) is S.GONE


@pytest.mark.parametrize('says', [True, False])
def test_only_servers_whose_owner_reports_done_end_early(world, server, says):
    """Whoever only stops their server may start it again until its end."""
    process = process_of(world, 'shelve')
    go(world, process, 1000 + LIMIT_S - 300)
    found = world.cloud.servers[server]
    found['status'] = 'SHUTOFF'
    if says:
        found['metadata'][nova.DONE] = 'yes'
    go(world, process, 1000 + LIMIT_S - 60)
    assert (state(world, server) is S.GONE) is says


def test_a_server_deleted_before_its_end_is_not_acted_on(world, server):
    process = process_of(world, 'shelve')
    go(world, process, 1000 + LIMIT_S - 300)
    world.cloud.remove(server)
    go(world, process, 1000 + LIMIT_S + 300)
    assert (state(world, server), world.cloud.acted) == (S.GONE, [])


def test_a_server_restarted_after_its_limit_gets_a_notice_and_stops(
    world, server
):
    process = process_of(world, 'stop')
    go(world, process, 1000 + LIMIT_S + 300)
    world.cloud.servers[server]['status'] = 'ACTIVE'
    begun = world.now
    go(world, process, begun + NOTICE_S - 60)
    assert state(world, server) is S.TOLD
    assert world.cloud.acted == [(server, 'os-stop')]
    go(world, process, begun + NOTICE_S + 300)
    assert world.cloud.acted == [(server, 'os-stop')] * 2


def test_an_unshelved_server_keeps_its_time_limit():
    built = small_cloud.waiting_request(
        's', time_limit_s=60.0, state=request.State.ACTIVE
    )
    kept = dataclasses.replace(
        built,
        uuid='u',
        demand=request.Demand(()),
        origin=request.Origin.UNSHELVE,
        time_limit_s=None,
    )
    found = [
        records.RequestRecord(each, each.uuid, WHY, at)
        for each, at in ((built, 1000.0), (kept, 1050.0))
    ]
    [end] = time_limits.time_limits_by_server(found, 1055.0).values()
    assert (end.at, end.request) == (1060.0, built)


def test_a_server_requested_without_a_limit_has_no_end(world):
    made, process = world.post('r1'), world.process()
    process.cycle()
    world.cloud.build(made, 'h1', test_service.NEED)
    world.accounts = (cluster.Account('the-project', time_limit_s=60.0),)
    go(world, process, 1000 + LIMIT_S)
    assert leave(world, made) is None


class TestExtension:
    """A user lets a request run longer."""

    def test_an_extended_server_leaves_later(self, world, server):
        process = process_of(world, 'stop', extension_s=3600.0)
        go(world, process, 1000 + LIMIT_S - NOTICE_S - 120)
        process.extend(server, 3600.0)
        go(world, process, 1000 + LIMIT_S + 2400)
        assert leave(world, server) is None
        go(world, process, 1000 + LIMIT_S + 3600 + 300)
        assert state(world, server) is S.STAYS

    @pytest.mark.repeated
    @pytest.mark.parametrize('by_s', [300.0, 3600.0])
    def test_an_extension_removes_the_notice(self, world, server, by_s):
        process = process_of(world, 'stop', extension_s=3600.0)
        go(world, process, 1000 + LIMIT_S - 120)
        assert state(world, server) is S.TOLD
        process.extend(server, by_s)
        process.cycle()
        assert state(world, server) is S.SPARED
        assert metadata(world, server) == {}
        go(world, process, 1000 + LIMIT_S + by_s - 60)
        assert world.cloud.acted == []
        go(world, process, 1000 + LIMIT_S + by_s + NOTICE_S + 120)
        assert world.cloud.acted == [(server, 'os-stop')]

    def test_an_extension_beyond_the_allowed_time_is_refused(
        self, world, server
    ):
        process = process_of(world, 'stop', extension_s=3600.0)
        process.cycle()
        process.extend(server, 2000.0)
        with pytest.raises(exception.IllegalStep, match='3600 s is the limit'):
            process.extend(server, 1601.0)
        process.extend(server, 1600.0)

    def test_an_extension_of_a_leaving_server_is_refused(self, world, server):
        process = process_of(world, 'stop', extension_s=3600.0)
        go(world, process, 1000 + LIMIT_S + 300)
        with pytest.raises(
            exception.IllegalStep, match='is already being evicted'
        ):
            process.extend(server, 60.0)

    def test_an_extension_needs_a_limit_and_a_running_request(
        self, world, server
    ):
        other = world.process('two', at_end=at_end('stop', extension_s=60.0))
        world.accounts, free = (), world.post('r2')
        other.cycle()
        world.tick += 31
        other.cycle()
        with pytest.raises(exception.IllegalStep, match='no time limit'):
            other.extend(free, 60.0)
        world.cloud.remove(server)
        other.cycle()
        with pytest.raises(exception.IllegalStep, match='is ended'):
            other.extend(server, 60.0)


class Killed(BaseException):
    """The process ends here."""


def dying(monkeypatch, thing, method, number, when):
    """Let the process die around the nth call of a method."""
    whole, count = getattr(thing, method), [0]

    def call(self, *arguments, **named):
        count[0] += 1
        if count[0] != number:
            return whole(self, *arguments, **named)
        if when == 'after':
            whole(self, *arguments, **named)
        raise Killed

    monkeypatch.setattr(thing, method, call)


PLACES = [
    (leaves_module.EvictionTable, 'add', 1),
    (nova.Nova, 'write_metadata', 1),
    *((leaves_module.EvictionTable, 'step', n) for n in range(1, 6)),
    (nova.Nova, 'request_action', 1),
    (nova.Nova, 'request_action', 2),
]


@pytest.mark.repeated
@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize(('thing', 'method', 'number'), PLACES)
def test_a_server_is_evicted_once_despite_a_crash_at_any_step(
    world, server, monkeypatch, thing, method, number, when
):
    world.cloud.takes_no_snapshots = True
    one = process_of(world, 'shelve', 'delete')
    with monkeypatch.context() as patched:
        dying(patched, thing, method, number, when)
        with pytest.raises(Killed):
            go(world, one, 1000 + LIMIT_S + 1200)
    successor = world.process('three', at_end=at_end('shelve', 'delete'))
    successor.cycle()
    world.tick += 31
    go(world, successor, 1000 + LIMIT_S + 1200)
    assert state(world, server) is S.GONE
    # Who died between shelving and the note of it left a server that looks as
    # if nobody had asked: shelving is tried once more.
    unnoted = {('act', 1, 'after'), ('step', 3, 'before')}
    again = (method, number, when) in unnoted
    assert world.cloud.acted == [(server, 'shelve')] * (1 + again)


def test_a_deposed_leader_evicts_no_server(world, server, monkeypatch):
    one = process_of(world, 'stop')
    go(world, one, 1000 + LIMIT_S - 60)
    world.now += 120
    step = leaves_module.EvictionTable.step

    def deposed(self, *arguments, **named):
        leader = world.store.leader()
        world.store.take_over(leader.epoch, 'other', world.now)
        return step(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(leaves_module.EvictionTable, 'step', deposed)
        with pytest.raises(exception.Deposed):
            one.cycle()
    assert not one.cycle()
    assert (state(world, server), world.cloud.acted) == (S.TOLD, [])
