# SPDX-License-Identifier: Apache-2.0

"""Servers make room for requests, beside a fake cloud; the store is real."""

import uuid as uuid_module

import pytest

from nova_fairness import exception
from nova_fairness.cluster import event_notifications
from nova_fairness.cluster.admission import intake
from nova_fairness.cluster.api import requests
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import notice_channels
from nova_fairness.cluster.eviction import preemption as preemption_module
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.openstack import glance
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.cluster.store import store as store_module
from nova_fairness.model import eviction
from nova_fairness.model import queue as queue_model
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import planner as queue
from nova_fairness.planners.preemption import planner as preemption
from tests.fixtures import nova_casts
from tests.fixtures import small_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_time_limits
from tests.unit.planners.preemption import test_planner

world = test_service.world
A, S, R = eviction.EvictionAction, eviction.EvictionState, test_service.S
NOTICE_S = test_service.NOTICE_S
LEAST_S = preemption.USUAL.least_run_s
COST = (
    *('server', 'project_id', 'user_id', 'for_request', 'for_project'),
    *('action', 'reason', 'outcome', 'returned_at', 'notice_s', 'lost_vcpu_s'),
)
TERMS = intake.AdmissionOptions(
    preemptible=parser.PreemptibleRules(projects=frozenset({'spare'}))
)


def process_of(world, name, *actions, terms=TERMS):
    """A new process that leads."""
    world.plan = preemption_module.Planner(
        queue.plan, preemption.LEAST, preemption.USUAL
    )
    chosen = tuple(map(A, actions or ['shelve']))
    world.making = preemption_module.PreemptionOptions(chosen)
    process = world.process(name, terms=terms)
    process.cycle()
    world.tick += 31
    process.cycle()
    return process


def runs(world, process, name, host, project='spare', hints=None):
    """A server that was asked for and runs."""
    server = world.post(name, project=project, hints=hints)
    flavor = {'vcpus': 4, 'ram': 100, 'disk': 0}
    world.cloud.servers[server]['flavor'] = flavor
    process.cycle()
    world.cloud.build(server, host, test_service.NEED)
    launched = '1970-01-01T00:16:40'
    world.cloud.servers[server]['OS-SRV-USG:launched_at'] = launched
    process.cycle()
    return server


class FakeBroken:
    """Victims that fail as often as they are asked."""

    def choose(self, needs, field):
        raise ModuleNotFoundError("No module named 'scipy'")


def test_a_failing_victim_policy_does_not_block_starting_requests(caplog):
    lent = test_planner.runs('s1', 'a', 4)
    asked = [
        small_cloud.waiting_request('r', 2, 'q'),
        small_cloud.waiting_request('large', 4, 'q'),
    ]
    snapshot = test_planner.cloud({'a': 4, 'b': 2}, [lent], asked)
    plan = preemption_module.Planner(
        queue.plan, FakeBroken(), test_planner.SOON
    )
    for _ in range(3):
        found = plan(snapshot, test_planner.NOW)
        assert [each.request for each in found.actions] == ['r']
    [said] = [each.getMessage() for each in caplog.records]
    assert said == (
        'no preemption is planned: the victim policy failed: the victims'
        ' FakeBroken failed:'
        " ModuleNotFoundError: No module named 'scipy'"
    )


@pytest.fixture
def process(world):
    return process_of(world, 'one')


@pytest.fixture
def spot(world, process):
    """A preemptible server on the only host."""
    return runs(world, process, 's1', 'h1')


def go(world, process, for_s, every=60.0):
    end = world.now + for_s
    while world.now < end:
        world.now += every
        process.cycle()


def leave(world, server):
    return world.store.leaves.newest_of_servers([server]).get(server)


def test_the_owner_of_a_victim_reads_preemptor_and_reason(
    world, process, spot
):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    found = leave(world, spot)
    assert (found.state, found.request) == (S.TOLD, asked)
    assert found.at >= world.now + NOTICE_S - 60
    ran_s = dict(found.why.numbers)['ran_s']
    assert found.why == reason.why(
        reason.Reason.MAKES_ROOM, 'rich', ran_s=ran_s
    )
    assert ran_s >= LEAST_S
    told = world.cloud.servers[spot]['metadata']
    assert told[notice_channels.LEAVES_BY] == 'shelve'
    assert told[notice_channels.LEAVES_WHY] == (
        'it makes room for a request of another project, and has run for'
        f' {ran_s:.0f} s'
    )
    assert world.reason(asked) is reason.Reason.ROOM_IS_MADE
    assert world.cloud.acted == []


