# SPDX-License-Identifier: Apache-2.0

"""Nobody needs the room any more while servers leave for it: they go no
further, what was done to them is undone, and promises that counted on their
room are made anew; the store is real, the cloud a fake."""

import dataclasses
import functools

import pytest

from nova_fairness.cluster import event_notifications
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.eviction import preemption as preemption_module
from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.planners.preemption import planner as preemption
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption
from tests.unit.cluster.eviction import test_time_limits

world = test_preemption.world
A, S, R = eviction.EvictionAction, eviction.EvictionState, test_service.S
LEAST_S, NOTICE_S = test_preemption.LEAST_S, test_preemption.NOTICE_S
leave = test_preemption.leave


def taken_back(world, process, asked):
    process.cancel(asked, reason.why(reason.Reason.TAKEN_BACK))


def deleted(world, process, asked):
    world.cloud.remove(asked)


def started_elsewhere(world, process, asked):
    world.cloud.add_host('h9', 4)
    process.release(asked)


ENDS = [taken_back, deleted, started_elsewhere]


def go_until(world, process, is_so, every=150.0, most_s=5000.0):
    end = world.now + most_s
    while not is_so():
        assert world.now < end
        world.now += every
        process.cycle()


def room(world, request):
    """What is promised to a request, if it has come."""
    record = world.store.request(request)
    return record and record.room


go = functools.partial(test_preemption.go, every=150.0)


def begun(world, *actions):
    """A process, and a server to which the first action was done."""
    process = test_preemption.process_of(
        world, 'one', *actions, terms=test_preemption.ALL
    )
    spot = test_preemption.runs(world, process, 's1', 'h1')
    asked = world.post('r1', project='rich')
    go_until(world, process, lambda: world.cloud.acted)
    return process, spot, asked


def is_as_before(world, spot):
    server = world.cloud.servers[spot]
    return (
        (server['status'], server['OS-EXT-SRV-ATTR:host']) == ('ACTIVE', 'h1')
        and server['metadata'] == {}
        and not world.cloud.images
    )


@pytest.mark.parametrize(
    ('action', 'acted', 'end'),
    [
        *(('stop', ['os-stop', 'os-start'], end) for end in ENDS),
        ('suspend', ['suspend', 'resume'], taken_back),
        ('snapshot_delete', ['createImage'], deleted),
    ],
)
def test_a_stopped_victim_is_started_when_the_preemptor_vanishes(
    world, action, acted, end
):
    world.cloud.uploads_at_once = False
    process, spot, asked = begun(world, action, 'shelve')
    told = []
    event_notifications.RequestWatch(world.store, process, told.extend, 'c1')
    end(world, process, asked)
    go_until(world, process, lambda: leave(world, spot).state is S.STAYS)
    assert is_as_before(world, spot)
    go(world, process, NOTICE_S)
    assert world.cloud.acted == [(spot, each) for each in acted]
    assert leave(world, spot).outcome == 'stayed'
    events = [each.event for each in told if 'server' in each.event]
    assert events == ['fairness.server.undoing', 'fairness.server.stays']


def test_a_victim_that_shut_itself_down_is_started_again(world):
    process = test_preemption.process_of(world, 'one')
    spot = test_preemption.runs(world, process, 's1', 'h1')
    asked = world.post('r1', project='rich')
    go_until(world, process, lambda: leave(world, spot))
    assert leave(world, spot).state is S.TOLD
    test_preemption.shuts_down(world, spot)
    deleted(world, process, asked)
    go_until(world, process, lambda: leave(world, spot).outcome)
    assert is_as_before(world, spot)
    assert world.cloud.acted == [(spot, 'os-start')]
    assert leave(world, spot).outcome == 'spared'


def test_an_originally_stopped_victim_is_not_started(world):
    process = test_preemption.process_of(world, 'one', 'suspend', 'shelve')
    spot = test_preemption.runs(world, process, 's1', 'h1')
    test_preemption.shuts_down(world, spot)
    asked = world.post('r1', project='rich')
    go_until(world, process, lambda: leave(world, spot))
    taken_back(world, process, asked)
    go_until(world, process, lambda: leave(world, spot).outcome)
    assert world.cloud.servers[spot]['status'] == 'SHUTOFF'
    assert world.cloud.acted == []


