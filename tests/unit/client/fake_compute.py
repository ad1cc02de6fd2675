# SPDX-License-Identifier: Apache-2.0

"""A compute endpoint behind a real keystoneauth session; no network."""

import io
import logging
import types

from keystoneauth1 import fixture
from keystoneauth1 import session
from keystoneauth1.identity import v3
from openstack import exceptions as sdk_exceptions
import requests

from nova_fairness.client import plugin

IDENTITY = 'http://keystone.example.org/v3'
COMPUTE = 'http://compute.example.org/v2.1'
NEVER = 'http://elsewhere.example.org'


class Terminal:
    """What the command line gives to its commands.

    :ivar servers: ids by name.
    :ivar deleted: names and ids of servers that were deleted.
    :ivar filters: with which servers that changed were listed.
    :ivar others: those of servers of other projects.
    :ivar lists_all: whether Nova lets the caller list all projects.
    :ivar names: ids of users and projects by name.
    :ivar forbidden: whether Keystone tells no ids.
    """

    def __init__(self):
        self.servers = {}
        self.deleted, self.filters = [], []
        self.others = {'other': 'o' * 32}
        self.lists_all = True
        self.names = {}
        self.forbidden = False
        self.manager = types.SimpleNamespace(
            sdk_connection=types.SimpleNamespace(
                config=types.SimpleNamespace(
                    get_endpoint=lambda _: None,
                    get_interface=lambda _: 'public',
                    get_region_name=lambda _: 'one',
                ),
                _global_request_id=None,
                cache_enabled=False,
                current_location=None,
                _get_current_location=lambda **_: None,
                _api_cache_keys=set(),
                compute=types.SimpleNamespace(
                    find_server=self._find_server, servers=self._list
                ),
                identity=types.SimpleNamespace(
                    find_user=self._find_owner,
                    find_project=self._find_owner,
                    users=self._list_owners,
                    projects=self._list_owners,
                ),
            ),
        )

    def _find_server(self, name, ignore_missing, all_projects=False):
        return self._named(self._seen(all_projects).get(name))

    def _seen(self, all_projects):
        if all_projects and not self.lists_all:
            raise requests.HTTPError('403')
        return {**self.servers, **(self.others if all_projects else {})}

    def _list_owners(self):
        if self.forbidden:
            raise requests.HTTPError('403')
        for name, uuid in self.names.items():
            yield types.SimpleNamespace(id=uuid, name=name)

    def _list(self, all_projects=False, details=True, **filters):
        if 'changes_since' in filters:
            self.filters.append(filters)
            for name, uuid in self.deleted:
                yield types.SimpleNamespace(id=uuid, name=name)
        everywhere = self._seen(all_projects)
        for name, uuid in everywhere.items():
            yield types.SimpleNamespace(id=uuid, name=name, status='ACTIVE')

    def _find_owner(self, name, ignore_missing):
        if self.forbidden:
            raise requests.HTTPError('403')
        if name == 'twice':
            raise sdk_exceptions.DuplicateResource('two of them')
        return self._named(self.names.get(name))

    @staticmethod
    def _named(found):
        return found and types.SimpleNamespace(id=found)

    def run(self, command, *words):
        """Run a command as the command line does; give code and output."""
        out = io.StringIO()
        app = types.SimpleNamespace(
            client_manager=self.manager,
            stdout=out,
            stderr=io.StringIO(),
            options=types.SimpleNamespace(debug=False),
            LOG=logging.getLogger('app'),
        )
        made = command(app, None)
        parser = made.get_parser('openstack')
        code = made.run(parser.parse_args(list(words)))
        return code, out.getvalue()


class FakeCompute(Terminal):
    """What the command line gives to its commands, and whom it reaches.

    :param mock: of requests.
    :param endpoint: of the compute service in the catalog.
    """

    def __init__(self, mock, endpoint=COMPUTE):
        super().__init__()
        self.mock = mock
        self.base = f'{COMPUTE}/fairness'
        token = fixture.V3Token(user_id='u1', project_id='p1')
        compute = token.add_service('compute', name='nova')
        compute.add_endpoint('public', endpoint, region='one')
        compute.add_endpoint('internal', NEVER, region='one')
        compute.add_endpoint('public', NEVER, region='two')
        mock.get(IDENTITY, json={'version': fixture.V3Discovery(IDENTITY)})
        mock.post(
            f'{IDENTITY}/auth/tokens',
            json=token,
            headers={'X-Subject-Token': 'secret'},
        )
        auth = v3.Password(
            IDENTITY,
            username='ann',
            password='x',
            user_domain_id='default',
            project_id='p1',
        )
        self.manager.session = session.Session(auth)
        self.manager.fairness = plugin.make_client(self.manager)

    def answers(self, path, content, status=200, method='GET', **more):
        """Let the endpoint answer a path below /fairness."""
        self.mock.request(
            method,
            f'{self.base}{path}',
            json=content,
            status_code=status,
            **more,
        )

    @property
    def asked(self):
        """The requests to the compute service, without Keystone's."""
        return [
            item
            for item in self.mock.request_history
            if 'compute.example.org' in item.url
        ]
