# SPDX-License-Identifier: Apache-2.0

"""What users of the cloud get, and what operators can do about it."""

import json

import pytest

from nova_fairness.model import defaults
from tests.fixtures.nova_cloud import rest
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

JSON = ('-H', 'Content-Type: application/json')


@pytest.fixture
def fair(cloud, servers):
    """Servers of users who are made equal, and a way to see it."""
    watching.use_defaults(cloud)
    watching.act(cloud, 'all', 'resume')

    def state():
        return {
            name: watching.shares(cloud, uuid)
            for name, uuid in servers.items()
        }

    watching.eventually(
        lambda: watching.prefers(cloud, servers['alice-1'], servers['bob-1']),
        state,
    )
    return servers


def test_curl_sets_the_metric_on_all_hosts_and_shares_follow(cloud, fair):
    body = json.dumps({'set-metric': {'name': 'UniformMetric'}})
    status, answer = watching.curl(
        cloud, cloud.admin, '/fairness/all/action', *JSON, '-d', body
    )
    assert status == 202
    assert [host['name'] for host in answer['hosts']] == list(cloud.nodes)
    assert answer['not_reached'] == []
    watching.act(cloud, 'all', 'reset')
    node = cloud.nodes['cmp1']
    watching.eventually(
        lambda: not watching.as_nova_wants(node, fair),
        lambda: watching.as_nova_wants(node, fair),
    )
    watching.await_rounds(node, 3)
    assert not watching.as_nova_wants(node, fair)


@pytest.mark.slow
def test_curl_sets_the_metric_on_one_host_and_all_hosts_follow(cloud, servers):
    watching.set_metric(cloud, 'UniformMetric')
    project = cloud.admin.project
    status, answer = watching.curl(
        cloud,
        cloud.admin,
        f'/{project}/fairness/cmp1/action',
        *JSON,
        *('-d', json.dumps({'set-metric': {'name': defaults.METRIC}})),
    )
    assert status == 202
    assert [host['name'] for host in answer['hosts']] == ['cmp1']
    wanted = dict.fromkeys(cloud.nodes, defaults.METRIC)
    watching.eventually(
        lambda: watching.metrics(cloud) == wanted,
        lambda: watching.metrics(cloud),
    )
    watching.eventually(
        lambda: watching.prefers(cloud, servers['alice-1'], servers['bob-2'])
    )


@pytest.mark.slow
def test_pause_restores_the_values_of_nova_and_resume_steers_again(
    cloud, fair
):
    node = cloud.nodes['cmp1']
    extra = cloud.boot('bob', 'bob-700', 'cmp1', flavor='shares')
    servers = {**fair, 'bob-700': extra}
    try:
        cloud.await_status(extra)
        assert watching.of_nova(node, extra) == 700
        watching.eventually(lambda: watching.shares(cloud, extra) != 700)
        watching.act(cloud, 'cmp1', 'pause')
        watching.eventually(
            lambda: not watching.as_nova_wants(node, servers),
            lambda: watching.as_nova_wants(node, servers),
        )
        watching.await_rounds(node, 3)
        assert not watching.as_nova_wants(node, servers)
        shown = cloud.admin.get('compute', '/fairness/hosts/cmp1')['host']
        assert shown['paused'] is True
        watching.act(cloud, 'cmp1', 'resume')
        watching.eventually(lambda: watching.shares(cloud, extra) != 700)
    finally:
        watching.act(cloud, 'cmp1', 'resume')
        cloud.delete([extra])


def test_a_stopped_agent_leaves_the_values_of_nova(cloud, fair):
    node = cloud.nodes['cmp1']
    node.stop_agent()
    try:
        assert not watching.as_nova_wants(node, fair)
    finally:
        node.start_agent()
        watching.await_rounds(node, 1)


def test_a_plain_user_sees_only_own_servers(cloud, fair):
    alice, bob = cloud.users['alice'], cloud.users['bob']

    def ask(path, session=alice):
        return session.ask('GET', 'compute', f'/fairness{path}')

    own = ask(f'/instances/{fair["alice-1"]}')
    assert own.status == 200
    assert own.body['instance']['user_id'] == alice.user
    others = ask(f'/instances/{fair["bob-1"]}')
    assert others.status == 404
    me = ask('/users/me')
    assert me.status == 200
    assert me.body['user']['id'] == alice.user
    seen = json.dumps([own.body, others.body, me.body])
    assert not any(
        word in seen for word in (*cloud.nodes, bob.user, bob.project)
    )
    assert ask(f'/users/{bob.user}').status in (403, 404)
    assert ask('/users').status == 403
    assert ask('/hosts').status == 403
    assert ask('/hosts/cmp1').status == 403
    refused = alice.ask(
        'POST', 'compute', '/fairness/all/action', {'pause': None}
    )
    assert refused.status == 403
    everything = ask('/users', cloud.admin).body['users']
    assert {alice.user, bob.user} <= {user['id'] for user in everything}


AT_REST = {
    'os-stop': ('SHUTOFF', 'This server is stopped: it does not run'),
    'os-start': ('ACTIVE', ''),
    'pause': ('PAUSED', 'This VM is paused'),
    'unpause': ('ACTIVE', ''),
    'suspend': ('SUSPENDED', 'This server is suspended: it does not run'),
}
"""Status that an action leads to, and how what is said then begins."""


# Each action takes seconds; unit/api_ext/test_instances.py has what is said.
@pytest.mark.slow
def test_the_owner_of_a_stopped_server_reads_that_it_is_stopped(
    cloud, servers
):
    server = cloud.boot('carol', 'carol-rests', 'cmp2')
    path = f'/fairness/instances/{server}'

    def said():
        answer = cloud.users['carol'].ask('GET', 'compute', path)
        return answer.status == 200 and answer.body['instance']['summary']

    try:
        cloud.await_status(server)
        for action, (status, begins) in AT_REST.items():
            cloud.act(server, action)
            cloud.await_status(server, status)
            watching.eventually(
                lambda begun=begins: str(said()).startswith(begun), said
            )
    finally:
        cloud.delete([server])


def test_a_caller_without_a_token_sees_nothing(cloud):
    nobody = rest.Session(cloud.controller)
    assert nobody.ask('GET', 'compute', '/fairness').status == 401


@pytest.mark.slow
def test_the_nova_quota_of_a_user_is_the_weight(cloud, fair):
    alice = cloud.users['alice']
    path = f'/os-quota-sets/{alice.project}?user_id={alice.user}'

    def quota_of(server):
        found = cloud.admin.get('compute', f'/fairness/instances/{server}')
        return found['instance']['quota']['cpu_time']

    def ratio():
        return quota_of(fair['alice-1']) / quota_of(fair['bob-1'])

    watching.eventually(lambda: ratio() == pytest.approx(1.0, rel=0.2), ratio)
    cloud.admin.put('compute', path, {'quota_set': {'cores': 10}})
    try:
        watching.eventually(
            lambda: ratio() == pytest.approx(0.5, rel=0.2), ratio
        )
    finally:
        cloud.admin.delete('compute', path)
    watching.eventually(lambda: ratio() == pytest.approx(1.0, rel=0.2), ratio)
