# SPDX-License-Identifier: Apache-2.0

"""Requests wait in front of the real Nova, and all else goes on as ever."""

import pytest

from nova_fairness.cluster.openstack import nova
from tests.fixtures import panels
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest
from tests.fixtures.nova_cloud import scraping
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import filling
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.filling',
)

REQUESTS = 12


def act_on(cloud, user, request, action):
    path = f'/fairness/requests/{request}/action'
    return cloud.users[user].ask('POST', 'compute', path, {action: None})


@pytest.mark.each_release
def test_requests_of_three_projects_wait_and_all_become_active(cloud, full):
    asked = filling.ask_for_servers(cloud, 'waits', REQUESTS)
    filling.await_told(cloud, asked, 'position', [*range(1, REQUESTS + 1)])
    with scraping.running(cloud) as prometheus:
        panels.await_values(
            'queue', prometheus.query, without=[panels.ESTIMATES]
        )
    filling.await_told(cloud, asked, 'state', ['waiting'] * REQUESTS)
    projects = {cloud.users[user].project for user in places.USERS}
    assert set(filling.reported_values(cloud, asked, 'project_id')) == projects
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
    filling.await_told(cloud, asked, 'state', ['ended'] * REQUESTS)


@pytest.mark.each_release
def test_users_read_why_they_wait_and_cancel_it(cloud, full):
    [mine, other] = (
        filling.boot(cloud, 'alice', 'mine'),
        filling.boot(cloud, 'bob', 'other'),
    )
    filling.await_told(cloud, [mine, other], 'position', [1, 2])
    shown = watching.openstack(
        cloud, 'fairness', 'request', 'show', mine, user='alice'
    )
    assert shown['state'] == 'waiting'
    assert shown['reason'] == 'shared_part_taken'
    assert 'VCPU' in shown['explanation']
    statuses_by_server = watching.openstack(
        cloud, 'fairness', 'request', 'list', user='alice'
    )
    assert [
        each['ID'] for each in statuses_by_server if each['State'] == 'waiting'
    ] == [mine]
    path = f'/fairness/requests/{other}'
    assert cloud.users['alice'].ask('GET', 'compute', path).status == 404
    assert act_on(cloud, 'alice', other, 'cancel').status == 404

    assert act_on(cloud, 'alice', mine, 'cancel').status == 202
    watching.eventually(lambda: not cloud.exists(mine))
    filling.await_told(cloud, [mine], 'state', ['cancelled'])
    filling.await_told(cloud, [other], 'position', [1])
    # A server that its user deletes is no request any more.
    cloud.delete([other])
    filling.await_told(cloud, [other], 'state', ['ended'])


def test_a_user_with_a_revoked_token_reads_why_no_server_started(
    cloud, full, monkeypatch
):
    other = rest.login(cloud.controller, 'alice', places.USERS['alice'])
    with monkeypatch.context() as patched:
        patched.setitem(cloud.users, 'alice', other)
        mine = filling.boot(cloud, 'alice', 'mine')
    filling.await_told(cloud, [mine], 'position', [1])
    other.revoke()
    cloud.delete(full)
    filling.await_told(cloud, [mine], 'state', ['expired'])
    assert filling.reported_values(cloud, [mine], 'reason') == [
        'token_refused'
    ]
    watching.eventually(lambda: not cloud.exists(mine))


def host_of(cloud, server):
    return cloud.show(server)['OS-EXT-SRV-ATTR:host']


def outcome_of_action(cloud, server, action):
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


def statuses_by_server(cloud, query):
    """Status of servers by UUID, as Nova lists them."""
    path = f'/servers/detail?all_tenants=1{query}'
    found = cloud.admin.get('compute', path)['servers']
    return {each['id']: each['status'] for each in found}


