# SPDX-License-Identifier: Apache-2.0

"""The whole agent on a node that systemd and control groups v2 run."""

import pathlib
import subprocess

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures.v2_guest import compute
from tests.functional import agent_process

FOUND = {'ann-1': 200, 'ann-2': 100, 'bob-1': 100}
"""What the VMs have before any agent comes."""

CPUS = pathlib.Path('/sys/fs/cgroup/machine.slice/cpuset.cpus.effective')
LEFT_BEHIND = pathlib.Path('/sys/fs/cgroup/machine')
"""Where libvirt keeps VMs without systemd; it allows all CPUs."""


@pytest.fixture(scope='module')
def vms(start):
    """Two VMs of ann and one of bob that want all of one CPU."""
    made = {
        name: start(name, name[:3], rate=10**7, cputune={'shares': str(found)})
        for name, found in FOUND.items()
    }
    for vm in made.values():
        vm.await_started()
    allow('0')
    LEFT_BEHIND.mkdir(exist_ok=True)
    assert processes.wait_until(lambda: CPUS.read_text().strip() == '0', 60)
    yield made
    allow('')


def allow(cpus):
    """Let VMs use some CPUs; systemd writes over what others write there."""
    wanted = ('machine.slice', f'AllowedCPUs={cpus}')
    subprocess.run(
        ['systemctl', 'set-property', '--runtime', *wanted], check=True
    )


@pytest.fixture
def agent(vms, tmp_path):
    # The emulated machine takes seconds for what takes milliseconds else.
    made = agent_process.Agent(
        compute.LocalNode(), tmp_path, interval=1, metric_deadline=10
    )
    yield made
    made.close()
    assert weights(vms) == FOUND


def weights(vms):
    return {
        name: int((vm.group / 'cpu.weight').read_text())
        for name, vm in vms.items()
    }


def is_steered(done):
    held = {
        item['name']: item['applied']['cpu']
        for item in done['instances']
        if 'cpu' in item['applied']
    }
    return (
        done['enforced']
        and held.keys() == FOUND.keys()
        and all(held[name] != FOUND[name] for name in held)
        and held['bob-1'] / held['ann-2'] > 1.4
    )


def test_a_stopped_agent_restores_the_values_it_moved(vms, agent):
    agent.start()
    steered = agent.await_round(is_steered)
    assert not steered['errors']
    held = {
        item['name']: item['applied']['cpu'] for item in steered['instances']
    }
    assert held.keys() == FOUND.keys()
    assert weights(vms) != FOUND
    assert agent.stop() == 0
    assert weights(vms) == FOUND
    assert processes.wait_until(lambda: not agent.helpers(), 60)


def test_restore_undoes_the_values_a_killed_agent_left(vms, agent):
    agent.start()
    agent.await_round(is_steered)
    agent.kill()
    assert weights(vms) != FOUND
    done = agent.run('restore')
    assert done.returncode == 0, done.stderr
    assert weights(vms) == FOUND
