# SPDX-License-Identifier: Apache-2.0

"""Plans of moves in a real cloud: real guests, and hosts of the fake driver
where many moves, failures and the service's death are wanted."""

import json

import pytest

from nova_fairness.cluster import resting
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.integration.nova import filling
from tests.integration.nova import rooms
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

APPROVE = {'mode': 'approve', 'goals': '', 'interval': '1', 'hold': '0'}
AUTO = {**APPROVE, 'mode': 'auto', 'rest': '0'}
HOSTS, VCPUS = 3, 4
WIDE = 'wide'
"""A flavor of two vCPUs."""

URL = '/fairness/plans'


class Plans:
    """Plans as an administrator asks for them."""

    def __init__(self, cloud, queue):
        self.cloud, self._queue = cloud, queue

    def start(self, options):
        self._queue.restart(options, lease='10')
        self.cloud.capacity()
        watching.eventually(lambda: self._ask('GET', URL).status == 200)

    def _ask(self, method, path, body=None):
        return self.cloud.admin.ask(method, 'compute', path, body)

    def _asked(self, method, path, body=None):
        """Ask until the service, which may be dead, answers."""
        found = []

        def answers():
            found.append(self._ask(method, path, body))
            return found[-1].status in (200, 202)

        watching.eventually(answers, lambda: found[-1])
        return found[-1].body

    def empty(self, host):
        return self._asked('POST', URL, {'empty': host})['plan']['uuid']

    def approve(self, uuid):
        body = {'approve': None}
        return self._asked('POST', f'{URL}/{uuid}/action', body)

    def all(self):
        return self._asked('GET', URL)['plans']

    def show(self, uuid):
        return self._asked('GET', f'{URL}/{uuid}')['plan']

    def ended(self, uuid):
        """The plan once what it won is known."""
        watching.eventually(
            lambda: self.show(uuid)['won'] is not None,
            lambda: (self.show(uuid), self._queue.said()),
        )
        return self.show(uuid)

    def moves(self, uuid):
        """State and cause of each move, by UUID of the server."""
        return {
            each['server']: (each['state'], each['cause'])
            for each in self.show(uuid)['moves']
        }

    def host(self, server):
        return self.cloud.show(server)['OS-EXT-SRV-ATTR:host']

    def migrations(self, server):
        """How live migrations of a server ended, the oldest first."""
        path = f'/os-migrations?instance_uuid={server}'
        listed = self.cloud.admin.get('compute', path)['migrations']
        return [each['status'] for each in reversed(listed)]

    def service_of(self, host):
        path = f'/os-services?binary=nova-compute&host={host}'
        [found] = self.cloud.admin.get('compute', path)['services']
        return found

    def enable(self, host):
        path = f'/os-services/{self.service_of(host)["id"]}'
        body = {'status': 'enabled'}
        self.cloud.admin.put('compute', path, body)


@pytest.fixture
def plans(cloud, queue):
    try:
        yield Plans(cloud, queue)
    finally:
        queue.restart(lease='10')
        cloud.capacity()
        queue.set()


@pytest.fixture(scope='module')
def fakes(cloud, queue):
    with fake_hosts.running(cloud, HOSTS, VCPUS) as names:
        yield names


@pytest.fixture
def lying(cloud, fakes):
    """Boots idle servers on hosts of the fake driver; deletes them."""
    made = []

    def boot(host, count=1, flavor=filling.FLAVOR, wait=True):
        new = [
            cloud.boot(
                'alice',
                f'lies-{len(made) + n}',
                host,
                guest_image.IDLE,
                flavor,
                None if host else fake_hosts.ZONE,
            )
            for n in range(count)
        ]
        made.extend(new)
        for each in new if wait else ():
            cloud.await_status(each)
        return new

    yield boot
    cloud.delete([each for each in made if cloud.exists(each)])