def test_server_actions_work_as_without_the_queue(cloud, full):
    waits = filling.boot(cloud, 'carol', 'waits', 'cmp2')
    filling.await_told(cloud, [waits], 'position', [1])
    server, other = [each for each in full if host_of(cloud, each) == 'cmp1'][
        :2
    ]
    for action, status in HANDLED.items():
        cloud.act(server, action)
        cloud.await_status(server, status)
        # What waits is the only one that looks between do not list.
        others = statuses_by_server(cloud, nova.BUT_BUILDS)
        assert others == {
            uuid: told
            for uuid, told in statuses_by_server(cloud, '').items()
            if told != 'BUILD'
        }
        assert others.keys() >= set(full)
        assert waits not in others
    path = f'/servers/{server}/action'
    said = {'os-getConsoleOutput': {}}
    watching.eventually(
        lambda: (
            'guest ready' in cloud.admin.post('compute', path, said)['output']
        )
    )
    # There is no room for it beside what it has, and Nova says so.
    cloud.act(server, 'resize', flavorRef='shares')
    watching.eventually(
        lambda: outcome_of_action(cloud, server, 'resize') == 'Error'
    )
    cloud.await_status(server)

    cloud.delete([other])
    since = f'{nova.BUT_BUILDS}&changes-since=2020-01-01T00:00:00Z'
    assert statuses_by_server(cloud, since)[other] == 'DELETED'
    cloud.act(server, 'resize', flavorRef='shares')
    cloud.await_status(server, 'VERIFY_RESIZE')
    assert statuses_by_server(cloud, since)[server] == 'VERIFY_RESIZE'
    cloud.act(server, 'confirmResize')
    cloud.await_status(server)
    assert cloud.show(server)['flavor']['original_name'] == 'shares'
    assert host_of(cloud, server) == 'cmp1'
    # The other's room is there again; whoever waits wants another host.
    watching.eventually(lambda: cloud.room(filling.FLAVOR) == 1)
    filling.await_told(cloud, [waits], 'state', ['waiting'])
    cloud.delete([waits])


def test_a_live_migration_makes_room_for_a_request_of_one_host(cloud, full):
    moved = next(each for each in full if host_of(cloud, each) == 'cmp1')
    gone = next(each for each in full if host_of(cloud, each) == 'cmp2')
    waits = filling.boot(cloud, 'carol', 'waits', 'cmp1')
    try:
        filling.await_told(cloud, [waits], 'position', [1])
        cloud.delete([gone])
        watching.eventually(lambda: cloud.room(filling.FLAVOR) == 1)
        cloud.act(moved, 'os-migrateLive', host='cmp2', block_migration='auto')
        cloud.await_status(waits)
        cloud.await_status(moved)
        assert [host_of(cloud, each) for each in (moved, waits)] == [
            'cmp2',
            'cmp1',
        ]
    finally:
        cloud.delete([waits])


def waits_for(cloud, server):
    """The request that unshelves a server; nothing if there is none."""
    path = f'/fairness/requests?all_projects=true&server={server}'
    statuses_by_server = cloud.admin.get('compute', path)
    found = [
        each
        for each in statuses_by_server['requests']
        if each['uuid'] != server
    ]
    return found[0] if found else {}


@pytest.mark.each_release
def test_a_shelved_server_waits_until_there_is_room_for_it(cloud, full):
    server = full[0]
    cloud.act(server, 'shelve')
    cloud.await_status(server, 'SHELVED_OFFLOADED')
    other = filling.boot(cloud, 'carol', 'instead')
    try:
        cloud.await_status(other)
        cloud.act(server, 'unshelve')
        watching.eventually(
            lambda: waits_for(cloud, server).get('state') == 'waiting'
        )
        assert cloud.show(server)['OS-EXT-SRV-ATTR:host'] is None
    finally:
        cloud.delete([other])
    cloud.await_status(server)
    watching.eventually(
        lambda: waits_for(cloud, server).get('state') == 'active'
    )


def test_a_cold_migration_proceeds_while_requests_wait(cloud, full):
    moved = next(each for each in full if host_of(cloud, each) == 'cmp1')
    gone = next(each for each in full if host_of(cloud, each) == 'cmp2')
    waits = filling.boot(cloud, 'carol', 'waits', 'cmp1')
    try:
        filling.await_told(cloud, [waits], 'position', [1])
        cloud.delete([gone])
        watching.eventually(lambda: cloud.room(filling.FLAVOR) == 1)
        cloud.act(moved, 'migrate')
        cloud.await_status(moved, 'VERIFY_RESIZE')
        # It has room on both hosts until it is confirmed.
        filling.await_told(cloud, [waits], 'state', ['waiting'])
        cloud.act(moved, 'confirmResize')
        cloud.await_status(waits)
        cloud.await_status(moved)
        assert [host_of(cloud, each) for each in (moved, waits)] == [
            'cmp2',
            'cmp1',
        ]
    finally:
        cloud.delete([waits])


def vcpus(cloud, server):
    """VCPUs that Placement has for a server, by name of the host."""
    statuses_by_server = cloud.admin.get('compute', '/os-hypervisors')[
        'hypervisors'
    ]
    names = {
        each['id']: each['hypervisor_hostname'] for each in statuses_by_server
    }
    found = cloud.admin.get('placement', f'/allocations/{server}')
    return {
        names[provider]: each['resources']['VCPU']
        for provider, each in found['allocations'].items()
    }


