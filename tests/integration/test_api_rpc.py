# SPDX-License-Identifier: Apache-2.0

"""The HTTP interface and agents over real sockets and a real Redis."""

import contextlib
import json
import os
import signal

from oslo_config import cfg
from oslo_context import context
import pytest
import webob

from api_ext import assembly
from nova_fairness.rpc import endpoint
from nova_fairness.rpc import protocol
from nova_fairness.rpc import server
from tests.fixtures import manual_fields
from tests.fixtures import zmq_cloud
from tests.unit.api_ext import fake_agents
from tests.unit.api_ext import fake_cloud

SILENCE_S = 2.0


class Domain:
    """Agents that listen, and the application that asks them."""

    def __init__(self, cloud, ending):
        self._cloud, self._ending = cloud, ending
        self.servers = {}
        for agent in fake_cloud.client()._agents.values():
            self.listen(agent)
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.application = assembly.build(conf)
        conf.set_override('transport_url', cloud.url(), 'fairness')
        conf.set_override('rpc_timeout', SILENCE_S, 'fairness_api')
        conf.set_override('answers_kept', 0.0, 'fairness_api')

    def listen(self, agent):
        serving = server.FairnessServer(
            self._cloud.transport(),
            protocol.DEFAULT_DOMAIN,
            agent.host,
            endpoint.FairnessEndpoint(agent),
        )
        serving.start()
        assert serving.wait_ready(zmq_cloud.PATIENCE_S)
        self._ending.callback(serving.stop)
        self.servers[agent.host] = serving

    def ask(self, who, method, path, body=None):
        request = webob.Request.blank(path, method=method)
        if body is not None:
            request.content_type = 'application/json'
            request.body = json.dumps(body).encode()
        known = context.RequestContext(
            overwrite=False, **fake_cloud.TOKENS[who]
        )
        return self.application.answer(request, known)


@pytest.fixture
def domain():
    with zmq_cloud.running() as cloud, contextlib.ExitStack() as ending:
        yield Domain(cloud, ending)


def test_agents_answer_over_sockets(domain):
    hosts = domain.ask('admin', 'GET', '/fairness/hosts').json
    assert [item['name'] for item in hosts['hosts']] == ['cmp1', 'cmp2']
    users = domain.ask('admin', 'GET', '/fairness/users').json
    assert len(users['users']) == 3
    path = f'/fairness/instances/{fake_cloud.CAROLS}'
    assert domain.ask('carol', 'GET', path).status_code == 200
    assert domain.ask('alice', 'GET', path).status_code == 404


def test_errors_of_agents_keep_their_kind(domain):
    body = {'set-metric': {'name': 'NoMetric'}}
    for host in ('cmp1', 'all'):
        path = f'/fairness/{host}/action'
        answer = domain.ask('admin', 'POST', path, body)
        assert answer.status_code == 400
        assert 'GreedinessMetric' in answer.text
        assert 'Traceback' not in answer.text


def test_a_metric_is_chosen_for_all_hosts(domain):
    body = {'set-metric': {'name': 'DominantShareMetric'}}
    answer = domain.ask('admin', 'POST', '/fairness/all/action', body)
    assert answer.status_code == 202
    hosts = domain.ask('admin', 'GET', '/fairness/hosts').json['hosts']
    assert {item['metric'] for item in hosts} == {'DominantShareMetric'}
    assert {item['epoch'] for item in hosts} == {1}


def test_a_missing_agent_gives_503_and_is_left_out_of_lists(domain):
    domain.servers['cmp2'].stop()
    hosts = domain.ask('admin', 'GET', '/fairness/hosts').json
    assert [item['name'] for item in hosts['hosts']] == ['cmp1']
    assert [item['host'] for item in hosts['not_reached']] == ['cmp2']
    answer = domain.ask('admin', 'GET', '/fairness/hosts/cmp2')
    assert answer.status_code == 503
    answer = domain.ask(
        'admin', 'POST', '/fairness/cmp2/action', {'reset': {}}
    )
    assert answer.status_code == 503


def test_a_forked_process_opens_its_own_connection(domain):
    assert domain.ask('admin', 'GET', '/fairness/hosts').status_code == 200
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(int(zmq_cloud.PATIENCE_S))
        hosts = domain.ask('admin', 'GET', '/fairness/hosts').json
        os.write(writing, json.dumps(hosts['not_reached']).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        assert (status, told.read()) == (0, '[]')
    assert domain.ask('admin', 'GET', '/fairness/hosts').status_code == 200


def test_fake_agents_answer_as_the_agent_interface_documents():
    """What the fake agents tell has the keys that are documented."""
    said = manual_fields.fields_of_answers()
    agent = fake_agents.FakeAgent(
        'a', [fake_agents.FakeVm('u', 'alice', 'red')]
    )
    answers = {
        'get_status': agent.status(),
        'list_users': agent.users(),
        'list_projects': agent.projects(),
        'get_usage': agent.usage(),
        'get_plugins': agent.plugins(),
        'get_preview': agent.preview(None),
    }
    for method, answer in answers.items():
        for key in answer:
            assert f'{method}.{key}' in said
    for one in agent.preview(None)['metrics']:
        for key in one:
            assert f'get_preview.metrics[].{key}' in said
        for key in one['instances'][0]:
            assert f'get_preview.metrics[].instances[].{key}' in said
    instance = agent.instance('u')['instance']
    for key in set(instance) - {'neighbours'}:
        assert f'get_instance.instance.{key}' in said
