# SPDX-License-Identifier: Apache-2.0

"""Servers that move, begin again or end while they are steered."""

import pytest

from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


@pytest.fixture
def fair(cloud, servers):
    """Servers of users who are made equal."""
    watching.use_defaults(cloud)
    watching.act(cloud, 'all', 'resume')
    watching.eventually(
        lambda: watching.prefers(cloud, servers['alice-1'], servers['bob-1'])
    )
    return servers


def migrate(cloud, server, host):
    cloud.act(server, 'os-migrateLive', host=host, block_migration='auto')
    cloud.await_status(server)
    assert cloud.show(server)['OS-EXT-SRV-ATTR:host'] == host


@pytest.fixture
def half(cloud, fair):
    """What is equal is too much for bob: he is entitled to half of it.

    Otherwise he would be heavier than carol only by his other server, for
    which others may leave little of its CPU.
    """
    bob = cloud.users['bob']
    path = f'/os-quota-sets/{bob.project}?user_id={bob.user}'

    def ratio():
        one, other = (
            cloud.admin.get('compute', f'/fairness/instances/{fair[name]}')
            for name in ('bob-1', 'carol-1')
        )
        return (
            one['instance']['quota']['cpu_time']
            / other['instance']['quota']['cpu_time']
        )

    cloud.admin.put('compute', path, {'quota_set': {'cores': 10}})
    try:
        watching.eventually(
            lambda: ratio() == pytest.approx(0.5, rel=0.2), ratio
        )
        yield fair
    finally:
        cloud.admin.delete('compute', path)


def test_live_migration_carries_the_fair_weight_within_two_rounds(cloud, half):
    there = cloud.nodes['cmp2']
    before = there.rounds()
    migrate(cloud, half['bob-1'], 'cmp2')
    try:

        def both():
            """Weights of both since the newcomer runs and competes.

            While it is on its way, QEMU already uses some CPU for it.
            """
            found = []
            for done in watching.rounds(there)[before:]:
                new = watching.in_round(done, half['bob-1'])
                old = watching.in_round(done, half['carol-1'])
                if not (new and old and done.get('contended', {}).get('cpu')):
                    continue
                if found or new['wanting']['cpu']:
                    found.append(
                        (new['weights']['cpu'], old['weights']['cpu'])
                    )
            return found

        watching.eventually(lambda: len(both()) >= 3, both)
        newcomer, other = both()[2]
        assert newcomer < other, both()
        watching.eventually(
            lambda: watching.prefers(cloud, half['carol-1'], half['bob-1'])
        )
    finally:
        migrate(cloud, half['bob-1'], 'cmp1')


@pytest.mark.slow
@pytest.mark.parametrize('action', ['reboot', 'rebuild'])
def test_a_restarted_server_is_steered_again(cloud, fair, action):
    node, server = cloud.nodes['cmp1'], fair['bob-2']
    what = {
        'reboot': {'type': 'HARD'},
        'rebuild': {'imageRef': cloud.images['busy']},
    }
    before = node.pid_of(server)
    cloud.act(server, action, **what[action])
    watching.eventually(
        lambda: node.pid_of(server) not in (None, before),
        lambda: cloud.show(server),
    )
    cloud.await_status(server)
    watching.eventually(
        lambda: watching.prefers(cloud, fair['alice-1'], server),
        lambda: node.said('nova-fairness'),
    )


def test_a_server_deleted_while_it_runs_leaves_nothing(cloud, fair):
    node = cloud.nodes['cmp1']
    server = cloud.boot('bob', 'bob-3', 'cmp1')
    cloud.await_status(server)
    found = node.directory / 'var/lib/nova-fairness/found.json'
    watching.eventually(
        lambda: (
            watching.prefers(cloud, fair['alice-1'], server)
            and server in found.read_text()
        ),
        found.read_text,
    )
    group = node.group_of(server)
    assert group.is_dir()
    cloud.delete([server])
    assert server not in node.domains().values()
    watching.eventually(lambda: not group.exists(), lambda: group)
    # The record of found values is written when there is something to note.
    watching.act(cloud, 'cmp1', 'reset')
    watching.eventually(
        lambda: server not in found.read_text(), found.read_text
    )

    def shown():
        path = f'/fairness/instances/{server}'
        return cloud.admin.ask('GET', 'compute', path)

    def is_over():
        answer = shown()
        # Behind the queue its request is there for longer.
        has_ended = answer.status == 200 and (
            answer.body['instance'].get('standing') == 'ended'
        )
        return answer.status == 404 or has_ended

    watching.eventually(is_over, shown)
    assert 'Traceback' not in node.said('nova-fairness')