def force_down(cloud, host, is_down):
    """Tell Nova that a host is down; whether it takes that."""
    path = f'/os-services?binary=nova-compute&host={host}'
    [service] = cloud.admin.get('compute', path)['services']
    path = f'/os-services/{service["id"]}'
    body = {'forced_down': is_down}
    return cloud.admin.ask('PUT', 'compute', path, body).status == 200


def test_an_evacuation_goes_on_and_counts_on_both_hosts_until_it_is_over(
    cloud, full
):
    node = cloud.nodes['cmp1']
    moved = next(each for each in full if host_of(cloud, each) == 'cmp1')
    gone = next(each for each in full if host_of(cloud, each) == 'cmp2')
    node.stop_compute()
    try:
        assert force_down(cloud, 'cmp1', True)
        waits = filling.boot(cloud, 'carol', 'waits', 'cmp1')
        # A host that is down is none that matches.
        filling.await_told(cloud, [waits], 'state', ['waiting'])
        cloud.delete([gone])
        watching.eventually(lambda: cloud.room(filling.FLAVOR) == 1)
        cloud.act(moved, 'evacuate', host='cmp2')
        cloud.await_status(moved)
        assert host_of(cloud, moved) == 'cmp2'
        assert vcpus(cloud, moved) == {'cmp1': 1, 'cmp2': 1}
        watching.eventually(lambda: cloud.room(filling.FLAVOR) == 0)
    finally:
        node.resume_compute()
        try:
            # The host gives up what it had; until then it stays down.
            watching.eventually(
                lambda: vcpus(cloud, moved) == {'cmp2': 1},
                lambda: vcpus(cloud, moved),
            )
        finally:
            watching.eventually(lambda: force_down(cloud, 'cmp1', False))
            cloud.await_up()
    try:
        cloud.await_status(waits)
        assert host_of(cloud, waits) == 'cmp1'
    finally:
        cloud.delete([waits])


@pytest.mark.each_release
def test_servers_of_one_request_start_together(cloud, full):
    about = {
        'name': 'both',
        'imageRef': cloud.images[guest_image.IDLE],
        'flavorRef': filling.FLAVOR,
        'networks': 'none',
        'min_count': 2,
        'max_count': 2,
        'return_reservation_id': True,
    }
    alice = cloud.users['alice']
    made = alice.post('compute', '/servers', {'server': about})
    path = f'/servers/detail?reservation_id={made["reservation_id"]}'

    def found():
        return alice.get('compute', path)['servers']

    def states():
        return {each['status'] for each in found()}

    servers = sorted(each['id'] for each in found())
    assert len(servers) == 2
    try:
        watching.eventually(lambda: any(map(cloud.request, servers)))
        [uuid] = [each for each in servers if cloud.request(each)]
        filling.await_told(cloud, [uuid], 'position', [1])
        cloud.delete(full[:1])
        watching.eventually(lambda: cloud.room(filling.FLAVOR) == 1)
        filling.await_told(cloud, [uuid], 'state', ['waiting'])
        assert states() == {'BUILD'}
        cloud.delete(full[1:2])
        watching.eventually(
            lambda: states() == {'ACTIVE'},
            lambda: (cloud.request(uuid), cloud.queue.said()),
        )
    finally:
        cloud.delete(servers)


def test_a_deleted_flavor_or_project_of_a_waiting_request_delays_no_other(
    cloud, full, monkeypatch
):
    admin = cloud.admin
    domain = {'name': 'brief', 'domain_id': 'default'}
    project = admin.post('identity', '/projects', {'project': domain})
    uuid = project['project']['id']
    [member] = [
        each['id']
        for each in admin.get('identity', '/roles')['roles']
        if each['name'] == 'member'
    ]
    alice = cloud.users['alice'].user
    grant = f'/projects/{uuid}/users/{alice}/roles/{member}'
    admin.put('identity', grant)
    flavor = {
        'name': 'brief',
        'id': 'brief',
        'ram': 128,
        'vcpus': 1,
        'disk': 1,
    }
    admin.post('compute', '/flavors', {'flavor': flavor})

    brief = filling.boot(cloud, 'bob', 'of a brief flavor', flavor='brief')
    with monkeypatch.context() as patched:
        session = rest.login(cloud.controller, 'alice', 'brief')
        patched.setitem(cloud.users, 'alice', session)
        gone = filling.boot(cloud, 'alice', 'of a brief project')
    other = filling.boot(cloud, 'carol', 'other')
    filling.await_told(cloud, [brief, gone, other], 'position', [1, 2, 3])
    admin.delete('compute', '/flavors/brief')
    admin.delete('identity', f'/projects/{uuid}')
    try:
        cloud.delete(full)
        # The message has all that Nova needs of the flavor.
        cloud.await_status(brief)
        cloud.await_status(other)
        filling.await_told(cloud, [gone], 'state', ['expired'])
        assert filling.reported_values(cloud, [gone], 'reason') == [
            'token_refused'
        ]
        watching.eventually(lambda: not cloud.exists(gone))
    finally:
        cloud.delete([brief, other])


