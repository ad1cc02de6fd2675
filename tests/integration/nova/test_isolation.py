# SPDX-License-Identifier: Apache-2.0

"""In a real cloud no tenant, key or end of a process stops the others.

Servers are on hosts of Nova's fake driver, and fill them.
"""

import configparser
import contextlib
import re

import pytest

from api_ext import routes
from nova_fairness.cluster.openstack import nova
from oslo_messaging_zmq.keys import admin as key_admin
from tests.fixtures.nova_cloud import infrastructure
from tests.fixtures.nova_cloud import machine
from tests.fixtures.nova_cloud import settings
from tests.fixtures.nova_cloud import waiting
from tests.integration.nova import faculty as faculty_module
from tests.integration.nova import filling
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = (
    'tests.fixtures.nova_cloud.fixtures',
    'tests.integration.nova.faculty',
)

HOSTS = faculty_module.HOSTS
ALL = HOSTS * faculty_module.VCPUS
SEVEN_FIELDS = '0 0 1 1 * 0 2030'
LONG_LEASE_S = 900
"""Longer than any test waits."""


@pytest.fixture(scope='module')
def servers():
    """None but those of a test."""
    return {}


@pytest.fixture
def full(faculty):
    """A faculty without room, and the servers that take it."""
    made = [faculty.boot('physics', f'fills-{n}') for n in range(ALL)]
    for each in made:
        faculty.cloud.await_status(each)
    return faculty, made


def waiting_requests(faculty, *names):
    """Requests of arts that wait, in this order."""
    asked = [faculty.boot('arts', name) for name in names]
    positions = [*range(1, len(asked) + 1)]
    filling.await_told(faculty.cloud, asked, 'position', positions)
    return asked


@contextlib.contextmanager
def stopped(cloud):
    """The service, which ends and starts as services do."""
    cloud.queue.end(waiting.SERVICE)
    try:
        yield
    finally:
        cloud.queue.start(waiting.SERVICE)
        cloud.capacity()


def store(cloud, statement):
    """Change the database of the service, which does not run."""
    socket = infrastructure.socket_of(cloud.controller)
    cloud.controller.run(
        'mariadb',
        ['mariadb', '-uroot', f'-S{socket}', 'fairness', '-e', statement],
        machine.environment(cloud.venv),
    )


def test_a_window_that_cannot_be_used_stops_its_own_account_only(faculty):
    cloud, physics = faculty.cloud, faculty.projects['physics']
    closed = {'begins': faculty_module.in_half_a_day(), 'lasts': 3600}
    wrong = {
        'account': physics,
        'windows': [{**closed, 'begins': SEVEN_FIELDS}],
    }
    refused = cloud.admin.ask('PUT', 'compute', '/fairness/limits', wrong)
    assert refused.status == 400
    assert SEVEN_FIELDS in str(refused.body)
    assert 'five' in str(refused.body)
    assert not faculty.limits('physics')

    # A release that did not refuse it may have stored it.
    faculty.limit('physics', windows=[closed])
    with stopped(cloud):
        store(
            cloud,
            'UPDATE account_settings SET given ='
            f" REPLACE(given, '{closed['begins']}', '{SEVEN_FIELDS}')",
        )
    own = faculty.boot('physics', 'own')
    other = faculty.boot('arts', 'other')
    cloud.await_status(other)
    faculty.await_reasons({own: 'account_set_aside'})
    assert SEVEN_FIELDS in faculty.limits('physics')['fault']
    faculty.limit('physics', windows=None)
    cloud.await_status(own)