def test_the_preemptor_starts_in_the_freed_room(world, process, spot):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    assert leave(world, spot).state is S.GONE
    assert world.cloud.acted[0] == (spot, 'shelve')
    assert world.state(asked) is R.STARTING


def test_no_other_request_starts_in_room_freed_for_a_preemptor(
    world, process, spot
):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + 120)
    # Of the same band, and there before the room is free.
    other = world.post('r2', project='rich')
    go(world, process, NOTICE_S + 300)
    assert world.state(asked) is R.STARTING
    assert world.state(other) is R.WAITING


def back(world, server):
    """Nova has taken the unshelving and sends it; the relay holds it."""
    cast = nova_casts.unshelve(nova_casts.spec(), server=server)
    world.store.store_message(cast)


def test_a_victim_returns_with_its_age_and_priority_class(
    world, process, spot
):
    world.post('r1', project='rich')
    begun = world.store.request(spot).request.asked_at
    go(world, process, LEAST_S + NOTICE_S + 300)
    assert world.cloud.acted == [(spot, 'shelve'), (spot, 'unshelve')]
    # While it waits nobody asks again.
    back(world, spot)
    go(world, process, 900)
    assert len(world.cloud.acted) == 2
    [waits] = [
        each.request
        for each in world.store.requests({R.WAITING})
        if each.request.servers == (spot,)
    ]
    assert waits.origin is request.Origin.UNSHELVE
    assert waits.is_preemptible
    assert waits.asked_at == pytest.approx(begun, abs=1e-3)
    assert waits.asked_at > begun


def test_a_victim_that_waits_to_return_is_not_in_doubt(
    world, process, spot, caplog
):
    """It ran before; the request that unshelves it says where that is."""
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    assert world.cloud.acted[-1] == (spot, 'unshelve')
    world.cloud.servers[spot]['OS-EXT-STS:task_state'] = 'unshelving'
    for _ in range(3):
        world.tick += 601
        process.cycle()
    assert 'is not possible' not in caplog.text
    assert world.state(spot) is R.ACTIVE


def test_the_notice_is_removed_when_the_victim_runs_again(
    world, process, spot
):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    world.cloud.remove(asked)
    world.cloud.build(spot, 'h1', test_service.NEED)
    go(world, process, 120)
    assert leave(world, spot).state is S.RETURNED
    assert world.cloud.servers[spot]['metadata'] == {}


def test_cost_and_outcome_of_a_preemption_are_recorded(world, process, spot):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    ask = requests.ClusterOperations(world.store, process)
    [told] = ask.preemptions('spare', None, 9)['preemptions']
    assert ask.preemptions('rich', None, 9)['preemptions'] == [told]
    assert ask.preemption(told['uuid']) == {'preemption': told}
    found = leave(world, spot)
    assert found.lost_vcpu_s == 4 * (found.acted_at - 1000.0)
    assert {key: told[key] for key in COST} == {
        'server': spot, 'project_id': 'spare', 'user_id': 'u',
        'for_request': asked, 'for_project': 'rich', 'action': 'shelve',
        'reason': 'makes_room', 'outcome': 'freed', 'returned_at': None,
        'notice_s': found.acted_at - found.told_at,
        'lost_vcpu_s': found.lost_vcpu_s,
    }  # fmt: skip
    assert found.notice_s >= NOTICE_S
    assert found.chosen_at <= found.told_at < found.acted_at <= found.gone_at
    assert uuid_module.UUID(told['uuid']) != uuid_module.UUID(spot)
    with pytest.raises(exception.UnknownPreemption):
        ask.preemptions(None, spot, 9)


def test_two_preemptions_of_a_server_are_both_recorded(world, process, spot):
    first = world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    process.cancel(first, reason.why(reason.Reason.TAKEN_BACK))
    go(world, process, 60)
    world.post('r2', project='rich')
    go(world, process, 120)
    ask = requests.ClusterOperations(world.store, process)
    told = ask.preemptions(None, None, 9)['preemptions']
    assert [each['server'] for each in told] == [spot, spot]
    assert [each['outcome'] for each in told] == [None, 'spared']
    assert [each['lost_vcpu_s'] for each in told] == [0.0, 0.0]


def test_preemptible_requests_are_listed_alone(world, process, spot):
    ask = requests.ClusterOperations(world.store, process)
    other = world.post('r1', project='rich')
    process.cycle()
    for wanted, found in ((True, [spot]), (False, [other])):
        told = ask.requests(None, None, 9, wanted)['requests']
        assert [each['uuid'] for each in told] == found


