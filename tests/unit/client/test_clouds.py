# SPDX-License-Identifier: Apache-2.0

"""Commands and scripts in the clouds that a clouds.yaml describes."""

import json
import logging

from keystoneauth1 import fixture
import openstack
from openstackclient import shell
from osc_lib import clientmanager
import pytest
import yaml

IDENTITY = 'http://keystone.example.org/v3'
OTHER = 'http://elsewhere.example.org/compute/v2.1'
PASSWORD = {
    'auth_url': IDENTITY,
    'username': 'ann',
    'password': 'x',
    'user_domain_id': 'default',
}
PROJECT = {**PASSWORD, 'project_id': 'p1'}
KEY = {
    'auth_url': IDENTITY,
    'application_credential_id': 'k1',
    'application_credential_secret': 's',
}
SHOW = ('fairness', 'capacity', 'show', '-f', 'json')
HOOK = 'nova_fairness.client.sdk:register'


def compute(region, interface='public'):
    """Endpoint in the catalog."""
    return f'http://{interface}.{region}.example.org/v2.1'


class Clouds:
    """A Keystone, a compute endpoint in two regions, and a clouds.yaml."""

    def __init__(self, mock, path):
        self._mock, self._path = mock, path
        token = fixture.V3Token(user_id='u1', project_id='p1')
        service = token.add_service('compute', name='nova')
        for region in ('one', 'two'):
            for interface in ('public', 'internal'):
                service.add_endpoint(
                    interface, compute(region, interface), region=region
                )
                self._serve(compute(region, interface))
        self._serve(OTHER)
        mock.get(IDENTITY, json={'version': fixture.V3Discovery(IDENTITY)})
        mock.post(
            f'{IDENTITY}/auth/tokens',
            json=token,
            headers={'X-Subject-Token': 'secret'},
        )

    def _serve(self, endpoint):
        told = {'capacity': {'where': endpoint}}
        self._mock.get(f'{endpoint}/fairness/capacity', json=told)
        found = fixture.DiscoveryList(v2=False, v3=False)
        found.add_nova_microversion(
            f'{endpoint}/', 'v2.1', min_version='2.1', version='2.90'
        )
        self._mock.get(f'{endpoint.removesuffix("/v2.1")}/', json=found)

    def describe(self, **settings):
        cloud = {'auth': PROJECT, 'vendor_hook': HOOK, **settings}
        self._path.write_text(yaml.safe_dump({'clouds': {'mine': cloud}}))

    @property
    def scope(self):
        """The scope that was requested for the last token."""
        asked = [
            each.json()['auth']
            for each in self._mock.request_history
            if each.method == 'POST'
        ]
        return asked[-1]


@pytest.fixture
def clouds(requests_mock, monkeypatch, tmp_path):
    path = tmp_path / 'clouds.yaml'
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path))
    return Clouds(requests_mock, path)


def forget_client():
    """The command line keeps its clients for the whole process."""
    cached = vars(clientmanager.ClientManager).get('fairness')
    if cached is not None:
        cached._handle = None


@pytest.fixture(params=['command', 'script'])
def asks(request, capsys):
    """Ask for the capacity by a command, or a script; give the endpoint."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def by_command(*words):
        forget_client()
        code = shell.main(['--os-cloud', 'mine', *words, *SHOW])
        said = capsys.readouterr()
        assert code == 0, said.err
        return json.loads(said.out)['where']

    def by_script(*words):
        region = dict(zip(words[::2], words[1::2], strict=True)).get(
            '--os-region-name'
        )
        made = openstack.connect(cloud='mine', region_name=region)
        return made.fairness.get_capacity()['where']

    yield by_command if request.param == 'command' else by_script
    # The command line sets up the log of the whole process.
    root.handlers[:] = handlers
    root.setLevel(level)
    forget_client()


@pytest.mark.parametrize('name', ['one', 'two'])
def test_the_region_of_the_cloud_is_asked(clouds, asks, name):
    clouds.describe(region_name=name)
    assert asks() == compute(name)


def test_one_of_several_regions_is_named(clouds, asks):
    clouds.describe(regions=['one', 'two'])
    assert asks('--os-region-name', 'two') == compute('two')
    assert asks() == compute('one')


@pytest.mark.parametrize('key', ['interface', 'compute_interface'])
def test_the_interface_of_the_cloud_is_asked(clouds, asks, key):
    clouds.describe(region_name='two', **{key: 'internal'})
    assert asks() == compute('two', 'internal')


def test_the_endpoint_of_the_cloud_comes_before_the_catalog(clouds, asks):
    clouds.describe(region_name='one', compute_endpoint_override=OTHER)
    assert asks() == OTHER


def test_an_endpoint_of_the_cloud_without_a_version_gets_one(clouds, asks):
    root = OTHER.removesuffix('/v2.1')
    clouds.describe(region_name='one', compute_endpoint_override=root)
    assert asks() == OTHER


def test_an_administrator_of_the_system_asks(clouds, asks):
    auth = {**PASSWORD, 'system_scope': 'all'}
    clouds.describe(region_name='one', auth=auth)
    assert asks() == compute('one')
    assert clouds.scope['scope'] == {'system': {'all': True}}


def test_an_application_credential_asks(clouds, asks):
    clouds.describe(
        region_name='one', auth=KEY, auth_type='v3applicationcredential'
    )
    assert asks() == compute('one')
    identity = clouds.scope['identity']
    assert identity['methods'] == ['application_credential']
    assert identity['application_credential']['id'] == 'k1'
