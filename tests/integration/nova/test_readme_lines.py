# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The lines of the README that go to nova-api, on a real one."""

import pytest

from tests.integration.nova import readme_lines
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


def test_the_lines_of_the_readme_do_what_it_says(cloud, servers):
    change, look = readme_lines.shown()
    status, answer = readme_lines.typed(cloud, change, cloud.admin)
    assert status == 202
    assert {host['name'] for host in answer['hosts']} == set(cloud.nodes)
    assert answer['not_reached'] == []
    everywhere = dict.fromkeys(cloud.nodes, 'AssetFairnessMetric')
    watching.eventually(lambda: watching.metrics(cloud) == everywhere)
    alice = cloud.users['alice']
    status, answer = readme_lines.typed(cloud, look, alice)
    assert status == 200
    assert answer['user']['id'] == alice.user