def test_costs_of_preemptions_are_counted_and_reported(world, process, spot):
    told = []
    watch = event_notifications.RequestWatch(
        world.store, process, told.extend, 'c1'
    )
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    found, begun = leave(world, spot), leave(world, spot).chosen_at
    world.cloud.build(asked, 'h1', test_service.NEED)
    go(world, process, 60)
    assert watch.queue().preempted == queue_model.PreemptionOutcomes(
        ended={('makes_room', 'freed'): 1},
        notice_s=found.notice_s,
        lost_vcpu_s=found.lost_vcpu_s,
        served=1,
        served_s=world.now - begun,
    )
    gone = [each for each in told if each.event == 'fairness.server.gone']
    assert [each.payload['lost_vcpu_s'] for each in gone] == [
        found.lost_vcpu_s
    ]
    world.cloud.remove(asked)
    world.cloud.build(spot, 'h1', test_service.NEED)
    go(world, process, 120)
    assert leave(world, spot).outcome == 'freed'
    assert told[-1].event == 'fairness.server.returned'
    assert told[-1].payload['returned_at'] == told[-1].payload['at'].replace(
        'Z', '+00:00'
    )
    assert watch.queue().preempted.ended == {('makes_room', 'freed'): 1}


def test_a_victim_stays_when_its_preemptor_is_cancelled(world, process, spot):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    assert leave(world, spot).state is S.TOLD
    why = reason.why(reason.Reason.TAKEN_BACK)
    process.cancel(asked, why)
    go(world, process, 2 * NOTICE_S)
    assert leave(world, spot).state is S.SPARED
    assert world.cloud.acted == []
    assert world.cloud.servers[spot]['metadata'] == {}


def says_done(world, spot):
    metadata = world.cloud.servers[spot].setdefault('metadata', {})
    metadata[nova.DONE] = 'true'


def shuts_down(world, spot):
    world.cloud.servers[spot]['status'] = 'SHUTOFF'


@pytest.mark.parametrize('answer', [says_done, shuts_down])
def test_a_server_that_reports_done_leaves_at_once_without_cost(
    world, process, spot, answer
):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    found = leave(world, spot)
    assert found.state is S.TOLD
    answer(world, spot)
    go(world, process, 120)
    assert world.cloud.acted[0] == (spot, 'shelve')
    assert world.now < found.at
    go(world, process, 120)
    assert leave(world, spot).state is S.GONE
    assert world.state(asked) is R.STARTING
    ask = requests.ClusterOperations(world.store, process)
    [told] = ask.preemptions(None, None, 9)['preemptions']
    assert (told['answered'], told['lost_vcpu_s']) == (True, 0.0)
    assert 0 <= told['notice_s'] < NOTICE_S


def test_a_done_mark_from_before_the_notice_is_no_answer(world, process, spot):
    says_done(world, spot)
    world.post('r1', project='rich')
    go(world, process, LEAST_S + 120)
    assert leave(world, spot).state is S.TOLD
    assert nova.DONE not in world.cloud.servers[spot]['metadata']
    go(world, process, NOTICE_S - 240)
    assert world.cloud.acted == []


def test_a_stopped_victim_gets_its_full_notice_time(world, process, spot):
    shuts_down(world, spot)
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S - 60)
    assert leave(world, spot).state is S.TOLD
    go(world, process, 180)
    assert world.cloud.acted[0] == (spot, 'shelve')
    found = leave(world, spot)
    assert (found.answered, found.lost_vcpu_s) == (False, 0.0)


def test_victims_with_notices_are_polled_in_turns(world, process, monkeypatch):
    monkeypatch.setattr(evictor, '_ASKED_AT_ONCE', 1)
    world.cloud.add_host('h2', 8)
    spots = [runs(world, process, f's{n}', 'h2') for n in (1, 2)]
    world.post('r1', 8, project='rich')
    go(world, process, LEAST_S + 120)
    assert [leave(world, each).state for each in spots] == [S.TOLD] * 2
    for each in spots:
        says_done(world, each)
    go(world, process, 240)
    assert sorted(world.cloud.acted[:2]) == sorted(
        (each, 'shelve') for each in spots
    )


@pytest.mark.parametrize('happens', ['deleted', 'stopped'])
def test_an_action_of_the_owner_during_eviction_is_no_error(
    world, process, spot, happens
):
    asked = world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    if happens == 'deleted':
        world.cloud.remove(spot)
    else:
        world.cloud.servers[spot]['status'] = 'SHUTOFF'
    go(world, process, NOTICE_S + 300)
    assert leave(world, spot).state is S.GONE
    assert world.state(asked) is R.STARTING


