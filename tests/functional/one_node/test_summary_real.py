# SPDX-License-Identifier: Apache-2.0

"""What is said of a VM is true of real guests in real situations.

The table of them is that of ``tests/unit/agent/explain/test_summary.py``.
Here are those that guests of one node can be brought into; an operator asks
the agent as they would.
"""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest

from fairness_lab.testbed.guests import domain
from nova_fairness.agent.explain import summary
from nova_fairness.model import defaults
from tests.functional import agent_process
from tests.functional import agent_site

pytestmark = pytest.mark.real

HOST = 'node-1'
REDIS_PORT = 6379
CTL = pathlib.Path(sys.executable).with_name('nova-fairness-ctl')
URL = f'zmq+redis://127.0.0.1:{REDIS_PORT}/?insecure=true&host=127.0.0.1'
LIMIT = 0.2
"""CPUs that the flavor of one guest allows."""


class Told(agent_process.Agent):
    """An agent that is asked why VMs get what they get."""

    def configure(self, **options):
        super().configure(host=HOST, **options)
        text = f'[DEFAULT]\ntransport_url = {URL}\n'
        self.config.write_text(text + self.config.read_text())

    def use(self, **options):
        """Take other options over."""
        self.configure(**options)
        self.send(signal.SIGHUP)

    def why(self, guest):
        """The sentences about a guest, or why there are none."""
        asked = self.node.run(
            [
                *(str(CTL), '--config-file', str(self.config)),
                *('--host', HOST, '--json', 'why', guest.uuid),
            ]
        )
        if asked.returncode:
            return asked.stderr
        told = json.loads(asked.stdout)['by_host'][HOST]
        return told['instance']['summary']

    def await_why(self, guest, *texts):
        """Wait until all of this is said of a guest."""
        deadline = time.monotonic() + agent_process.PATIENCE_S
        while True:
            said = self.why(guest)
            if all(text in said for text in texts):
                return said
            assert time.monotonic() < deadline, (texts, said)


@pytest.fixture(scope='module', autouse=True)
def limited(site):
    """One guest more, which its flavor holds back."""
    busy(site)
    made = site.start(
        'dan-1',
        cputune={'period': '100000', 'quota': str(int(LIMIT * 100_000))},
        extra_specs={'quota:cpu_quota': str(int(LIMIT * 100_000))},
    )
    site.guests['dan-1'] = made
    made.await_ready(agent_site.BOOT_S)
    site.crowd()
    yield made
    site.destroy(site.guests.pop('dan-1'))
    busy(site, *site.guests)


@pytest.fixture(scope='module')
def agent(site, tmp_path_factory):
    directory = tmp_path_factory.mktemp('told')
    redis = ['redis-server', '--port', str(REDIS_PORT), '--save', '']
    running = site.node.popen(
        [*redis, '--dir', str(directory)], stdout=subprocess.DEVNULL
    )
    made = Told(site.node, directory, max_weight_ratio=1)
    try:
        made.start()
        made.await_round(lambda done: len(done['instances']) == 4)
        yield made
    finally:
        made.close()
        running.terminate()
        running.wait(agent_process.PATIENCE_S)


def busy(site, *names):
    """Let these guests, and no others, want a CPU."""
    for name, guest in site.guests.items():
        guest.command(f'cpu {int(name in names)}')


def test_summary_of_users_above_and_below_their_share(site, agent):
    busy(site, 'ann-1', 'ann-2', 'bob-1')
    # Weights that may not differ leave ann with twice what bob has.
    agent.await_why(
        site.guests['ann-1'],
        'slowed down by sharing',
        '2 users wait for CPU',
        'its owner is heavier than those it competes with',
    )
    agent.await_why(
        site.guests['bob-1'], 'has less than those it competes with'
    )


def test_summary_of_users_at_their_fair_share(site, agent):
    busy(site, 'ann-1', 'ann-2', 'bob-1')
    assert agent.stop() == 0
    agent.configure(max_weight_ratio=20)
    agent.start()
    said = agent.await_why(
        site.guests['bob-1'], '2 users wait for CPU', 'their fair part'
    )
    assert 'slowed down by sharing' in said


def test_summary_of_a_vm_at_the_limit_of_its_flavor(site, agent):
    busy(site, 'dan-1')
    agent.await_why(
        site.guests['dan-1'],
        f'This VM gets {LIMIT:.2f} CPU, which is the limit of its flavor',
        'other VMs do not slow it down',
    )


def test_summary_of_an_idle_vm(site, agent):
    busy(site)
    # It uses about 0.01 CPU: it is idle, or its use is told.
    agent.await_why(site.guests['bob-1'], 'othing slows')


def test_summary_of_idle_vms_that_are_charged(site, agent):
    busy(site, 'ann-1', 'bob-1')
    agent.use(metric='GreedinessMetric', policy='thesis')
    try:
        agent.await_why(
            site.guests['ann-1'],
            'slowed down by sharing',
            'charged for what their VMs have reserved, used or not',
            'fewer or smaller VMs change that',
        )
    finally:
        agent.use(metric=defaults.METRIC, policy=defaults.POLICY)


def test_summary_of_an_unknown_vm(agent):
    uuid = '00000000-0000-4000-8000-000000000000'
    said = agent.why(types.SimpleNamespace(uuid=uuid))
    assert (
        f'VM {uuid}: unknown: it was not in the newest round of node {HOST}'
        in said
    )


@contextlib.contextmanager
def busy_host(site):
    """Let a program of the host want the CPU of the guests."""
    spins = ['taskset', '-c', str(site.node.cpus[0]), sys.executable, '-c']
    made = site.node.popen([*spins, 'while True: pass'])
    try:
        yield
    finally:
        made.kill()
        made.wait(agent_process.PATIENCE_S)


@pytest.mark.slow
def test_summary_on_a_host_that_is_busy_itself(site, agent):
    busy(site, 'bob-1')
    with busy_host(site):
        agent.await_why(
            site.guests['bob-1'],
            'Other VMs do not slow it down. The host is busy itself',
            'Tell the operator.',
        )


def test_summary_of_an_exempted_vm(site, agent):
    busy(site, 'ann-1', 'ann-2', 'bob-1')
    agent.use(exempt=domain.owner_id('user bob'))
    try:
        assert agent.await_why(site.guests['bob-1'], 'exempted this VM') == (
            summary.EXEMPT
        )
    finally:
        agent.use(exempt='')


def test_summary_of_a_paused_vm(site, agent):
    with site.domain('bob-1') as bob:
        bob.suspend()
        try:
            assert agent.await_why(site.guests['bob-1'], 'is paused') == (
                summary.PAUSED
            )
        finally:
            bob.resume()


def test_summary_of_an_agent_that_only_observes(site, agent):
    busy(site, 'ann-1', 'ann-2', 'bob-1')
    agent.use(enforce=False)
    try:
        agent.await_why(site.guests['bob-1'], summary.NOT_ENFORCED)
    finally:
        agent.use(enforce=True)
