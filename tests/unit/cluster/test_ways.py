# SPDX-License-Identifier: Apache-2.0

"""Pinned servers and odd resource classes, from the message to the host."""

import dataclasses

import pytest

from nova_fairness.cluster.store import records
from nova_fairness.model import reason
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.fixtures import nova_casts
from tests.unit.cluster import test_service

R, S = reason.Reason, request.State
PINNED = {'hw:cpu_policy': 'dedicated'}


@pytest.fixture
def world(tmp_path):
    made = test_service.World(tmp_path)
    yield made
    made.close()


def post(world, name, extra, vcpu=4):
    """A user asks for a server of a flavor with extra specs."""
    server = fake_cloud.name_uuid(name)
    world.cloud.add_server(server)

    def change(message):
        spec = message['args']['request_specs'][0]['nova_object.data']
        spec['flavor']['nova_object.data']['extra_specs'] = extra

    cast = test_service.build(name, server, vcpu)
    body = nova_casts.changed(cast, change).body
    world.store.store_message(dataclasses.replace(cast, body=body))
    return server


def kept(world, monkeypatch):
    """What is kept in Placement, by host, in the order in which it is."""
    found, do = [], fake_cloud.FakeCloud._allocate

    def allocate(self, consumer, body):
        for uuid, each in body['allocations'].items():
            found.append((self.providers[uuid]['name'], each['resources']))
        return do(self, consumer, body)

    monkeypatch.setattr(fake_cloud.FakeCloud, '_allocate', allocate)
    return found


def test_a_pinned_server_is_sent_where_hosts_have_shared_cpus_alone(
    world, monkeypatch
):
    world.cloud.add_host('h1', 4)
    found = kept(world, monkeypatch)
    server, process = post(world, 'r1', PINNED), world.process()
    process.cycle()
    assert world.state(server) is S.STARTING
    assert found == [('h1.example', {'MEMORY_MB': 100, 'VCPU': 4})]
    # What it was sent for counts until Nova claims it.
    process.cycle()
    used = process.last().snapshot.inventory.used
    assert used.tolist() == [[100, 4]]


def test_dedicated_cpus_are_kept_where_a_host_has_them(world, monkeypatch):
    world.cloud.add_host('h1', 8, child=[{'PCPU': 4}])
    found = kept(world, monkeypatch)
    server, process = post(world, 'r1', PINNED), world.process()
    process.cycle()
    assert world.state(server) is S.STARTING
    assert {'PCPU': 4} in [amounts for _, amounts in found]
    process.cycle()
    used = process.last().snapshot.inventory.used
    assert used.tolist() == [[100, 4, 0]]


def test_a_request_for_a_class_of_no_host_is_sent_to_nova_at_once(world):
    world.cloud.add_host('h1', 4)
    odd = post(world, 'r1', {'resources:CUSTOM_GPU': '1'})
    mixed = post(
        world, 'r2',
        {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-1'},
    )  # fmt: skip
    usual, process = world.post('r3'), world.process()
    process.cycle()
    for server in (odd, mixed, usual):
        assert world.state(server) is S.STARTING
    # Nova finds no host, and its user reads so.
    world.cloud.servers[odd].update(
        {'status': 'ERROR', 'OS-EXT-STS:task_state': None}
    )
    process.cycle()
    assert world.state(odd) is S.FAILED
    assert world.reason(odd) is R.NO_VALID_HOST


def test_a_resource_that_may_come_back_is_waited_for(world):
    world.cloud.add_host('h1', 4, child=[{'CUSTOM_GPU': 1}])
    process = world.process()
    process.cycle()
    gone = world.cloud.providers.pop(fake_cloud.name_uuid('h1-0'))
    server = post(world, 'r1', {'resources:CUSTOM_GPU': '1'})
    world.now += 1800.0
    process.cycle()
    assert (world.state(server), world.reason(server)) == (
        S.WAITING,
        R.TOO_LARGE,
    )
    world.cloud.providers[fake_cloud.name_uuid('h1-0')] = gone
    process.cycle()
    assert world.state(server) is S.STARTING


@pytest.mark.parametrize('fallbacks', [(), None, 'one'])
def test_fallback_resource_classes_are_read_from_the_store(fallbacks):
    demand = request.Demand((('MEMORY_MB', 1), ('PCPU', 2)), host='h')
    if fallbacks == 'one':
        fallbacks = demand.alternatives[1:]
    asked = request.Request(
        'r', 'p', 'u', ('s',),
        request.Demand(demand.amounts, fallbacks=fallbacks), 0.0,
    )  # fmt: skip
    assert (
        records._parse_request_content(records._request_content_json(asked))[2]
        == asked.demand
    )
