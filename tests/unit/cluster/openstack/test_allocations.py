# SPDX-License-Identifier: Apache-2.0

"""What preemptible servers have now, however they came to it."""

import dataclasses
import random

import pytest

from nova_fairness import exception
from nova_fairness.cluster import snapshot as snapshot_module
from nova_fairness.cluster.openstack import allocations
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.model import request
from tests.fixtures import fake_cloud
from tests.fixtures import small_cloud

FLAVOR = {'vcpus': 1, 'ram': 100, 'disk': 0, 'ephemeral': 0}
BAND = request.Band.PREEMPTIBLE


class FakePlacement:
    """Counts how often it is asked."""

    def __init__(self):
        self.has = {}
        self.broken = set()
        self.asked = 0

    def allocated_amounts(self, server):
        self.asked += 1
        if server in self.broken:
            raise exception.CloudAway(server)
        return dict(self.has.get(server, {}))


def server(uuid, vcpu, **more):
    amounts = (('MEMORY_MB', 100), ('VCPU', vcpu))
    return nova.Server(uuid, 'p', 'u', 'ACTIVE', '', 'h1', amounts, **more)


@pytest.fixture
def placement():
    return FakePlacement()


def test_preemptible_use_never_exceeds_allocation_or_request(placement):
    """Servers are resized at any time, and few are read in a look."""
    chance = random.Random(7)
    made = allocations.AllocationCache(placement)
    asked, there = {}, {}
    for number in range(400):
        uuid = f's{number}'
        vcpu = chance.randrange(1, 33)
        asked[uuid] = small_cloud.waiting_request(uuid, vcpu, band=BAND)
        there[uuid] = server(uuid, vcpu)
        placement.has[uuid] = {'VCPU': vcpu, 'MEMORY_MB': 100}
    now = 1000.0
    for _ in range(40):
        for uuid in chance.sample(sorted(there), 30):
            vcpu = chance.randrange(1, 33)
            placement.has[uuid] = {'VCPU': vcpu, 'MEMORY_MB': 100}
            there[uuid] = server(uuid, vcpu)
        before = placement.asked
        found = made.allocated_amounts(there, asked, now)
        assert placement.asked - before <= allocations.AT_ONCE + 20
        for uuid, amounts in found.items():
            assert dict(amounts)['VCPU'] <= placement.has[uuid]['VCPU']
        now += 10.0
    for _ in range(10):
        found = made.allocated_amounts(there, asked, now)
    assert {uuid: dict(each) for uuid, each in found.items()} == placement.has
    before = placement.asked
    made.allocated_amounts(there, asked, now)
    assert placement.asked == before


def test_a_changing_server_is_read_in_every_cycle(placement):
    made = allocations.AllocationCache(placement)
    asked = {'s': small_cloud.waiting_request('s', 8, band=BAND)}
    placement.has['s'] = {'VCPU': 8}
    resized = dataclasses.replace(server('s', 8), task='resize_prep')
    assert made.allocated_amounts({'s': resized}, asked, 1.0) == {
        's': (('VCPU', 8),)
    }
    placement.has['s'] = {'VCPU': 1}
    assert made.allocated_amounts({'s': resized}, asked, 2.0) == {
        's': (('VCPU', 1),)
    }


def test_an_unchanged_server_is_read_again_after_a_while(placement):
    made = allocations.AllocationCache(placement)
    asked = {'s': small_cloud.waiting_request('s', 8, band=BAND)}
    there = {'s': server('s', 8)}
    placement.has['s'] = {'VCPU': 8}
    made.allocated_amounts(there, asked, 1.0)
    placement.has['s'] = {'VCPU': 2}
    assert made.allocated_amounts(there, asked, 2.0)['s'] == (('VCPU', 8),)
    later = 1.0 + allocations.AGAIN_S
    assert made.allocated_amounts(there, asked, later)['s'] == (('VCPU', 2),)
    # Also when the clock goes back.
    placement.has['s'] = {'VCPU': 3}
    assert made.allocated_amounts(there, asked, -5.0)['s'] == (('VCPU', 3),)


