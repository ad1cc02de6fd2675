# SPDX-License-Identifier: Apache-2.0

"""From nova-api through the relay into the store, with everything real."""

import random
import threading

import pytest

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import schema
from nova_fairness.cluster.store import sealing
from nova_fairness.cluster.store import store as store_module
from nova_fairness.relay import link
from tests.fixtures import rabbitmq_server
from tests.integration.relay import test_relay as ends

places = ends.places


@pytest.fixture(scope='module')
def broker():
    with rabbitmq_server.running() as server:
        yield server


@pytest.fixture
def store(tmp_path):
    keys = tmp_path / 'keys'
    sealing.add_key(keys)
    engine = database.open_engine(f'sqlite:///{tmp_path}/store.sqlite')
    schema.upgrade_tables(engine)
    yield store_module.Store(engine, sealing.read_key_file(keys))
    engine.dispose()


class FakeKeeper:
    """Says when the store has as many as are waited for."""

    def __init__(self, store, count):
        self.answers = []
        self.enough = threading.Event()
        self._store = store
        self._count = count

    def store_message(self, casts):
        new = self._store.store_messages(casts)
        self.answers += new
        if len(self.answers) >= self._count:
            self.enough.set()
        return new


def test_a_build_is_stored_as_it_was_sent_and_once(broker, places, store):
    first = link.Link(broker.url, places)
    with ends.nova_api(broker, places) as client:
        client.cast({'token': 'secret'}, ends.BUILD, number=1)
    first.consume(places.conductor, 1)
    sent = ends.received(first)
    # A relay that dies after sending on and before acknowledging.
    first.publish(places.held, sent)
    first.settle()
    first.close()
    keeper = FakeKeeper(store, 2)
    with ends.relay(broker, places, keeper):
        assert keeper.enough.wait(ends.PATIENCE_S)
    assert keeper.answers == [True, False]
    (uuid,) = store.messages_without_request(9)
    cast = store.read_message(uuid)
    assert (cast.body, cast.key) == (sent.body, 'conductor')
    assert cast.properties['content_type'] == 'application/json'


def test_a_build_of_ten_megabytes_waits_and_the_rest_goes_on(
    broker, places, store
):
    files = random.Random(0).randbytes(5_000_000).hex()
    keeper = FakeKeeper(store, 2)
    with (
        ends.conductor(broker, places) as conductor,
        ends.relay(broker, places, keeper),
        ends.nova_api(broker, places) as client,
    ):
        for number in (files, 2):
            client.cast({}, ends.BUILD, number=number)
        client.cast({}, 'rebuild_instance', number=3)
        assert keeper.enough.wait(ends.PATIENCE_S)
        assert ends.take(conductor.told, 1) == [3]
    casts = [
        store.read_message(each) for each in store.messages_without_request(9)
    ]
    assert list(ends.numbers(casts)) == [files, 2]


def test_a_stored_build_can_be_sent_to_conductor(broker, places, store):
    keeper = FakeKeeper(store, 1)
    with (
        ends.conductor(broker, places) as conductor,
        ends.relay(broker, places, keeper),
        ends.nova_api(broker, places) as client,
    ):
        client.cast({}, ends.BUILD, number=7)
        assert keeper.enough.wait(ends.PATIENCE_S)
        cast = store.read_message(store.messages_without_request(9)[0])
        sender = link.Link(broker.url, places)
        delivery = link.Delivery('', cast.key, cast.body, cast.properties, 0)
        sender.publish(places.target, delivery)
        assert sender.settle() == []
        sender.close()
        assert ends.take(conductor.told, 1) == [7]
