# SPDX-License-Identifier: Apache-2.0

"""What is left of a transport after its cleanup: nothing."""

import errno
import functools
import gc
import pathlib
import threading
import types

import oslo_messaging
import pytest
import zmq

from oslo_messaging_zmq.rpc import fanout
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


class Blocking:
    def __init__(self, release):
        self.release = release

    def block(self, ctxt):
        self.release.wait(zmq_cloud.PATIENCE_S)


def descriptors():
    gc.collect()
    return len(list(pathlib.Path('/proc/self/fd').iterdir()))


def talk(cloud):
    near, far = cloud.transport(), cloud.transport()
    endpoint = zmq_cloud.Endpoint()
    server = cloud.serve('t', 's', endpoint, near)
    client = cloud.client('t', far)
    assert client.call({}, 'note', value=1) == 1
    client.prepare(fanout=True).cast({}, 'note', value=2)
    client.cast({}, 'note', value=3)
    wait_for_value(lambda: sorted(endpoint.got) == [1, 2, 3])
    return server, near, far


def test_cleanup_leaves_no_thread_descriptor_or_address(cloud):
    server, near, far = talk(cloud)
    zmq_cloud.end(server)
    near.cleanup()
    far.cleanup()
    files, threads = descriptors(), threading.active_count()
    for _ in range(3):
        server, near, far = talk(cloud)
        zmq_cloud.end(server)
        near.cleanup()
        far.cleanup()
    # What an earlier test left may go, or try anew, meanwhile.
    wait_for_value(
        lambda: descriptors() <= files and threading.active_count() <= threads
    )
    redis = cloud.redis.client()
    kept = {key.split(':')[1]: redis.ttl(key) for key in redis.keys('*')}
    redis.close()
    # Two numbers that must never go back, and a mark that expires.
    assert kept.pop('changed') > 0
    assert kept.keys() == {'epoch', 'generation'}


def test_a_transport_may_be_cleaned_up_before_its_server(cloud):
    _, near, far = talk(cloud)
    near.cleanup()
    far.cleanup()


def test_cleanup_may_be_called_twice_and_before_anything_was_sent(cloud):
    unused = cloud.transport()
    unused.cleanup()
    unused.cleanup()


def test_the_last_cast_before_cleanup_arrives(cloud):
    endpoint = zmq_cloud.Endpoint()
    cloud.serve('t', 's', endpoint)
    for value in range(5):
        transport = cloud.transport()
        cloud.client('t', transport).cast({}, 'note', value=value)
        transport.cleanup()
    wait_for_value(lambda: sorted(endpoint.got) == [0, 1, 2, 3, 4])


def test_the_last_answer_before_cleanup_arrives(cloud):
    server = cloud.serve('t', 's', zmq_cloud.Endpoint())
    client = cloud.client('t')
    answers = []
    asking = zmq_cloud.background(
        lambda: answers.append(client.call({}, 'note', value='last'))
    )
    wait_for_value(lambda: server.dispatcher.endpoints[0].got)
    zmq_cloud.end(server)
    server.transport.cleanup()
    asking.join(zmq_cloud.PATIENCE_S)
    assert answers == ['last']


def test_a_listener_that_is_closed_while_it_starts_ends(cloud):
    transport = cloud.transport()
    for number in range(40):
        target = oslo_messaging.Target(topic='t', server=f's{number}')
        listener = transport._listen(target, 1, None)
        starting = zmq_cloud.background(
            functools.partial(listener.start, lambda messages: None)
        )
        ending = zmq_cloud.background(listener.cleanup)
        starting.join(zmq_cloud.PATIENCE_S)
        ending.join(zmq_cloud.PATIENCE_S)
        assert not starting.is_alive()
        assert not ending.is_alive()


def test_an_idle_listener_after_a_fanout_can_be_stopped(cloud):
    near = cloud.transport(fanout_pause='0.01')
    far = cloud.transport(poll_interval='0.05')
    everybody = cloud.client('t', far).prepare(fanout=True)

    def has_heard(endpoint):
        # Who came just now is not known to the sender yet.
        everybody.cast({}, 'note', value=1)
        return endpoint.got

    for number in range(20):
        endpoint = zmq_cloud.Endpoint()
        server = cloud.serve('t', f's{number}', endpoint, near)
        wait_for_value(functools.partial(has_heard, endpoint))
        ending = zmq_cloud.background(server.listener.cleanup)
        ending.join(zmq_cloud.PATIENCE_S)
        assert not ending.is_alive()


@pytest.mark.parametrize('listens', [True, False])
def test_a_call_without_end_ends_with_its_transport(cloud, listens):
    release = threading.Event()
    if listens:
        cloud.serve('t', 's', Blocking(release))
    transport = cloud.transport()
    client = cloud.client('t', transport, timeout=None)
    failures = []

    def call_server():
        try:
            client.call({}, 'block')
        except oslo_messaging.MessageDeliveryFailure as error:
            failures.append(str(error))

    asking = zmq_cloud.background(call_server)
    wait_for_value(
        lambda: transport._driver.statistics().get('matchmaker_topics')
    )
    if listens:
        wait_for_value(lambda: transport._driver.statistics()['calls_pending'])
    transport.cleanup()
    asking.join(zmq_cloud.PATIENCE_S)
    release.set()
    assert failures == ['the transport was cleaned up']


def test_a_listener_ends_without_a_wakeup_socket(cloud, monkeypatch):
    monkeypatch.setattr(fanout, '_POLL_MS', 200)
    transport = cloud.transport(fanout_pause='0.0')
    target = oslo_messaging.Target(topic='t', server='s')
    listener = transport._listen(target, 1, None)
    listener.start(lambda messages: None)

    def fail(kind):
        raise zmq.ZMQError(errno.EMFILE)

    monkeypatch.setattr(
        listener._fanout, '_context', types.SimpleNamespace(socket=fail)
    )
    ending = zmq_cloud.background(listener.cleanup)
    ending.join(zmq_cloud.PATIENCE_S)
    assert not ending.is_alive()
