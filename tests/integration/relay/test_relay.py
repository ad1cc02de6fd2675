# SPDX-License-Identifier: Apache-2.0

"""The relay between two ends of oslo.messaging, on a real broker."""

import contextlib
import dataclasses
import json
import queue
import threading
import uuid

import amqp
from oslo_config import cfg
import oslo_messaging
from oslo_messaging import conffixture
import pytest

from nova_fairness import exception
from nova_fairness.relay import hints
from nova_fairness.relay import jobs
from nova_fairness.relay import link
from nova_fairness.relay import topology
from tests.fixtures import ports
from tests.fixtures import rabbitmq_server

PATIENCE_S = 60
BUILD = 'schedule_and_build_instances'


@pytest.fixture(scope='module')
def broker():
    with rabbitmq_server.running() as server:
        yield server


@pytest.fixture
def places():
    """Names of this test, so that none sees another's messages."""
    name = uuid.uuid4().hex[:8]
    return topology.Places(front=f'front-{name}', target=f'nova-{name}')


class FakeStore:
    """Keeps what it is given, in order; may be away."""

    def __init__(self):
        self.casts = queue.Queue()
        self.away = threading.Event()
        self.refused = threading.Event()
        self._known = set()

    def store_message(self, casts):
        if self.away.is_set():
            self.refused.set()
            raise exception.StoreAway('away')
        return [self._held(each) for each in casts]

    def _held(self, cast):
        self.casts.put(cast)
        new = cast.uuid not in self._known
        self._known.add(cast.uuid)
        return new


class FakeConductor:
    """Answers calls, and keeps what it was told, in order."""

    target = oslo_messaging.Target(version='1.25')

    def __init__(self):
        self.told = queue.Queue()

    def schedule_and_build_instances(self, context, number):
        self.told.put(number)

    def rebuild_instance(self, context, number):
        self.told.put(number)

    def migrate_server(self, context, number):
        self.told.put(number)
        return number + 1


def transport(broker, exchange, durable=False):
    conf = cfg.ConfigOpts()
    conffixture.ConfFixture(conf).setUp()
    conf([])
    conf.set_override('control_exchange', exchange)
    conf.set_override(
        'amqp_durable_queues', durable, group='oslo_messaging_rabbit'
    )
    url = broker.url.replace('amqp://', 'rabbit://').rstrip('/') + '/'
    return oslo_messaging.get_rpc_transport(conf, url=url)


@contextlib.contextmanager
def conductor(broker, places, host='c1'):
    found = transport(broker, places.target)
    ends = FakeConductor()
    server = oslo_messaging.get_rpc_server(
        found,
        oslo_messaging.Target(topic='conductor', server=host),
        [ends],
    )
    server.start()
    try:
        yield ends
    finally:
        server.stop()
        server.wait()
        found.cleanup()


@contextlib.contextmanager
def nova_api(broker, places):
    found = transport(broker, places.front, durable=True)
    target = oslo_messaging.Target(topic='conductor', version='1.0')
    try:
        yield oslo_messaging.get_rpc_client(found, target, timeout=PATIENCE_S)
    finally:
        found.cleanup()


@contextlib.contextmanager
def relay(broker, places, store, count=1):
    stopped = threading.Event()
    made = []
    for _ in range(count):
        made += [
            jobs.Sorter(broker.url, places, stopped),
            jobs.Keeper(broker.url, places, stopped, store.store_message),
            jobs.Watcher(broker.url, places, stopped),
        ]
    threads = [threading.Thread(target=job.run) for job in made]
    link.Link(broker.url, places).close()
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def received(one):
    """The first message of one that comes."""
    found = []
    while not found:
        found = one.receive(PATIENCE_S)
    return found[0]


def numbers(casts):
    for cast in casts:
        message = json.loads(json.loads(cast.body)['oslo.message'])
        yield message['args']['number']


def take(source, count):
    return [source.get(timeout=PATIENCE_S) for _ in range(count)]


def test_builds_are_held_and_other_messages_pass_in_sequence(broker, places):
    store = FakeStore()
    with (
        conductor(broker, places) as ends,
        relay(broker, places, store, count=2),
        nova_api(broker, places) as client,
    ):
        for number in range(20):
            client.cast({}, BUILD, number=number)
            client.cast({}, 'rebuild_instance', number=number)
        assert client.call({}, 'migrate_server', number=20) == 21
        assert take(ends.told, 21) == list(range(21))
        assert sorted(numbers(take(store.casts, 20))) == list(range(20))
        assert ends.told.empty()


def test_a_build_with_a_waiting_caller_passes(broker, places):
    with (
        conductor(broker, places) as ends,
        relay(broker, places, FakeStore()),
        nova_api(broker, places) as client,
    ):
        client.call({}, BUILD, number=3)
        assert take(ends.told, 1) == [3]


