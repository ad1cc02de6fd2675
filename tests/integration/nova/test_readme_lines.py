# SPDX-License-Identifier: Apache-2.0

"""The lines of the README that go to nova-api, on a real one."""

import pytest

from tests.integration.nova import readme_lines
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


def test_the_lines_of_the_readme_have_the_described_effect(cloud, servers):
    change, look = readme_lines.curl_commands()
    status, answer = readme_lines.run_in_cloud(cloud, change, cloud.admin)
    assert status == 202
    assert {host['name'] for host in answer['hosts']} == set(cloud.nodes)
    assert answer['not_reached'] == []
    everywhere = dict.fromkeys(cloud.nodes, 'AssetFairnessMetric')
    watching.eventually(lambda: watching.metrics(cloud) == everywhere)
    alice = cloud.users['alice']
    status, answer = readme_lines.run_in_cloud(cloud, look, alice)
    assert status == 200
    assert answer['user']['id'] == alice.user