def test_a_server_that_is_being_shelved_is_shelved_and_starts_again(world):
    """Nova cannot be kept from it; its room is free then."""
    world.cloud.offloads_at_once = False
    process, spot, asked = begun(world, 'shelve')
    server = world.cloud.servers[spot]
    server['OS-EXT-STS:task_state'] = 'shelving_image_uploading'
    deleted(world, process, asked)
    go(world, process, 2 * NOTICE_S)
    # However long that takes.
    assert leave(world, spot).state is S.UNDOING
    assert world.cloud.acted == [(spot, 'shelve')]
    server['OS-EXT-STS:task_state'] = None
    go_until(world, process, lambda: leave(world, spot).state is S.GONE)
    go_until(world, process, lambda: len(world.cloud.acted) == 3)
    assert world.cloud.acted[1:] == [
        (spot, 'shelveOffload'), (spot, 'unshelve')
    ]  # fmt: skip


def test_an_undone_preemption_waits_until_notices_can_be_removed(world):
    """Nova answers nothing but what it is asked to do."""
    process, spot, asked = begun(world, 'stop', 'shelve')
    taken_back(world, process, asked)
    world.cloud.broken[f'DELETE /servers/{spot}/metadata'] = 503
    go(world, process, 2 * NOTICE_S)
    assert leave(world, spot).state is S.UNDOING
    assert world.cloud.acted == [(spot, 'os-stop'), (spot, 'os-start')]
    world.cloud.broken.clear()
    go(world, process, 300)
    assert leave(world, spot).state is S.STAYS
    assert is_as_before(world, spot)


def test_a_victim_that_cannot_be_restarted_is_left_to_its_owner(world):
    process, spot, asked = begun(world, 'stop', 'shelve')
    taken_back(world, process, asked)
    world.cloud.broken[f'POST /servers/{spot}/action'] = 409
    go(world, process, 300)
    assert leave(world, spot).state is S.STAYS
    assert world.cloud.servers[spot]['metadata'] == {}


def test_a_stopped_server_that_keeps_its_room_is_started_again(world):
    world.cloud.takes_no_snapshots = True
    process, spot, _ = begun(world, 'shelve')
    go_until(world, process, lambda: leave(world, spot).state is S.STAYS)
    assert world.cloud.acted == [(spot, 'shelve'), (spot, 'os-start')]
    assert is_as_before(world, spot)
    # It is left alone for a while.
    go(world, process, LEAST_S - 60)
    assert len(world.cloud.acted) == 2


def test_a_server_that_kept_its_room_is_left_alone_with_no_least_run(
    world, monkeypatch
):
    always = dataclasses.replace(preemption.USUAL, least_run_s=0.0)
    monkeypatch.setattr(preemption, 'USUAL', always)
    world.cloud.takes_no_snapshots = True
    process, spot, _ = begun(world, 'shelve')
    go_until(world, process, lambda: leave(world, spot).state is S.STAYS)
    go(
        world,
        process,
        preemption_module.PreemptionOptions.again_s - 60,
        every=30.0,
    )
    assert leave(world, spot).state is S.STAYS
    go(world, process, 120, every=30.0)
    assert leave(world, spot).state is S.TOLD


def test_a_victim_that_left_before_the_undo_counts_as_gone(world):
    process, spot, asked = begun(world, 'stop', 'shelve')
    taken_back(world, process, asked)
    world.cloud.remove(spot)
    go(world, process, 300)
    assert leave(world, spot).state is S.GONE


PLACES = [
    *((leaves_module.EvictionTable, 'step', n) for n in (1, 2)),
    *((nova.Nova, 'delete_metadata', n) for n in (1, 4, 5, 8)),
    (nova.Nova, 'start_or_resume', 1),
    (glance.Images, 'delete_image', 1),
]


@pytest.mark.repeated
@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize(('thing', 'method', 'number'), PLACES)
def test_a_victim_runs_again_despite_a_crash_during_the_undo(
    world, monkeypatch, thing, method, number, when
):
    is_kept = thing is glance.Images
    world.cloud.uploads_at_once = False
    action = 'snapshot_delete' if is_kept else 'stop'
    process, spot, asked = begun(world, action, 'shelve')
    taken_back(world, process, asked)
    with monkeypatch.context() as patched:
        test_time_limits.dying(patched, thing, method, number, when)
        with pytest.raises(test_time_limits.Killed):
            go(world, process, 600)
    world.tick += 31
    successor = test_preemption.process_of(
        world, 'two', action, 'shelve', terms=test_preemption.ALL
    )
    go(world, successor, 600)
    assert leave(world, spot).state is S.STAYS
    assert is_as_before(world, spot)
    acted = ['createImage'] if is_kept else ['os-stop', 'os-start']
    assert world.cloud.acted == [(spot, each) for each in acted]


