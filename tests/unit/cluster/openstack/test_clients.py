# SPDX-License-Identifier: Apache-2.0

"""Services are asked in the newest language that they know."""

import os

from keystoneauth1 import noauth
from keystoneauth1 import session
import pytest

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients
from tests.fixtures import fake_cloud


@pytest.fixture
def cloud():
    return fake_cloud.FakeCloud()


def test_servers_are_read_in_a_newer_version_where_nova_knows_it(cloud):
    nova = cloud.api(clients.nova_api)
    cloud.add_server('s1')
    for newest in (104, 95):
        cloud.newest = newest
        cloud.asked.clear()
        for _ in range(2):
            assert nova.get('/servers/s1')['server']['id'] == 's1'
        # It refuses before it looks.
        assert cloud.asked == ['GET /servers/s1'] * 2


def test_only_server_lists_use_a_newer_microversion(cloud):
    nova = cloud.api(clients.nova_api)
    cloud.newest = 87
    assert nova.get('/os-services?binary=nova-compute') is not None
    cloud.newest = 86
    with pytest.raises(exception.CloudRefused, match='406'):
        nova.get('/os-services?binary=nova-compute')
    with pytest.raises(exception.CloudRefused, match='406'):
        nova.get('/servers/s1')


@pytest.mark.parametrize('code', [200, 201, 206])
def test_a_delete_counts_as_done_only_if_the_service_says_so(cloud, code):
    cloud.broken['DELETE /allocations'] = code
    with pytest.raises(exception.CloudAway, match=f'answers {code} to DELETE'):
        cloud.api(clients.placement_api).delete('/allocations/s1')


@pytest.mark.parametrize('code', [300, 304, 399])
def test_a_redirect_does_not_count_as_success(cloud, code):
    cloud.broken['DELETE /allocations'] = code
    with pytest.raises(exception.CloudAway, match=f'answers {code}'):
        cloud.api(clients.placement_api).delete('/allocations/s1')


SITE = '/etc/ssl/site.pem'


@pytest.mark.parametrize(
    ('named', 'verify', 'reads', 'trusts'),
    [
        ({}, True, False, True),
        ({'https_proxy': 'http://proxy:3128'}, True, True, True),
        ({'REQUESTS_CA_BUNDLE': SITE}, True, False, SITE),
        ({'CURL_CA_BUNDLE': SITE}, True, False, SITE),
        (
            {'CURL_CA_BUNDLE': '/other', 'REQUESTS_CA_BUNDLE': SITE},
            *(True, False, SITE),
        ),
        ({'REQUESTS_CA_BUNDLE': SITE}, '/own.pem', False, '/own.pem'),
        ({'REQUESTS_CA_BUNDLE': SITE}, False, False, False),
    ],
)
def test_a_session_reads_the_environment_at_each_call_only_for_proxies(
    monkeypatch, named, verify, reads, trusts
):
    for name in (*os.environ, 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'):
        if 'proxy' in name.lower() or 'BUNDLE' in name:
            monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    made = session.Session(noauth.NoAuth('http://127.0.0.1'), verify=verify)
    clients.with_cached_environment(made)
    assert made.session.trust_env is reads
    assert made.verify == trusts


@pytest.mark.parametrize(
    ('region', 'expected'), [('', 'central-1'), ('central-2', 'central-2')]
)
def test_each_client_uses_the_configured_region(
    tmp_path, monkeypatch, caplog, region, expected
):
    caplog.set_level('INFO')
    (tmp_path / 'clouds.yaml').write_text(
        'clouds:\n  here:\n    regions: [central-1, central-2]\n'
        '    auth: {auth_url: "http://localhost:1/v3", username: u,\n'
        '           password: p, project_name: a}\n'
    )
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(tmp_path / 'clouds.yaml'))
    asked = []
    adapter = clients.keystone_adapter.Adapter

    def noted(*arguments, **more):
        asked.append(more['region_name'])
        return adapter(*arguments, **more)

    monkeypatch.setattr(clients.keystone_adapter, 'Adapter', noted)
    clients.connect('here', region)
    assert f'uses the region {expected};' in caplog.text
    assert asked == [expected] * 4
