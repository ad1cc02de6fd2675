# SPDX-License-Identifier: Apache-2.0

"""A real Redis that answers, and refuses all or one key."""

import logging
import pathlib
import threading
import time
import uuid

import pytest
import redis as redis_library

from nova_fairness import exception
from nova_fairness.exchange import desired
from nova_fairness.exchange import desired_store
from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import redis as redis_matchmaker
from oslo_messaging_zmq.notifications import sender
from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import url as transport_url
from tests.fixtures import patience

TOPIC = ('nova', 'compute')
PREFIX = 'oslo_messaging_zmq'
TTL_S = 1.5


def full(client):
    client.config_set('maxmemory', '1kb')
    return lambda: client.config_set('maxmemory', '0')


def cannot_save(client):
    """The last snapshot failed: a directory has the name of its file."""
    pathlib.Path(client.config_get('dir')['dir'], 'dump.rdb').mkdir()
    client.config_set('save', '3600 1000000')
    client.bgsave()
    patience.wait_for_value(
        lambda: client.info()['rdb_last_bgsave_status'] == 'err'
    )
    return lambda: client.config_set('stop-writes-on-bgsave-error', 'no')


def alone(client):
    client.config_set('min-replicas-to-write', 1)
    return lambda: client.config_set('min-replicas-to-write', 0)


def replica(client):
    client.replicaof('127.0.0.1', 1)
    return lambda: client.replicaof('NO', 'ONE')


def stale_replica(client):
    client.config_set('replica-serve-stale-data', 'no')
    return replica(client)


def without_rights(client):
    client.execute_command('ACL', 'SETUSER', 'default', '-@write')
    return lambda: client.execute_command('ACL', 'SETUSER', 'default', '+@all')


def without_scripts(client):
    client.execute_command('ACL', 'SETUSER', 'default', '-@scripting')
    return lambda: client.execute_command('ACL', 'SETUSER', 'default', '+@all')


STATES = [
    full,
    cannot_save,
    alone,
    replica,
    stale_replica,
    without_rights,
    without_scripts,
]


def settings(server):
    return transport_url.RedisSettings((('127.0.0.1', server.port),))


def peer(server):
    return contract.AnnouncedListener(
        id=uuid.uuid4().hex,
        exchange=TOPIC[0],
        topic=TOPIC[1],
        server=server,
        host='node1',
        rpc='tcp://127.0.0.1:1001',
        fanout='tcp://127.0.0.1:1002',
    )


