# SPDX-License-Identifier: Apache-2.0

"""A real Prometheus answers the queries of all panels of all dashboards.

It scrapes three endpoints. That of the agent is served over HTTPS by a service
that does its rounds, on a host that exists in memory only. That of the queue
is of a cluster service that does its cycles, with a real database and a cloud
in memory. The third has numbers that a test made up: those of the border, of
plans, of evictions and of a relay. Full runs also read them from services that
evict, move hosts and execute plans: ``tests/integration/nova``.
"""

import dataclasses
import functools
import json
import pathlib
import re
import subprocess
import threading
from urllib import error
from urllib import parse
from urllib import request

from oslo_config import cfg
import pytest

from nova_fairness.agent import service
from nova_fairness.cluster import event_notifications
from nova_fairness.conf import opts
from nova_fairness.observe import endpoint
from nova_fairness.observe import queue
from nova_fairness.runtime import supervision
from tests.fixtures import certificates
from tests.fixtures import panels
from tests.fixtures import patience
from tests.fixtures import ports
from tests.unit.agent import test_service
from tests.unit.cluster import test_service as test_cluster
from tests.unit.observe import test_queue

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRAPE = """
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: ['{rules}/*.rules.yml']
scrape_configs:
- job_name: cluster
  static_configs: [{{targets: ['127.0.0.1:{cluster}']}}]
- job_name: queue
  static_configs: [{{targets: ['127.0.0.1:{queue}']}}]
- job_name: agents
  scheme: https
  tls_config:
    ca_file: {files}/issuer.pem
    cert_file: {files}/prometheus.pem
    key_file: {files}/prometheus.key
  static_configs: [{{targets: ['127.0.0.1:{agent}']}}]
"""


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """A folder with certificates of the agent and of Prometheus."""
    folder = tmp_path_factory.mktemp('tls')
    issuer = certificates.Issuer(folder, 'issuer')
    for name in ('agent', 'prometheus'):
        issuer.certify(name)
    return folder


class Following(test_service.FakeParts):
    """A host whose kernel follows the weights, as one with load does."""

    def _round(self, missed):
        done = super()._round(missed)
        if done.effect is None:
            return done
        effect = dataclasses.replace(done.effect, followed=1.0)
        return dataclasses.replace(done, effect=effect)


@pytest.fixture(scope='module')
def agent(files, tmp_path_factory):
    """The port of an agent that does a round each second."""
    made = cfg.ConfigOpts()
    opts.register_opts(made)
    made([], default_config_files=[], default_config_dirs=[])
    made.set_override('interval', 1.0, group='fairness')
    port = ports.free()
    for name, value in (
        ('port', port),
        ('certificate', f'{files}/agent.pem'),
        ('key', f'{files}/agent.key'),
        ('client_ca', f'{files}/issuer.pem'),
    ):
        made.set_override(
            f'prometheus_{name}', value, group='fairness_observe'
        )
    parts = Following(tmp_path_factory.mktemp('agent'))
    running = service.FairnessService(made, parts)
    # Only the main thread of a program takes signals.
    running._take_signals = lambda: None
    running.start()
    yield port
    running.stop()


@pytest.fixture(scope='module')
def queueing(tmp_path_factory):
    """The port of a cluster service with a request that waits."""
    world = test_cluster.World(tmp_path_factory.mktemp('queue'))
    world.cloud.add_host('h1', 8)
    process, stopped = world.process(), threading.Event()
    watch = event_notifications.RequestWatch(
        world.store, process, lambda _: None, 'ctl'
    )
    world.post('waits', vcpu=99)
    served = endpoint.HttpEndpoint(
        '127.0.0.1', 0, queue.QueueCollector(watch.queue, None)
    )
    served.start()
    manager = supervision.ServiceManager()
    thread = threading.Thread(target=process.run, args=(stopped, 0.5, manager))
    thread.start()
    yield served.port
    stopped.set()
    thread.join()
    served.stop()
    world.close()


@pytest.fixture(scope='module')
def exporter():
    collector = queue.QueueCollector(
        lambda: test_queue.SEEN,
        lambda: ({'held': 1}, False),
        lambda: test_queue.BORDER,
        lambda: test_queue.PLANS,
    )
    made = endpoint.HttpEndpoint('127.0.0.1', 0, collector)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope='module')
def prometheus(exporter, queueing, agent, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp('prometheus')
    file = folder / 'prometheus.yml'
    file.write_text(
        SCRAPE.format(
            cluster=exporter.port,
            queue=queueing,
            agent=agent,
            files=files,
            rules=TOP / 'etc/prometheus',
        )
    )
    log = folder / 'log'
    with log.open('w') as out:
        process = subprocess.Popen(
            [
                'prometheus',
                f'--config.file={file}',
                f'--storage.tsdb.path={folder}/series',
                '--web.listen-address=127.0.0.1:0',
            ],
            stderr=out,
        )
    try:
        patience.wait_for_value(lambda: place_in(log))
        patience.wait_for_value(lambda: is_ready(place_in(log)))
        yield f'http://{place_in(log)}/api/v1/query?'
    finally:
        process.terminate()
        process.wait()


def place_in(log):
    found = re.search(r'Listening on" address=(\S+)', log.read_text())
    return found and found[1]


def is_ready(place):
    try:
        with request.urlopen(f'http://{place}/-/ready', timeout=10) as told:
            return told.status == 200
    except error.HTTPError:
        return False


def answer(address, query):
    told = address + parse.urlencode({'query': query})
    with request.urlopen(told, timeout=10) as response:
        return json.load(response)['data']['result']


@pytest.mark.parametrize('page', panels.PAGES)
def test_each_panel_has_values(prometheus, page):
    panels.await_values(page, functools.partial(answer, prometheus))


OF_OTHERS = {panels.ESTIMATES, 'Messages per second at the relay'}
"""Panels about requests that started long ago, and about the relay."""


def test_a_running_service_gives_values_to_all_queue_panels(
    prometheus, queueing
):
    ours, ask = f'127.0.0.1:{queueing}', functools.partial(answer, prometheus)
    panels.await_values('queue', ask, OF_OTHERS, ours)
    [told] = ask(panels.queries('queue', ours)['Waiting requests, by project'])
    assert told['metric'] == {'project': 'the-project'}
    assert told['value'][1] == '1'


def test_all_rules_are_loaded_and_none_fails(prometheus):
    def rules():
        address = prometheus.replace('/query?', '/rules')
        with request.urlopen(address, timeout=10) as response:
            groups = json.load(response)['data']['groups']
        found = [rule for group in groups for rule in group['rules']]
        evaluated = all(rule['health'] != 'unknown' for rule in found)
        return found if evaluated else []

    found = patience.wait_for_value(rules)
    assert len(found) == 23
    assert not [rule for rule in found if rule['health'] != 'ok']


def test_promtool_accepts_the_rules():
    for path in TOP.joinpath('etc/prometheus').glob('*.yml'):
        subprocess.run(['promtool', 'check', 'rules', path], check=True)
