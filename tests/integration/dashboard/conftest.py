# SPDX-License-Identifier: Apache-2.0

"""Django for tests that start no Horizon, and one Horizon for the others."""

import os

from django.conf import settings
import pytest

from tests.integration.dashboard import fake_openstack
from tests.integration.dashboard import horizon_site

os.environ['DJANGO_SETTINGS_MODULE'] = 'horizon.test.settings'
# Translations would need applications that are loaded.
settings.USE_I18N = False


@pytest.fixture(scope='session')
def state(tmp_path_factory):
    return tmp_path_factory.mktemp('horizon')


@pytest.fixture(scope='session')
def endpoint():
    with fake_openstack.serving() as found:
        yield found


@pytest.fixture(scope='session')
def site(endpoint, state):
    with horizon_site.serving(endpoint.keystone, state) as found:
        yield found


@pytest.fixture
def cloud(tmp_path, endpoint):
    made = fake_openstack.FakeOpenStack(tmp_path)
    endpoint.show(made)
    yield made
    made.world.close()
