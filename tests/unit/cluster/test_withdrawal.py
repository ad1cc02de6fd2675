# SPDX-License-Identifier: Apache-2.0

import pathlib
import re

import pytest

from nova_fairness import exception
from nova_fairness.cluster import withdrawal
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova
from tests.fixtures import fake_batch
from tests.fixtures import fake_cloud

TREE = pathlib.Path(nova.__file__).parents[2]


class Left:
    """A cloud and a batch system with what a service left there."""

    def __init__(self):
        self.cloud = fake_cloud.FakeCloud()
        self.nova = nova.Nova(self.cloud.apis.nova)
        self.batch = fake_batch.FakeBatch(('n1', 'n2', 'n3'))
        self.said = []

    def close(self, host, reason):
        self.cloud.add_host(host)
        self.nova.disable(self.nova.services()[host], reason)

    def add_server(self, name, **metadata):
        uuid = fake_cloud.name_uuid(name)
        self.cloud.add_server(uuid)
        self.cloud.build(uuid, next(iter(self.nova.services())), {'VCPU': 1})
        self.cloud.servers[uuid]['metadata'] = metadata
        return uuid

    def metadata(self, uuid):
        return self.cloud.servers[uuid]['metadata']

    def remove(self):
        return withdrawal.Withdrawal(
            self.cloud.apis.nova, self.batch, self.said.append
        ).remove()


@pytest.fixture
def cloud_with_leftovers():
    return Left()


def test_hosts_that_the_service_closed_are_opened_and_no_others(
    cloud_with_leftovers,
):
    cloud_with_leftovers.close('c1', 'nova-fairness: it goes to batch')
    cloud_with_leftovers.close('c2', 'nova-fairness plan: rests, it is empty')
    cloud_with_leftovers.close('c3', 'broken fan')
    cloud_with_leftovers.batch.drain('n1', 'nova-fairness: it goes to cloud')
    cloud_with_leftovers.batch.drain('n2', 'broken disk')
    assert cloud_with_leftovers.remove() == []
    services = cloud_with_leftovers.nova.services()
    assert [services[host].enabled for host in ('c1', 'c2', 'c3')] == [
        True,
        True,
        False,
    ]
    places = cloud_with_leftovers.batch.read_hosts().places
    assert [places[node].takes for node in ('n1', 'n2', 'n3')] == [
        True,
        False,
        True,
    ]
    assert (
        'host c1: enabled, was: nova-fairness: it goes to batch'
        in cloud_with_leftovers.said
    )


def test_metadata_of_the_service_goes_and_metadata_of_owners_stays(
    cloud_with_leftovers,
):
    cloud_with_leftovers.cloud.add_host('c1')
    owned = {'fairness:preemptible': 'true', 'fairness:done': '1', 'a': 'b'}
    marked = cloud_with_leftovers.add_server(
        's1', **owned, **dict.fromkeys(withdrawal.WRITTEN, '17'), TTL='17'
    )
    changed = cloud_with_leftovers.add_server(
        's2', TTL='18', **{nova.TTL_OURS: '17'}
    )
    assert cloud_with_leftovers.remove() == []
    assert cloud_with_leftovers.metadata(marked) == owned
    assert cloud_with_leftovers.metadata(changed) == {'TTL': '18'}


def test_a_second_withdrawal_finds_nothing(cloud_with_leftovers):
    cloud_with_leftovers.close('c1', 'nova-fairness: it goes to batch')
    cloud_with_leftovers.add_server('s1', **{withdrawal.WRITTEN[0]: 'x'})
    cloud_with_leftovers.remove()
    cloud_with_leftovers.said.clear()
    assert cloud_with_leftovers.remove() == []
    assert cloud_with_leftovers.said == []


def test_a_withdrawal_names_failures_and_removes_the_rest(
    cloud_with_leftovers, monkeypatch
):
    cloud_with_leftovers.close('c1', 'nova-fairness: it goes to batch')
    cloud_with_leftovers.batch.drain('n1', 'nova-fairness: it goes to cloud')

    def refuse(*_):
        raise exception.BatchRefused('not allowed')

    monkeypatch.setattr(cloud_with_leftovers.batch, 'undrain', refuse)
    (sentence,) = cloud_with_leftovers.remove()
    assert sentence.startswith('node n1: undrained')
    assert sentence.endswith('not removed: not allowed')
    assert cloud_with_leftovers.nova.services()['c1'].enabled


def test_an_unavailable_batch_system_does_not_block_withdrawal_in_nova(
    cloud_with_leftovers,
):
    cloud_with_leftovers.close('c1', 'nova-fairness: it goes to batch')
    marked = cloud_with_leftovers.add_server(
        's1', **{withdrawal.WRITTEN[0]: 'x'}
    )
    cloud_with_leftovers.batch.drain('n1', 'nova-fairness: it goes to cloud')
    cloud_with_leftovers.batch.is_away = True
    (sentence,) = cloud_with_leftovers.remove()
    assert sentence.startswith('nodes of the batch system: not looked for')
    assert cloud_with_leftovers.nova.services()['c1'].enabled
    assert cloud_with_leftovers.metadata(marked) == {}
    cloud_with_leftovers.batch.is_away = False
    assert cloud_with_leftovers.remove() == []
    assert cloud_with_leftovers.batch.read_hosts().places['n1'].takes


def test_an_unavailable_nova_does_not_block_undraining_nodes(
    cloud_with_leftovers, monkeypatch
):
    def fail(*_):
        raise exception.CloudAway('Nova is away')

    cloud_with_leftovers.batch.drain('n1', 'nova-fairness: it goes to cloud')
    monkeypatch.setattr(clients.Api, 'get', fail)
    removed = cloud_with_leftovers.remove()
    assert [each.partition(':')[0] for each in removed] == [
        'hosts of Nova', 'metadata of servers'
    ]  # fmt: skip
    assert cloud_with_leftovers.batch.read_hosts().places['n1'].takes


def test_every_key_that_the_product_writes_is_removed():
    """A new channel of metadata must be named here, or left to owners."""
    owners = {
        'fairness:' + name
        for name in (
            'desired',
            'done',
            'group',
            'longest_wait',
            'preemptible',
            'preemption_action',
            'time_limit',
        )
    }
    found = set()
    for path in sorted(TREE.rglob('*.py')):
        found |= set(re.findall(r"'(fairness:[a-z_]+)'", path.read_text()))
    assert found - owners == {*withdrawal.WRITTEN}