@pytest.fixture
def make(redis):
    made = []

    def make():
        one = redis_matchmaker.RedisMatchmaker(
            settings(redis), ttl_s=TTL_S, poll_s=0.05, timeout_s=2.0
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


def servers(matchmaker):
    return sorted(one.server for one in matchmaker.peers(*TOPIC))


@pytest.mark.parametrize('state', STATES)
def test_known_listeners_stay_while_redis_refuses_to_write(
    make, redis, state, caplog
):
    caplog.set_level(logging.WARNING)
    announcer, reader = make(), make()
    announcer.register(peer('one'))
    patience.wait_for_value(lambda: servers(reader) == ['one'])
    with redis.client() as client:
        end = state(client)
        patience.wait_for_value(lambda: announcer.statistics()['outages'] == 1)
        deadline = time.monotonic() + 2.5 * TTL_S
        while time.monotonic() < deadline:
            assert servers(reader) == ['one']
            time.sleep(0.05)
        assert reader.statistics()['outages'] == 1
        assert reader.statistics()['refused'] == 0
        announcer.register(peer('two'))
        end()
    seen = set()

    def both():
        seen.add('one' in servers(reader))
        return servers(reader) == ['one', 'two']

    patience.wait_for_value(both)
    assert seen == {True}
    assert caplog.text.count('No news of listeners until') == 2
    assert caplog.text.count('serves again') >= 2


def test_a_reader_without_listeners_forgets_the_dead_after_an_outage(
    make, redis
):
    announcer, reader = make(), make()
    announcer.register(peer('one'))
    patience.wait_for_value(lambda: servers(reader) == ['one'])
    with redis.client() as client:
        end = full(client)
        patience.wait_for_value(lambda: reader.statistics()['outages'] == 1)
        announcer.stop()
        time.sleep(TTL_S / 4)
        end()
    patience.wait_for_value(lambda: servers(reader) == [])


@pytest.mark.parametrize('state', [full, cannot_save, alone, without_rights])
def test_notifications_are_sent_when_redis_takes_them_again(redis, state):
    one = sender.RedisNotifications(settings(redis), retry_delay_s=0.05)
    try:
        one.send('nova', 'fairness.info', {}, {'n': 1})
        with redis.client() as client:
            end = state(client)
            thread = threading.Thread(
                target=one.send, args=('nova', 'fairness.info', {}, {'n': 2})
            )
            thread.start()
            patience.wait_for_value(lambda: one.statistics()['retried'] > 2)
            end()
            thread.join(30)
            assert one.statistics()['sent'] == 2
            assert client.xlen(f'{PREFIX}:notifications:nova:fairness.info')
    finally:
        one.cleanup()


def test_a_redis_password_changed_at_run_time_counts_as_an_outage(redis):
    one = sender.RedisNotifications(settings(redis), retry_delay_s=0.05)
    try:
        one.send('nova', 'fairness.info', {}, {'n': 1})
        with redis.client() as client:
            client.config_set('requirepass', 'secret')
            client.client_kill_filter(_type='normal', skipme=True)
            thread = threading.Thread(
                target=one.send, args=('nova', 'fairness.info', {}, {'n': 2})
            )
            thread.start()
            patience.wait_for_value(lambda: one.statistics()['retried'] > 2)
            client.config_set('requirepass', '')
            thread.join(30)
        assert one.statistics()['sent'] == 2
    finally:
        one.cleanup()


def test_a_full_redis_can_be_emptied_by_its_listeners(redis):
    one = sender.RedisNotifications(
        settings(redis), lease_s=0.6, retry_delay_s=0.05
    )
    taken = []

    def take(batch):
        for each in batch:
            taken.append(each.message['n'])
            each.acknowledge()

    ends = one.listener([('nova', 'fairness.info')], None, 1, None)
    ends.start(take)
    try:
        for number in range(3):
            one.send('nova', 'fairness.info', {}, {'n': number})
        patience.wait_for_value(lambda: taken == [0, 1, 2])
        ends.stop()
        ends.cleanup()
        for number in range(3, 6):
            one.send('nova', 'fairness.info', {}, {'n': number})
        with redis.client() as client:
            full(client)
            ends = one.listener([('nova', 'fairness.info')], None, 1, None)
            ends.start(take)
            patience.wait_for_value(lambda: taken == [0, 1, 2, 3, 4, 5])
            key = f'{PREFIX}:notifications:nova:fairness.info'
            patience.wait_for_value(lambda: client.xlen(key) == 0)
    finally:
        ends.stop()
        ends.cleanup()
        one.cleanup()


KEYS = {
    'generation': f'{PREFIX}:generation',
    'epoch': f'{PREFIX}:epoch',
    'index': f'{PREFIX}:listeners:nova:compute',
    'mark': f'{PREFIX}:changed:nova:compute',
}


def as_list(client, key):
    client.delete(key)
    client.rpush(key, 'a', 'list')


def as_hash(client, key):
    client.delete(key)
    client.hset(key, 'a', 'field')


def as_text(client, key):
    client.set(key, 'a text')


@pytest.mark.parametrize('spoil', [as_list, as_hash])
@pytest.mark.parametrize('key', KEYS.values(), ids=KEYS)
@pytest.mark.parametrize('is_first', [True, False], ids=['before', 'after'])
def test_a_key_of_a_wrong_type_keeps_no_newcomer_out(
    make, redis, key, spoil, is_first, caplog
):
    reader, announcer, newcomer = make(), make(), make()
    with redis.client() as client:
        if is_first:
            spoil(client, key)
        announcer.register(peer('one'))
        patience.wait_for_value(lambda: servers(reader) == ['one'])
        if not is_first:
            spoil(client, key)
        newcomer.register(peer('two'))
    patience.wait_for_value(lambda: servers(reader) == ['one', 'two'])
    made = (reader, announcer, newcomer)
    assert sum(one.statistics()['outages'] for one in made) == 0
    if key != KEYS['mark']:  # that one is overwritten in any case
        assert sum(one.statistics()['replaced'] for one in made) > 0
        assert f'Key {key} in Redis: its value was removed' in caplog.text


def test_a_record_of_a_wrong_type_is_announced_again(make, redis):
    reader, announcer = make(), make()
    one = peer('one')
    announcer.register(one)
    with redis.client() as client:
        as_hash(client, f'{PREFIX}:peer:{one.id}')
    patience.wait_for_value(lambda: servers(reader) == ['one'])
    assert reader.statistics()['outages'] == 0


@pytest.mark.parametrize('spoil', [as_list, as_text])
def test_a_stream_of_a_wrong_type_is_replaced_for_senders_and_listeners(
    redis, spoil, caplog
):
    key = f'{PREFIX}:notifications:nova:fairness.info'
    one = sender.RedisNotifications(settings(redis), lease_s=0.6)
    taken = []

    def take(batch):
        for each in batch:
            taken.append(each.message['n'])
            each.acknowledge()

    with redis.client() as client:
        spoil(client, key)
        ends = one.listener([('nova', 'fairness.info')], None, 1, None)
        ends.start(take)
        try:
            one.send('nova', 'fairness.info', {}, {'n': 1})
            patience.wait_for_value(lambda: taken == [1])
            spoil(client, key)
            one.send('nova', 'fairness.info', {}, {'n': 2})
            patience.wait_for_value(lambda: taken == [1, 2])
        finally:
            ends.stop()
            ends.cleanup()
            one.cleanup()
    assert one.statistics()['replaced'] >= 2
    assert f'Key {key} in Redis: its value was removed' in caplog.text


@pytest.mark.parametrize('spoil', [as_list, as_hash])
def test_a_desired_state_of_a_wrong_type_is_named_and_replaced(redis, spoil):
    wanted = desired.DesiredChoice(metric='a', policy='b', epoch=1, origin='n')
    with redis.client() as client:
        store = desired_store.RedisStore(client, 'cell1')
        spoil(client, store.key)
        with pytest.raises(exception.ReportRefused, match=store.key):
            store.load()
        assert store.change(lambda kept: wanted) == wanted
        assert store.load() == wanted


def test_a_desired_state_refused_by_redis_is_logged_and_kept(redis):
    wanted = desired.DesiredChoice(metric='a', policy='b', epoch=1, origin='n')
    with redis.client() as client:
        store = desired_store.RedisStore(client, 'cell1')
        end = full(client)
        with pytest.raises(exception.ExchangeError, match='Redis cannot'):
            store.change(lambda kept: wanted)
        end()
        assert store.change(lambda kept: wanted) == wanted


def test_an_endless_redis_script_counts_as_an_outage(redis):
    with redis.client() as client:
        client.config_set('busy-reply-threshold', 50)
        thread = threading.Thread(target=run_for_ever, args=(redis,))
        thread.start()
        try:
            error = patience.wait_for_value(lambda: refusal_of(redis))
            assert redis_client.is_away(error)
            assert not redis_client.concerns_one_key(error)
        finally:
            client.script_kill()
            thread.join(30)


def run_for_ever(server):
    with (
        server.client() as client,
        pytest.raises(redis_library.ResponseError),
    ):
        client.eval('while true do end', 0)


def refusal_of(server):
    with server.client() as client:
        try:
            client.get('k')
        except redis_library.RedisError as error:
            return error
    return None
