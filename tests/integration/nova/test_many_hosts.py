# SPDX-License-Identifier: Apache-2.0

"""The real Nova with many hosts, and far more requests than they take."""

import pytest

from tests.fixtures.nova_cloud import crowd as crowd_module
from tests.fixtures.nova_cloud import fake_hosts
from tests.integration.nova import watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(watching.TIMEOUT_S),
]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

HOSTS, VCPUS, REQUESTS = 30, 1, 90


def test_all_requests_start_once_and_no_host_is_overcommitted(cloud, queue):
    with fake_hosts.running(cloud, HOSTS, VCPUS):
        crowd = crowd_module.ManyRequests(cloud, REQUESTS)
        try:
            seen = crowd.run()
        finally:
            crowd.delete()
    assert seen.builds == dict.fromkeys(crowd.asked, 1)
    assert seen.active.keys() == {*crowd.asked}
    assert seen.beyond == frozenset()