def test_a_group_of_more_servers_than_hosts_keeps_no_other_back(faculty):
    cloud = faculty.cloud
    about = {'name': 'apart', 'policy': 'anti-affinity'}
    physics = cloud.users['physics']
    made = physics.post(
        'compute', '/os-server-groups', {'server_group': about}
    )
    group = made['server_group']['id']
    members = [faculty.boot('physics', 'first', group=group)]
    cloud.await_status(members[0])
    # Not all of these fit beside the one that runs.
    members += [
        faculty.boot('physics', f'member-{n}', group=group)
        for n in range(HOSTS)
    ]
    for each in members[1:HOSTS]:
        cloud.await_status(each)
    filling.await_told(cloud, members[HOSTS:], 'state', ['waiting'])
    others = [faculty.boot('arts', f'other-{n}') for n in range(ALL - HOSTS)]
    for each in others:
        cloud.await_status(each)
    started = active(cloud, members)
    waits = [each for each in members if each not in started]
    filling.await_told(cloud, waits, 'state', ['waiting'])
    at = {cloud.show(each)['OS-EXT-SRV-ATTR:host'] for each in started}
    assert len(at) == HOSTS
    # There is room beside who is no member; on these hosts members are.
    cloud.delete(others[:1])
    another = faculty.boot('arts', 'another')
    cloud.await_status(another)
    filling.await_told(cloud, waits, 'state', ['waiting'])
    cloud.delete(started[:1])
    cloud.await_status(waits[0])


def active(cloud, servers):
    """Those that run."""
    return [each for each in servers if cloud.show(each)['status'] == 'ACTIVE']


@pytest.fixture
def flavors(cloud):
    """Flavors of one pinned vCPU, and of two vCPUs."""
    made = {'pinned': 1, 'wide': 2}
    for name, vcpus in made.items():
        about = {'name': name, 'id': name, 'ram': 128, 'disk': 1}
        cloud.admin.post(
            'compute', '/flavors', {'flavor': {**about, 'vcpus': vcpus}}
        )
    specs = {'extra_specs': {'hw:cpu_policy': 'dedicated'}}
    cloud.admin.post('compute', '/flavors/pinned/os-extra_specs', specs)
    yield
    for name in made:
        cloud.admin.delete('compute', f'/flavors/{name}')


@pytest.mark.slow
def test_a_pinned_flavor_starts_on_hosts_without_dedicated_cpus(
    faculty, flavors
):
    pinned = faculty.boot('physics', 'pinned', flavor='pinned')
    faculty.cloud.await_status(pinned)
    filling.await_told(faculty.cloud, [pinned], 'state', ['active'])


@pytest.mark.slow
def test_operators_start_a_request_first_and_hold_another(full):
    faculty, fillers = full
    cloud = faculty.cloud
    one, two, three = waiting_requests(faculty, 'one', 'two', 'three')

    def operator(action, request):
        return watching.openstack(
            cloud, 'fairness', 'request', action, request
        )

    refused = watching.typed(cloud, 'fairness', 'request', 'release', one)
    assert refused.returncode == 1
    assert 'the host that comes closest has 0 left' in refused.stderr
    assert filling.told(cloud, [one], 'state') == ['waiting']
    assert cloud.show(one)['status'] == 'BUILD'

    operator('first', three)
    filling.await_told(cloud, [three, one, two], 'position', [1, 2, 3])
    operator('hold', one)
    faculty.await_reasons({one: 'held_by_operator'})
    cloud.delete(fillers[:2])
    for each in (three, two):
        cloud.await_status(each)
    cloud.delete(fillers[2:3])
    another = faculty.boot('arts', 'another')
    cloud.await_status(another)
    filling.await_told(cloud, [one], 'reason', ['held_by_operator'])
    operator('unhold', one)
    cloud.delete([another])
    cloud.await_status(one)

    [last] = waiting_requests(faculty, 'last')
    watching.openstack(
        cloud, 'fairness', 'request', 'release', last, '--without-room'
    )
    # Its operator said so.
    cloud.await_status(last, 'ERROR')


@pytest.mark.slow
def test_a_stopped_service_hands_the_lead_to_the_next(faculty):
    cloud = faculty.cloud
    with stopped(cloud):
        lasting = {**faculty_module.OPTIONS, 'lease': str(LONG_LEASE_S)}
        cloud.queue.set(**lasting)
    with stopped(cloud):
        pass
    asked = faculty.boot('physics', 'after the restart')
    cloud.await_status(asked)
    with stopped(cloud):
        cloud.queue.set(**faculty_module.OPTIONS)