def test_a_message_is_sent_on_unchanged(broker, places):
    properties = {
        'content_type': 'application/json',
        'content_encoding': 'utf-8',
        'application_headers': {'a': 1},
        'delivery_mode': 1,
        'priority': 4,
        'expiration': '600000',
        'correlation_id': 'c',
        'reply_to': 'r',
        'message_id': 'm',
        'user_id': 'guest',
    }
    body = 'not JSON: \xfc'.encode('latin-1')
    ended = link.Link(broker.url, places)
    with amqp.Connection(f'{rabbitmq_server.HOST}:{broker.port}') as direct:
        channel = direct.channel()
        channel.auto_decode = False
        channel.queue_declare('end', exclusive=True)
        channel.queue_bind('end', places.target, 'conductor.h1')
        message = amqp.Message(body, **properties)
        channel.basic_publish(message, places.front, 'conductor.h1')
        with relay(broker, places, FakeStore()):
            found = _got(channel, 'end')
    ended.close()
    assert found.body == body
    del properties['user_id']
    assert found.properties == properties


def _got(channel, name):
    """Wait with the broker, not by looking again and again."""
    found = []
    channel.basic_consume(name, callback=found.append)
    while not found:
        channel.connection.drain_events(timeout=PATIENCE_S)
    return found[0]


def test_other_services_are_reached_past_the_relay(broker, places):
    link.Link(broker.url, places).close()
    with amqp.Connection(f'{rabbitmq_server.HOST}:{broker.port}') as direct:
        channel = direct.channel()
        channel.queue_declare('node', exclusive=True)
        channel.queue_bind('node', places.target, 'compute.n1')
        channel.basic_publish(amqp.Message('x'), places.front, 'compute.n1')
        assert _got(channel, 'node').body == 'x'


def test_builds_wait_with_the_broker_while_the_store_is_away(broker, places):
    store = FakeStore()
    store.away.set()
    with (
        conductor(broker, places) as ends,
        relay(broker, places, store),
        nova_api(broker, places) as client,
    ):
        for number in range(5):
            client.cast({}, BUILD, number=number)
        assert store.refused.wait(PATIENCE_S)
        assert client.call({}, 'migrate_server', number=1) == 2
        assert store.casts.empty()
        store.away.clear()
        assert list(numbers(take(store.casts, 5))) == list(range(5))
        assert take(ends.told, 1) == [1]


def test_a_message_that_was_not_acknowledged_comes_again(broker, places):
    first = link.Link(broker.url, places)
    first.publish(
        places.held,
        link.Delivery('', 'conductor', b'x', {'delivery_mode': 2}, 0),
    )
    first.consume(places.held, 1)
    first.settle()
    taken = received(first)
    first.close()
    second = link.Link(broker.url, places)
    second.consume(places.held, 1)
    again = received(second)
    assert (again.body, again.key) == (taken.body, 'conductor')
    second.acknowledge(again)
    second.close()


def test_publishing_to_a_topic_without_listeners_is_reported(
    broker, places, caplog
):
    noticed = threading.Event()

    class Noting(jobs.Watcher):
        def process(self, *arguments):
            super().process(*arguments)
            noticed.set()

    stopped = threading.Event()
    thread = threading.Thread(target=Noting(broker.url, places, stopped).run)
    link.Link(broker.url, places).close()
    thread.start()
    with amqp.Connection(f'{rabbitmq_server.HOST}:{broker.port}') as direct:
        direct.channel().basic_publish(
            amqp.Message('token'), places.front, 'cert.n1'
        )
        assert noticed.wait(PATIENCE_S)
    stopped.set()
    thread.join()
    assert 'topic cert.n1' in caplog.text
    assert 'token' not in caplog.text


@contextlib.contextmanager
def listening(broker, places):
    """A listener; the hints that it gives."""
    stopped, given = threading.Event(), queue.Queue()
    job = hints.HintListener(broker.url, places, stopped, lambda: given.put(1))
    thread = threading.Thread(target=job.run)
    thread.start()
    try:
        yield given
    finally:
        stopped.set()
        thread.join()


@contextlib.contextmanager
def notifying(broker, places):
    """One who tells as Nova does, and how many others have been told."""
    topic = 'versioned_notifications'
    found = transport(broker, places.target)
    notifier = oslo_messaging.Notifier(
        found, 'nova-compute:h1', driver='messagingv2', topics=[topic]
    )
    told = queue.Queue()

    class Others:
        def info(self, context, publisher, event, payload, metadata):
            told.put(event)

    others = oslo_messaging.get_notification_listener(
        found,
        [oslo_messaging.Target(topic=topic)],
        [Others()],
        executor='threading',
    )
    others.start()
    try:
        yield notifier, told
    finally:
        others.stop()
        others.wait()
        found.cleanup()


