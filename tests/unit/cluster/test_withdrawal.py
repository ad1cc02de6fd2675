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
def left():
    return Left()


def test_hosts_that_the_service_closed_are_opened_and_no_others(left):
    left.close('c1', 'nova-fairness: it goes to batch')
    left.close('c2', 'nova-fairness plan: rests, it is empty')
    left.close('c3', 'broken fan')
    left.batch.drain('n1', 'nova-fairness: it goes to cloud')
    left.batch.drain('n2', 'broken disk')
    assert left.remove() == []
    services = left.nova.services()
    assert [services[host].enabled for host in ('c1', 'c2', 'c3')] == [
        True,
        True,
        False,
    ]
    places = left.batch.read_hosts().places
    assert [places[node].takes for node in ('n1', 'n2', 'n3')] == [
        True,
        False,
        True,
    ]
    assert (
        'host c1: enabled, was: nova-fairness: it goes to batch' in left.said
    )


def test_metadata_of_the_service_goes_and_metadata_of_owners_stays(left):
    left.cloud.add_host('c1')
    owned = {'fairness:preemptible': 'true', 'fairness:done': '1', 'a': 'b'}
    marked = left.add_server(
        's1', **owned, **dict.fromkeys(withdrawal.WRITTEN, '17'), TTL='17'
    )
    changed = left.add_server('s2', TTL='18', **{nova.TTL_OURS: '17'})
    assert left.remove() == []
    assert left.metadata(marked) == owned
    assert left.metadata(changed) == {'TTL': '18'}


def test_a_second_withdrawal_finds_nothing(left):
    left.close('c1', 'nova-fairness: it goes to batch')
    left.add_server('s1', **{withdrawal.WRITTEN[0]: 'x'})
    left.remove()
    left.said.clear()
    assert left.remove() == []
    assert left.said == []


def test_a_withdrawal_names_failures_and_removes_the_rest(left, monkeypatch):
    left.close('c1', 'nova-fairness: it goes to batch')
    left.batch.drain('n1', 'nova-fairness: it goes to cloud')

    def refuse(*_):
        raise exception.BatchRefused('not allowed')

    monkeypatch.setattr(left.batch, 'undrain', refuse)
    (sentence,) = left.remove()
    assert sentence.startswith('node n1: undrained')
    assert sentence.endswith('not removed: not allowed')
    assert left.nova.services()['c1'].enabled


def test_an_unavailable_batch_system_does_not_block_withdrawal_in_nova(left):
    left.close('c1', 'nova-fairness: it goes to batch')
    marked = left.add_server('s1', **{withdrawal.WRITTEN[0]: 'x'})
    left.batch.drain('n1', 'nova-fairness: it goes to cloud')
    left.batch.is_away = True
    (sentence,) = left.remove()
    assert sentence.startswith('nodes of the batch system: not looked for')
    assert left.nova.services()['c1'].enabled
    assert left.metadata(marked) == {}
    left.batch.is_away = False
    assert left.remove() == []
    assert left.batch.read_hosts().places['n1'].takes


def test_an_unavailable_nova_does_not_block_undraining_nodes(
    left, monkeypatch
):
    def fail(*_):
        raise exception.CloudAway('Nova is away')

    left.batch.drain('n1', 'nova-fairness: it goes to cloud')
    monkeypatch.setattr(clients.Api, 'get', fail)
    assert [each.partition(':')[0] for each in left.remove()] == [
        'hosts of Nova', 'metadata of servers'
    ]  # fmt: skip
    assert left.batch.read_hosts().places['n1'].takes


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
