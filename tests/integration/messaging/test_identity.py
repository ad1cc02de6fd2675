# SPDX-License-Identifier: Apache-2.0

"""Whoever says that they are a server: a good key of another name, and Redis.

An impostor has a good key of a node, or may write to Redis, or both. No call,
cast or fanout for a server may reach them, whatever they announce.
"""

import dataclasses
import json
import logging
import time
import uuid

import oslo_messaging
import pytest

from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.matchmaker import store
from tests.fixtures import curve_cloud
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value

EXCHANGE = 'openstack'
RECORDS = store.Keys('oslo_messaging_zmq')
HALF_AN_HOUR_MS = 1_800_000


class Endpoint:
    """Remembers what it was asked, and by which name it answers."""

    def __init__(self, name):
        self.name = name
        self.got = []

    def pause(self, ctxt, value=0):
        self.got.append(value)
        return f'done by {self.name}'


class Stage:
    """Keys of two nodes, an impostor and a controller; one Redis."""

    def __init__(self, cloud, keys):
        self.cloud, self.keys = cloud, keys
        for name, role in (
            ('n1', 'node'),
            ('n2', 'node'),
            ('evil', 'node'),
            ('ctl', 'controller'),
        ):
            keys.node(name, role)
        self.transports = {}

    def join(self, name):
        """The transport of who has the key of a name."""
        if name not in self.transports:
            self.transports[name] = self.cloud.transport(
                insecure='false',
                keys_path=str(self.keys.top / name),
                poll_interval=0.05,
                # An impostor does not repair what was written over.
                address_ttl=300.0 if name == 'evil' else 3.0,
            )
        return self.transports[name]

    def serve(self, name, server=''):
        """Let who has a key answer for a server, by default their own."""
        endpoint = Endpoint(name)
        self.cloud.serve('t', server or name, endpoint, self.join(name))
        return endpoint

    def listener(self, name):
        """What a name has announced last."""
        engine = self.join(name)._driver._engine_of_process()
        return engine._listeners[-1].peer

    def client(self, timeout=zmq_cloud.PATIENCE_S, **target):
        """The controller, who asks."""
        return self.cloud.client('t', self.join('ctl'), timeout, **target)

    def ask(self, server):
        """Ask a server; give its answer, or '' if there is none."""
        try:
            client = self.client(1.0, server=server)
            return client.call({}, 'pause')
        except oslo_messaging.MessagingTimeout:
            return ''

    def counts(self, name):
        """The statistics of a transport."""
        return zmq_cloud.statistics(self.join(name))

    def known(self):
        """Ids of the listeners that the controller knows."""
        matches = self.join('ctl')._driver._engine_of_process()._matchmaker
        return {peer.id for peer in matches.look_up(EXCHANGE, 't', 5.0)}

    def forge(self, peer, ends_ms=None):
        """Write a record into Redis, as whoever may write there can."""
        ends_ms = ends_ms or time.time() * 1000 + HALF_AN_HOUR_MS
        with self.cloud.redis.client() as redis:
            generation = int(redis.get(RECORDS.generation) or 0) + 10**6
            redis.set(RECORDS.generation, generation)
            forged = dataclasses.replace(peer, generation=generation)
            record = {'version': 1} | dataclasses.asdict(forged)
            redis.set(RECORDS.peer(peer.id), json.dumps(record))
            index = RECORDS.index(peer.exchange, peer.topic)
            redis.zadd(index, {store.member(forged): ends_ms})
            mark = RECORDS.mark(peer.exchange, peer.topic)
            redis.set(mark, uuid.uuid4().hex)
        self.known()


@pytest.fixture
def stage(cloud, tmp_path):
    return Stage(cloud, curve_cloud.Cloud(tmp_path))


def test_a_call_for_a_server_never_goes_to_the_key_of_another_name(
    stage, caplog
):
    genuine, impostor = stage.serve('n1'), stage.serve('evil', 'n1')
    client = stage.client()
    for _ in range(5):
        asked = client.prepare(server='n1')
        assert asked.call({}, 'pause') == 'done by n1'
    assert (len(genuine.got), impostor.got) == (5, [])
    assert stage.counts('ctl')['dropped_foreign_name'] >= 1
    assert 'the key of evil' in caplog.text


def test_with_the_server_away_its_impostor_is_not_asked(stage):
    impostor = stage.serve('evil', 'n1')
    assert stage.ask('n1') == ''
    with pytest.raises(oslo_messaging.MessageDeliveryFailure):
        stage.client(server='n1', retry=0).cast({}, 'pause')
    assert impostor.got == []
    genuine = stage.serve('n1')
    assert stage.ask('n1') == 'done by n1'
    assert genuine.got == [0]


def test_the_key_of_a_controller_answers_for_no_host_either(stage):
    impostor = stage.serve('ctl', 'n1')
    assert stage.ask('n1') == ''
    assert impostor.got == []


def test_a_listener_under_another_name_gets_nothing_of_a_group(stage):
    genuine, impostor = stage.serve('n1'), stage.serve('evil', 'n2')
    for _ in range(4):
        assert stage.client().call({}, 'pause') == 'done by n1'
    stage.client(fanout=True).cast({}, 'pause', value=7)
    wait_for_value(lambda: 7 in genuine.got)
    assert impostor.got == []
    assert stage.counts('ctl')['fanout_dropped_foreign_name'] == 1


