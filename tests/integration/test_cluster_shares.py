# SPDX-License-Identifier: Apache-2.0

"""Shares of the queue steer what runs.

Redis, the driver, the agent, the service and its store are real; Nova and
Placement, the VMs and their CPU are fakes.
"""

import functools

import pytest

from nova_fairness.cluster import agent_reports
from nova_fairness.cluster.api import requests as requests_module
from nova_fairness.model import cluster
from nova_fairness.rpc import client
from nova_fairness.rpc import protocol
from nova_fairness.rpc import requests
from nova_fairness.rpc import server
from nova_fairness.runtime import transport
from tests.fixtures import redis_server
from tests.fixtures.patience import wait_for_value
from tests.integration import fake_ends
from tests.unit.agent import fake_host
from tests.unit.cluster import test_service

world = test_service.world


@pytest.fixture
def url():
    with redis_server.running() as redis:
        yield f'{redis.url}?bind_address=127.0.0.1&insecure=true'


@pytest.fixture
def serve(url, tmp_path, world):
    """Start the service, which may stop and start again."""
    running = []

    def started():
        process = world.process()
        process.cycle()
        conf = fake_ends.configuration(url, tmp_path, 'c1', {})
        opened = transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES)
        serving = server.FairnessServer(
            opened,
            conf.fairness_exchange.domain,
            'c1',
            requests.RequestsEndpoint(
                requests_module.ClusterOperations(world.store, process)
            ),
            protocol.REQUESTS_TOPIC,
        )
        serving.start()

        def stop():
            serving.stop()
            opened.cleanup()
            running.remove(stop)

        running.append(stop)
        return process, stop

    yield started
    for stop in list(running):
        stop()


@pytest.fixture
def start(url, tmp_path):
    nodes = []

    def started():
        made = fake_ends.Node(
            url,
            tmp_path,
            'n1',
            fake_host.vm('a-1', 'ann'),
            fake_host.vm('b-2', 'bob'),
            entity='project',
            quota_source='shares',
        )
        nodes.append(made)
        return made

    yield started
    for node in nodes:
        node.stop()


def quota_of(node):
    """Bob's quota beside ann's, of the newest round."""
    done = node.newest
    if done is None or done.measured is None:
        return None
    found = dict(
        zip(
            done.measured.ownership.users,
            done.measured.quota[:, 0].tolist(),
            strict=True,
        )
    )
    return round(found['project-bob'] / found['project-ann'], 3)


def got(node):
    """Bob's CPU time beside ann's since the last look, a short while ago."""
    usage = node.newest.measured.usage
    used = {
        item.instance.user_id: float(amounts[0])
        for item, amounts in zip(
            usage.incarnations, usage.amounts, strict=True
        )
    }
    return used['bob'] / used['ann']


def test_measured_use_is_charged_to_projects(url, start, tmp_path):
    node = start()
    wait_for_value(lambda: node.newest and node.newest.measured)
    conf = fake_ends.configuration(url, tmp_path, 'c1', {})
    opened = transport.open_transport(conf, client.ALLOWED_REMOTE_MODULES)
    try:
        asked = client.FairnessClient(
            opened, 5.0, conf.fairness_exchange.domain
        )
        agents = agent_reports.ReportedUse(
            lambda: asked.call(None, 'get_usage')
        )
        measures = functools.partial(agents.measured, hosts=1)
        wait_for_value(lambda: measures() and len(measures().parts) == 2)
        found = measures()
        assert found.by_project
        parts = [each['cpu_time'] for each in found.parts.values()]
        assert all(0 < part <= 1 for part in parts)
        assert sum(parts) == pytest.approx(1.0, abs=0.2)
    finally:
        opened.cleanup()


def test_running_servers_are_divided_by_the_shares_of_the_queue(
    world, serve, start
):
    world.accounts = (
        cluster.Account('project-ann', None, 1.0),
        cluster.Account('project-bob', None, 1.0),
    )
    process, stop = serve()
    node = start()
    wait_for_value(lambda: quota_of(node) == 1.0)
    world.accounts = (
        cluster.Account('project-ann', None, 1.0),
        cluster.Account('project-bob', None, 3.0),
    )
    process.cycle()
    set_in = node.newest.number
    wait_for_value(lambda: quota_of(node) == 3.0)
    assert node.newest.number - set_in <= 3
    wait_for_value(lambda: got(node) == pytest.approx(3.0, rel=0.1))
    # Nobody answers any more, not even an agent that is started again.
    stop()
    node.stop()
    again = start()
    wait_for_value(lambda: quota_of(again) == 3.0)
