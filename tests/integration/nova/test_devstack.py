# SPDX-License-Identifier: Apache-2.0

"""The phases of the devstack plugin, on the hosts of a real cloud."""

import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness.model import defaults
from tests.fixtures.nova_cloud import machine
from tests.integration.nova import readme_lines
from tests.integration.nova import stacking
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


@pytest.fixture
def stacked(cloud, servers):
    """The cloud as devstack finds it, without our agents and our filter."""
    with stacking.taken_over(cloud) as made:
        yield made


def reported(cloud, binary='nova-fairness'):
    """When services reported last, by host, of those that are up."""
    path = f'/os-services?binary={binary}'
    return {
        item['host']: item['updated_at']
        for item in cloud.admin.get('compute', path)['services']
        if item['state'] == 'up'
    }


def await_reports(stacked, binary='nova-fairness'):
    """Wait until what runs now on every node has told Nova so."""
    cloud = stacked.cloud
    since = reported(cloud, binary)

    def is_up():
        now = reported(cloud, binary)
        return set(now) == set(cloud.nodes) and all(
            when > since.get(host, '') for host, when in now.items()
        )

    watching.eventually(
        is_up, lambda: (since, reported(cloud, binary), stacked.said())
    )


def show_what_ships(stacked):
    """Where nobody chose anything, agents go by their defaults."""
    cloud = stacked.cloud
    everywhere = dict.fromkeys(cloud.nodes, defaults.METRIC)
    watching.eventually(
        lambda: stacking.answering(cloud) == set(cloud.nodes), stacked.said
    )
    assert watching.metrics(cloud) == everywhere


def show_that_it_works(stacked):
    """What an operator looks at, and sets, when devstack is done."""
    cloud = stacked.cloud
    watching.eventually(
        lambda: stacking.answering(cloud) == set(cloud.nodes), stacked.said
    )
    change, _ = readme_lines.shown()
    status, answer = readme_lines.typed(cloud, change, cloud.admin)
    assert status == 202
    assert [host['name'] for host in answer['hosts']] == list(cloud.nodes)
    assert answer['not_reached'] == []
    everywhere = dict.fromkeys(cloud.nodes, 'AssetFairnessMetric')
    watching.eventually(lambda: watching.metrics(cloud) == everywhere)


def show_that_servers_are_steered(stacked, servers):
    cloud = stacked.cloud
    node = stacked.nodes[stacking.BY_ROOTWRAP]
    assert f'{cloud.venv}/bin/nova-rootwrap' in node.said('fairness-agent')
    watching.use_defaults(cloud)
    watching.eventually(
        lambda: watching.prefers(cloud, servers['alice-1'], servers['bob-1']),
        stacked.said,
    )


def test_devstack_phases_make_a_cloud_fair_twice_and_leave_nothing(
    cloud, servers, stacked
):
    given = stacked.files()
    stacked.configure()
    stacked.start_nova()
    stacked.start()
    await_reports(stacked)
    await_reports(stacked, 'nova-compute')
    show_what_ships(stacked)
    show_that_it_works(stacked)
    listed = watching.openstack(
        cloud, 'compute', 'service', 'list', '--service', 'nova-fairness'
    )
    assert {item['Host']: item['State'] for item in listed} == dict.fromkeys(
        cloud.nodes, 'up'
    )

    made, first = stacked.files(), stacked.pids()
    assert first.keys() == {
        ('controller', 'fairness-redis'),
        *((name, 'fairness-agent') for name in cloud.nodes),
    }
    stacked.stack()
    assert stacked.files() == made
    last = stacked.pids()
    assert first.keys() == last.keys()
    await_reports(stacked)
    show_that_it_works(stacked)
    show_that_servers_are_steered(stacked, servers)

    stacked.destroy()
    assert stacked.files() == given
    machine.await_true(
        lambda: not stacked.processes(),
        lambda: f'processes are left: {stacked.processes()}',
    )
    ended = (*first.values(), *last.values())
    assert not any(processes.identify(pid) for pid in ended)
    for node in cloud.nodes.values():
        assert not watching.as_nova_wants(node, servers)

    cloud.plane.restart_api(stacked.controller.nova)
    plain = cloud.admin.get('compute', '/servers?all_tenants=1')['servers']
    assert set(servers.values()) <= {server['id'] for server in plain}
    gone = cloud.admin.ask('GET', 'compute', '/fairness')
    assert gone.status == 404
