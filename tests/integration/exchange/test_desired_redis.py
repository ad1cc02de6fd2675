# SPDX-License-Identifier: Apache-2.0

"""Desired state in a real Redis."""

import concurrent.futures
import contextlib

import pytest

from nova_fairness import exception
from nova_fairness.exchange import desired as desired_module
from nova_fairness.exchange import desired_store
from oslo_messaging_zmq.redis import client as redis_client
from oslo_messaging_zmq.redis import url
from tests.fixtures import redis_server

FIRST = desired_module.DesiredChoice(1, 'm1', 'p1', 'n1')
SECOND = desired_module.DesiredChoice(2, 'm2', 'p2', 'n2')


@pytest.fixture(scope='module')
def server():
    with redis_server.running(password='secret') as running:
        yield running


@pytest.fixture
def client(server):
    server.flush()
    with contextlib.closing(connected(server)) as made:
        yield made


def connected(server, **changes):
    settings = url.RedisSettings(
        ((redis_server.HOST, server.port),),
        **{'password': server.password, **changes},
    )
    return redis_client.connect(settings, timeout_s=5.0)


def to(wanted):
    return lambda kept: desired_module.newest(kept, wanted)


def test_a_desired_state_in_redis_is_given_to_all(client):
    store = desired_store.RedisStore(client, 'cell1')
    assert store.load() is None
    assert store.change(to(FIRST)) == FIRST
    assert store.change(to(SECOND)) == SECOND
    assert store.change(to(FIRST)) == SECOND
    assert desired_store.RedisStore(client, 'cell1').load() == SECOND
    assert desired_store.RedisStore(client, 'cell2').load() is None


def test_a_client_that_decodes_is_understood_too(server):
    store = desired_store.RedisStore(server.client(), 'cell3')
    assert store.change(to(FIRST)) == FIRST
    assert store.load() == FIRST


def test_simultaneous_changes_get_different_epochs(server, client):
    def advance(number):
        with contextlib.closing(connected(server)) as own:
            return desired_store.RedisStore(own, 'cell1').change(
                lambda kept: desired_module.next_choice(
                    kept, 'm', 'p', f'{number}'
                )
            )

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = list(pool.map(advance, range(12)))
    assert sorted(item.epoch for item in made) == list(range(1, 13))


FOREIGN = {
    'text': lambda client, key: client.set(key, 'hello'),
    'a lot of text': lambda client, key: client.set(key, 'x' * 9999),
    'a list': lambda client, key: client.rpush(key, 'hello'),
    'a hash': lambda client, key: client.hset(key, 'a', 'field'),
    'another version': lambda client, key: client.set(key, '{"version": 9}'),
}


@pytest.mark.parametrize('put', FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_value_in_redis_is_named_and_replaced(client, put):
    store = desired_store.RedisStore(client, 'cell1')
    put(client, store.key)
    with pytest.raises(exception.ExchangeError, match='holds no desired'):
        store.load()
    assert store.change(to(FIRST)) == FIRST
    assert store.load() == FIRST


def test_a_wrong_password_is_named(server):
    store = desired_store.RedisStore(
        connected(server, password='wrong'), 'cell1'
    )
    with pytest.raises(exception.ExchangeError, match='invalid username'):
        store.load()


def test_an_unavailable_redis_is_named_and_used_after_its_return():
    with redis_server.running() as server:
        store = desired_store.RedisStore(connected(server), 'cell1')
        store.change(to(FIRST))
        server.stop()
        with pytest.raises(exception.ExchangeError, match='cannot be used'):
            store.load()
        with pytest.raises(exception.ExchangeError, match='cannot be used'):
            store.change(to(SECOND))
        server.start()
        assert store.load() is None
        assert store.change(to(SECOND)) == SECOND
