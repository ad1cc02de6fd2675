# SPDX-License-Identifier: Apache-2.0

"""All controls at once on real guests: steered, and all given back."""

import contextlib
import os
import pathlib
import signal

import libvirt
import pytest

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed import qemu
from fairness_lab.testbed.guests import guest as lab_guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import node as lab_node
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from tests.functional import agent_process

pytestmark = pytest.mark.real

BOOT_S = 120.0
NAMES = ('ann-1', 'bob-1')
KINDS = {'cpu', 'memory', 'network'}
"""What every laboratory node can steer; disks need a scheduler."""


class Site:
    """A node and what its guests' controls hold."""

    def __init__(self, node, guests):
        self.node = node
        self.guests = guests
        mountinfo = pathlib.Path(f'/proc/{node.pid}/mountinfo').read_text()
        self._mounts = cgroup.mounts(mountinfo)

    def _memory(self, guest):
        v1 = 'memory' in self._mounts
        name = files.MEMORY_SOFT_LIMIT if v1 else files.MEMORY_LOW
        return (self._group(guest, name) / name).read_text()

    def _group(self, guest, name):
        controller = files.FILES[name].controller
        text = pathlib.Path(f'/proc/{guest.pid}/cgroup').read_text()
        group = cgroup.group_of_vm(cgroup.groups_of_process(text)[controller])
        # The node's own view of the hierarchy begins at its group.
        for path in (self.node.root / 'sys/fs/cgroup').rglob(
            group.rsplit('/', 1)[-1]
        ):
            if (path / name).exists():
                return path
        raise AssertionError(f'no group {group} has {name}')

    def held(self):
        """All values that the agent may change."""
        shaped = self.node.run(['tc', 'qdisc', 'show'])
        links = self.node.run(['ip', '-o', 'link', 'show', 'type', 'ifb'])
        return {
            'cpu': [item.cpu_shares() for item in self.guests],
            'memory': [self._memory(item) for item in self.guests],
            'qdiscs': sorted(
                line
                for line in shaped.stdout.splitlines()
                if 'htb' in line or 'clsact' in line or 'ingress' in line
            ),
            'ifbs': links.stdout,
        }


@pytest.fixture(scope='module')
def site():
    run = qemu.begin_run(os.getpid())
    cpu = min(os.sched_getaffinity(0))
    node = lab_node.TestNode('controls', run, image.default_cache(), [cpu])
    try:
        node.start()
        boot = image.ensure(image.default_cache())
        guests = [
            lab_guest.Guest(
                node,
                scenario_module.Vm(name, name.split('-')[0], nics=1),
                boot,
            )
            for name in NAMES
        ]
        with contextlib.closing(libvirt.open(node.libvirt_uri)) as connection:
            for item in guests:
                item.start(connection)
        for item in guests:
            item.await_ready(BOOT_S)
        yield Site(node, guests)
        for item in guests:
            item.hang_up()
        node.stop()
    finally:
        qemu.finish_run(run)


@pytest.fixture
def agent(site, tmp_path):
    found = site.held()
    made = agent_process.Agent(
        site.node,
        tmp_path,
        controls='cpu,memory,blkio,network',
        policy='thesis',
    )
    with made.config.open('a') as file:
        file.write('[fairness_node]\nnetwork_bandwidth = 125000000\n')
    yield made
    made.close()
    assert site.held() == found


def is_steered(done):
    return all(
        item['applied'].keys() >= KINDS and item['applied']['network'] > 0
        for item in done['instances']
    )


def test_a_stopped_agent_restores_every_control(site, agent):
    found = site.held()
    agent.start()
    done = agent.await_round(is_steered)
    assert {kind for kind, works in done['controls'].items() if works} >= KINDS
    held = site.held()
    for what in ('cpu', 'memory', 'qdiscs'):
        assert held[what] != found[what], what
    assert agent.stop() == 0
    assert site.held() == found


def test_restore_undoes_every_control_of_a_killed_agent(site, agent):
    found = site.held()
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    assert site.held() != found
    done = agent.run('restore')
    assert done.returncode == 0, done.stderr
    assert site.held() == found


def test_an_agent_restores_every_control_of_its_killed_predecessor(
    site, agent
):
    found = site.held()
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    agent.start()
    agent.await_round(is_steered)
    assert agent.stop() == 0
    assert site.held() == found


def test_a_control_disabled_at_sighup_is_restored(site, agent):
    found = site.held()
    agent.start()
    agent.await_round(is_steered)
    text = agent.config.read_text()
    agent.config.write_text(text.replace('cpu,memory,blkio,network', 'cpu'))
    agent.send(signal.SIGHUP)
    agent.await_round(
        lambda done: not done['controls']['network'] and done['restored'] == 0
    )
    held = site.held()
    assert (held['memory'], held['qdiscs']) == (
        found['memory'],
        found['qdiscs'],
    )
    assert held['cpu'] != found['cpu']
