# SPDX-License-Identifier: Apache-2.0

"""What operators hear of a store and a service beside a fake cloud."""

import pytest

from nova_fairness import exception
from nova_fairness.cluster import event_notifications
from nova_fairness.cluster.admission import interventions
from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.runtime import supervision
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service

world = test_service.world


@pytest.fixture
def process(world):
    return world.process(doubt_s=60.0)


@pytest.fixture
def told():
    return []


@pytest.fixture
def watch(world, process, told):
    return event_notifications.RequestWatch(
        world.store, process, told.extend, 'c1'
    )


def events(told):
    return [each.event.rpartition('.')[2] for each in told]


def test_all_states_of_a_request_are_counted_and_notified(
    world, process, watch, told
):
    server = world.post('r1')
    world.now += 50
    process.cycle()
    world.cloud.build(server, 'h1', test_service.NEED)
    process.cycle()
    world.cloud.remove(server)
    process.cycle()
    assert events(told) == ['waiting', 'released', 'active', 'ended']
    assert {each.payload['uuid'] for each in told} == {server}
    seen = watch.queue()
    assert seen.entered['active'] == seen.entered['starting'] == 1
    assert seen.entered['failed'] == 0
    # The message came at 1, and the clock is at 1050.
    assert seen.waited_s == 1049.0
    assert (seen.leads, seen.seen_at, seen.waiting) == (True, 1050.0, {})


def test_waiting_requests_are_counted_by_project_and_reason(
    world, process, watch
):
    world.post('r1')
    world.post('r2', vcpu=99)
    process.cycle()
    seen = watch.queue()
    assert sum(seen.waiting.values()) == 1
    ((project, why),) = seen.waiting
    assert (project, why) == ('the-project', 'too_large')
    assert seen.oldest_at == 1.0


def test_a_request_that_waits_again_is_notified_once(
    world, process, watch, told
):
    world.post('r1')
    world.cloud.broken['POST /allocations'] = 409
    process.cycle()
    process.cycle()
    assert events(told) == ['waiting']


def test_hold_and_unhold_are_notified_and_not_counted_as_new(
    world, process, watch, told
):
    server = world.post('r1', vcpu=99)
    process.cycle()
    hold = interventions.hold_action(request.Holder.OPERATOR, 'why')
    process.order(server, hold)
    process.order(server, interventions.unhold_action(request.Holder.OPERATOR))
    process.cycle()
    assert events(told) == ['waiting'] * 3
    assert [each.payload['held_by'] for each in told] == [
        None,
        'operator',
        None,
    ]
    assert [each.payload['reason'] for each in told[1:]] == [
        'held_by_operator',
        'not_planned',
    ]
    assert watch.queue().entered['waiting'] == 1


def test_a_request_in_doubt_is_counted(world, process, watch):
    server = fake_cloud.name_uuid('r1')
    world.cloud.add_server(server)
    world.store.store_message(
        test_service.marked(test_service.build('r1', server, 4))
    )
    process.cycle()
    assert watch.queue().doubtful == 1


def test_the_leader_metric_is_zero_for_other_processes(world, process, watch):
    assert not watch.queue().leads
    other = world.process('two')
    other.cycle()
    process.cycle()
    assert not watch.queue().leads


def test_cycles_that_end_early_are_counted(world, process, watch):
    class FakeStop:
        left = 3

        def is_set(self):
            return not self.left

        def wait(self, _):
            self.left -= 1
            if self.left == 1:
                world.cloud.broken.clear()

    world.cloud.broken['GET /s'] = 503
    process.run(FakeStop(), 0.0, supervision.ServiceManager())
    seen = watch.queue()
    assert (seen.cycles, seen.cycles_failed) == (3, 2)


def test_a_refused_change_is_not_notified(world, process, watch, told):
    server = world.post('r1', vcpu=99)
    process.cycle()
    asked = world.store.request(server).request
    with pytest.raises(exception.Deposed):
        world.store.step(
            asked, test_service.request.Event.CANCEL, 99,
            world.store.request(server).why, 5.0,
        )  # fmt: skip
    assert events(told) == ['waiting']


def test_all_states_of_an_eviction_are_counted_and_notified(
    world, process, watch, told
):
    world.accounts = (cluster.Account('the-project', time_limit_s=60.0),)
    server = world.post('r1')
    process.cycle()
    world.cloud.build(server, 'h1', test_service.NEED)
    for _ in range(3):
        process.cycle()
    world.now += 1000
    process.cycle()
    process.cycle()
    told = [each for each in told if '.server.' in each.event]
    states = ['chosen', 'told', 'acting', 'asked', 'gone']
    assert events(told) == states
    assert {each.payload['server'] for each in told} == {server}
    assert told[1].payload['leaves_at'] == '1970-01-01T00:26:40+00:00'
    assert watch.queue().left == {
        **dict.fromkeys(states, 1),
        **dict.fromkeys(['undoing', 'stays', 'spared', 'returned'], 0),
    }  # fmt: skip
