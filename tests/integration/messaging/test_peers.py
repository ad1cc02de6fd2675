# SPDX-License-Identifier: Apache-2.0

"""Peers come, go, hang and come back; Redis too."""

import os
import signal

import oslo_messaging
import pytest

from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


def test_a_call_waits_for_a_listener_that_comes_late(cloud):
    client = cloud.client('t')
    answers = []
    asking = zmq_cloud.background(
        lambda: answers.append(client.call({}, 'who'))
    )
    assert not answers
    cloud.serve('t', 's', zmq_cloud.Endpoint('late'))
    asking.join(zmq_cloud.PATIENCE_S)
    assert answers == ['late']


def test_a_cast_waits_for_a_listener_that_comes_late(cloud):
    client = cloud.client('t', cloud.transport(undeliverable_after='600'))
    casting = zmq_cloud.background(lambda: client.cast({}, 'note', value=1))
    endpoint = zmq_cloud.Endpoint()
    cloud.serve('t', 's', endpoint)
    casting.join(zmq_cloud.PATIENCE_S)
    wait_for_value(lambda: endpoint.got == [1])


def test_fanouts_reach_a_listener_that_comes_late(cloud):
    early, late = zmq_cloud.Endpoint(), zmq_cloud.Endpoint()
    cloud.serve('t', 'early', early)
    client = cloud.client('t', fanout=True)
    client.cast({}, 'note', value=0)
    cloud.serve('t', 'late', late)

    def reaches_both():
        client.cast({}, 'note', value=1)
        return early.got and late.got

    wait_for_value(reaches_both)


def test_a_listener_may_come_back_on_another_port(cloud):
    transport = cloud.transport()
    client = cloud.client('t', transport, server='s')
    for name in ('first', 'second', 'third'):
        server = cloud.serve('t', 's', zmq_cloud.Endpoint(name))
        assert client.call({}, 'who') == name
        zmq_cloud.end(server)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('t', transport, timeout=0.1).call({}, 'who')


def test_a_killed_listener_is_reached_after_its_restart(cloud):
    killed = cloud.process('t', 's')
    client = cloud.client('t', server='s')
    assert client.call({}, 'note', value=1) == 1
    killed.end()
    new = cloud.process('t', 's')
    assert client.call({}, 'note', value=2) == 2
    assert new.got() == [2]


def test_a_killed_member_of_a_group_gets_no_more_calls(cloud):
    killed = cloud.process('t', 'a')
    cloud.serve('t', 'b', zmq_cloud.Endpoint('b'))
    client = cloud.client('t')
    for value in range(4):
        client.call({}, 'note', value=value)
    killed.end()
    wait_for_value(lambda: _is_down(client, 'a'))
    assert [client.call({}, 'note', value=n) for n in range(6)] == list(
        range(6)
    )


def _is_down(client, server):
    calls = client.transport._driver._engine_of_process()._caller
    return any(
        route.peer.server == server and route.up is False
        for route in calls._routes
    )


def test_known_peers_go_on_talking_while_redis_is_away(cloud):
    endpoint = zmq_cloud.Endpoint('here')
    cloud.serve('t', 's', endpoint)
    transport = cloud.transport()
    client = cloud.client('t', transport)
    everybody = cloud.client('t', transport, fanout=True)
    assert client.call({}, 'who') == 'here'
    everybody.cast({}, 'note', value=0)
    cloud.redis.stop()
    for value in range(1, 5):
        assert client.call({}, 'who') == 'here'
        everybody.cast({}, 'note', value=value)
    wait_for_value(lambda: sorted(endpoint.got) == [0, 1, 2, 3, 4])
    cloud.redis.start()
    newcomer = cloud.client('t')
    assert newcomer.call({}, 'who') == 'here'


def test_everybody_is_found_again_after_redis_lost_everything(cloud):
    cloud.serve('t', 's', zmq_cloud.Endpoint('here'))
    client = cloud.client('t')
    assert client.call({}, 'who') == 'here'
    cloud.redis.flush()
    assert client.call({}, 'who') == 'here'
    newcomer = cloud.client('t')
    assert newcomer.call({}, 'who') == 'here'


def test_a_forked_process_talks_on_connections_of_its_own(cloud):
    endpoint = zmq_cloud.Endpoint('parent')
    transport = cloud.transport()
    cloud.serve('t', 's', endpoint, transport)
    client = cloud.client('t', transport)
    assert client.call({}, 'who') == 'parent'
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _in_child(client, writing)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == 'parent'
    os.waitpid(child, 0)
    assert client.call({}, 'who') == 'parent'
    wait_for_value(lambda: endpoint.got == ['from the child'])


def _in_child(client, writing):
    try:
        client.prepare(fanout=True).cast({}, 'note', value='from the child')
        who = client.call({}, 'who')
        # The parent's listener is the parent's to announce.
        assert zmq_cloud.statistics(client.transport)['matchmaker_own'] == 0
        os.write(writing, who.encode())
        client.transport.cleanup()
    finally:
        os._exit(0)


def test_a_suspended_listener_blocks_no_other_listener(cloud):
    stopped = cloud.process('t', 'stopped')
    endpoint = zmq_cloud.Endpoint('other')
    cloud.serve('t', 'other', endpoint)
    transport = cloud.transport(fanout_queue_length=5)
    client = cloud.client('t', transport, fanout=True)
    load = 'x' * 100_000
    client.cast({}, 'note', value=load)
    wait_for_value(lambda: len(endpoint.got) == 1 and stopped.got())
    stopped.signal(signal.SIGSTOP)

    def drops():
        return zmq_cloud.statistics(transport).get(
            'fanout_dropped_queue_full', 0
        )

    for sent in range(2, 5000):
        client.cast({}, 'note', value=load)
        wait_for_value(lambda sent=sent: len(endpoint.got) == sent)
        if drops() == 10:
            break
    assert drops() == 10
    stopped.signal(signal.SIGCONT)
    assert len(stopped.got()) <= sent - 10


def test_casts_to_a_stopped_listener_are_dropped_and_counted(cloud):
    stopped = cloud.process('t', 's')
    transport = cloud.transport(queue_length=5)
    client = cloud.client('t', transport, retry=0)
    client.cast({}, 'note', value='')
    wait_for_value(stopped.got)
    stopped.signal(signal.SIGSTOP)

    def cast_many():
        for _ in range(5000):
            client.cast({}, 'note', value='x' * 100_000)

    with pytest.raises(oslo_messaging.MessageDeliveryFailure):
        cast_many()
    assert zmq_cloud.statistics(transport)['dropped_queue_full'] >= 1