def leaning(world):
    """Two requests in the room that one server leaves for the first."""
    process = test_preemption.process_of(world, 'one')
    spot = test_preemption.runs(world, process, 's1', 'h1')
    first = world.post('r1', 2, project='rich')
    go_until(world, process, lambda: leave(world, spot))
    second = world.post('r2', 2, project='rich')
    go_until(world, process, lambda: room(world, second))
    assert room(world, second).leaving == ()
    return process, spot, first, second


def test_a_second_request_inherits_room_and_notice_of_a_victim(world):
    process, spot, first, second = leaning(world)
    chosen = leave(world, spot)
    taken_back(world, process, first)
    go(world, process, 60, every=30.0)
    found = leave(world, spot)
    assert (found.state, found.turn, found.at) == (S.TOLD, 0, chosen.at)
    assert room(world, second).leaving == ()
    go(world, process, NOTICE_S + 300)
    assert world.state(second) is R.STARTING
    done = [each for each in world.cloud.acted if each[1] == 'shelve']
    assert done == [(spot, 'shelve')]


def test_the_second_request_of_a_host_inherits_the_room_of_a_victim(world):
    """The first starts in the room that is free first, whoever left it."""
    world.cloud.add_host('h1', 0)
    world.cloud.add_host('h2', 8)
    process = test_preemption.process_of(world, 'one')
    spots = [
        test_preemption.runs(world, process, f's{n}', 'h2') for n in (1, 2)
    ]
    asked = [world.post(f'r{n}', project='rich') for n in (1, 2)]
    go_until(world, process, lambda: all(leave(world, e) for e in spots))
    # Of those that came at once the smaller UUID is first.
    first, second = sorted(asked)
    assert room(world, first).hosts == room(world, second).hosts == ('h2',)
    gone = leave(world, spots[0])
    [stays] = {*spots} - {gone.server}
    if gone.request == first:
        [gone, stays] = leave(world, stays), gone.server
    until = leave(world, stays).at
    world.cloud.remove(gone.server)
    go(world, process, 60, every=30.0)
    assert world.state(first) is R.STARTING
    world.cloud.build(first, 'h2', test_service.NEED)
    go(world, process, 60, every=30.0)
    found = leave(world, stays)
    assert (found.state, found.turn, found.at) == (S.TOLD, 0, until)
    go(world, process, NOTICE_S + 300)
    assert world.state(second) is R.STARTING
    assert world.cloud.acted[0] == (stays, 'shelve')


def test_no_victim_leaves_for_a_preemptible_request_that_remains(world):
    """Whether somebody may leave for that is judged anew."""
    process = test_preemption.process_of(world, 'one')
    spot = test_preemption.runs(world, process, 's1', 'h1')
    first = world.post('r1', 2, project='rich')
    go_until(world, process, lambda: leave(world, spot))
    second = world.post('r2', 2, project='spare')
    go_until(world, process, lambda: room(world, second))
    taken_back(world, process, first)
    go(world, process, 60, every=30.0)
    assert leave(world, spot).state is S.SPARED
    go(world, process, NOTICE_S + 300)
    assert is_as_before(world, spot)


def test_a_victim_of_two_requests_leaves_while_one_remains(
    world,
):
    process, spot, first, second = leaning(world)
    taken_back(world, process, second)
    go(world, process, 300)
    found = leave(world, spot)
    assert (found.state, found.request) == (S.TOLD, first)
    go(world, process, NOTICE_S + 300)
    assert world.state(first) is R.STARTING


def promised(world):
    """One of two hosts is promised.

    :returns: process, server of each host, the request, and its host.
    """
    process = test_preemption.process_of(world, 'one')
    spots = {'h1': test_preemption.runs(world, process, 's1', 'h1')}
    world.cloud.add_host('h2', 4)
    spots['h2'] = test_preemption.runs(world, process, 's2', 'h2')
    asked = world.post('r1', project='rich')
    go_until(world, process, lambda: room(world, asked))
    [host] = room(world, asked).hosts
    return process, spots, asked, host


def test_a_disabled_host_loses_its_reservation(world):
    """Room is made elsewhere, and nobody leaves for nothing."""
    process, spots, asked, host = promised(world)
    world.cloud.hypervisors[test_service.fake_cloud.name_uuid(host)][
        'state'
    ] = 'down'
    # Such a thing may last for a moment.
    go(world, process, 60, every=30.0)
    assert room(world, asked).hosts == (host,)
    go(world, process, 90, every=30.0)
    [other] = room(world, asked).hosts
    assert other != host
    assert leave(world, spots[host]).state is S.SPARED
    assert leave(world, spots[other]).state is S.TOLD
    go(world, process, NOTICE_S + 300)
    assert world.state(asked) is R.STARTING
    assert (spots[host], 'shelve') not in world.cloud.acted


