# SPDX-License-Identifier: Apache-2.0

"""What owners read while their server lives, and what previews say comes next.

One node has room for one server, which is a real guest.
"""

import json
import time

import pytest

from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.integration.nova import filling
from tests.integration.nova import life_views
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

HERE, AWAY = 'cmp2', 'cmp1'
PATH = '/resource_providers'

LIFE = [
    'fairness.request.waiting',
    'fairness.request.released',
    'fairness.request.active',
    'fairness.server.chosen',
    'fairness.server.told',
    'fairness.server.acting',
    'fairness.server.asked',
    'fairness.server.gone',
    'fairness.request.waiting',
    'fairness.request.released',
    'fairness.request.active',
    'fairness.server.returned',
    # It had two requests.
    'fairness.request.ended',
    'fairness.request.ended',
]
"""Events of a life, but those of risks."""


@pytest.fixture(scope='module')
def servers():
    """None but those of a test."""
    return {}


class Host:
    """A host that takes as many servers of one VCPU as it is told to.

    :ivar usual: that it takes.
    """

    def __init__(self, cloud, uuid):
        self._cloud, self._path = cloud, f'{PATH}/{uuid}'
        found = cloud.admin.get('placement', self._inventory)
        self.usual = found['allocation_ratio'] * found['total']

    @property
    def _inventory(self):
        return f'{self._path}/inventories/VCPU'

    def take_one_more(self):
        path = f'{self._path}/usages'
        used = self._cloud.admin.get('placement', path)['usages']
        self.take(used['VCPU'] + 1)

    def take(self, servers):
        ask = self._cloud.admin.ask

        def is_set():
            found = ask('GET', 'placement', self._inventory).body
            found['allocation_ratio'] = servers / found['total']
            # Nova may have changed it meanwhile.
            answer = ask('PUT', 'placement', self._inventory, found)
            return answer.status == 200

        watching.eventually(is_set)


@pytest.fixture
def host(cloud, queue):
    """A host with room for one server; the other one takes none."""
    listed = cloud.admin.get('placement', PATH)['resource_providers']
    [uuid] = [each['uuid'] for each in listed if each['name'] == HERE]
    path = f'/os-services?binary=nova-compute&host={AWAY}'
    [other] = cloud.admin.get('compute', path)['services']
    other = f'/os-services/{other["id"]}'
    cloud.admin.put('compute', other, {'status': 'disabled'})
    made = Host(cloud, uuid)
    made.take_one_more()
    try:
        yield made
    finally:
        made.take(made.usual)
        cloud.admin.put('compute', other, {'status': 'enabled'})


@pytest.fixture
def boot(cloud, host):
    """Asks for idle servers; they are deleted in the end."""
    made = []

    def ask(user, name, **about):
        made.append(
            cloud.boot(
                user, name, None, guest_image.IDLE, filling.FLAVOR, **about
            )
        )
        return made[-1]

    yield ask
    cloud.delete([each for each in made if cloud.exists(each)])


@pytest.fixture
def options(cloud, queue):
    """Restart the service with options; the end of a test undoes them."""

    def restart(**given):
        queue.restart(**{'lease': '1', **given})
        cloud.capacity()

    yield restart
    queue.beside()
    restart()
    queue.set()


@pytest.fixture
def heard(cloud, queue):
    """File of notifications, from the next start of the service on."""
    said = {'driver': 'messagingv2', 'transport_url': places.broker_url()}
    queue.beside({'oslo_messaging_notifications': said})
    with life_views.heard(cloud) as path:
        yield path