def test_one_that_cannot_be_read_keeps_no_others_back(placement, caplog):
    made = allocations.AllocationCache(placement)
    names = [f's{number}' for number in range(5)]
    asked = {
        each: small_cloud.waiting_request(each, 8, band=BAND) for each in names
    }
    there = {each: server(each, 4) for each in names}
    placement.has = {each: {'VCPU': 3} for each in names[1:]}
    placement.broken = {'s0'}
    for now in (1.0, 2.0):
        found = made.allocated_amounts(there, asked, now)
    assert dict(found.pop('s0'))['VCPU'] == 4
    assert set(found.values()) == {(('VCPU', 3),)}
    assert (
        'server s0: its allocation in Placement cannot be read' in caplog.text
    )
    placement.broken = set()
    placement.has['s0'] = {'VCPU': 3}
    assert made.allocated_amounts(there, asked, 3.0)['s0'] == (('VCPU', 3),)


@pytest.mark.parametrize('seed', range(6))
def test_use_beside_resized_preemptible_servers_counts(seed):
    """Whatever the sizes are, a project uses what is not preemptible."""
    chance = random.Random(seed)
    cloud = fake_cloud.FakeCloud()
    cloud.add_host('h1', 1000, 100_000)
    cloud.add_host('h2', 1000, 100_000)
    reader = snapshot_module.CloudReader(
        placement_module.Placement(cloud.apis.placement),
        nova.Nova(cloud.apis.nova),
        {},
    )
    asked, normal = [], 0
    for number in range(8):
        uuid, vcpu = f's{number}', chance.randrange(1, 30)
        cloud.add_server(uuid, 'p', flavor={**FLAVOR, 'vcpus': vcpu})
        cloud.build(uuid, 'h1', {'VCPU': vcpu, 'MEMORY_MB': 100})
        if chance.random() < 0.5:
            asked.append(
                small_cloud.waiting_request(uuid, vcpu, 'p', band=BAND)
            )
        else:
            normal += vcpu
    now = 1000.0
    reader.read(asked, {}, now)
    migrating = 0
    for each in asked:
        uuid, vcpu = each.servers[0], chance.randrange(1, 40)
        cloud.servers[uuid]['flavor'] = {**FLAVOR, 'vcpus': vcpu}
        status = chance.choice(['ACTIVE', 'VERIFY_RESIZE'])
        if status == 'VERIFY_RESIZE':
            # The migration keeps room on the host that it came from.
            old = dict(each.demand.amounts)['VCPU']
            migration = fake_cloud.name_uuid(uuid)
            source = {fake_cloud.name_uuid('h1'): {'VCPU': old}}
            cloud.write(migration, source, 'p')
            migrating += old
        cloud.build(uuid, 'h2', {'VCPU': vcpu, 'MEMORY_MB': 100}, status)
    for _ in range(3):
        now += 10.0
        found = reader.read(asked, {}, now).snapshot
    used = dict(zip(found.classes, found.used['p'].tolist(), strict=True))
    assert used['VCPU'] == normal + migrating


def test_a_server_unshelved_as_a_normal_one_counts():
    """It came preemptible, and its owner took the mark away meanwhile."""
    cloud = fake_cloud.FakeCloud()
    cloud.add_host('h1', vcpu=64)
    reader = snapshot_module.CloudReader(
        placement_module.Placement(cloud.apis.placement),
        nova.Nova(cloud.apis.nova),
        {},
    )
    cloud.add_server('s', 'p', flavor={**FLAVOR, 'vcpus': 32})
    cloud.build('s', 'h1', {'VCPU': 32, 'MEMORY_MB': 100})
    built = small_cloud.waiting_request('s', 32, 'p', band=BAND)
    back = dataclasses.replace(
        built,
        uuid='u',
        origin=request.Origin.UNSHELVE,
        band=request.Band.NORMAL,
    )
    found = reader.read([built, back], {}, 1000.0).snapshot
    used = dict(zip(found.classes, found.used['p'].tolist(), strict=True))
    assert (used['VCPU'], found.preemptible) == (32, {})
