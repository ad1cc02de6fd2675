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

"""What the README tells people to send to nova-api, as it stands there."""

import json
import pathlib
import re
import subprocess

import pytest

from tests.fixtures.nova_cloud import machine
from tests.fixtures.nova_cloud import places
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)

README = pathlib.Path(__file__).resolve().parents[3] / 'README.rst'


def shown():
    """Give the commands of the README that begin with curl."""
    text = README.read_text(encoding='utf-8')
    return re.findall(r'^ {4}curl (?:.*\\\n)*.*$', text, re.MULTILINE)


def typed(cloud, command, session):
    """Run a command where the cloud can be reached; give its answer."""
    done = subprocess.run(
        cloud.controller.command(['sh', '-ec', command]),
        env=machine.environment(
            cloud.venv,
            {'TOKEN': session.token, 'NOVA': places.url('compute')},
        ),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_the_lines_of_the_readme_do_what_it_says(cloud, servers):
    change, look = shown()
    answer = typed(cloud, change, cloud.admin)
    assert {host['name'] for host in answer['hosts']} == set(cloud.nodes)
    assert answer['not_reached'] == []
    everywhere = dict.fromkeys(cloud.nodes, 'GreedinessMetric')
    watching.eventually(lambda: watching.metrics(cloud) == everywhere)
    alice = cloud.users['alice']
    assert typed(cloud, look, alice)['user']['id'] == alice.user
