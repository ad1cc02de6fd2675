# SPDX-License-Identifier: Apache-2.0

"""A compute endpoint behind a real keystoneauth session; no network."""

import io
import logging
import types

from keystoneauth1 import fixture
from keystoneauth1 import session
from keystoneauth1.identity import v3
import requests

from nova_fairness.client import plugin

IDENTITY = 'http://keystone.example.org/v3'
COMPUTE = 'http://compute.example.org/v2.1'
NEVER = 'http://elsewhere.example.org'


class Terminal:
    """What the command line gives to its commands.

    :ivar servers: ids by name.
    :ivar names: ids of users and projects by name.
    :ivar forbidden: whether Keystone tells no ids.
    """

    def __init__(self):
        self.servers = {}
        self.names = {}
        self.forbidden = False
        self.manager = types.SimpleNamespace(
            interface='public',
            region_name='one',
            sdk_connection=types.SimpleNamespace(
                compute=types.SimpleNamespace(
                    find_server=self._find_server, servers=self._list
                ),
                identity=types.SimpleNamespace(
                    find_user=self._find_owner, find_project=self._find_owner
                ),
            ),
        )

    def _find_server(self, name, ignore_missing):
        uuid = self.servers.get(name)
        return uuid and types.SimpleNamespace(id=uuid)

    def _list(self, all_projects):
        everywhere = {'other': 'o' * 32} if all_projects else {}
        for name, uuid in {**self.servers, **everywhere}.items():
            yield types.SimpleNamespace(id=uuid, name=name, status='ACTIVE')

    def _find_owner(self, name, ignore_missing):
        if self.forbidden:
            raise requests.HTTPError('403')
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