@pytest.mark.parametrize('answer', [500, 'null', '{}'])
def test_a_briefly_unreadable_host_keeps_its_reservation(world, answer):
    process, spots, asked, host = promised(world)
    go(world, process, 30, every=30.0)
    before = leave(world, spots[host])
    uuid = test_service.fake_cloud.name_uuid(host)
    world.cloud.providers[uuid]['generation'] += 1
    path = f'GET /resource_providers/{uuid}/inventories'
    world.cloud.broken[path] = answer
    go(world, process, 40, every=20.0)
    assert process.quarantine.holds(quarantine.InputKind.HOST, host)
    assert room(world, asked).hosts == (host,)
    assert leave(world, spots[host]) == before
    world.cloud.broken.clear()
    go(world, process, NOTICE_S + 300)
    assert world.state(asked) is R.STARTING
    assert world.store.request(asked).hosts == (host,)


def test_a_preemptor_that_fits_elsewhere_starts_there(world):
    """Room comes free there meanwhile: the one that was told stays."""
    process = test_preemption.process_of(world, 'one')
    spot = test_preemption.runs(world, process, 's1', 'h1')
    asked = world.post('r1', project='rich')
    go_until(world, process, lambda: leave(world, spot))
    assert leave(world, spot).state is S.TOLD
    world.cloud.add_host('h2', 4)
    go(world, process, 60, every=30.0)
    assert world.state(asked) is R.STARTING
    assert leave(world, spot).state is S.SPARED
    world.cloud.build(asked, 'h2', test_service.NEED)
    go(world, process, NOTICE_S + 300)
    assert is_as_before(world, spot)
    assert world.cloud.acted == []


def moved(world, server, host):
    """Somebody migrates a server."""
    del world.cloud.allocations[server]
    world.cloud.build(server, host, test_service.NEED)


@pytest.mark.parametrize('number', [1, 2])
def test_a_migrated_victim_stays_and_other_victims_leave(world, number):
    """Its room is free by that; the promise, and the notice, hold."""
    world.cloud.add_host('h1', 0)
    world.cloud.add_host('h2', 4 * number)
    process = test_preemption.process_of(world, 'one')
    spots = [
        test_preemption.runs(world, process, f's{n}', 'h2')
        for n in range(number)
    ]
    asked = world.post('r1', 4 * number, project='rich')
    go_until(world, process, lambda: room(world, asked))
    promised = room(world, asked)
    assert sorted(promised.leaving) == sorted(spots)
    go(world, process, 60, every=30.0)
    world.cloud.add_host('h3', 4, status='disabled')
    first, *others = spots
    until = {each: leave(world, each).at for each in others}
    moved(world, first, 'h3')
    go(world, process, 60, every=30.0)
    assert leave(world, first).state is S.SPARED
    assert {each: leave(world, each).at for each in others} == until
    go(world, process, NOTICE_S + 300)
    assert world.state(asked) is R.STARTING
    assert world.store.request(asked).hosts == ('h2',)
    shelved = [each for each in world.cloud.acted if each[1] == 'shelve']
    assert shelved == [(each, 'shelve') for each in others]
    assert leave(world, first).turn == 0


def test_a_chosen_victim_is_not_chosen_twice_after_a_crash(world, monkeypatch):
    """The promise names it; another request has room made elsewhere."""
    process = test_preemption.process_of(world, 'one')
    test_preemption.runs(world, process, 's1', 'h1')
    world.cloud.add_host('h2', 4)
    test_preemption.runs(world, process, 's2', 'h2')
    first = world.post('r1', project='rich')
    with monkeypatch.context() as patched:
        test_time_limits.dying(
            patched, leaves_module.EvictionTable, 'add', 1, 'before'
        )
        with pytest.raises(test_time_limits.Killed):
            go(world, process, LEAST_S + 120)
    second = world.post('r2', project='rich')
    world.tick += 31
    successor = test_preemption.process_of(world, 'two')
    go(world, successor, 180)
    named = {room(world, each).leaving for each in (first, second)}
    assert len(named) == 2
    go(world, successor, NOTICE_S + 300)
    assert world.state(first) is world.state(second) is R.STARTING


def test_a_victim_whose_room_is_taken_gets_no_further_notice(world):
    process, _, asked = begun(world, 'shelve')
    told = []
    event_notifications.RequestWatch(world.store, process, told.extend, 'c1')
    go_until(world, process, lambda: world.state(asked) is R.STARTING)
    events = [each.event for each in told if 'server' in each.event]
    assert events == ['fairness.server.gone']