def test_a_host_is_emptied_under_load_and_disabled(plans, cloud, servers):
    busy = servers['carol-1']
    assert plans.host(busy) == 'cmp2'
    plans.start(APPROVE)
    uuid = plans.empty('cmp2')
    assert plans.show(uuid)['state'] == 'proposed'
    plans.approve(uuid)
    try:
        told = plans.ended(uuid)
        assert plans.moves(uuid) == {busy: ('moved', 'arrived')}
        assert (told['state'], told['won']['emptied']) == ('done', 1)
        assert told['won']['memory_mb'] > 0
        assert plans.host(busy) == 'cmp1'
        found = plans.service_of('cmp2')
        assert found['status'] == 'disabled'
        assert found['disabled_reason'].startswith(resting.EMPTIED)
    finally:
        plans.enable('cmp2')
        if plans.host(busy) != 'cmp2':
            cloud.await_status(busy)
            cloud.act(
                busy, 'os-migrateLive', host='cmp2', block_migration='auto'
            )
            cloud.await_status(busy)
    assert plans.host(busy) == 'cmp2'


@pytest.fixture
def wide(cloud):
    about = {'id': WIDE, 'name': WIDE, 'vcpus': 4, 'ram': 128, 'disk': 1}
    cloud.admin.post('compute', '/flavors', {'flavor': about})
    yield WIDE
    cloud.admin.delete('compute', f'/flavors/{WIDE}')


@pytest.mark.slow
def test_a_request_that_does_not_fit_is_rescued_by_a_migration(
    plans, cloud, fakes, lying, wide
):
    for host in fakes:
        lying(host, 2)
    plans.start({**AUTO, 'goals': 'rescue'})
    [asked] = lying(None, 1, wide, wait=False)
    cloud.await_status(asked)
    [told] = [each for each in plans.all() if each['subject'] == asked]
    told = plans.ended(told['uuid'])
    assert (told['goal'], told['state']) == ('rescue', 'done')
    assert told['won']['served'] == told['promised']['served'] == 1
    assert told['won']['moves'] == 2
    assert len(plans.all()) == 1


@pytest.fixture
def deaths(cloud, queue):
    made = rooms.Deaths(cloud)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.slow
def test_a_plan_goes_on_whenever_the_service_dies_and_asks_once(
    plans, cloud, fakes, lying, deaths
):
    first, *_ = fakes
    servers = lying(first, VCPUS)
    plans.start({**APPROVE, 'at_once_per_host': '2'})
    uuid = plans.empty(first)
    plans.approve(uuid)
    deaths.begin()
    told = plans.ended(uuid)
    deaths.end()
    assert deaths.count >= 2
    assert (told['state'], told['won']['emptied']) == ('done', 1)
    assert plans.moves(uuid) == dict.fromkeys(servers, ('moved', 'arrived'))
    for each in servers:
        assert plans.migrations(each) == ['completed']
        assert plans.host(each) != first
    assert plans.service_of(first)['disabled_reason'].startswith(
        resting.EMPTIED
    )
    plans.enable(first)


@pytest.mark.slow
def test_an_administrator_a_failure_and_an_end_are_told(
    plans, cloud, fakes, lying
):
    first, second, third = fakes
    # Both others have room for all of it.
    taken, fails, cancelled, stays = lying(first, VCPUS)
    fake_hosts.let_fail(cloud, fails)
    plans.start(APPROVE)
    uuid = plans.empty(first)
    targets = {
        each['server']: each['target'] for each in plans.show(uuid)['moves']
    }
    other = second if targets[taken] == third else third
    cloud.act(taken, 'os-migrateLive', host=other, block_migration='auto')
    cloud.act(stays, 'lock')
    plans.approve(uuid)
    path = f'/servers/{cancelled}/migrations'
    watching.eventually(
        lambda: cloud.admin.get('compute', path)['migrations'],
        lambda: plans.show(uuid),
    )
    [one] = cloud.admin.get('compute', path)['migrations']
    watching.eventually(
        lambda: (
            cloud.admin.ask('DELETE', 'compute', f'{path}/{one["id"]}').status
            == 202
        ),
        lambda: plans.show(uuid),
    )
    told = plans.ended(uuid)
    assert plans.moves(uuid) == {
        taken: ('skipped', 'elsewhere'),
        fails: ('failed', 'migration_failed'),
        cancelled: ('failed', 'cancelled'),
        stays: ('skipped', 'locked'),
    }
    assert (told['state'], told['cause']) == ('failed', 'many_failed')
    assert plans.host(taken) == other
    for each in (fails, cancelled, stays):
        shown = cloud.show(each)
        assert shown['OS-EXT-SRV-ATTR:host'] == first
        assert (shown['status'], shown['OS-EXT-STS:task_state']) == (
            'ACTIVE', None,
        )  # fmt: skip
    assert plans.migrations(fails) == ['failed']
    assert plans.migrations(cancelled) == ['cancelled']
    assert plans.migrations(stays) == []
    assert plans.service_of(first)['status'] == 'enabled'
    cloud.act(stays, 'unlock')
    fake_hosts.let_fail(cloud)


