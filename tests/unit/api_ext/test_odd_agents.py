# SPDX-License-Identifier: Apache-2.0

"""An agent that answers with anything harms no other host and no reader."""

import json
import random

import pytest

from tests.fuzz import odd
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud

GETS = (
    '/fairness',
    '/fairness/hosts',
    '/fairness/hosts?sort_key=duration_s',
    '/fairness/hosts/cmp2',
    '/fairness/hosts/cmp2/preview',
    '/fairness/users',
    '/fairness/users?sort_key=heaviness_quotas&sort_dir=desc',
    f'/fairness/users/{fake_cloud.ALICE}',
    '/fairness/projects',
    '/fairness/projects?sort_key=instances_count',
    f'/fairness/projects/{fake_cloud.RED}',
    f'/fairness/instances/{fake_cloud.CAROLS}',
)
ACTIONS = (
    {'set-metric': {'name': 'DominantShareMetric'}},
    {'set-policy': {'name': 'thesis'}},
    {'pause': None},
    {'reset': None},
)
OF_ALL = {'/fairness/hosts': 'name', '/fairness/users': 'id'}


class OddClient(fake_agents.FakeClient):
    """Agents of which cmp2 answers with anything.

    :ivar rng: chooses what; ``None`` for agents that are all right.
    """

    rng = None

    def _call(self, host, method, arguments):
        answer = super()._call(host, method, arguments)
        if self.rng is None or host not in ('cmp2', ''):
            return answer
        # Of those that are asked which hosts there are, some are all right.
        if not host and self.rng.random() < 0.5:
            return answer
        return odd.change_document(self.rng, answer)


@pytest.fixture
def odd_cloud(tmp_path):
    agents = fake_cloud.client()._agents.values()
    return fake_cloud.FakeCloud(tmp_path, of_client=OddClient(*agents))


def strict(body):
    """JSON as all readers know it."""

    def refuse(name):
        raise AssertionError(f'{name} is no JSON')

    return json.loads(body, parse_constant=refuse)


@pytest.mark.repeated
@pytest.mark.parametrize('seed', range(40))
@pytest.mark.parametrize('url', GETS)
def test_an_invalid_answer_of_one_host_breaks_no_list(odd_cloud, url, seed):
    odd_cloud.client.rng = random.Random(f'{url} {seed}')
    answer = odd_cloud.ask('admin', 'GET', url)
    assert answer.status_code in (200, 404, 503)
    told = strict(answer.body)
    key = OF_ALL.get(url)
    if key and answer.status_code == 200:
        plural = url.rpartition('/')[2]
        found = {each[key] for each in told[plural]}
        assert found & {'cmp1', fake_cloud.ALICE}


@pytest.mark.repeated
@pytest.mark.parametrize('seed', range(40))
@pytest.mark.parametrize('body', ACTIONS)
@pytest.mark.parametrize('host', ['all', 'cmp2'])
def test_an_invalid_answer_of_one_host_stops_no_action(
    odd_cloud, host, body, seed
):
    odd_cloud.client.rng = random.Random(f'{host} {body} {seed}')
    answer = odd_cloud.ask('admin', 'POST', f'/fairness/{host}/action', body)
    assert answer.status_code in (202, 404, 409, 503)
    told = strict(answer.body)
    if answer.status_code == 202 and host == 'all':
        assert 'cmp1' in {each['name'] for each in told['hosts']}


@pytest.mark.parametrize('number', [10**400, 1e308, float('inf'), -1e308])
@pytest.mark.parametrize('url', ['users', 'projects'])
def test_huge_numbers_of_several_hosts_add_up_to_a_number(cloud, number, url):
    odds = {
        'heaviness_quotas': number,
        'instances_here_count': 1,
        'usage_quotas': {'memory': number},
    }
    told = {'users': {'x': odds}, 'projects': {'x': odds}, 'scope': 'host'}
    cloud.client.broken = {'cmp1': told, 'cmp2': told}
    cloud.agents.hosts = lambda **_: ('cmp1', 'cmp2')
    answer = cloud.ask('admin', 'GET', f'/fairness/{url}')
    assert strict(answer.body)[url][0]['heaviness_quotas'] is None
