# SPDX-License-Identifier: Apache-2.0

"""The driver with keys: who may call whom, and for how long."""

import oslo_messaging
import pytest

from oslo_messaging_zmq.keys import admin
from tests.fixtures import curve_cloud
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


class Endpoint:
    """Remembers who called."""

    def __init__(self):
        self.peers = []

    def note(self, ctxt, value):
        self.peers.append(ctxt['zmq_peer'])
        return value


@pytest.fixture
def keys(tmp_path):
    made = curve_cloud.Cloud(tmp_path)
    for name, role in (
        ('s1', 'node'),
        ('s2', 'node'),
        ('member', 'node'),
        ('other', 'node'),
        ('ctl', 'controller'),
    ):
        made.node(name, role)
    return made


def join(cloud, keys, name):
    return cloud.transport(insecure='false', keys_path=str(keys.top / name))


def counts(transport):
    return transport._driver.statistics()


def test_an_endpoint_gets_name_and_role_of_its_caller(cloud, keys):
    endpoint = Endpoint()
    cloud.serve('t', 's1', endpoint, join(cloud, keys, 's1'))
    forged = {'zmq_peer': {'name': 'ctl', 'role': 'controller'}}
    for name, role in (('member', 'node'), ('ctl', 'controller')):
        client = cloud.client('t', join(cloud, keys, name))
        assert client.call(forged, 'note', value=7) == 7
        assert endpoint.peers.pop() == {'name': name, 'role': role}


def test_a_caller_whose_key_is_revoked_is_cut_off_and_others_are_not(
    cloud, keys
):
    endpoint = Endpoint()
    server = join(cloud, keys, 's1')
    cloud.serve('t', 's1', endpoint, server)
    client = cloud.client('t', join(cloud, keys, 'member'), timeout=1)
    other = cloud.client('t', join(cloud, keys, 'other'))
    assert client.call({}, 'note', value=1) == 1
    assert other.call({}, 'note', value=2) == 2
    # Others hear of it, the member itself does not.
    keys.nodes.remove(keys.top / 'member')
    keys.revoke('member')
    assert wait_for_value(
        lambda: counts(server)['access_sessions_closed'] >= 1
    )
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client.call({}, 'note', value=3)
    assert other.call({}, 'note', value=4) == 4
    assert [peer['name'] for peer in endpoint.peers] == [
        'member',
        'other',
        'other',
    ]
    assert counts(server)['access_sessions_doubtful'] == 0


def test_a_server_whose_key_is_revoked_gets_no_more_calls(cloud, keys):
    first, second = Endpoint(), Endpoint()
    revoked = join(cloud, keys, 's1')
    cloud.serve('t', 's1', first, revoked)
    cloud.serve('t', 's2', second, join(cloud, keys, 's2'))
    client = cloud.client('t', join(cloud, keys, 'member'))
    for number in range(4):
        assert client.call({}, 'note', value=number) == number
    assert len(first.peers) == len(second.peers) == 2
    keys.nodes.remove(keys.top / 's1')
    keys.revoke('s1')
    sessions = counts(revoked)['access_sessions']
    assert sessions
    assert wait_for_value(
        lambda: counts(revoked)['access_sessions'] < sessions
    )
    for number in range(4):
        assert client.call({}, 'note', value=number) == number
    assert len(first.peers) == 2
    assert len(second.peers) == 6


def test_fanouts_reach_good_keys_only(cloud, keys):
    first, second = Endpoint(), Endpoint()
    cloud.serve('t', 's1', first, join(cloud, keys, 's1'))
    cloud.serve('t', 's2', second, join(cloud, keys, 's2'))
    keys.nodes.remove(keys.top / 's1')
    keys.revoke('s1')
    client = cloud.client('t', join(cloud, keys, 'member'))
    client.prepare(fanout=True).cast({}, 'note', value=1)
    assert wait_for_value(lambda: second.peers)
    assert first.peers == []


def test_a_program_without_keys_neither_reaches_nor_hears_one_with(
    cloud, keys
):
    endpoint = Endpoint()
    server = join(cloud, keys, 's1')
    cloud.serve('t', 's1', endpoint, server)
    client = cloud.client('t', cloud.transport(), timeout=1)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client.call({}, 'note', value=1)
    assert endpoint.peers == []


def test_a_rotation_of_a_server_cuts_no_peer_off(cloud, keys):
    endpoint = Endpoint()
    before = cloud.serve('t', 's1', endpoint, join(cloud, keys, 's1'))
    client = cloud.client('t', join(cloud, keys, 'member'))
    assert client.call({}, 'note', value=1) == 1
    old = admin.entries(keys.operator)[0].public
    admin.rotate(keys.operator, 's1')
    keys.copy_list()
    assert client.call({}, 'note', value=2) == 2
    keys.give_secret('s1')
    zmq_cloud.end(before)
    cloud.serve('t', 's1', endpoint, join(cloud, keys, 's1'))
    assert client.call({}, 'note', value=3) == 3
    keys.revoke(old)
    assert client.call({}, 'note', value=4) == 4
    assert [peer['name'] for peer in endpoint.peers] == ['member'] * 4