HELP = {**AUTO, 'goals': 'help', 'seen_for': '60'}
DUE = 0.9
"""Part of what is due below which a user suffers."""

LOOKED_AT = 30
"""Rounds over which it is added up what users get."""

USERS = ('alice', 'bob', 'carol')
WRITTEN = environment.TOP / 'build/helped-in-nova.json'


def levels(cloud, servers):
    """What users get for some rounds, as parts of what is due.

    Each wants more than a third of all, so that a third is due.
    """
    before = {name: node.rounds() for name, node in cloud.nodes.items()}
    for node in cloud.nodes.values():
        watching.await_rounds(node, LOOKED_AT)
    used = dict.fromkeys(USERS, 0.0)
    for host, node in cloud.nodes.items():
        for done in watching.rounds(node)[before[host] :]:
            for name, uuid in servers.items():
                seen = watching.in_round(done, uuid)
                if seen and seen.get('usage'):
                    used[name.split('-')[0]] += seen['usage']['cpu_time']
    due = sum(used.values()) / len(USERS)
    return {user: each / due for user, each in used.items()}


@pytest.mark.slow
def test_a_user_who_suffers_is_moved_and_gets_what_is_due(
    plans, cloud, servers
):
    where = {name: plans.host(uuid) for name, uuid in servers.items()}
    watching.use_defaults(cloud)
    watching.act(cloud, 'all', 'resume')
    before = levels(cloud, servers)
    assert min(before.values()) < DUE, before
    groups = {
        name: cloud.nodes[where[name]].group_of(uuid)
        for name, uuid in servers.items()
    }
    plans.start(HELP)
    watching.eventually(plans.all, plans._queue.said)
    [told, *more] = plans.all()
    told = plans.ended(told['uuid'])
    assert not more
    assert (told['goal'], told['state']) == ('help', 'done')
    moved = [each['server'] for each in told['moves']]
    try:
        [name] = [name for name in servers if servers[name] in moved]
        assert plans.host(servers[name]) == 'cmp2' != where[name]
        for node in cloud.nodes.values():
            watching.await_rounds(node, LOOKED_AT)
        after = levels(cloud, servers)
        WRITTEN.parent.mkdir(parents=True, exist_ok=True)
        WRITTEN.write_text(
            json.dumps(
                {
                    'moved': name,
                    'before': before,
                    'after': after,
                    'told': told['explanation'],
                }
            )
        )
        assert min(after.values()) >= DUE, (before, after)
        # Its weight came with it, and its old host remembers nothing.
        shares = {
            each: watching.shares(cloud, servers[each])
            for each in (name, 'carol-1')
        }
        assert shares['carol-1'] > watching.DIFFERENT * shares[name] > 0
        source, uuid = cloud.nodes[where[name]], servers[name]
        watching.eventually(lambda: not groups[name].exists())
        assert uuid not in source.domains().values()
        found = source.directory / 'var/lib/nova-fairness/found.json'
        watching.act(cloud, where[name], 'reset')
        watching.eventually(
            lambda: uuid not in found.read_text(), found.read_text
        )
        assert len(plans.all()) == 1
    finally:
        plans.start(APPROVE)
        for uuid in moved:
            cloud.await_status(uuid)
            [back] = [where[each] for each in servers if servers[each] == uuid]
            if plans.host(uuid) != back:
                cloud.act(
                    uuid, 'os-migrateLive', host=back, block_migration='auto'
                )
                cloud.await_status(uuid)