def test_notifications_of_nova_are_hints_and_reach_other_listeners(
    broker, places
):
    end = 'instance.delete.end'
    with (
        listening(broker, places) as given,
        notifying(broker, places) as (notifier, told),
    ):
        while given.empty():
            # Nobody hears what is sent before they listen.
            notifier.info({}, end, {'nova_object.name': 'InstancePayload'})
            assert told.get(timeout=PATIENCE_S) == end


def test_publishing_says_whether_a_topic_has_listeners(broker, places):
    one = link.Link(broker.url, places)
    delivery = link.Delivery('', 'conductor', b'x', {}, 0)
    one.publish(places.target, delivery)
    one.publish(places.held, delivery)
    assert one.settle() == [(places.target, 'conductor')]
    one.publish(places.held, delivery)
    assert one.settle() == []
    one.close()


def test_a_message_that_conductor_has_not_taken_is_counted(broker, places):
    one = link.Link(broker.url, places)
    name = places.conductor
    assert not one.taken('a queue that is not there')
    assert not one.taken(name)
    other = link.Link(broker.url, places)
    other.consume(name, 1)
    assert one.taken(name)
    delivery = link.Delivery('', 'conductor', b'x', {}, 0)
    for _ in range(3):
        one.publish(places.front, delivery)
    one.settle()
    # One is with the consumer, which does not answer; two wait.
    received(other)
    assert not one.taken(name)
    other.close()
    one.close()


def names_on(broker, places):
    """What a broker has of a relay."""
    names = (places.conductor, places.held, places.unrouted, places.routes)
    found = []
    for kind in ('queue', 'exchange'):
        for name in (*names, places.front):
            with amqp.Connection(
                f'{rabbitmq_server.HOST}:{broker.port}'
            ) as direct:
                declare = getattr(direct.channel(), f'{kind}_declare')
                given = ('topic',) if kind == 'exchange' else ()
                with contextlib.suppress(amqp.NotFound):
                    declare(name, *given, passive=True)
                    found.append((kind, name))
    return found


def test_a_read_only_link_declares_nothing(broker, places):
    one = link.Link(broker.url, places, declares=False)
    assert not one.taken(places.conductor)
    one.close()
    assert names_on(broker, places) == []


@pytest.mark.parametrize('holds', [True, False])
def test_nothing_is_left_after_removal(broker, places, holds):
    places = dataclasses.replace(places, holds=holds)
    link.Link(broker.url, places).close()
    assert len(names_on(broker, places)) == (7 if holds else 4)
    link.remove(broker.url, places)
    assert names_on(broker, places) == []


def test_a_queue_with_messages_or_a_consumer_is_not_removed(broker, places):
    one = link.Link(broker.url, places)
    delivery = link.Delivery('', 'conductor', b'x', {}, 0)
    one.publish(places.front, delivery)
    assert one.settle() == []
    with pytest.raises(exception.StillUsed, match='not empty'):
        link.remove(broker.url, places)
    # Nothing was lost, and what comes meanwhile finds its way.
    one.publish(places.front, delivery)
    assert one.settle() == []
    one.consume(places.conductor, 9)
    came = []
    while len(came) < 2:
        came += one.receive(1)
    one.acknowledge(came[-1])
    with pytest.raises(exception.StillUsed, match='in use'):
        link.remove(broker.url, places)
    one.close()
    link.remove(broker.url, places)
    assert names_on(broker, places) == []


def test_a_queue_declared_with_other_options_is_reported(broker, places):
    link.Link(broker.url, places).close()
    other = topology.Places(places.front, places.target, target_durable=True)
    with pytest.raises(exception.BrokerAway, match='PRECONDITION_FAILED'):
        link.Link(broker.url, other)


def test_a_killed_broker_loses_no_held_message(places):
    store = FakeStore()
    with rabbitmq_server.running() as own:
        with nova_api(own, places) as client:
            link.Link(own.url, places).close()
            for number in range(10):
                client.cast({}, BUILD, number=number)
        with relay(own, places, store):
            held = list(numbers(take(store.casts, 10)))
            own.kill()
            own.start()
            with (
                conductor(own, places) as ends,
                nova_api(own, places) as client,
            ):
                assert client.call({}, 'migrate_server', number=1) == 2
                client.cast({}, BUILD, number=10)
                while 10 not in held:
                    held += numbers(take(store.casts, 1))
                assert take(ends.told, 1) == [1]
    assert sorted(set(held)) == list(range(11))


def test_a_broker_without_a_listener_counts_as_away(places):
    server = ports.free()
    with pytest.raises(exception.BrokerAway):
        link.Link(f'amqp://guest:guest@127.0.0.1:{server}//', places)
