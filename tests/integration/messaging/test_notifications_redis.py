# SPDX-License-Identifier: Apache-2.0

"""Notifications with a real Redis: stored, shared, retried, bounded."""

import collections
import itertools
import logging
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

from oslo_config import cfg
import oslo_messaging
import pytest

from oslo_messaging_zmq.notifications import sender as notifications
from oslo_messaging_zmq.redis import url as transport_url
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value

PATIENCE_S = 60.0
TOP = pathlib.Path(__file__).resolve().parents[3]
PREFIX = 'oslo_messaging_zmq:notifications'
INFO = ('nova', 'notifications.info')
STREAM = f'{PREFIX}:nova:notifications.info'


def settings(url):
    parsed = oslo_messaging.TransportURL.parse(cfg.ConfigOpts(), url)
    return transport_url.parse(parsed)


class Endpoint:
    """Started on a listener; acknowledges at once unless told to keep."""

    def __init__(self, listener, keep=False):
        self.listener = listener
        self.keep = keep
        self.batches = queue.Queue()
        self.kept = []
        listener.start(self.called)

    def called(self, batch):
        for one in batch:
            if self.keep:
                self.kept.append(one)
            else:
                one.acknowledge()
        self.batches.put([one.message['n'] for one in batch])

    def batch(self):
        return self.batches.get(timeout=PATIENCE_S)

    def numbers(self, count):
        """The next so many, in order."""
        found = []
        while len(found) < count:
            found += self.batch()
        return found

    def is_empty(self):
        return self.batches.empty()

    def end(self):
        self.listener.stop()
        self.listener.cleanup()


@pytest.fixture
def make(redis):
    """Makes transports, and endpoints that are ended afterwards."""
    ending = []

    def transport(url='', **options):
        values = {'timeout_s': 2.0, 'retry_delay_s': 0.05} | options
        one = notifications.RedisNotifications(
            settings(url or redis.url), **values
        )
        ending.append(one.cleanup)
        return one

    def endpoint(
        one, targets=(INFO,), pool=None, size=1, timeout=None, **more
    ):
        made = Endpoint(one.listener(targets, pool, size, timeout), **more)
        ending.append(made.end)
        return made

    transport.endpoint = endpoint
    yield transport
    for end in reversed(ending):
        end()


def send(transport, *numbers, topic=INFO, retry=None):
    for number in numbers:
        transport.send(*topic, {'user': 'u'}, {'n': number}, retry)


def entries(redis, stream=STREAM):
    with redis.client() as client:
        return client.xlen(stream)


def test_a_sent_notification_arrives_whole_and_is_forgotten(make, redis):
    one = make()
    taken = []
    listener = one.listener([INFO], None, 1, None)
    listener.start(taken.extend)
    message = {'n': 1, 'deep': [{'ü': None}, 1.5, True], 'b': 'x' * 10**5}
    one.send(*INFO, {'user': 'u', 'roles': ['a']}, message)
    wait_for_value(lambda: taken)
    assert taken[0].message == message
    assert taken[0].ctxt == {'user': 'u', 'roles': ['a']}
    assert entries(redis) == 1
    taken[0].acknowledge()
    assert entries(redis) == 0
    listener.stop()
    listener.cleanup()
    assert one.statistics()['sent'] == 1
    assert one.statistics()['received'] == 1
    assert one.statistics()['acknowledged'] == 1


def test_notifications_wait_until_a_listener_comes(make):
    one, two = make(), make()
    send(one, *range(5))
    assert make.endpoint(two).numbers(5) == [0, 1, 2, 3, 4]


def test_priorities_and_exchanges_are_kept_apart(make):
    one = make()
    error, other = ('nova', 'notifications.error'), ('cinder', INFO[1])
    infos = make.endpoint(one)
    errors = make.endpoint(one, [error])
    others = make.endpoint(one, [other])
    both = make.endpoint(one, [INFO, error], pool='both')
    send(one, 1)
    send(one, 2, topic=error)
    send(one, 3, topic=other)
    assert infos.numbers(1) == [1]
    assert errors.numbers(1) == [2]
    assert others.numbers(1) == [3]
    assert sorted(both.numbers(2)) == [1, 2]


