# SPDX-License-Identifier: Apache-2.0

"""A faculty of two groups in a small cloud; a plugin of pytest.

Their servers are on hosts of Nova's fake driver, and cost nothing.
"""

import datetime as dt

import pytest

from tests.fixtures.nova_cloud import fake_hosts
from tests.fixtures.nova_cloud import guest_image
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import rest
from tests.integration.nova import filling
from tests.integration.nova import watching

HOSTS, VCPUS = 2, 3
"""A module with a constant ``HOSTS`` of its own has as many."""

OPTIONS = {
    'keystone_tree': 'true',
    'lease': '1',
    'end_notice': '120',
    'longest_extension': '36000',
}

GROUPS = {'physics': 'alice', 'arts': 'bob'}
"""User by name of the group, which is a project below the faculty."""


class Faculty:
    """Projects and those who manage them.

    :ivar projects: ids by name; ``campus`` is a domain, ``lab`` in it.
    :ivar users: ids of those who were made, by name.
    """

    def __init__(self, cloud, queue):
        self.cloud = cloud
        self._queue = queue
        roles = cloud.admin.get('identity', '/roles')['roles']
        self._roles = {each['name']: each['id'] for each in roles}
        self.projects, self.users = {}, {}
        self._booted, self._limited = [], set()

    def found(self):
        """Make projects and managers, and let groups ask for servers."""
        self._make('faculty', parent_id='default')
        for name, user in GROUPS.items():
            self.found_group(name, user, self.projects['faculty'])
        campus = self._posted('domain', name='campus')
        self.projects['campus'] = campus
        self._make('lab', domain_id=campus)
        self._grant(f'/domains/{campus}', self._user('dean'), 'manager')
        head = self._user('head')
        self._grant(f'/projects/{self.projects["faculty"]}', head, 'manager')

    def found_group(self, name, user, parent_id):
        """Make a project in which a user may ask for any number of servers."""
        self._make(name, parent_id=parent_id)
        project = self.projects[name]
        known = self.cloud.users[user].user
        self._grant(f'/projects/{project}', known, 'member')
        limits = dict.fromkeys(('instances', 'cores', 'ram'), -1)
        path = f'/os-quota-sets/{project}'
        self.cloud.admin.put('compute', path, {'quota_set': limits})

    def close(self):
        """Remove what was made."""
        admin = self.cloud.admin
        for user in self.users.values():
            admin.delete('identity', f'/users/{user}')
        off = {'domain': {'enabled': False}}
        campus = self.projects.pop('campus', None)
        for project in reversed(self.projects.values()):
            admin.delete('identity', f'/projects/{project}')
        if campus:
            admin.ask('PATCH', 'identity', f'/domains/{campus}', off)
            admin.delete('identity', f'/domains/{campus}')

    def start(self, **options):
        """Start the queue anew with other options beside the usual ones."""
        self._queue.restart(**{**OPTIONS, **options})
        self.cloud.capacity()

    def login(self, user, **scope):
        """Somebody's token for a project or domain."""
        proof = rest.password_proof(user, '')
        proof['scope'] = {
            kind: {'id': self.projects[name]} for kind, name in scope.items()
        }
        return rest.login_with_proof(self.cloud.controller, proof)

    def boot(self, owner, name, limit='', metadata=None, **more):
        """Ask for a server.

        :param owner: group of the faculty.
        :param more: arguments of :meth:`Cloud.boot`.
        """
        bounds = {'fairness:time_limit': limit} if limit else {}
        made = self.cloud.boot(
            owner,
            name,
            None,
            guest_image.IDLE,
            zone=fake_hosts.ZONE,
            metadata={**bounds, **(metadata or {})},
            **more,
        )
        self._booted.append(made)
        return made

    def clear(self):
        """Delete all servers, and take limits back."""
        self.cloud.delete(
            [each for each in self._booted if self.cloud.exists(each)]
        )
        self._booted.clear()
        for account, name in sorted(self._limited):
            self.limit(account, **{name: None})

    def openstack(self, group, *words):
        """Run a command as the user of a group."""
        scope = {'OS_PROJECT_ID': self.projects[group]}
        return watching.openstack(
            self.cloud, 'fairness', *words, user=GROUPS[group], scope=scope
        )

    def limit(self, account, **limits):
        """Set limits of an account; ``None`` takes one back."""
        for name, limit in limits.items():
            self._limited.discard((account, name))
            if limit is not None:
                self._limited.add((account, name))
        body = {'account': self.projects.get(account, account), **limits}
        self.cloud.admin.put('compute', '/fairness/limits', body)

    def limits(self, account):
        """Limits of a group, as its user sees them; nothing if none."""
        project = self.projects[account]
        listed = self.cloud.users[account].get('compute', '/fairness/limits')
        found = {each['account']: each for each in listed['limits']}
        return found.get(project, {})

    def await_reasons(self, reasons):
        """Wait until requests have reasons, by UUID."""
        filling.await_told(
            self.cloud, [*reasons], 'reason', [*reasons.values()]
        )

    def _make(self, name, **about):
        about = {'domain_id': 'default', **about}
        self.projects[name] = self._posted('project', name=name, **about)

    def _user(self, name):
        about = {'password': places.PASSWORD, 'domain_id': 'default'}
        self.users[name] = self._posted('user', name=name, **about)
        return self.users[name]

    def _posted(self, kind, **about):
        made = self.cloud.admin.post('identity', f'/{kind}s', {kind: about})
        return made[kind]['id']

    def _grant(self, place, user, role):
        path = f'{place}/users/{user}/roles/{self._roles[role]}'
        self.cloud.admin.put('identity', path)


@pytest.fixture(scope='module')
def founded(request, cloud, queue):
    """The faculty in a cloud with hosts of their own."""
    made = Faculty(cloud, queue)
    hosts = getattr(request.module, 'HOSTS', HOSTS)
    with (
        fake_hosts.running(cloud, hosts, VCPUS),
        pytest.MonkeyPatch.context() as patched,
    ):
        try:
            made.found()
            for group, user in GROUPS.items():
                session = made.login(user, project=group)
                patched.setitem(cloud.users, group, session)
            made.start()
            yield made
        finally:
            made.close()
            # Whoever leads next need not wait for a long lease to be over.
            queue.restart(lease=OPTIONS['lease'])
            cloud.capacity()
            queue.set()


@pytest.fixture
def faculty(founded):
    """The faculty, whose servers of a test are gone after it."""
    try:
        yield founded
    finally:
        founded.clear()


def in_half_a_day():
    """Begins of an hour that is far from now, as a line of cron."""
    hour = (dt.datetime.now(dt.UTC).hour + 12) % 24
    return f'0 {hour} * * *'