def trusting(cloud, name):
    """A user who lets alice ask for servers in beta; whom she asks as."""
    admin, alice = cloud.admin, cloud.users['alice']
    about = {
        'name': name,
        'password': places.PASSWORD,
        'domain_id': 'default',
    }
    made = admin.post('identity', '/users', {'user': about})['user']['id']
    beta = cloud.users['bob'].project
    roles = admin.get('identity', '/roles?name=member')['roles']
    grant = f'/projects/{beta}/users/{made}/roles/{roles[0]["id"]}'
    admin.put('identity', grant)
    trust = {
        'trustor_user_id': made,
        'trustee_user_id': alice.user,
        'project_id': beta,
        'roles': [{'name': 'member'}],
        'impersonation': False,
    }
    given = rest.login(cloud.controller, name, 'beta').post(
        'identity', '/OS-TRUST/trusts', {'trust': trust}
    )['trust']
    proof = rest.password_proof('alice', 'alpha')
    proof['scope'] = {'OS-TRUST:trust': {'id': given['id']}}
    return made, rest.login_with_proof(cloud.controller, proof)


def test_a_user_whose_trust_is_over_reads_it_and_delays_no_other(
    cloud, full, monkeypatch
):
    trustor, session = trusting(cloud, 'dora')
    with monkeypatch.context() as patched:
        patched.setitem(cloud.users, 'alice', session)
        trusted = filling.boot(cloud, 'alice', 'trusted')
    other = filling.boot(cloud, 'carol', 'other')
    filling.await_told(cloud, [trusted, other], 'position', [1, 2])
    off = {'user': {'enabled': False}}
    answer = cloud.admin.ask('PATCH', 'identity', f'/users/{trustor}', off)
    assert answer.status == 200
    try:
        cloud.delete(full)
        cloud.await_status(other)
        filling.await_told(cloud, [trusted], 'state', ['expired'])
        assert filling.reported_values(cloud, [trusted], 'reason') == [
            'token_refused'
        ]
        watching.eventually(lambda: not cloud.exists(trusted))
    finally:
        cloud.delete([other])


def test_a_credential_for_one_kind_of_request_starts_its_server(
    cloud, full, monkeypatch
):
    alice = cloud.users['alice']
    rule = {'path': '/v2.1/servers', 'method': 'POST', 'service': 'compute'}
    about = {'name': 'only-servers', 'access_rules': [rule]}
    path = f'/users/{alice.user}/application_credentials'
    made = alice.post('identity', path, {'application_credential': about})
    made = made['application_credential']
    method = 'application_credential'
    known = {'id': made['id'], 'secret': made['secret']}
    proof = {'identity': {'methods': [method], method: known}}
    with monkeypatch.context() as patched:
        session = rest.login_with_proof(cloud.controller, proof)
        patched.setitem(cloud.users, 'alice', session)
        mine = filling.boot(cloud, 'alice', 'mine')
    try:
        filling.await_told(cloud, [mine], 'position', [1])
        cloud.delete(full[:1])
        cloud.await_status(mine)
    finally:
        cloud.delete([mine])
        alice.delete('identity', f'{path}/{made["id"]}')


@pytest.fixture
def with_options(cloud, queue):
    """Starts both programs anew with other options; they are put back."""

    yield queue.restart
    queue.restart()
    cloud.capacity()


def test_notifications_of_nova_tell_of_room_before_the_next_look(
    cloud, full, with_options
):
    waits = filling.boot(cloud, 'carol', 'waits')
    filling.await_told(cloud, [waits], 'position', [1])
    # The next look that nobody asks for is later than the test waits.
    with_options(interval='100000', lease='1')
    try:
        cloud.delete(full)
        cloud.await_status(waits)
    finally:
        cloud.delete([waits])
