# SPDX-License-Identifier: Apache-2.0

"""Limits of Keystone weigh users as Nova's own quotas do."""

import types
import urllib.parse

from keystoneauth1 import exceptions
import pytest

from nova_fairness.nova_service import quotas
from tests.fixtures.nova_cloud import places
from tests.fixtures.nova_cloud import settings
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

UNIFIED = places.MORE_APIS[0]

DEFAULTS = {'servers': 10, 'class:VCPU': 20, 'class:MEMORY_MB': 51200}

ERRORS = {400: exceptions.BadRequest, 404: exceptions.NotFound}


class Client:
    """Asks a service of the cloud as the agents' HTTP client does."""

    def __init__(self, session, service):
        self._session = session
        self._service = service

    def get(self, url, params):
        path = f'{url}?{urllib.parse.urlencode(params)}'
        answer = self._session.ask('GET', self._service, path)
        if answer.status != 200:
            raise ERRORS[answer.status](str(answer.body))
        return types.SimpleNamespace(json=lambda: answer.body)


def weights(cloud, resource, service=UNIFIED):
    return quotas.QuotaWeights(
        resource,
        Client(cloud.admin, service),
        Client(cloud.admin, 'identity'),
    )


def registered(cloud, kind, items):
    """Register limits; give what is needed to remove them."""
    found = cloud.admin.get('identity', '/services?type=compute')
    where = {
        'service_id': found['services'][0]['id'],
        'region_id': places.REGION,
    }
    made = cloud.admin.post(
        'identity', f'/{kind}', {kind: [{**where, **item} for item in items]}
    )
    return [f'/{kind}/{item["id"]}' for item in made[kind]]


@pytest.fixture
def limits(cloud):
    """Limits of Keystone, and a nova-api that follows them."""
    users = cloud.users
    made = registered(
        cloud,
        'registered_limits',
        [
            {'resource_name': name, 'default_limit': limit}
            for name, limit in DEFAULTS.items()
        ],
    )
    try:
        made += registered(
            cloud,
            'limits',
            [
                {
                    'resource_name': name,
                    'resource_limit': limit,
                    'project_id': users[user].project,
                }
                for user, name, limit in (
                    ('alice', 'class:VCPU', 40),
                    ('alice', 'class:MEMORY_MB', 12800),
                    ('carol', 'class:VCPU', quotas.UNLIMITED),
                )
            ],
        )
        cloud.plane.start_another_api(UNIFIED, settings.unified_limits())
        try:
            yield
        finally:
            cloud.plane.stop_program(UNIFIED)
    finally:
        for path in reversed(made):
            cloud.admin.delete('identity', path)


def test_keystone_limits_weigh_users(cloud, limits):
    users = cloud.users
    cores, memory = weights(cloud, 'cores'), weights(cloud, 'ram')
    assert cores.of_project(users['alice'].project) == 40 / 20
    assert memory.of_project(users['alice'].project) == 12800 / 51200
    assert cores.of_project(users['bob'].project) == 1.0
    assert cores.of_project(users['carol'].project) == 1.0
    servers = weights(cloud, 'instances')
    assert servers.of_project(users['alice'].project) == 1.0
    assert cores.of_user(users['alice'].user) == 40 / 20
    assert cores.of_user(users['bob'].user) == 1.0


@pytest.mark.slow
def test_a_user_unknown_to_keystone_has_no_weight(cloud, limits):
    nobody = weights(cloud, 'cores')
    assert nobody.of_project('0' * 32) is None
    assert nobody.of_user('0' * 32) is None


@pytest.mark.slow
def test_limits_of_keystone_do_not_count_where_nova_has_its_own(cloud, limits):
    own = weights(cloud, 'cores', 'compute')
    assert own.of_project(cloud.users['alice'].project) == 1.0
