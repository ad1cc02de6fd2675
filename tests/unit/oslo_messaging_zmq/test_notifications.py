# SPDX-License-Identifier: Apache-2.0

"""Notifications without a Redis: what is written, and how batches form."""

import datetime as dt
import threading
import time
import uuid

import hypothesis
from hypothesis import strategies
import pytest
import redis

from oslo_messaging_zmq.notifications import consumer as consumer_module
from oslo_messaging_zmq.notifications import listener as notification_listener
from oslo_messaging_zmq.notifications import store

LIMIT = 10**6


def entry(number, **changes):
    values = {
        'stream': 's',
        'id': f'{number}-0',
        'fields': {b'body': b'{}'},
    }
    return store.StreamEntry(**(values | changes))


def test_a_notification_is_read_as_it_was_written():
    ctxt, message = {'user': 'ü'}, {'payload': [None, {'a': 1.5}]}
    text = store.encode(ctxt, message)
    assert store.decode(text, LIMIT) == (ctxt, message)


def test_objects_become_types_of_json():
    name = uuid.uuid4()
    moment = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)
    text = store.encode({}, {'id': name, 'at': moment})
    _, message = store.decode(text, LIMIT)
    assert message['id'] == str(name)
    assert message['at'].startswith('2030-01-02T00:00:00')


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (b'x' * (LIMIT + 1), 'expected at most 1000000'),
        (b'', 'not JSON'),
        (b'\xff', 'not JSON'),
        (b'[' * LIMIT, 'not JSON'),
        (b'[]', 'no object of version 1'),
        (b'{"version": 2, "ctxt": {}, "message": {}}', 'of version 1'),
        (b'{"version": 1, "message": {}}', 'context or message'),
        (b'{"version": 1, "ctxt": {}, "message": "x"}', 'context or message'),
    ],
)
def test_a_text_that_is_no_notification_is_refused_with_its_fault(
    text, expected
):
    with pytest.raises(store.BadNotification, match=expected):
        store.decode(text, LIMIT)


@hypothesis.given(strategies.binary(max_size=200))
def test_random_bytes_do_not_break_the_reader(text):
    with pytest.raises(store.BadNotification):
        store.decode(text, LIMIT)


@pytest.mark.parametrize(('deliveries', 'is_given'), [(9, True), (10, False)])
def test_a_notification_that_killed_too_many_is_given_to_no_consumer(
    deliveries, is_given
):
    one = entry(1, deliveries=deliveries)
    if is_given:
        assert store.checked_body(one, 10) == b'{}'
        return
    with pytest.raises(store.BadNotification, match='10 times'):
        store.checked_body(one, 10)


class FakeConsumer:
    """Gives what a test puts in; remembers what became of it."""

    PATIENCE_S = 0.01
    most_open = 64

    def __init__(self, *rounds):
        self.rounds = list(rounds)
        self.wanted = []
        self.settled = []
        self.failures = []
        self.has_left = threading.Event()
        self.is_closed = False

    def take(self, wanted, patience_s):
        self.wanted.append(wanted)
        found = self.rounds.pop(0) if self.rounds else []
        if not found:
            time.sleep(0.005)
        if isinstance(found, Exception):
            raise found
        return [
            consumer_module.Taken(entry(number), {}, {'n': number})
            for number in found
        ]

    def upkeep(self):
        pass

    def failed(self, error):
        self.failures.append(error)
        return 0.0

    def acknowledge(self, taken):
        self.settled.append(('acknowledged', taken.message['n']))

    def requeue(self, taken):
        self.settled.append(('requeued', taken.message['n']))

    def interrupt(self):
        pass

    def leave(self):
        self.has_left.set()

    def close(self):
        self.is_closed = True


def batches(consumer, size, timeout=None, settle=None):
    """Run a listener until its consumer has nothing more; then stop it."""
    given = []

    def callback(batch):
        given.append([one.message['n'] for one in batch])
        for one in batch:
            if settle:
                settle(one)

    listener = notification_listener.NotificationListener(
        consumer, size, timeout
    )
    listener.start(callback)
    while consumer.rounds:
        time.sleep(0.001)
    listener.stop()
    listener.cleanup()
    return given


@pytest.mark.parametrize(
    ('size', 'rounds', 'expected'),
    [
        (1, [[1], [2, 3]], [[1], [2], [3]]),
        (2, [[1, 2, 3], [4]], [[1, 2], [3, 4]]),
        (2, [[1], [], [2]], [[1, 2]]),
        (3, [[1, 2, 3, 4, 5]], [[1, 2, 3], [4, 5]]),
        (None, [[1, 2]], [[1], [2]]),
    ],
)
def test_batches_are_as_large_as_asked_for(size, rounds, expected):
    assert batches(FakeConsumer(*rounds), size) == expected


def test_no_more_is_asked_for_than_the_batch_lacks():
    consumer = FakeConsumer([1], [2])
    batches(consumer, 3)
    assert consumer.wanted[:3] == [3, 2, 1]


def test_a_batch_is_not_larger_than_the_limit_of_open_messages():
    listener = notification_listener.NotificationListener(
        FakeConsumer(), 1000, None
    )
    assert listener.batch_size == 64


def test_a_batch_whose_time_is_up_is_given_before_more_comes():
    consumer = FakeConsumer([1], *[[] for _ in range(10)], [2])
    assert batches(consumer, 2, 0.02) == [[1], [2]]


def test_endpoints_settle_each_notification():
    consumer = FakeConsumer([1, 2])
    batches(consumer, 1, settle=lambda one: (
        one.acknowledge() if one.message['n'] == 1 else one.requeue()
    ))  # fmt: skip
    assert consumer.settled == [('acknowledged', 1), ('requeued', 2)]


@pytest.mark.parametrize(
    'error', [redis.ConnectionError('away'), RuntimeError('a bug')]
)
def test_a_failure_does_not_end_the_listener(error):
    consumer = FakeConsumer([1], error, [2])
    assert batches(consumer, 1) == [[1], [2]]
    assert consumer.failures == [error]


def test_no_listener_is_called_after_stop_and_all_is_left_in_the_end():
    consumer = FakeConsumer([1])
    given = batches(consumer, 1)
    assert given == [[1]]
    assert consumer.has_left.is_set()
    assert consumer.is_closed


def test_a_listener_that_never_started_is_cleaned_up():
    consumer = FakeConsumer()
    listener = notification_listener.NotificationListener(consumer, 1, None)
    listener.stop()
    listener.cleanup()
    assert consumer.is_closed


def test_counters_are_exact_with_many_threads():
    tally = consumer_module.ConsumerCounters()
    threads = [
        threading.Thread(
            target=lambda: [tally.add('one') for _ in range(1000)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.add('two', 5)
    assert tally.read() == {'one': 4000, 'two': 5}