def test_a_record_that_becomes_that_of_another_server_is_left(stage):
    impostor = stage.serve('evil')
    assert stage.ask('evil') == 'done by evil'
    stage.client(fanout=True).cast({}, 'pause')
    wait_for_value(lambda: len(impostor.got) == 2)
    # The connection is there already; only the name in Redis changes.
    peer = stage.listener('evil')
    stage.forge(dataclasses.replace(peer, server='n1'))
    assert stage.ask('n1') == ''
    stage.client(fanout=True).cast({}, 'pause')
    assert len(impostor.got) == 2
    assert stage.counts('ctl')['fanout_dropped_foreign_name'] == 1


def test_a_record_beside_that_of_a_server_changes_nothing(stage):
    stage.serve('n1')
    impostor = stage.serve('evil', 'n1')
    assert stage.ask('n1') == 'done by n1'
    here, there = stage.listener('n1'), stage.listener('evil')
    connections = stage.counts('ctl')['peers_connected']
    for forged in (
        there,
        dataclasses.replace(here, key=there.key),
        dataclasses.replace(here, rpc=there.rpc, key=there.key),
        dataclasses.replace(here, key=curve_cloud.stranger().public),
        dataclasses.replace(here, key=''),
        dataclasses.replace(here, server='evil', key=''),
    ):
        stage.forge(dataclasses.replace(forged, id=uuid.uuid4().hex))
        assert stage.ask('n1') == 'done by n1'
        assert stage.counts('ctl')['peers_connected'] == connections
    assert impostor.got == []


def test_an_overwritten_record_withholds_calls_and_sends_them_nowhere(
    stage,
):
    stage.serve('n1')
    assert stage.ask('n1') == 'done by n1'
    impostor = stage.serve('evil', 'n1')
    here, there = stage.listener('n1'), stage.listener('evil')
    forgeries = {
        'address and key': dataclasses.replace(
            here, rpc=there.rpc, fanout=there.fanout, key=there.key
        ),
        'address': dataclasses.replace(
            here, rpc=there.rpc, fanout=there.fanout
        ),
        'key': dataclasses.replace(here, key=there.key),
        'port': dataclasses.replace(here, rpc='tcp://127.0.0.1:1'),
    }
    for what, forged in forgeries.items():
        stage.forge(forged)
        assert stage.ask('n1') in ('', 'done by n1'), what
    # The server announces itself again, and is asked again.
    client = stage.client(server='n1')
    assert client.call({}, 'pause') == 'done by n1'
    assert impostor.got == []


def test_a_record_that_would_never_end_is_removed(stage):
    stage.serve('n1')
    never = dataclasses.replace(stage.listener('n1'), id=uuid.uuid4().hex)
    stage.forge(never, ends_ms=10**15)
    assert never.id not in stage.known()
    index = RECORDS.index(EXCHANGE, 't')
    with stage.cloud.redis.client() as redis:
        (member,) = redis.zrange(index, 0, -1)
    assert member.endswith(stage.listener('n1').id)


def test_an_address_of_before_is_of_no_use_to_anybody(stage):
    first = stage.serve('n1')
    assert stage.ask('n1') == 'done by n1'
    old = stage.listener('n1')
    stage.cloud.serve('t', 'n1', first, stage.join('n1'))
    # What was announced before is announced again, and never expires.
    stage.join('n1')._driver._engine_of_process()._listeners[0].cleanup()
    wait_for_value(lambda: old.id not in stage.known())
    stage.forge(old)
    assert [stage.ask('n1') for _ in range(3)] == ['done by n1'] * 3


def test_a_key_may_answer_for_more_names_if_the_list_says_so(stage):
    admin.serves(stage.keys.operator, 'evil', ['n1@lvm', 'n1'])
    stage.keys.copy_list()
    backend = stage.serve('evil', 'n1@lvm')
    assert stage.ask('n1@lvm') == 'done by evil'
    assert len(backend.got) == 1
    assert stage.ask('n1@ceph') == ''


def test_a_name_that_is_taken_back_ends_connections(stage):
    admin.serves(stage.keys.operator, 'evil', ['n1'])
    stage.keys.copy_list()
    impostor = stage.serve('evil', 'n1')
    assert stage.ask('n1') == 'done by evil'
    connected = stage.counts('ctl')['peers_connected']
    admin.serves(stage.keys.operator, 'evil', [])
    stage.keys.copy_list()
    wait_for_value(lambda: stage.counts('ctl')['peers_connected'] < connected)
    assert stage.ask('n1') == ''
    assert len(impostor.got) == 1


def test_a_server_with_a_key_of_another_name_logs_the_reason(stage, caplog):
    caplog.set_level(logging.ERROR)
    stage.serve('n1')
    assert caplog.messages == []
    stage.serve('evil', 'n2')
    (said,) = caplog.messages
    assert 'the key of evil may not answer for n2' in said


def test_both_keys_of_a_rotation_answer_for_the_name(stage):
    before = stage.serve('n1')
    assert stage.ask('n1') == 'done by n1'
    admin.rotate(stage.keys.operator, 'n1')
    stage.keys.copy_list()
    stage.keys.give_secret('n1')
    del stage.transports['n1']
    after = stage.serve('n1')
    wait_for_value(lambda: stage.ask('n1') == 'done by n1' and after.got)
    served = len(before.got)
    old = admin.entries(stage.keys.operator)[0].public
    stage.keys.revoke(old)
    assert [stage.ask('n1') for _ in range(3)] == ['done by n1'] * 3
    assert (len(before.got), len(after.got)) == (served, 4)