def test_a_victim_whose_room_stays_allocated_is_skipped_for_a_while(
    world, process
):
    """Shelving fails: the next plan looks for another."""
    world.cloud.add_host('h2', 4)
    first = runs(world, process, 's1', 'h1')
    second = runs(world, process, 's2', 'h2')
    world.cloud.takes_no_snapshots = True
    asked = world.post('r1', project='rich')
    while not world.store.leaves.newest_in_states({S.STAYS}):
        go(world, process, 60)
    [stays] = world.store.leaves.newest_in_states({S.STAYS})
    world.cloud.takes_no_snapshots = False
    go(world, process, NOTICE_S + 300)
    [other] = {first, second} - {stays}
    assert leave(world, stays).state is S.STAYS
    assert leave(world, other).state is S.GONE
    assert world.state(asked) is R.STARTING


def test_no_more_victims_leave_than_needed(world, process):
    for n in range(2, 5):
        world.cloud.add_host(f'h{n}', 4)
    servers = [runs(world, process, f's{n}', f'h{n}') for n in range(1, 5)]
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 900)
    left = [each for each in servers if leave(world, each)]
    assert len(left) == 1


def choosing(*choices):
    projects = frozenset({'spare'})
    return intake.AdmissionOptions(
        preemptible=parser.PreemptibleRules(
            projects=projects, choices=frozenset(map(A, choices))
        )
    )


ALL = choosing(*A)


@pytest.mark.repeated
@pytest.mark.parametrize(
    ('choice', 'actions', 'snapshots', 'acted', 'ended'),
    [
        ('delete', ['shelve'], 1, [], None),
        ('shelve', ['delete'], 1, ['shelve'], 'SHELVED_OFFLOADED'),
        # Stopping keeps the room: what operators chose gives it back.
        ('stop', ['shelve'], 1, ['os-stop', 'shelve'], 'SHELVED_OFFLOADED'),
        ('suspend', ['suspend', 'delete'], 1, ['suspend'], None),
        ('snapshot_delete', ['shelve'], 1, ['createImage'], None),
        # Without an image it is not deleted, unless operators say so.
        (
            'snapshot_delete',
            ['shelve'],
            0,
            ['createImage', 'shelve', 'os-start'],
            'ACTIVE',
        ),
        ('snapshot_delete', ['delete'], 0, ['createImage'], None),
        ('none', ['shelve'], 1, ['shelve'], 'SHELVED_OFFLOADED'),
    ],
)
def test_the_eviction_action_of_the_owner_is_tried_first(
    world, choice, actions, snapshots, acted, ended
):
    world.cloud.takes_no_snapshots = not snapshots
    process = process_of(world, 'one', *actions, terms=ALL)
    hints = {parser.ACTION: [choice]}
    spot = runs(world, process, 's1', 'h1', hints=hints)
    # What is said later changes nothing.
    world.cloud.servers[spot]['metadata'] = {parser.ACTION: 'delete'}
    world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    told = world.cloud.servers[spot]['metadata'][notice_channels.LEAVES_BY]
    assert told == (actions[0] if choice == 'none' else choice)
    while leave(world, spot).state in eviction.LIVE:
        go(world, process, 60)
    done = [each for _, each in world.cloud.acted if each != 'unshelve']
    assert done == acted
    assert world.cloud.servers.get(spot, {}).get('status') == ended
    is_free = spot not in world.cloud.allocations
    assert is_free is (leave(world, spot).state is S.GONE)


def test_an_action_that_operators_do_not_allow_is_not_chosen(world):
    process = process_of(world, 'one', 'shelve', terms=choosing('stop'))
    hints = {parser.ACTION: ['delete']}
    spot = runs(world, process, 's1', 'h1', hints=hints)
    ask = requests.ClusterOperations(world.store, process)
    assert ask.request(spot)['request']['preemption_action'] is None
    world.post('r1', project='rich')
    go(world, process, LEAST_S + 60)
    assert leave(world, spot).actions == (A.SHELVE,)


@pytest.fixture
def kept(world):
    """A process, and a server whose owner wants an image of it."""
    process = process_of(world, 'one', 'shelve', terms=ALL)
    hints = {parser.ACTION: ['snapshot_delete']}
    spot = runs(world, process, 's1', 'h1', hints=hints)
    world.post('r1', project='rich')
    return process, spot