def test_every_pool_gets_one_copy(make, redis):
    one = make()
    nobody = [make.endpoint(one) for _ in range(2)]
    pool = [make.endpoint(one, pool='foo') for _ in range(2)]
    default = make.endpoint(one, pool='default')
    send(one, *range(20))
    assert default.numbers(20) == list(range(20))
    for group in (nobody, pool):
        wait_for_value(lambda group=group: total(group) == 20)
        shares = [end.numbers(end_count(end)) for end in group]
        assert sorted(itertools.chain(*shares)) == list(range(20))
        assert all(share == sorted(share) for share in shares)
    wait_for_value(lambda: entries(redis) == 0)


def end_count(end):
    return end.batches.qsize()


def total(group):
    return sum(end_count(end) for end in group)


def test_work_is_balanced_among_the_listeners_of_a_pool(make):
    one = make(most_open=3)
    send(one, *range(9))
    group = [make.endpoint(one, keep=True) for _ in range(3)]
    wait_for_value(lambda: total(group) == 9)
    assert [end_count(end) for end in group] == [3, 3, 3]


def test_listeners_that_wait_are_served_in_turn(make):
    one = make()
    group = [make.endpoint(one) for _ in range(2)]
    time.sleep(0.2)
    for number in range(8):
        send(one, number)
        wait_for_value(lambda number=number: total(group) == number + 1)
    assert all(end_count(end) > 0 for end in group)


def test_no_more_notifications_are_taken_than_may_be_unacknowledged(make):
    one = make(most_open=2)
    end = make.endpoint(one, keep=True)
    send(one, *range(5))
    assert end.numbers(2) == [0, 1]
    time.sleep(0.2)
    assert end.is_empty()
    end.kept[0].acknowledge()
    assert end.numbers(1) == [2]


def test_a_new_pool_begins_with_undelivered_notifications(make):
    one = make()
    send(one, 1, 2)
    first = make.endpoint(one)
    assert first.numbers(2) == [1, 2]
    first.end()
    send(one, 3, 4)
    assert make.endpoint(one, pool='new').numbers(2) == [3, 4]
    assert make.endpoint(one).numbers(2) == [3, 4]


def test_a_pool_gets_notifications_sent_before_its_listener_starts(make):
    one = make()
    listener = one.listener([INFO], 'pool', 1, None)
    send(one, 1)
    end = Endpoint(listener)
    assert end.numbers(1) == [1]
    end.end()


def test_a_batch_is_delivered_when_full_or_after_its_timeout(make):
    one = make()
    end = make.endpoint(one, size=100, timeout=0.5)
    send(one, *range(205))
    sizes = [len(end.batch()) for _ in range(3)]
    assert sizes == [100, 100, 5]


def test_a_batch_without_time_waits_until_it_is_full(make):
    one = make()
    end = make.endpoint(one, size=3)
    send(one, 1, 2)
    time.sleep(0.3)
    assert end.is_empty()
    send(one, 3)
    assert end.batch() == [1, 2, 3]


def test_a_batch_without_size_has_all_notifications_of_its_time(make):
    one = make()
    send(one, 1, 2, 3)
    end = make.endpoint(one, size=None, timeout=0.3)
    assert end.batch() == [1, 2, 3]


def test_stopping_hands_over_taken_notifications(make):
    one = make()
    end = make.endpoint(one, size=10)
    send(one, 1, 2)
    wait_for_value(lambda: one.statistics()['received'] == 2)
    end.listener.stop()
    assert end.batch() == [1, 2]
    send(one, 3)
    assert end.is_empty()


