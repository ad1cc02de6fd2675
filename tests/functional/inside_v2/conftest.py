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

"""What tests inside the machine with control groups v2 share.

``tests/functional/test_cgroup_v2.py`` runs them there. They are in files that
pytest does not collect by itself, since no other machine is like that.
"""

import dataclasses
import pathlib

import pytest

from nova_fairness.collect import hypervisor
from nova_fairness.lab import processes
from nova_fairness.model import cgroup
from tests.fixtures.v2_guest import compute as compute_node
from tests.fixtures.v2_guest import walker
from tests.functional import agent_process

PATIENCE_S = 240.0

# Nothing is as fast here as where the agent's own tests run.
agent_process.PATIENCE_S = PATIENCE_S


def pytest_sessionstart(session):
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    if set(mounts) != {cgroup.UNIFIED}:
        raise pytest.UsageError(
            'these tests need a machine that has control groups v2 only: '
            'tools/v2-guest.sh pytest ...'
        )


@dataclasses.dataclass
class Vm:
    """A running VM."""

    name: str
    domain: object
    console: pathlib.Path

    @property
    def pid(self):
        path = pathlib.Path(f'/run/libvirt/qemu/{self.name}.pid')
        return int(path.read_text())

    @property
    def group(self):
        """The scope that systemd made for it."""
        inner = compute_node.group_of(self.pid)
        return next(path for path in inner.parents if path.suffix == '.scope')

    def cpu_s(self):
        first = (self.group / 'cpu.stat').read_text().split()[1]
        return int(first) / 1e6

    def await_started(self):
        """Wait until the guest's program runs."""
        assert processes.wait_until(
            lambda: walker.touched(self.console) > 0, PATIENCE_S, 0.05
        ), f'{self.name} has not touched any memory'


@pytest.fixture(scope='session')
def compute():
    hypervisor._start_event_loop()
    made = compute_node.Compute()
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope='session')
def kernel(tmp_path_factory):
    return walker.build(tmp_path_factory.mktemp('kernel'))


class Starter:
    """Starts VMs on the node, and ends them."""

    def __init__(self, connection, kernel, directory):
        self._connection = connection
        self._kernel = kernel
        self._directory = directory
        self.vms = []

    def __call__(self, name, user, **options):
        console = self._directory / f'{name}.console'
        text = walker.xml(name, user, self._kernel, console, **options)
        domain = self._connection.createXML(text, 0)
        self.vms.append(Vm(name, domain, console))
        return self.vms[-1]

    def close(self):
        for vm in self.vms:
            vm.domain.destroy()
        self._connection.close()


@pytest.fixture(scope='module')
def start(compute, kernel, tmp_path_factory):
    """Start VMs that live as long as the module's tests."""
    made = Starter(
        compute.connect(), kernel, tmp_path_factory.mktemp('consoles')
    )
    yield made
    made.close()
