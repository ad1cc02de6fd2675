# SPDX-License-Identifier: Apache-2.0

"""The matchmaker with a real Redis: alone, away, flushed, hung, foreign."""

import logging
import pathlib
import subprocess
import sys
import time
import uuid

from oslo_config import cfg
import oslo_messaging
import pytest

from oslo_messaging_zmq.matchmaker import contract
from oslo_messaging_zmq.matchmaker import redis as redis_matchmaker
from oslo_messaging_zmq.redis import url as transport_url
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value

PATIENCE_S = 60.0
TOP = pathlib.Path(__file__).resolve().parents[3]
PREFIX = 'oslo_messaging_zmq'
TOPIC = ('nova', 'compute')


def settings(url):
    parsed = oslo_messaging.TransportURL.parse(cfg.ConfigOpts(), url)
    return transport_url.parse(parsed)


def peer(server='one', **changes):
    values = {
        'id': uuid.uuid4().hex,
        'exchange': TOPIC[0],
        'topic': TOPIC[1],
        'server': server,
        'host': 'node1',
        'rpc': 'tcp://127.0.0.1:1001',
        'fanout': 'tcp://127.0.0.1:1002',
    }
    return contract.AnnouncedListener(**(values | changes))


def ends_ms():
    """When a member ends that is not struck out at once: in half an hour."""
    return (time.time() + 1800) * 1000


def servers(matchmaker, topic=TOPIC):
    return sorted(one.server for one in matchmaker.peers(*topic))


