# SPDX-License-Identifier: Apache-2.0

"""The history of a request whose server leaves for others and returns."""

import collections
import dataclasses

import pytest

from nova_fairness.cluster.api import history
from nova_fairness.cluster.api import requests
from nova_fairness.model import plans as plan_model
from nova_fairness.model import reason
from nova_fairness.model import request
from nova_fairness.model import waits
from tests.unit.cluster import test_service
from tests.unit.cluster.eviction import test_preemption

world = test_service.world
process = test_preemption.process
spot = test_preemption.spot
go = test_preemption.run_cycles
NOTICE_S, LEAST_S = test_preemption.NOTICE_S, test_preemption.LEAST_S
A = reason.Audience


@pytest.fixture
def operations(world, process):
    return requests.ClusterOperations(world.store, process)


def events(operations, uuid, audience=A.MEMBER):
    return operations.request(uuid, audience, True)['request']['events']


def kinds(operations, uuid):
    return [each['kind'] for each in events(operations, uuid)]


def test_a_request_that_runs_was_submitted_held_sent_and_started(
    operations, spot
):
    assert kinds(operations, spot) == [
        'submitted',
        'waited',
        'dispatched',
        'active',
    ]
    told = events(operations, spot)
    assert told[-1]['until'] is None
    assert [each['until'] for each in told[1:3]] == [
        each['at'] for each in told[2:]
    ]


def test_history_is_told_only_if_it_is_asked_for(operations, spot):
    assert 'events' not in operations.request(spot, A.MEMBER)['request']


def test_hosts_of_a_request_are_told_to_operators(operations, spot):
    def hosts(audience):
        return [each['hosts'] for each in events(operations, spot, audience)]

    assert hosts(A.OPERATOR)[-1] == ['h1']
    assert not any(hosts(A.MEMBER))


def test_a_server_that_made_room_has_all_its_steps_in_the_history(
    world, process, operations, spot
):
    wanting = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    assert kinds(operations, spot)[3:] == ['active', 'notified', 'evicted']
    evicted = events(operations, spot)[-1]
    assert (evicted['server'], evicted['reason']) == (spot, 'makes_room')
    assert 'rich' not in evicted['explanation']
    assert 'rich' in events(operations, spot, A.OPERATOR)[-1]['explanation']
    assert 'room_made' in kinds(operations, wanting)


def test_a_server_that_returns_has_the_history_of_both_of_its_requests(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    before = kinds(operations, spot)
    test_preemption.back(world, spot)
    process.cycle()
    assert operations.request(spot)['request']['uuid'] != spot
    told = collections.Counter(kinds(operations, spot))
    assert told == collections.Counter(
        [*before, 'submitted', 'waited', 'waited']
    )
    times = [each['at'] for each in events(operations, spot)]
    assert times == sorted(times)


def test_each_server_of_a_request_finds_it_after_its_end(
    world, process, operations
):
    servers = test_service.posted_together(world, 'many', 2, 99)
    process.cycle()
    uuid = operations.request(servers[1])['request']['uuid']
    operations.cancel(uuid, by_operator=False)
    process.cycle()
    for server in servers:
        told = operations.request(server)['request']
        assert (told['uuid'], told['state']) == (uuid, 'cancelled')
        assert kinds(operations, server)[0] == 'submitted'


def test_a_server_that_returned_finds_its_newest_request_after_its_end(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    test_preemption.back(world, spot)
    process.cycle()
    newest = operations.request(spot)['request']['uuid']
    before = kinds(operations, spot)
    world.cloud.remove(spot)
    go(world, process, 300)
    told = operations.request(spot)['request']
    assert told['uuid'] == newest != spot
    assert told['state'] in {'ended', 'cancelled'}
    assert kinds(operations, spot)[: len(before)] == before
    # By its own UUID the first one is still told.
    assert operations.request(newest)['request']['uuid'] == newest


def test_waits_are_those_of_the_last_seven_days(
    world, process, operations, spot
):
    def told(key, since=None):
        wanted = waits.WaitFilter(key, None, since)
        return operations.waits(wanted, None, 9)

    [first] = told(waits.WaitKey.FLAVOR)['waits']
    assert (first['name'], first['requests_count']) == ('small', 1)
    assert first['p50'] == first['p95'] >= 0.0
    assert first['explanation'] is None
    [by_reason] = told(waits.WaitKey.REASON)['waits']
    assert by_reason['explanation'] == 'for a cycle of the queue'
    go(world, process, 8 * 86400, 8 * 86400)
    assert told(waits.WaitKey.FLAVOR) == {'waits': [], 'more': False}
    assert told(waits.WaitKey.FLAVOR, 0.0)['waits'] == [first]


def test_requests_that_ended_are_listed_where_they_are_looked_for(
    world, process, operations, spot
):
    wanting = world.post('r1', project='rich')
    process.cycle()
    operations.cancel(wanting, by_operator=False)

    def uuids(marker=None, limit=9, project=None, **more):
        wanted = request.RequestFilter(**more)
        found = operations.requests(
            project, marker, limit, None, A.MEMBER, wanted
        )
        return [each['uuid'] for each in found['requests']], found['more']

    every = frozenset(request.State)
    assert uuids() == ([spot], False)
    first, last = uuids(states=every)[0]
    assert {first, last} == {spot, wanting}
    assert uuids(states=every, limit=1) == ([first], True)
    assert uuids(first, 1, states=every) == ([last], False)
    assert uuids(states=every, project='rich') == ([wanting], False)


def test_a_page_goes_on_past_requests_that_have_a_newer_one(
    world, process, operations, spot
):
    world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    test_preemption.back(world, spot)
    process.cycle()
    newest = operations.request(spot)['request']['uuid']
    wanted = request.RequestFilter(server=spot)
    found = operations.requests(None, None, 1, None, A.MEMBER, wanted)
    assert [each['uuid'] for each in found['requests']] == [newest]
    assert not found['more']


def test_a_wait_is_told_by_its_purpose(world, process, operations, spot):
    wanting = world.post('r1', project='rich')
    go(world, process, LEAST_S + NOTICE_S + 300)
    told = operations.request(wanting, A.MEMBER)['request']['waited']
    assert told.startswith('waited ')
    assert ' for servers to leave for it' in told
    assert operations.request(spot, A.MEMBER)['request']['waited'] is None


def test_a_migration_by_a_plan_is_history_of_its_server(
    world, process, operations, spot
):
    move = plan_model.Move(spot, 'h1', 'h2', 1, 9)
    move = dataclasses.replace(
        move, state=plan_model.MoveState.MOVED, ended_at=world.now + 1
    )
    plan = plan_model.MigrationPlan(
        'p1', plan_model.Goal.EMPTY, 'h1', made_at=world.now,
        changed_at=world.now, until=world.now + 900, moves=(move,),
    )  # fmt: skip
    world.store.plans.add(plan, world.store.leader().epoch)
    [moved] = [
        each
        for each in events(operations, spot, A.OPERATOR)
        if each['kind'] == 'migrated'
    ]
    assert (moved['server'], moved['hosts']) == (spot, ['h1', 'h2'])


def test_an_answer_has_the_newest_events_of_very_many(
    world, operations, spot, monkeypatch
):
    monkeypatch.setattr(history, 'MOST_EVENTS', 2)
    assert kinds(operations, spot) == ['dispatched', 'active']
