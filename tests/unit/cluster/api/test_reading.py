# SPDX-License-Identifier: Apache-2.0

"""Calls that read change nothing: neither what is stored nor what counts."""

import hashlib
import inspect

import oslo_messaging
import pytest
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.api import dry_run
from nova_fairness.cluster.api import requests as requests_module
from nova_fairness.cluster.store import tables
from nova_fairness.model import cluster
from nova_fairness.planners.fairqueue import order
from nova_fairness.planners.fairqueue import planner
from nova_fairness.rpc import requests
from nova_fairness.rpc import roles
from tests.unit.cluster import test_service

world = test_service.world
TRIAL = dry_run.TrialPlanner(planner.plan, order.OldestFirst(), 'fifo')
NODE = {roles.PEER: {'name': 'h1', 'role': 'node'}}
CONTROLLER = {roles.PEER: {'name': 'ctl1', 'role': 'controller'}}


def calls(*access):
    return sorted(
        name
        for name, method in inspect.getmembers(requests.RequestsEndpoint)
        if getattr(method, 'access', None) in access
    )


READ = calls(roles.Access.READ, roles.Access.OVERSEE)


def stored(world):
    """What all tables have, as one word."""
    found = hashlib.sha256()
    with world.engine.connect() as connection:
        for table in tables.METADATA.sorted_tables:
            rows = connection.execute(sa.select(table)).fetchall()
            found.update(repr(sorted(map(repr, rows))).encode())
    return found.hexdigest()


def state_in_memory(process):
    """State that the service holds in memory, to compare after a call."""
    trading = process.charging.trading
    last = process.last()
    return (
        dict(trading._groups),
        dict(trading._meters),
        dict(trading._funds.spent),
        dict(trading._funds.left),
        dict(trading._rates),
        trading._is_new,
        dict(process.chores.warnings.told),
        process.accounts.present(),
        repr(last.plan),
        repr(last.records),
    )


def arguments(method, servers):
    """Arguments that the call takes, with all that a caller could report."""
    known = {
        'project': 'p',
        'by': 'reason',
        'account': 'p',
        'values': {'share': 3.0, 'budget': 0.0},
        'limit': 10,
        'uuid': servers[1],
        'name': 'h1',
        'servers': servers,
        'meters': {
            f'{number}/{uuid}': [uuid, 2**52]
            for number, uuid in enumerate(servers)
        },
    }
    named = list(inspect.signature(method).parameters)[1:]
    return {name: known[name] for name in named if name in known}


@pytest.fixture
def settled(world):
    """A service with funds, groups, a meter, and servers that run and wait."""
    world.accounts = (cluster.Account('p', funds=100.0, budget_hours=5.0),)
    flavor = {'vcpus': 1, 'ram': 1, 'disk': 0, 'ephemeral': 0}
    world.cloud.add_server('s1', 'p', 'u', flavor=flavor)
    world.cloud.servers['s1']['metadata'] = {'fairness:group': 'web'}
    world.cloud.build('s1', 'h1', {'VCPU': 1})
    waits = world.post('waits', 4, 'p')
    process = world.process()
    process.cycle()
    asked = requests_module.ClusterOperations(
        world.store, process, trial=lambda *_: TRIAL
    )
    asked.create_group('p', 'web', 30.0, 1)
    asked.report_meters('h1', {'s1': ('1/1', 0)})
    for _ in range(2):
        world.now += 61
        process.cycle()
    return process, asked, ['s1', waits]


def test_a_node_reads_the_needs_of_its_agent_and_nothing_else():
    assert calls(roles.Access.READ) == [
        'get_notices',
        'get_preemptible',
        'get_rates',
        'get_tree',
    ]


@pytest.mark.parametrize('name', calls(roles.Access.OVERSEE))
def test_a_node_does_not_read_requests_of_tenants(settled, name):
    _, asked, servers = settled
    method = getattr(requests.RequestsEndpoint(asked), name)
    with pytest.raises(oslo_messaging.ExpectedException) as refused:
        method(NODE, **arguments(method, servers))
    assert isinstance(refused.value.exc_info[1], exception.NotAllowed)


@pytest.mark.parametrize('name', READ)
def test_a_call_that_reads_changes_nothing(world, settled, name):
    process, asked, servers = settled
    before = stored(world), state_in_memory(process)
    point = requests.RequestsEndpoint(asked)
    method = getattr(point, name)
    for _ in range(3):
        try:
            method(CONTROLLER, **arguments(method, servers))
        except exception.FairnessError as error:
            refusal = error
        except Exception as error:
            refusal = error.exc_info[1]
        else:
            continue
        # Nothing moves here, and a dry run rests after another one.
        unknown = (
            exception.Busy,
            exception.UnknownHost,
            exception.UnknownPreemption,
        )
        assert isinstance(refusal, (*unknown, exception.UnknownPlan)), refusal
    assert (stored(world), state_in_memory(process)) == before
    left = process.charging.trading.left('p')
    world.now += 61
    process.cycle()
    assert process.charging.trading.left('p') == left


def test_all_calls_say_whether_they_read():
    exposed = [
        (name, method)
        for name, method in inspect.getmembers(requests.RequestsEndpoint)
        if inspect.isfunction(method) and not name.startswith('_')
    ]
    assert all(hasattr(method, 'access') for _, method in exposed)
    assert len(READ) > 15


def test_a_node_reports_in_its_own_name_alone(settled):
    point = requests.RequestsEndpoint(settled[1])
    for context, node, is_taken in (
        (NODE, 'h1', True),
        (NODE, 'h2', False),
        ({roles.PEER: {'name': 'h1', 'role': 'controller'}}, 'h1', False),
        ({}, 'h1', True),
    ):
        if is_taken:
            point.report_meters(context, node=node, meters={})
            continue
        with pytest.raises(oslo_messaging.ExpectedException) as caught:
            point.report_meters(context, node=node, meters={})
        assert caught.value.exc_info[0] is exception.NotAllowed
