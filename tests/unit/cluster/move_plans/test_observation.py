# SPDX-License-Identifier: Apache-2.0

"""Nova lists no server as changed whose pin did: pins are read again."""

import dataclasses

import pytest

from nova_fairness import exception
from nova_fairness.cluster.move_plans import observation
from nova_fairness.cluster.move_plans import plan_controller
from tests.fixtures import fake_cloud
from tests.unit.cluster import test_service
from tests.unit.cluster.move_plans import test_plan_controller

world = test_service.world
cloud = test_plan_controller.cloud
half = test_plan_controller.half
M, C = test_plan_controller.M, test_plan_controller.C
PIN = 'pinned_availability_zone'


@pytest.fixture
def apart(half):
    """The hosts lie in two zones; of pins nothing is listed any more."""
    half.fake.hypervisors[fake_cloud.name_uuid('h1')]['zone'] = 'z2'
    half.rules = dataclasses.replace(
        half.rules, mode=plan_controller.Mode.APPROVE
    )

    def begin(pin):
        half.fake.servers[half.servers[1]][PIN] = pin
        half.begin()
        listed = half.nova.servers(half.world.now)
        half.nova.servers = lambda _: listed
        return half.fake.servers[half.servers[1]]

    half.begin_with = begin
    return half


def test_a_server_pinned_after_the_list_is_in_no_plan(apart):
    server = apart.begin_with(None)
    server[PIN] = 'z1'
    assert apart.go(5) is None


def test_an_unpinned_server_is_known_within_an_hour(apart):
    server = apart.begin_with('z1')
    server[PIN] = None
    assert apart.go(5) is None
    apart.world.now += observation.PINS_S
    assert apart.go(2) is not None


def test_an_unpinned_server_is_known_where_a_host_is_emptied(apart):
    server = apart.begin_with('z1')
    assert apart.go() is None
    with pytest.raises(exception.IllegalStep):
        apart.moving.empty('h2')
    server[PIN] = None
    plan = apart.moving.empty('h2')
    assert [each.server for each in plan.moves] == [apart.servers[1]]


def test_the_newest_of_several_pins_counts(apart):
    server = apart.begin_with('z1')
    apart.go()
    for pin in (None, 'z1', None, 'z1'):
        server[PIN] = pin
        if pin:
            with pytest.raises(exception.IllegalStep):
                apart.moving.empty('h2')
        else:
            assert apart.moving.empty('h2').moves


def test_pins_are_not_read_with_a_single_zone(half):
    half.begin()
    half.mobility.pin = None
    assert half.go() is not None
