# SPDX-License-Identifier: Apache-2.0

"""The whole driver with keys: who is heard, and as whom."""

import oslo_messaging
import pytest

from tests.fixtures import curve_cloud
from tests.fixtures import zmq_cloud
from tests.fixtures.patience import wait_for_value


@pytest.fixture
def keys(tmp_path):
    return curve_cloud.Cloud(tmp_path)


class Endpoint:
    def __init__(self):
        self.peers = []

    def note(self, ctxt):
        self.peers.append(ctxt['zmq_peer'])
        return len(self.peers)


def transport(cloud, place):
    return cloud.transport(insecure='false', keys_path=place)


def test_endpoints_see_name_and_role_of_the_key_despite_false_claims(
    cloud, keys
):
    node, chief = keys.node('n1'), keys.node('c1', 'controller')
    endpoint = Endpoint()
    cloud.serve('t', 'n1', endpoint, transport(cloud, node))
    client = cloud.client('t', transport(cloud, chief))
    forged = {'zmq_peer': {'name': 'somebody', 'role': 'god'}}
    assert client.call(forged, 'note') == 1
    client.prepare(fanout=True).cast({}, 'note')
    wait_for_value(lambda: len(endpoint.peers) == 2)
    assert endpoint.peers == [{'name': 'c1', 'role': 'controller'}] * 2


def test_peers_with_keys_and_peers_without_do_not_talk(cloud, keys):
    endpoint = Endpoint()
    cloud.serve('t', 'n1', endpoint, transport(cloud, keys.node('n1')))
    insecure = cloud.transport()
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('t', insecure, timeout=0.3).call({}, 'note')
    cloud.serve('u', 'n1', endpoint, insecure)
    keyed = transport(cloud, keys.node('n2'))
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('u', keyed, timeout=0.3).call({}, 'note')
    assert zmq_cloud.statistics(keyed)['dropped_unusable_peer'] >= 1
    assert endpoint.peers == []


def test_no_peer_talks_to_a_listener_whose_key_is_not_allowed(
    cloud, keys, tmp_path
):
    (tmp_path / 'foreign').mkdir()
    foreign = curve_cloud.Cloud(tmp_path / 'foreign')
    endpoint = Endpoint()
    false = transport(cloud, foreign.node('n1'))
    cloud.serve('t', 'n1', endpoint, false)
    ours = transport(cloud, keys.node('n1'))
    with pytest.raises(oslo_messaging.MessagingTimeout):
        cloud.client('t', ours, timeout=0.3).call({}, 'note')
    cloud.client('t', ours, fanout=True).cast({}, 'note')
    assert endpoint.peers == []
    statistics = zmq_cloud.statistics(ours)
    assert statistics['dropped_unusable_peer'] >= 1
    assert statistics['fanout_dropped_unusable_peer'] == 1


def test_a_revoked_key_is_heard_no_more(cloud, keys):
    endpoint = Endpoint()
    listening = transport(cloud, keys.node('n1'))
    cloud.serve('t', 'n1', endpoint, listening)
    revoked = cloud.client(
        't', transport(cloud, keys.node('n2')), timeout=1, fanout=True
    )
    good = cloud.client('t', transport(cloud, keys.node('n3')))
    revoked.cast({}, 'note')
    wait_for_value(lambda: len(endpoint.peers) == 1)
    keys.revoke('n2')
    wait_for_value(
        lambda: zmq_cloud.statistics(listening)['access_sessions_closed'] >= 1
    )
    revoked.cast({}, 'note')
    assert good.call({}, 'note') == 2
    assert [peer['name'] for peer in endpoint.peers] == ['n2', 'n3']


def test_keys_that_cannot_be_read_are_named_at_once(cloud, tmp_path):
    with pytest.raises(
        oslo_messaging.exceptions.ConfigurationError, match='nowhere'
    ):
        transport(cloud, tmp_path / 'nowhere')