def test_a_requeued_notification_comes_again_to_its_pool_only(make, redis):
    one = make()
    pool = make.endpoint(one, pool='pool')
    end = make.endpoint(one, keep=True)
    send(one, 1, 2)
    assert end.numbers(2) == [1, 2]
    end.kept[0].requeue()
    end.kept[0].requeue()
    end.kept[1].acknowledge()
    assert end.numbers(1) == [1]
    end.kept[2].acknowledge()
    assert pool.numbers(2) == [1, 2]
    wait_for_value(lambda: entries(redis) == 0)
    assert pool.is_empty()
    assert end.is_empty()


def test_open_notifications_of_a_stopped_listener_go_to_others(make, redis):
    one = make(lease_s=0.5)
    first = make.endpoint(one, keep=True)
    send(one, 1)
    assert first.numbers(1) == [1]
    first.end()
    assert make.endpoint(one).numbers(1) == [1]
    wait_for_value(lambda: entries(redis) == 0)


def test_a_listener_stopped_without_open_work_leaves_no_trace(make, redis):
    one = make()
    end = make.endpoint(one)
    send(one, 1)
    assert end.numbers(1) == [1]
    end.end()
    with redis.client() as client:
        assert client.xinfo_consumers(STREAM, 'default') == []
        assert client.keys(f'{PREFIX}:alive:*') == []


TAKE_AND_HANG = """
import sys, time
from oslo_messaging_zmq.notifications import sender as notifications
from tests.integration.messaging import test_notifications_redis as tests
one = notifications.RedisNotifications(
    tests.settings(sys.argv[1]), lease_s=1.5)
end = tests.Endpoint(one.listener([tests.INFO], None, 1, None), keep=True)
end.numbers(2)
print('ready', flush=True)
time.sleep(1000)
"""


def test_work_of_a_dead_listener_goes_to_others(make, redis):
    one = make(lease_s=1.5)  # as long as a busy machine may stand still
    send(one, 1, 2)
    process = subprocess.Popen(
        [sys.executable, '-c', TAKE_AND_HANG, redis.url],
        stdout=subprocess.PIPE,
        cwd=TOP,
        text=True,
    )
    assert process.stdout.readline() == 'ready\n'
    end = make.endpoint(one)
    time.sleep(3.5)  # longer than a lease: it lives, so nothing is taken
    assert end.is_empty()
    process.kill()
    process.communicate()
    assert end.numbers(2) == [1, 2]
    assert one.statistics()['claimed'] == 2
    with redis.client() as client:
        wait_for_value(
            lambda: len(client.xinfo_consumers(STREAM, 'default')) == 1
        )


def test_slow_endpoints_keep_their_work_also_after_stop(make):
    one = make(lease_s=1.5)
    slow = make.endpoint(one, keep=True)
    send(one, 1)
    assert slow.numbers(1) == [1]
    slow.listener.stop()
    end = make.endpoint(one)
    time.sleep(3.5)  # several leases
    assert end.is_empty()
    slow.kept[0].acknowledge()
    slow.listener.cleanup()
    assert end.is_empty()


def test_a_notification_that_kills_its_consumers_is_dropped(
    make, redis, caplog
):
    one = make(lease_s=0.2)
    send(one, 1)
    with redis.client() as client:
        client.xreadgroup('default', 'dead', {STREAM: '>'})
        (entry,) = client.xpending_range(STREAM, 'default', '-', '+', 1)
        client.xclaim(
            STREAM,
            'default',
            'dead',
            0,
            [entry['message_id']],
            retrycount=10,
        )
    end = make.endpoint(one)
    wait_for_value(lambda: one.statistics()['garbage'] == 1)
    assert end.is_empty()
    assert 'and never finished' in caplog.text
    wait_for_value(lambda: entries(redis) == 0)


def test_a_full_stream_loses_its_oldest_and_says_so(make, redis, caplog):
    one = make(max_length=10)
    send(one, *range(25))
    assert entries(redis) == 10
    assert one.statistics()['dropped_oldest'] == 15
    assert caplog.text.count('lost its oldest') == 1
    assert make.endpoint(one).numbers(10) == list(range(15, 25))


