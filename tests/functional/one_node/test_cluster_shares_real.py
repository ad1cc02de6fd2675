# SPDX-License-Identifier: Apache-2.0

"""What the cluster service says holds for real guests: shares and classes.

Ann's project has two guests, bob's has one; all of them want the one CPU.
Agent, Redis, driver, service and store are real; Nova and Placement are not.
"""

import contextlib
import math
import os
import pathlib
import subprocess
import sys

import pytest

from fairness_lab.testbed.guests import domain
from fairness_lab.testbed.nodes import processes
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from nova_fairness.runtime import state_file
from tests.functional import agent_process
from tests.functional import share_service
from tests.functional.agent_site import FOUND
from tests.functional.agent_site import is_measured

pytestmark = pytest.mark.real

REDIS_PORT = 6379
URL = f'zmq+redis://127.0.0.1:{REDIS_PORT}/?insecure=true&host=127.0.0.1'
TOP = pathlib.Path(__file__).resolve().parents[3]
ROUNDS = 3
"""After which what was set holds."""
LOOKED_AT = 6
"""Rounds over which use is added up."""


class Served(agent_process.Agent):
    """An agent whose shares are those of the queue."""

    def configure(self, **options):
        super().configure(host=share_service.HOST, **options)
        text = f'[DEFAULT]\ntransport_url = {URL}\n'
        self.config.write_text(text + self.config.read_text())

    @property
    def round(self):
        """The newest."""
        return self.rounds()[-1]['round']

    def await_number(self, number):
        """Wait until a round is over."""
        self.await_round(lambda done: done['round'] >= number)


def write_shares(path, ann, bob):
    """Replace the file as a whole, as an operator's tool does."""
    ids = {name: domain.owner_id(f'project {name}') for name in ('ann', 'bob')}
    text = (
        'accounts:\n'
        f'- {{name: {ids["ann"]}, share: {ann}}}\n'
        f'- {{name: {ids["bob"]}, share: {bob}}}\n'
    )
    state_file.replace(path, text, durable=False)


@pytest.fixture(scope='module')
def redis(site, tmp_path_factory):
    words = ['redis-server', '--port', str(REDIS_PORT), '--save', '']
    directory = tmp_path_factory.mktemp('redis')
    running = site.node.popen(
        [*words, '--dir', str(directory)], stdout=subprocess.DEVNULL
    )
    yield
    running.terminate()
    running.wait(agent_process.PATIENCE_S)


@pytest.fixture
def shares(tmp_path):
    path = tmp_path / 'shares.yaml'
    write_shares(path, 1, 1)
    return path


@pytest.fixture
def preemptible(tmp_path):
    path = tmp_path / 'preemptible'
    path.write_text('')
    return path


@contextlib.contextmanager
def serving(site, tmp_path, *more):
    """The service beside the agent; it says when it is ready.

    :param more: arguments after its URL and its directory.
    """
    log = tmp_path / 'service.log'
    with log.open('w') as out:
        running = site.node.popen(
            [
                *(sys.executable, '-m', 'tests.functional.share_service'),
                *(URL, str(tmp_path), *map(str, more)),
            ],
            stdout=out,
            stderr=out,
            cwd=TOP,
            env={**os.environ, 'PYTHONPATH': str(TOP)},
        )
    assert processes.wait_until(
        lambda: share_service.READY in log.read_text(),
        agent_process.PATIENCE_S,
    ), log.read_text()
    try:
        yield running
    finally:
        running.kill()
        running.wait(agent_process.PATIENCE_S)


@pytest.fixture
def service(site, redis, tmp_path, shares, preemptible):
    with serving(site, tmp_path, shares, preemptible) as running:
        yield running


@pytest.fixture
def agent(site, service, tmp_path):
    made = Served(
        site.node,
        tmp_path,
        entity='project',
        quota_source='shares',
        best_effort=True,
        interval=1,
    )
    made.start()
    yield made
    made.close()
    assert site.shares() == FOUND


def used_s(site):
    """CPU seconds of both projects, as the kernel counts them."""
    found = {'ann': 0.0, 'bob': 0.0}
    for name in site.guests:
        with site.domain(name) as each:
            found[name[:3]] += each.info()[4] / 1e9
    return found


def ratio(site, agent):
    """Bob's CPU time beside ann's from now on, for some rounds.

    It is infinite if ann gets none: so it is of an idle class on a busy host.
    """
    before = used_s(site)
    agent.await_number(agent.round + LOOKED_AT)
    after = used_s(site)
    ann, bob = (after[name] - before[name] for name in ('ann', 'bob'))
    assert bob > 0
    return bob / ann if ann else math.inf


def test_projects_get_cpu_in_the_ratio_of_their_shares_1_to_3(
    site, agent, service, shares
):
    agent.await_round(lambda done: is_measured(done, 'ann-1', 'bob-1'), 5)
    assert ratio(site, agent) == pytest.approx(1.0, rel=0.1)

    write_shares(shares, 1, 3)
    agent.await_number(agent.round + ROUNDS)
    assert ratio(site, agent) == pytest.approx(3.0, rel=0.1)

    service.terminate()
    assert service.wait(agent_process.PATIENCE_S) == 0
    agent.await_number(agent.round + LOOKED_AT)
    assert ratio(site, agent) == pytest.approx(3.0, rel=0.1)


def is_idle(site, name):
    pid = site.guests[name].pid
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    path = files.control_path('/proc', mounts, pid, files.CPU_IDLE)
    return pathlib.Path(path).read_text() == '1\n'


def test_a_preemptible_guest_gets_only_spare_cpu_while_in_its_class(
    site, agent, service, preemptible
):
    agent.await_round(lambda done: is_measured(done, 'ann-1', 'bob-1'), 5)
    ann = [site.guests[name].uuid for name in ('ann-1', 'ann-2')]
    state_file.replace(preemptible, '\n'.join(ann), durable=False)
    agent.await_number(agent.round + ROUNDS)
    assert is_idle(site, 'ann-1')
    assert is_idle(site, 'ann-2')
    assert not is_idle(site, 'bob-1')
    assert ratio(site, agent) > 30
    done = agent.rounds()[-1]
    assert done['controls']['cpu']
    assert [each['best_effort'] for each in done['instances']].count(True) == 2

    preemptible.write_text('')
    agent.await_round(
        lambda done: not any(vm['best_effort'] for vm in done['instances'])
    )
    assert not is_idle(site, 'ann-1')
    assert ratio(site, agent) == pytest.approx(1.0, rel=0.2)