@pytest.mark.slow
def test_a_resized_preemptible_server_does_not_distort_use(faculty, flavors):
    cloud = faculty.cloud
    faculty.start(preemptible_marks='true')
    lent = faculty.boot(
        'physics', 'lent', flavor='wide', metadata=rooms.PREEMPTIBLE
    )
    cloud.await_status(lent)
    cloud.act(lent, 'resize', flavorRef=filling.FLAVOR)
    cloud.await_status(lent, 'VERIFY_RESIZE')
    cloud.act(lent, 'confirmResize')
    cloud.await_status(lent)
    faculty.limit('physics', nominal={'VCPU': 3}, borrowing_limit={'VCPU': 0})
    normal = [faculty.boot('physics', f'normal-{n}') for n in range(4)]
    for each in normal[:3]:
        cloud.await_status(each)
    faculty.await_reasons({normal[3]: 'over_borrowing_limit'})


def read_paths(request):
    """What can be read without the name of a host, as paths."""
    for route in routes.ROUTES:
        if route.method == 'GET' and '{host}' not in route.path:
            yield re.sub('{(uuid|id)}', request, route.path)


def test_a_tenant_reads_no_name_of_a_host(faculty):
    cloud, physics = faculty.cloud, faculty.cloud.users['physics']
    group = {'name': 'web', 'rate': 5.0, 'count': 2}
    physics.post('compute', '/fairness/groups', group)
    metadata = {nova.GROUP: 'web'}
    server = faculty.boot('physics', 'sold', metadata=metadata)
    cloud.await_status(server)
    watching.eventually(
        lambda: physics.get('compute', '/fairness/prices')['prices']
    )
    listed = cloud.admin.get('compute', '/os-hypervisors')['hypervisors']
    names = {each['hypervisor_hostname'] for each in listed}
    assert names > {*cloud.nodes}
    for path in read_paths(server):
        answer = physics.ask('GET', 'compute', path)
        assert answer.status != 500, (path, answer)
        seen = {name for name in names if name in str(answer.body)}
        assert not seen, (path, answer.body)
    for name in sorted(names):
        path = f'/fairness/hosts/{name}/prices'
        assert physics.ask('GET', 'compute', path).status in {403, 404}


@pytest.fixture
def ring(cloud, tmp_path):
    """Keys of which the service's is one of a node."""
    made = tmp_path / 'keys'
    key_admin.make(made, waiting.NAME, 'node')
    return made


@pytest.mark.slow
def test_a_key_that_cannot_sign_is_refused_at_the_start(faculty, ring):
    cloud, queue = faculty.cloud, faculty.cloud.queue
    queue.end(waiting.SERVICE)
    queue.beside({'oslo_messaging_zmq': {'keys_path': str(ring)}})
    queue.set(**faculty_module.OPTIONS)
    try:
        queue.start(waiting.SERVICE)
        watching.eventually(lambda: not queue.runs(waiting.SERVICE))
        assert '--role controller' in queue.said()
        queue.end(waiting.SERVICE)
    finally:
        queue.beside()
        queue.set(**faculty_module.OPTIONS)
        queue.start(waiting.SERVICE)
        cloud.capacity()


@contextlib.contextmanager
def agent_with(node, more):
    """An agent that has other options for a while."""
    before = node.agent_conf.read_text()
    parser = configparser.RawConfigParser(default_section='no-such-section')
    parser.optionxform = str
    parser.read_string(before)
    found = {name: dict(parser[name]) for name in parser.sections()}
    node.stop_agent()
    settings.write(node.agent_conf, settings.with_more(found, more))
    node.start_agent()
    try:
        yield
    finally:
        node.stop_agent()
        node.agent_conf.write_text(before)
        node.start_agent()


def test_agents_believe_shares_that_the_key_of_the_service_signed(faculty):
    cloud = faculty.cloud
    node = cloud.nodes['cmp1']
    more = {'fairness': {'quota_source': 'shares'}}
    with agent_with(node, more):
        watching.eventually(
            lambda: 'accounts are in force now' in node.said('nova-fairness'),
            lambda: node.said('nova-fairness'),
        )
    wanted = dict.fromkeys(cloud.nodes, 'up')
    watching.eventually(lambda: cloud.services('nova-fairness') == wanted)