def test_garbage_in_a_stream_is_dropped_counted_and_named(make, redis, caplog):
    one = make(max_message_size=1000)
    deep = '[' * 900
    with redis.client() as client:
        for fields in (
            {'theirs': 'x'},
            {'body': 'x' * 2000},
            {'body': deep},
            {'body': '{"version": 1, "ctxt": [], "message": {}}'},
            {'body': '{"version": 9}'},
        ):
            client.xadd(STREAM, fields)
    send(one, 1)
    assert make.endpoint(one).numbers(1) == [1]
    assert one.statistics()['garbage'] == 5
    assert f'of {STREAM}: 2000 bytes; expected at most 1000' in caplog.text
    wait_for_value(lambda: entries(redis) == 0)


def test_a_foreign_key_is_replaced_and_spoils_no_topic(make, redis, caplog):
    other = ('nova', 'other.info')
    with redis.client() as client:
        client.set(STREAM, 'theirs')
    one = make(lease_s=0.4)
    end = make.endpoint(one, [INFO, other])
    send(one, 1, topic=other)
    assert end.numbers(1) == [1]
    send(one, 2)
    assert end.numbers(1) == [2]
    assert f'Key {STREAM} in Redis: its value was removed' in caplog.text
    assert one.statistics()['replaced'] == 1


def test_too_large_a_notification_is_refused_by_the_sender(make):
    one = make(max_message_size=100)
    with pytest.raises(
        oslo_messaging.MessageDeliveryFailure, match='expected at most 100'
    ):
        send(one, 'x' * 100)


@pytest.mark.parametrize('retry', [0, 2])
def test_sending_gives_up_after_its_retries(make, redis, retry):
    one = make()
    redis.stop()
    with pytest.raises(
        oslo_messaging.MessageDeliveryFailure, match='could not be sent'
    ):
        send(one, 1, retry=retry)
    assert one.statistics()['retried'] == retry
    assert one.statistics()['sent'] == 0


@pytest.mark.parametrize('retry', [None, -1, 10**6])
def test_sending_goes_on_until_redis_is_back(make, redis, retry, caplog):
    one = make()
    redis.stop()
    sender = threading.Thread(
        target=send, args=(one, 1), kwargs={'retry': retry}
    )
    sender.start()
    wait_for_value(lambda: one.statistics()['retried'] > 1)
    redis.start()
    sender.join(PATIENCE_S)
    assert make.endpoint(one).numbers(1) == [1]
    text = caplog.text
    assert text.count('No sending of notifications until Redis') == 1
    assert text.count('sending of notifications continue') == 1


def test_a_notification_that_is_sent_again_is_stored_once(make, redis):
    one = make(timeout_s=0.2)
    send(one, 1)
    redis.pause()  # it will find the first attempts in its sockets
    sender = threading.Thread(target=send, args=(one, 2))
    sender.start()
    wait_for_value(lambda: one.statistics()['retried'] > 2)
    redis.resume()
    sender.join(PATIENCE_S)
    assert entries(redis) == 2
    assert make.endpoint(one).numbers(2) == [1, 2]


@pytest.mark.parametrize('given', ['', 'hunter3'])
def test_a_wrong_password_fails_at_once_and_is_not_shown(given, caplog):
    with redis_server.running(password='hunter2') as server:
        secret = f':{given}@' if given else ''
        one = notifications.RedisNotifications(
            settings(f'zmq+redis://{secret}127.0.0.1:{server.port}')
        )
        end = Endpoint(one.listener([INFO], None, 1, None))
        with pytest.raises(
            oslo_messaging.MessageDeliveryFailure, match='refused'
        ) as caught:
            send(one, 1)
        wait_for_value(lambda: 'No notifications until Redis' in caplog.text)
        end.end()
        one.cleanup()
    assert 'hunter' not in str(caught.value) + caplog.text


