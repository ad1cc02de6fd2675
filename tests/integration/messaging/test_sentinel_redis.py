# SPDX-License-Identifier: Apache-2.0

"""A master that Sentinel replaces: nobody notices for long."""

import threading

from oslo_messaging_zmq.matchmaker import redis
from oslo_messaging_zmq.notifications import sender as notifications
from tests.fixtures import redis_sentinel
from tests.fixtures.patience import wait_for_value
from tests.integration.messaging import test_matchmaker_redis as ours
from tests.integration.messaging import test_notifications_redis as theirs


def test_listeners_are_known_to_the_new_master(caplog):
    with redis_sentinel.running(password='hunter2') as group:
        mine, yours = (
            redis.RedisMatchmaker(
                ours.settings(group.url), ttl_s=2.0, poll_s=0.05
            )
            for _ in range(2)
        )
        mine.register(ours.peer('one'))
        assert ours.servers(yours) == ['one']
        group.master.stop()
        wait_for_value(lambda: yours.statistics()['outages'] == 1)
        assert ours.servers(yours) == ['one']
        mine.register(ours.peer('two'))
        group.fail_over()
        wait_for_value(lambda: ours.servers(yours) == ['one', 'two'])
        with group.replica.client() as client:
            assert len(client.keys(f'{ours.PREFIX}:peer:*')) == 2
        mine.stop()
        yours.stop()
    assert 'hunter2' not in caplog.text


def test_clients_leave_a_replaced_redis_master(caplog):
    with redis_sentinel.running() as group:
        one = redis.RedisMatchmaker(
            ours.settings(group.url), ttl_s=1.0, poll_s=0.05, timeout_s=0.5
        )
        one.register(ours.peer('one'))
        group.master.pause()  # hangs until it is nobody's master any more
        group.fail_over()
        group.master.resume()
        with group.replica.client() as client:
            key = f'{ours.PREFIX}:peer:*'
            client.flushall()
            wait_for_value(lambda: client.keys(key))
        assert ours.servers(one) == ['one']
        one.stop()


def test_notifications_go_on_with_the_new_master():
    with redis_sentinel.running(password='hunter2') as group:
        one = notifications.RedisNotifications(
            theirs.settings(group.url), timeout_s=0.5, retry_delay_s=0.05
        )
        end = theirs.Endpoint(one.listener([theirs.INFO], None, 1, None))
        theirs.send(one, 1)
        assert end.numbers(1) == [1]
        # What the replica does not know when it takes over is given again.
        wait_for_value(lambda: one.statistics()['acknowledged'] == 1)
        group.wait_for_replication()
        group.master.stop()
        sender = threading.Thread(target=theirs.send, args=(one, 2))
        sender.start()
        wait_for_value(lambda: one.statistics()['retried'] > 0)
        group.fail_over()
        assert end.numbers(1) == [2]
        sender.join(theirs.PATIENCE_S)
        end.end()
        one.cleanup()


def test_a_service_that_sentinel_does_not_know_is_named(caplog):
    with redis_sentinel.running() as group:
        url = group.url.replace('service=main', 'service=other')
        one = redis.RedisMatchmaker(ours.settings(url))
        assert one.peers(*ours.TOPIC) == ()
        one.stop()
    assert "Redis 'other' by Sentinel at" in caplog.text
    assert 'No master found' in caplog.text