def test_a_server_is_deleted_after_its_owner_has_the_image(world, kept):
    process, spot = kept
    world.cloud.uploads_at_once = False
    go(world, process, LEAST_S + 60)
    while leave(world, spot).state is not S.ASKED:
        go(world, process, 30, every=30.0)
    [image] = world.cloud.images.values()
    assert (image['status'], image['owner']) == ('saving', 'admin')
    assert image['fairness_leave'] == leave(world, spot).uuid
    image['status'] = 'active'
    world.cloud.broken['PATCH /images'] = 503
    go(world, process, 60)
    assert spot in world.cloud.servers
    world.cloud.broken.clear()
    go(world, process, 120)
    assert spot not in world.cloud.servers
    assert image['owner'] == 'spare'
    assert leave(world, spot).state is S.GONE


def test_an_image_that_another_tenant_marked_deletes_nothing(world, kept):
    """Others read the UUID of a leave: its request tells for whom it is."""
    process, spot = kept
    world.cloud.takes_no_snapshots = True
    go(world, process, LEAST_S + 60)
    forged = {
        'id': 'forged', 'name': f'fairness-{spot}', 'owner': 'rich',
        'status': 'active', 'fairness_leave': leave(world, spot).uuid,
        'fairness_proof': leave(world, spot).uuid,
    }  # fmt: skip
    world.cloud.images['forged'] = dict(forged)
    go(world, process, NOTICE_S + 120)
    assert spot in world.cloud.servers
    assert leave(world, spot).tried > 1
    assert world.cloud.images['forged'] == forged


def test_an_image_that_takes_too_long_is_not_waited_for(world, kept):
    process, spot = kept
    world.cloud.uploads_at_once = False
    go(world, process, LEAST_S + NOTICE_S + 900)
    assert leave(world, spot).action is A.SHELVE
    assert world.cloud.servers[spot]['status'] == 'SHELVED_OFFLOADED'


@pytest.mark.repeated
@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize(
    ('thing', 'method'),
    [
        (nova.Nova, 'create_image'),
        (glance.Images, 'set_owner'),
        (nova.Nova, 'delete'),
    ],
)
def test_exactly_one_image_is_made_despite_a_crash_at_any_step(
    world, kept, monkeypatch, thing, method, when
):
    process, spot = kept
    with monkeypatch.context() as patched:
        test_time_limits.dying(patched, thing, method, 1, when)
        with pytest.raises(test_time_limits.Killed):
            go(world, process, LEAST_S + NOTICE_S + 600)
    world.tick += 31
    successor = process_of(world, 'two', 'shelve', terms=ALL)
    go(world, successor, 600)
    assert leave(world, spot).state is S.GONE
    [image] = world.cloud.images.values()
    assert (image['owner'], spot in world.cloud.servers) == ('spare', False)


PLACES = [
    (store_module.Store, 'reserve_room', 1),
    (leaves_module.EvictionTable, 'add', 1),
    (leaves_module.EvictionTable, 'add', 2),
    (nova.Nova, 'write_metadata', 1),
    *((leaves_module.EvictionTable, 'step', n) for n in range(1, 6)),
    (nova.Nova, 'request_action', 1),
    (nova.Nova, 'request_action', 2),
    (nova.Nova, 'unshelve', 1),
    *((store_module.Store, 'step', n) for n in range(1, 4)),
]


@pytest.mark.repeated
@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize(('thing', 'method', 'number'), PLACES)
def test_room_is_made_once_despite_a_crash_at_any_step(
    world, monkeypatch, thing, method, number, when
):
    """Two servers leave for one request, and each is asked back once."""
    world.cloud.add_host('h1', 0)
    world.cloud.add_host('h2', 8)
    one = process_of(world, 'one')
    servers = [runs(world, one, f's{n}', 'h2') for n in (1, 2)]
    asked = world.post('r1', 8, project='rich')
    with monkeypatch.context() as patched:
        test_time_limits.dying(patched, thing, method, number, when)
        with pytest.raises(test_time_limits.Killed):
            go(world, one, LEAST_S + NOTICE_S + 600, every=120.0)
    world.tick += 31
    successor = process_of(world, 'two')
    go(world, successor, LEAST_S + NOTICE_S + 600, every=120.0)
    assert [leave(world, each).state for each in servers] == [S.GONE] * 2
    asks = [(each, a) for each in servers for a in ('shelve', 'unshelve')]
    assert sorted(world.cloud.acted) == sorted(asks)
    need = {**test_service.NEED, 'VCPU': 8}
    if world.conductor.sent.count('cast-r1'):
        world.cloud.build(asked, 'h2', need)
    # Whether Nova has it is known for sure only later.
    for _ in range(3):
        world.tick += 601
        successor.cycle()
    assert world.conductor.sent.count('cast-r1') == 1
    world.cloud.build(asked, 'h2', need)
    go(world, successor, 120)
    assert world.state(asked) is R.ACTIVE
    assert world.cloud.holds() == []