def test_a_listener_outlives_outages_and_flushes(make, redis, caplog):
    one = make()
    end = make.endpoint(one)
    send(one, 1)
    assert end.numbers(1) == [1]
    redis.flush()
    send(one, 2)
    assert end.numbers(1) == [2]
    redis.stop()
    wait_for_value(lambda: 'No notifications until Redis' in caplog.text)
    redis.start()
    send(one, 3)
    assert end.numbers(1) == [3]
    assert caplog.text.count('serves again: notifications continue') == 1


def test_a_listener_receives_notifications_after_redis_starts(make, redis):
    redis.stop()
    one = make(timeout_s=0.2)
    end = make.endpoint(one)
    redis.start()
    send(one, 1)
    assert end.numbers(1) == [1]


def test_a_failed_acknowledgement_is_sent_later(make, redis, caplog):
    one = make(timeout_s=0.2)
    end = make.endpoint(one, keep=True)
    send(one, 1, 2)
    assert end.numbers(2) == [1, 2]
    redis.pause()
    end.kept[0].acknowledge()
    end.kept[1].requeue()
    redis.resume()
    assert end.numbers(1) == [2]
    end.kept[2].acknowledge()
    wait_for_value(lambda: entries(redis) == 0)
    assert 'Redis did not get the outcome of' in caplog.text


def test_a_hung_redis_does_not_hold_up_stop_and_cleanup(make, redis):
    one = make(timeout_s=0.2)
    end = make.endpoint(one)
    send(one, 1)
    assert end.numbers(1) == [1]
    redis.pause()
    end.end()
    redis.resume()


def test_a_callback_that_raises_does_not_end_the_listener(make, caplog):
    one = make()
    taken = []

    def callback(batch):
        if not taken:
            taken.append('raised')
            raise RuntimeError('cannot schedule new futures')
        taken.extend(one.message['n'] for one in batch)

    listener = one.listener([INFO], None, 1, None)
    listener.start(callback)
    send(one, 1, 2)
    wait_for_value(lambda: taken == ['raised', 2])
    listener.stop()
    listener.cleanup()
    assert 'Could not hand over 1 notifications' in caplog.text


def test_a_forked_process_sends_for_itself(make, redis):
    conf = cfg.ConfigOpts()
    transport = oslo_messaging.get_notification_transport(conf, redis.url)
    target = oslo_messaging.Target(exchange=INFO[0], topic=INFO[1])

    def tell(number):
        transport._send_notification(target, {}, {'n': number}, version=2.0)

    tell(1)
    pid = os.fork()
    if pid == 0:
        try:
            tell(2)
            transport.cleanup()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    tell(3)
    assert make.endpoint(make()).numbers(3) == [1, 2, 3]
    transport.cleanup()


def test_many_senders_and_listeners_lose_and_duplicate_nothing(make, redis):
    one = make()
    group = [make.endpoint(one) for _ in range(3)]
    senders = [
        threading.Thread(
            target=send, args=(one, *range(n * 100, n * 100 + 100))
        )
        for n in range(4)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(PATIENCE_S)
    wait_for_value(lambda: total(group) == 400)
    counted = collections.Counter(
        number for end in group for number in end.numbers(end_count(end))
    )
    assert counted == collections.Counter(range(400))
    wait_for_value(lambda: entries(redis) == 0)


def test_notifications_work_over_tls(tmp_path):
    certificates = redis_server.make_certificates(tmp_path)
    with redis_server.running(certificates=certificates) as server:
        one = notifications.RedisNotifications(settings(server.url))
        end = Endpoint(one.listener([INFO], None, 1, None))
        send(one, 1)
        assert end.numbers(1) == [1]
        end.end()
        one.cleanup()


@pytest.fixture(autouse=True)
def at_warnings(caplog):
    caplog.set_level(logging.WARNING)