def test_an_owner_never_reads_a_wrong_state(cloud, heard, options, boot):
    options(**rooms.OPTIONS, room_actions='shelve')
    first = boot('bob', 'first')
    cloud.await_status(first)
    server = boot('alice', 'lives', metadata=rooms.PREEMPTIBLE)
    views = life_views.LifeViews(cloud, 'alice', 'lives', server, first, heard)
    with views.watched():
        views.await_said(life_views.WAITS)
        cloud.admin.delete('compute', f'/servers/{first}')
        views.await_said(life_views.RUNS)
        views.needs = boot('carol', 'needs')
        views.await_said(life_views.LEAVES)
        done = {'metadata': {'fairness:done': 'true'}}
        path = f'/servers/{server}/metadata'
        cloud.users['alice'].post('compute', path, done)
        views.await_said(life_views.WAITS_SHELVED)
        cloud.await_status(views.needs)
        cloud.delete([views.needs])
        cloud.await_status(server)
        views.await_said(life_views.RUNS, since=time.time())
        cloud.delete([server])
        views.await_said(life_views.ENDED, life_views.GONE)
    watching.eventually(lambda: events(views) == LIFE, lambda: events(views))
    assert views.wrong() == []
    assert len(views.whys()) == 1


def events(views):
    """Events of a server's life, as they came."""
    told = [each.text for each in views.notified()]
    return [each for each in told if each in LIFE]


class Line:
    """Servers that wait for room on a host, one of each user at most."""

    def __init__(self, cloud, host, boot):
        self._cloud, self._host, self._boot = cloud, host, boot
        self._waiting = {}

    def ask(self, user):
        uuid = self._boot(user, f'{user}-waits')
        self._waiting[uuid] = user
        filling.await_told(self._cloud, [uuid], 'state', ['waiting'])

    def previewed(self, *words):
        """Users that come next, without and with a change."""
        told = []

        def answers():
            done = watching.typed(
                self._cloud, 'fairness', *words, '-f', 'json'
            )
            told.append(done)
            # The one before may not be over.
            return done.returncode == 0

        watching.eventually(answers, lambda: told[-1].stderr)
        found = json.loads(told[-1].stdout)['requests']
        [first] = [e for e in found if e['before']['position'] == 1]
        return tuple(self._waiting[e['uuid']] for e in (first, found[0]))

    def go_on(self):
        """Let one more have room; its user."""
        self._host.take_one_more()
        watching.eventually(self._started, self._told)
        [uuid] = self._started()
        self._cloud.await_status(uuid)
        return self._waiting.pop(uuid)

    def _started(self):
        return [
            uuid
            for uuid in self._waiting
            if self._cloud.show(uuid)['OS-EXT-SRV-ATTR:host']
        ]

    def _told(self):
        return [self._cloud.request(uuid) for uuid in self._waiting]


@pytest.fixture
def change(cloud):
    """Changes something of a user's project; it is taken back."""
    taken_back = []

    def put(path, user, what, value):
        account = cloud.users[user].project
        body = {'account': account, what: value}
        cloud.admin.put('compute', path, body)
        if value is not None:
            taken_back.append((path, user, what, None))

    yield put
    for each in taken_back:
        put(*each)


@pytest.fixture
def waiting_line(cloud, options, host, boot, change):
    """Three servers in the order of their age, the first of a heavy user."""
    options(order='fifo')
    # Others have used the cloud, too, in the tests before.
    change('/fairness/shares', 'alice', 'share', 0.01)
    cloud.await_status(boot('alice', 'runs'))
    made = Line(cloud, host, boot)
    for user in places.USERS:
        made.ask(user)
    return made


@pytest.mark.slow
def test_the_server_of_a_preview_starts_after_the_order(
    waiting_line, options, change
):
    oldest, lightest = waiting_line.previewed('order', 'preview', 'fair_tree')
    assert oldest == 'alice' != lightest
    options(order='fair_tree')
    assert waiting_line.go_on() == lightest

    (first,) = {*places.USERS} - {'alice', lightest}
    project = places.USERS[first]
    set_share = ('share', 'set', project, '0', '--dry-run')
    assert waiting_line.previewed(*set_share) == (first, 'alice')
    change('/fairness/shares', first, 'share', 0)
    assert waiting_line.go_on() == 'alice'

    waiting_line.ask(lightest)
    ceiling = ('--ceiling', 'VCPU=0', '--dry-run')
    limit = ('limit', 'set', places.USERS[lightest], *ceiling)
    assert waiting_line.previewed(*limit) == (lightest, first)
    change('/fairness/limits', lightest, 'ceiling', {'VCPU': 0})
    assert waiting_line.go_on() == first