@pytest.fixture
def make(redis):
    made = []

    def make(url='', **options):
        values = {'ttl_s': 3.0, 'poll_s': 0.05, 'timeout_s': 1.0} | options
        one = redis_matchmaker.RedisMatchmaker(
            settings(url or redis.url), **values
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


def test_listeners_register_and_unregister(make):
    mine, yours = make(), make()
    assert mine.peers(*TOPIC) == ()
    announced = peer('one')
    yours.register(announced)
    wait_for_value(lambda: servers(mine) == ['one'])
    assert mine.peers(*TOPIC)[0].generation > 0
    yours.register(peer('two'))
    wait_for_value(lambda: servers(mine) == ['one', 'two'])
    ids = [one.id for one in mine.peers(*TOPIC)]
    assert ids == sorted(ids)
    yours.unregister(announced.id)
    wait_for_value(lambda: servers(mine) == ['two'])
    yours.stop()
    wait_for_value(lambda: servers(mine) == [])


def test_a_registered_listener_is_found_by_the_next_look_up(make):
    mine, yours = make(poll_s=1000.0), make(poll_s=1000.0)
    assert mine.look_up(*TOPIC, timeout_s=PATIENCE_S) == ()
    yours.register(peer('one'))
    found = mine.look_up(*TOPIC, timeout_s=PATIENCE_S)
    assert [one.server for one in found] == ['one']


def test_topics_and_exchanges_are_kept_apart(make):
    mine, yours = make(), make()
    yours.register(peer('one'))
    yours.register(peer('two', exchange='a:b', topic='c'))
    yours.register(peer('three', exchange='a', topic='b:c'))
    assert servers(mine) == ['one']
    assert servers(mine, ('a:b', 'c')) == ['two']
    assert servers(mine, ('a', 'b:c')) == ['three']
    assert servers(mine, ('nova', 'conductor')) == []


def test_watchers_are_told_of_changes_of_topics_in_use(make):
    mine, yours = make(), make()
    told = []
    mine.watch(lambda *news: told.append(news))
    mine.peers(*TOPIC)
    one = peer('one')
    yours.register(one)
    yours.register(peer('two', topic='unused'))
    wait_for_value(lambda: [len(news[2]) for news in told] == [1])
    yours.unregister(one.id)
    wait_for_value(lambda: [len(news[2]) for news in told] == [1, 0])
    assert {news[:2] for news in told} == {TOPIC}


def test_a_watcher_that_raises_harms_no_other(make):
    mine, yours = make(), make()
    told = []

    def bad(*_):
        raise ValueError('bad')

    mine.watch(bad)
    mine.watch(lambda *news: told.append(news))
    mine.peers(*TOPIC)
    yours.register(peer())
    wait_for_value(lambda: told)


def test_records_are_refreshed_before_they_expire(make, redis):
    mine = make(ttl_s=1.0)
    one = peer()
    mine.register(one)
    key = f'{PREFIX}:peer:{one.id}'
    with redis.client() as client:
        lives = [client.pttl(key)]

        def refreshed():
            lives.append(client.pttl(key))
            return lives[-1] > lives[-2]

        for _ in range(4):
            wait_for_value(refreshed)
        assert all(0 < life <= 1000 for life in lives)
    assert mine.statistics()['announced'] == 1
    assert mine.statistics()['announced_again'] == 0


REGISTER_AND_WAIT = """
import sys, time
from tests.integration.messaging import test_matchmaker_redis as tests
from oslo_messaging_zmq.matchmaker import redis as redis_matchmaker
one = redis_matchmaker.RedisMatchmaker(tests.settings(sys.argv[1]), ttl_s=0.5)
one.register(tests.peer('killed'))
print('ready', flush=True)
time.sleep(1000)
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, '-c', script, *arguments],
        stdout=subprocess.PIPE,
        cwd=TOP,
        text=True,
    )


def test_a_killed_process_is_forgotten_when_its_records_expire(make, redis):
    mine = make()
    process = start(REGISTER_AND_WAIT, redis.url)
    assert process.stdout.readline() == 'ready\n'
    wait_for_value(lambda: servers(mine) == ['killed'])
    process.kill()
    process.communicate()
    wait_for_value(lambda: servers(mine) == [])


def test_a_listener_that_moved_is_announced_again(make):
    mine, yours = make(), make()
    one = peer()
    yours.register(one)
    wait_for_value(lambda: servers(mine) == ['one'])
    before = mine.peers(*TOPIC)[0]
    moved = contract.AnnouncedListener(
        **{name: getattr(one, name) for name in ('id', 'server', 'host')},
        exchange=one.exchange,
        topic=one.topic,
        rpc='tcp://127.0.0.1:2001',
        fanout='tcp://127.0.0.1:2002',
    )
    yours.register(moved)
    wait_for_value(lambda: [p.rpc for p in mine.peers(*TOPIC)] == [moved.rpc])
    assert mine.peers(*TOPIC)[0].generation > before.generation


def test_generations_grow_across_a_flush(make, redis):
    mine = make()
    mine.register(peer('old'))
    old = mine.look_up(*TOPIC, PATIENCE_S)[0].generation
    redis.flush()
    mine.register(peer('new'))
    wait_for_value(lambda: servers(mine) == ['new', 'old'])
    by_server = {one.server: one.generation for one in mine.peers(*TOPIC)}
    assert by_server['old'] == old
    assert by_server['new'] > old


def test_a_flush_loses_no_listener(make, redis):
    mine, yours = make(), make(poll_s=0.5)
    told = []
    mine.watch(lambda *news: told.append(len(news[2])))
    yours.register(peer('one'))
    yours.register(peer('two'))
    wait_for_value(lambda: servers(mine) == ['one', 'two'])
    del told[:]
    reads = mine.statistics()['reads']
    redis.flush()
    wait_for_value(lambda: yours.statistics()['announced_again'] == 2)
    wait_for_value(lambda: mine.statistics()['reads'] >= reads + 2)
    assert servers(mine) == ['one', 'two']
    assert told == []


def test_after_a_flush_the_dead_are_forgotten_in_the_end(make, redis):
    mine = make(ttl_s=0.5)
    process = start(REGISTER_AND_WAIT, redis.url)
    assert process.stdout.readline() == 'ready\n'
    wait_for_value(lambda: servers(mine) == ['killed'])
    process.kill()
    process.communicate()
    redis.flush()
    wait_for_value(lambda: servers(mine) == [])


def test_a_listener_registers_when_redis_starts_later(make, redis, caplog):
    redis.stop()
    mine, yours = make(), make()
    mine.register(peer('one'))
    assert yours.peers(*TOPIC) == ()
    redis.start()
    wait_for_value(lambda: servers(yours) == ['one'])
    text = caplog.text
    assert text.count('No news of listeners until Redis serves again') == 2
    assert text.count('serves again: news of listeners continue') == 2
    assert f'Redis at 127.0.0.1:{redis.port}' in text


def test_known_listeners_stay_while_redis_is_away(make, redis, caplog):
    mine, yours = make(ttl_s=0.5), make(ttl_s=0.5)
    yours.register(peer('one'))
    wait_for_value(lambda: servers(mine) == ['one'])
    redis.stop()
    wait_for_value(lambda: mine.statistics()['outages'] == 1)
    wait_for_value(lambda: yours.statistics()['outages'] == 1)
    yours.register(peer('two'))
    time.sleep(0.7)  # longer than records live
    assert servers(mine) == ['one']
    found = mine.look_up(*TOPIC, timeout_s=0.01)
    assert [one.server for one in found] == ['one']
    redis.start()
    wait_for_value(lambda: servers(mine) == ['one', 'two'])
    assert mine.statistics()['outages'] == 1
    wait_for_value(
        lambda: [r.levelno for r in caplog.records].count(logging.WARNING) == 4
    )


def test_a_hung_redis_hangs_no_caller(make, redis):
    mine, yours = make(timeout_s=0.2), make(timeout_s=0.2)
    yours.register(peer('one'))
    wait_for_value(lambda: servers(mine) == ['one'])
    redis.pause()
    wait_for_value(lambda: mine.statistics()['outages'] == 1)
    assert servers(mine) == ['one']
    mine.look_up(*TOPIC, timeout_s=0.05)
    assert mine.peers('nova', 'unknown') == ()
    yours.register(peer('two'))
    redis.resume()
    wait_for_value(lambda: servers(mine) == ['one', 'two'])


@pytest.mark.parametrize('given', ['', 'hunter3'])
def test_a_wrong_password_is_named_but_not_shown(given, caplog):
    with redis_server.running(password='hunter2') as server:
        secret = f':{given}@' if given else ''
        one = redis_matchmaker.RedisMatchmaker(
            settings(f'zmq+redis://{secret}127.0.0.1:{server.port}'),
            poll_s=0.05,
        )
        one.register(peer())
        assert one.peers(*TOPIC) == ()
        one.stop()
    expected = 'refused the password' if given else 'refused us without passw'
    assert expected in caplog.text
    assert 'hunter' not in caplog.text
    assert sum(r.levelno == logging.ERROR for r in caplog.records) == 1


def test_the_right_redis_password_is_accepted(caplog):
    with redis_server.running(password='s@cr:et/ %') as server:
        one = redis_matchmaker.RedisMatchmaker(settings(server.url))
        one.register(peer('one'))
        assert servers(one) == ['one']
        one.stop()
    assert caplog.text == ''


def test_garbage_in_redis_is_dropped_counted_and_named(make, redis, caplog):
    index = f'{PREFIX}:listeners:nova:compute'
    ids = [uuid.uuid4().hex for _ in range(4)]
    with redis.client() as client:
        client.zadd(index, {'garbage': ends_ms(), '\x00\xff': ends_ms()})
        client.zadd(index, {f'7@{one}': ends_ms() for one in ids})
        client.zadd(index, {'x' * 100: ends_ms()})
        client.set(f'{PREFIX}:peer:{ids[0]}', '[' * 4000)
        client.set(f'{PREFIX}:peer:{ids[1]}', 'x' * 10**6)
        client.rpush(f'{PREFIX}:peer:{ids[2]}', 'a list')
        client.set('theirs', 'stays')
    mine = make()
    mine.register(peer('one'))
    wait_for_value(lambda: servers(mine) == ['one'])
    counted = mine.statistics()
    assert counted['records_dropped'] == 5
    assert counted['members_dropped'] == 1
    assert "'garbage' is no generation@id" in caplog.text
    assert f'{index} above 10000, or with names above 64' in caplog.text
    mine.look_up(*TOPIC, timeout_s=PATIENCE_S)
    assert mine.statistics()['records_dropped'] == 5
    with redis.client() as client:
        assert client.get('theirs') == 'stays'


def test_a_record_with_a_false_key_is_dropped(make, redis):
    mine, yours = make(), make(poll_s=1000.0)
    one = peer('one')
    yours.register(one)
    with redis.client() as client:
        record = client.get(f'{PREFIX}:peer:{one.id}')
        other = uuid.uuid4().hex
        client.set(f'{PREFIX}:peer:{other}', record)
        client.zadd(
            f'{PREFIX}:listeners:nova:compute', {f'7@{other}': ends_ms()}
        )
        generation = client.get(f'{PREFIX}:generation')
        client.zadd(
            f'{PREFIX}:listeners:nova:other',
            {f'{generation}@{one.id}': ends_ms()},
        )
    assert servers(mine) == ['one']
    assert servers(mine, ('nova', 'other')) == []
    assert mine.statistics()['records_dropped'] == 2


def test_a_foreign_key_is_replaced_and_spoils_no_topic(make, redis, caplog):
    with redis.client() as client:
        client.set(f'{PREFIX}:listeners:nova:compute', 'a text')
        client.rpush(f'{PREFIX}:changed:nova:conductor', 'a list')
        client.set('theirs', 'stays')
    mine = make()
    mine.register(peer('one'))
    mine.register(peer('two', topic='scheduler'))
    assert servers(mine) == ['one']
    assert servers(mine, ('nova', 'scheduler')) == ['two']
    assert servers(mine, ('nova', 'conductor')) == []
    assert mine.statistics()['replaced'] == 2
    assert mine.statistics()['refused'] == 0
    assert f'{PREFIX}:listeners:nova:compute in Redis: its' in caplog.text
    with redis.client() as client:
        assert client.get('theirs') == 'stays'


def test_no_more_listeners_are_read_than_asked_for(make):
    many = make()
    for number in range(8):
        many.register(peer(str(number)))
    few = make(most_peers=5)
    assert len(few.peers(*TOPIC)) == 5
    assert few.statistics()['members_dropped'] == 3


def test_an_unreadable_record_is_refused_at_once(make):
    mine = make()
    for wrong in (
        {'topic': 'x' * 256},
        {'rpc': 'ipc://somewhere'},
        {'id': 'short'},
        {'key': 'no key'},
    ):
        with pytest.raises(ValueError, match='cannot be announced'):
            mine.register(peer(**wrong))


def test_the_matchmaker_works_over_tls(tmp_path, caplog):
    certificates = redis_server.make_certificates(tmp_path)
    with redis_server.running(certificates=certificates) as server:
        one = redis_matchmaker.RedisMatchmaker(settings(server.url))
        one.register(peer('one'))
        assert servers(one) == ['one']
        one.stop()
        assert caplog.text == ''
        bare = f'zmq+rediss://127.0.0.1:{server.port}'
        one = redis_matchmaker.RedisMatchmaker(settings(bare))
        assert one.peers(*TOPIC) == ()
        one.stop()
        assert 'certificate' in caplog.text.lower()
