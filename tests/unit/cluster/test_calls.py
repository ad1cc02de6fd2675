# SPDX-License-Identifier: Apache-2.0

"""How often the cloud is asked for a thousand servers, and who waits."""

import collections
import random

import pytest

from nova_fairness.cluster import pace
from nova_fairness.cluster import service as service_module
from nova_fairness.cluster.admission import sent_requests
from nova_fairness.cluster.eviction import evictor
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service as ends

world = ends.world
S = request.State
MANY = 1000
FEW = 60
"""Requests of one server each, where a cycle does a tenth of the usual."""

NO_HOST_HAS = {'resources:CUSTOM_NONE': '1'}

MOST = 450
"""Calls of one cycle, whatever is to be done."""

WHY = reason.why(reason.Reason.CANCELLED_BY_OPERATOR)


def calls(world, process, most=MOST):
    """Do a cycle; what was asked in it, counted by verb and first noun."""
    world.cloud.asked.clear()
    world.go(5)
    process.cycle()
    assert len(world.cloud.asked) <= most
    return collections.Counter(
        '/'.join(each.split('/')[:2]) for each in world.cloud.asked
    )


@pytest.fixture
def slowly(monkeypatch):
    """A cycle does a tenth of what it does otherwise."""
    for module, names in (
        (service_module, ('_DELETED_AT_ONCE', '_EXPIRED_AT_ONCE')),
        (sent_requests, ('SENT_AT_ONCE', '_ASKED_AT_ONCE')),
        (evictor, ('_AT_ONCE', '_ASKED_AT_ONCE')),
    ):
        for name in names:
            usual = getattr(module, name)
            monkeypatch.setattr(module, name, usual // 10)


@pytest.fixture
def large(world):
    world.cloud.add_host('large', 4 * MANY, memory=10**6)
    return world


def singles(world, count, project, vcpu=1, **more):
    return [
        world.post(f'{project}-{n}', vcpu, project, **more)
        for n in range(count)
    ]


def test_a_thousand_servers_start_with_a_few_calls(large):
    servers = ends.posted_together(large, 'r1', MANY, 1)
    found = calls(large, large.process(), 40)
    assert large.state(servers[0]) is S.STARTING
    assert found['POST /allocations'] == 2
    assert not found['DELETE /allocations']
    assert large.cloud.holds() == []


@pytest.mark.parametrize('how', ['cancel', 'expire'])
def test_a_thousand_servers_are_cleaned_up_with_one_call_each(world, how):
    hints = {'fairness_longest_wait': ['1h']} if how == 'expire' else None
    servers = ends.posted_together(world, 'r1', MANY, 99, hints=hints)
    process = world.process()
    process.cycle()
    assert world.state(servers[0]) is S.WAITING
    if how == 'cancel':
        world.cloud.asked.clear()
        process.cancel(servers[0], WHY)
        assert world.cloud.asked == []
    else:
        world.go(3600)
    total = collections.Counter()
    other = None
    while world.store.settled_requests_with_message(9) or other is None:
        total += calls(world, process, 200)
        if other is None:
            # Another project's request comes in the midst of it.
            other = world.post('other', 4, 'another-project')
        else:
            assert world.state(other) is not S.WAITING
    assert total['DELETE /servers'] == MANY
    assert total['GET /servers'] < 100
    assert sum(total.values()) < MANY + 400
    assert not set(servers) & world.cloud.servers.keys()
    assert world.conductor.sent.count('cast-r1') == 1


def test_many_requests_start_some_at_a_time_and_in_turn(large, slowly):
    servers = singles(large, FEW, 'many')
    other = large.post('z-other', 1, 'other')
    process = large.process()
    assert calls(large, process, 200)['POST /allocations']
    assert large.state(other) is S.STARTING
    for _ in range(10):
        for server in servers:
            if (
                large.state(server) is S.STARTING
                and not large.cloud.servers[server]['OS-EXT-SRV-ATTR:host']
            ):
                large.cloud.build(server, 'large', {'VCPU': 1})
        calls(large, process, 200)
    assert {large.state(each) for each in servers} <= {S.STARTING, S.ACTIVE}


def test_many_cancelled_requests_delay_no_other(world, slowly):
    servers = singles(world, FEW, 'many', 99)
    process = world.process()
    process.cycle()
    mine = world.post('mine', 99, 'other')
    process.cycle()
    for each in (*servers, mine):
        process.cancel(each, WHY)
    calls(world, process, 120)
    assert mine not in world.cloud.servers
    for _ in range(12):
        calls(world, process, 120)
    assert not world.cloud.servers
    assert world.store.settled_requests_with_message(9) == []


def test_many_servers_that_users_delete_are_not_asked_for(large, slowly):
    servers = singles(large, FEW, 'many')
    process = large.process()
    for _ in range(6):
        calls(large, process, 200)
        for server in servers:
            if large.state(server) is S.STARTING:
                large.cloud.build(server, 'large', {'VCPU': 1})
    calls(large, process, 200)
    assert {large.state(each) for each in servers} == {S.ACTIVE}
    for server in servers:
        large.cloud.remove(server)
    calls(large, process, 60)
    assert {large.state(each) for each in servers} == {S.ENDED}


def test_many_requests_deleted_while_waiting_delay_no_other(world, slowly):
    servers = singles(world, FEW, 'many', 99)
    process = world.process()
    process.cycle()
    for server in servers:
        world.cloud.remove(server)
    other = world.post('other', 4, 'other')
    calls(world, process)
    assert world.state(other) is S.STARTING
    for _ in range(60):
        calls(world, process)
    assert S.WAITING not in {world.state(each) for each in servers}


def test_a_large_request_that_is_deleted_while_it_waits_ends(world):
    servers = ends.posted_together(world, 'r1', MANY, 99)
    process = world.process()
    process.cycle()
    for server in servers:
        world.cloud.remove(server)
    for _ in range(7):
        calls(world, process)
    assert world.state(servers[0]) is not S.WAITING


def test_many_requests_left_to_nova_delay_no_other(large, slowly):
    for n in range(FEW):
        server = fake_cloud.name_uuid(f'many-{n}')
        large.cloud.add_server(server, 'many')
        large.store.store_message(
            ends.build(f'many-{n}', server, 1, 'many', specs=NO_HOST_HAS)
        )
    other = large.post('z-other', 1, 'other')
    process = large.process()
    for _ in range(5):
        found = calls(large, process, 200)
        assert found['GET /auth'] <= 20
        assert large.state(other) is S.STARTING
    assert len(large.conductor.sent) == FEW + 1


def test_many_requests_unknown_to_nova_are_taken_back_in_turn(large, slowly):
    servers = singles(large, FEW, 'many')
    process = large.process(doubt_s=60.0)
    for _ in range(5):
        calls(large, process, 200)
    assert {large.state(each) for each in servers} == {S.STARTING}
    large.go(60)
    sent = len(large.conductor.sent)
    for _ in range(8):
        calls(large, process, 200)
    # Each was taken back, and sent once more.
    assert len(large.conductor.sent) == sent + FEW


def test_many_requests_in_doubt_do_not_delay_others(large, slowly):
    servers = singles(large, FEW, 'many')
    process = large.process(doubt_s=60.0)
    for _ in range(5):
        calls(large, process, 200)
    *stuck, last = servers
    for server in stuck:
        # A scheduler died after it had claimed room.
        root = fake_cloud.name_uuid('large')
        large.cloud.write(server, {root: {'VCPU': 1}}, 'many')
    large.go(60)
    for _ in range(8):
        calls(large, process, 200)
    assert large.conductor.sent.count(f'cast-many-{FEW - 1}') == 2
    assert {large.state(each) for each in stuck} == {S.STARTING}
    assert large.state(last) is S.STARTING


def test_many_that_run_after_a_restore_are_followed_in_turn(large, slowly):
    servers = singles(large, FEW, 'many', 9999)
    process = large.process()
    process.cycle()
    for server in servers:
        large.cloud.build(server, 'large', {'VCPU': 1})
    for _ in range(4):
        found = calls(large, process, 200)
        assert found['GET /auth'] <= 20
    assert {large.state(each) for each in servers} <= {S.STARTING, S.ACTIVE}
    assert large.conductor.sent == []


def test_many_requests_that_expire_at_once_delay_no_other(world, slowly):
    hints = {'fairness_longest_wait': ['1h']}
    servers = singles(world, FEW, 'many', 99, hints=hints)
    process = world.process()
    process.cycle()
    world.go(3600)
    other = world.post('other', 4, 'other')
    waits = []
    for _ in range(3):
        calls(world, process)
        states = [world.state(each) for each in servers]
        waits.append(states.count(S.WAITING))
    assert waits == [10, 0, 0]
    assert world.state(other) is S.STARTING


def test_requests_left_by_a_slow_database_are_followed_in_the_next_cycle(
    large, monkeypatch
):
    servers = singles(large, FEW, 'many')
    process = large.process()
    process.cycle()
    for server in servers:
        large.cloud.build(server, 'large', {'VCPU': 1})
    step = large.store.step

    def slow(*given):
        large.go(1)
        return step(*given)

    monkeypatch.setattr(large.store, 'step', slow)
    active = 0
    for _ in range(7):
        calls(large, process)
        states = [large.state(each) for each in servers]
        done = states.count(S.ACTIVE) - active
        active += done
        assert 0 <= done <= 11
    assert active == FEW


def test_many_evictions_delay_no_other(large, slowly):
    servers = singles(large, FEW, 'many')
    process = large.process()
    for server in servers:
        large.cloud.build(server, 'large', {'VCPU': 1})
    for _ in range(7):
        calls(large, process, 200)
    mine = large.post('mine', 1, 'other')
    large.cloud.build(mine, 'h1', {'VCPU': 1, 'MEMORY_MB': 1})
    for _ in range(2):
        calls(large, process, 200)
    view = process.nova.servers(large.now)
    epoch = process.leads()
    for server in (*servers, mine):
        process._leaving.start_eviction(
            view[server],
            eviction.EvictionCause.IDLE,
            WHY,
            (eviction.EvictionAction.STOP,),
            epoch,
        )
    calls(large, process)
    leaves = large.store.leaves.newest_of_servers([mine])
    assert leaves[mine].state is eviction.EvictionState.TOLD
    other = large.post('other', 1, 'third')
    calls(large, process)
    assert large.state(other) is S.STARTING


def test_the_lease_is_kept_while_the_cloud_is_slow(large):
    """Each call takes a second, and another process stands by."""
    servers = ends.posted_together(large, 'r1', 300, 99)
    process, other = large.process('one'), large.process('two')
    process.cycle()
    other.cycle()
    process.cancel(servers[0], WHY)
    led = []

    answer = large.cloud.answer

    def slow(*given):
        large.go(1)
        large.cloud.answer = answer
        try:
            led.append(other._election.lead())
        finally:
            large.cloud.answer = slow
        return answer(*given)

    large.cloud.answer = slow
    for _ in range(40):
        assert process.cycle()
    assert set(led) == {None}
    assert len(led) > 300
    assert not set(servers) & large.cloud.servers.keys()


def test_partly_freed_room_is_freed_completely(large):
    servers = ends.posted_together(large, 'r1', 30, 1)
    process = large.process()
    large.conductor.away = True
    with pytest.raises(Exception, match='no broker'):
        process.cycle()
    placement = process._executor._placement
    record = large.store.request(servers[0])
    view = process._reader.read([record.request], {}, large.now)
    placement.reserve(record.request, [view.trees['large']] * 30)
    assert len(large.cloud.holds()) == 30
    for hold in large.cloud.holds()[3:9]:
        large.cloud.write(hold, {}, '')
    placement.release(record.request)
    left = large.cloud.holds()
    # Its first hold may be among those: then none counts as kept.
    assert left == [] or not placement.has_reservation(record.request)


def test_a_work_budget_ends_by_number_or_by_time():
    now = [0.0]
    budget = pace.WorkBudget(3, 10.0, lambda: now[0])
    assert budget.take()
    assert budget.take(2)
    assert not budget.take()
    timely = pace.WorkBudget(3, 10.0, lambda: now[0])
    now[0] = 11.0
    assert (timely.left, timely.take()) == (0, False)


@pytest.mark.parametrize('seed', range(20))
def test_work_is_shared_between_owners_in_turns(seed):
    chance = random.Random(seed)
    items = [
        (chance.choice('abcde'), n) for n in range(chance.randrange(1, 60))
    ]
    turn = chance.randrange(100)
    found = pace.interleave_by_owner(items, lambda each: each[0], turn)
    assert sorted(found) == sorted(items)
    for owner in 'abcde':
        own = [each for each in items if each[0] == owner]
        assert [each for each in found if each[0] == owner] == own
    # Before the second of one, each has had their first.
    owners = {each[0] for each in items}
    assert {each[0] for each in found[: len(owners)]} == owners
