# SPDX-License-Identifier: Apache-2.0

"""Requests wait in front of the real Nova, and all else goes on as ever."""

import itertools

import pytest

from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest
from tests.fixtures.nova_cloud import settings
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

REQUESTS = 12
FLAVOR = 'small'


@pytest.fixture
def full(cloud, servers, queue):
    """Servers that leave no room; those that a test deletes are gone."""
    # What another test deleted is seen by the next snapshot.
    room = settings.VCPUS * len(cloud.nodes) - len(servers)
    watching.eventually(
        lambda: cloud.room(FLAVOR) == room, lambda: cloud.room(FLAVOR)
    )
    made = ask(cloud, 'fills', room)
    try:
        for server in made:
            cloud.await_status(server)
        watching.eventually(lambda: cloud.room(FLAVOR) == 0)
        yield made
    finally:
        cloud.delete([server for server in made if cloud.exists(server)])


def ask(cloud, what, count):
    """Ask for servers, for one project after the other."""
    return [
        boot(cloud, user, f'{user}-{what}-{number}')
        for user, number in zip(
            itertools.cycle(places.USERS), range(count), strict=False
        )
    ]


def boot(cloud, user, name, host=None):
    return cloud.boot(user, name, host, guest_image.IDLE, FLAVOR)


def told(cloud, requests, what):
    return [cloud.request(uuid).get(what) for uuid in requests]


def await_told(cloud, requests, what, wanted):
    watching.eventually(
        lambda: told(cloud, requests, what) == wanted,
        lambda: ([cloud.request(each) for each in requests], wanted),
    )


def act_on(cloud, user, request, action):
    path = f'/fairness/requests/{request}/action'
    return cloud.users[user].ask('POST', 'compute', path, {action: None})


def test_requests_of_three_projects_wait_and_all_become_active(cloud, full):
    asked = ask(cloud, 'waits', REQUESTS)
    await_told(cloud, asked, 'position', [*range(1, REQUESTS + 1)])
    await_told(cloud, asked, 'state', ['held'] * REQUESTS)
    projects = {cloud.users[user].project for user in places.USERS}
    assert set(told(cloud, asked, 'project_id')) == projects
    # Nova shows them, too, and no host has one.
    shown = [cloud.show(server) for server in asked]
    assert {each['status'] for each in shown} == {'BUILD'}
    assert {each['OS-EXT-SRV-ATTR:host'] for each in shown} == {None}

    # Whatever dies meanwhile, none is lost and none starts twice.
    cloud.queue.kill(waiting.SERVICE)
    cloud.queue.kill(waiting.RELAY)
    cloud.queue.start(waiting.RELAY)
    cloud.queue.start(waiting.SERVICE)
    cloud.delete(full)
    for server in asked:
        cloud.await_status(server)
        # The room of each is that of another.
        cloud.admin.delete('compute', f'/servers/{server}')
    await_told(cloud, asked, 'state', ['ended'] * REQUESTS)


def test_users_read_why_they_wait_and_cancel_it(cloud, full):
    [mine, other] = boot(cloud, 'alice', 'mine'), boot(cloud, 'bob', 'other')
    await_told(cloud, [mine, other], 'position', [1, 2])
    shown = watching.openstack(
        cloud, 'fairness', 'request', 'show', mine, user='alice'
    )
    assert shown['state'] == 'held'
    assert shown['reason'] == 'shared_part_taken'
    assert 'VCPU' in shown['explanation']
    listed = watching.openstack(
        cloud, 'fairness', 'request', 'list', user='alice'
    )
    assert [each['ID'] for each in listed if each['State'] == 'held'] == [mine]
    path = f'/fairness/requests/{other}'
    assert cloud.users['alice'].ask('GET', 'compute', path).status == 404
    assert act_on(cloud, 'alice', other, 'cancel').status == 404

    assert act_on(cloud, 'alice', mine, 'cancel').status == 202
    watching.eventually(lambda: not cloud.exists(mine))
    await_told(cloud, [mine], 'state', ['cancelled'])
    await_told(cloud, [other], 'position', [1])
    # A server that its user deletes is no request any more.
    cloud.delete([other])
    await_told(cloud, [other], 'state', ['ended'])


def test_whose_token_was_revoked_reads_why_it_did_not_start(
    cloud, full, monkeypatch
):
    other = rest.login(cloud.controller, 'alice', places.USERS['alice'])
    with monkeypatch.context() as patched:
        patched.setitem(cloud.users, 'alice', other)
        mine = boot(cloud, 'alice', 'mine')
    await_told(cloud, [mine], 'position', [1])
    other.revoke()
    cloud.delete(full)
    await_told(cloud, [mine], 'state', ['expired'])
    assert told(cloud, [mine], 'reason') == ['token_refused']
    watching.eventually(lambda: not cloud.exists(mine))


def host_of(cloud, server):
    return cloud.show(server)['OS-EXT-SRV-ATTR:host']


def ended(cloud, server, action):
    """How the last action of a kind ended; nothing if it goes on."""
    path = f'/servers/{server}/os-instance-actions'
    found = cloud.admin.get('compute', path)['instanceActions']
    return next(each['message'] for each in found if each['action'] == action)


HANDLED = {
    'os-stop': 'SHUTOFF',
    'os-start': 'ACTIVE',
    'pause': 'PAUSED',
    'unpause': 'ACTIVE',
    'suspend': 'SUSPENDED',
    'resume': 'ACTIVE',
}


def test_servers_are_handled_as_without_the_queue(cloud, full):
    waits = boot(cloud, 'carol', 'waits', 'cmp2')
    await_told(cloud, [waits], 'position', [1])
    server, other = [each for each in full if host_of(cloud, each) == 'cmp1'][
        :2
    ]
    for action, status in HANDLED.items():
        cloud.act(server, action)
        cloud.await_status(server, status)
    path = f'/servers/{server}/action'
    said = {'os-getConsoleOutput': {}}
    watching.eventually(
        lambda: (
            'guest ready' in cloud.admin.post('compute', path, said)['output']
        )
    )
    # There is no room for it beside what it has, and Nova says so.
    cloud.act(server, 'resize', flavorRef='shares')
    watching.eventually(lambda: ended(cloud, server, 'resize') == 'Error')
    cloud.await_status(server)

    cloud.delete([other])
    cloud.act(server, 'resize', flavorRef='shares')
    cloud.await_status(server, 'VERIFY_RESIZE')
    cloud.act(server, 'confirmResize')
    cloud.await_status(server)
    assert cloud.show(server)['flavor']['original_name'] == 'shares'
    assert host_of(cloud, server) == 'cmp1'
    # The other's room is there again; whoever waits wants another host.
    watching.eventually(lambda: cloud.room(FLAVOR) == 1)
    await_told(cloud, [waits], 'state', ['held'])
    cloud.delete([waits])


def test_a_live_migration_makes_room_for_who_waits_for_a_host(cloud, full):
    moved = next(each for each in full if host_of(cloud, each) == 'cmp1')
    gone = next(each for each in full if host_of(cloud, each) == 'cmp2')
    waits = boot(cloud, 'carol', 'waits', 'cmp1')
    try:
        await_told(cloud, [waits], 'position', [1])
        cloud.delete([gone])
        watching.eventually(lambda: cloud.room(FLAVOR) == 1)
        cloud.act(moved, 'os-migrateLive', host='cmp2', block_migration='auto')
        cloud.await_status(waits)
        cloud.await_status(moved)
        assert [host_of(cloud, each) for each in (moved, waits)] == [
            'cmp2',
            'cmp1',
        ]
    finally:
        cloud.delete([waits])
