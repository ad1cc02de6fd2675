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

import pathlib

import pytest

from nova_fairness.collect import hypervisor
from nova_fairness.model import cgroup
from tests.fixtures.v2_guest import compute as compute_node
from tests.fixtures.v2_guest import vms
from tests.fixtures.v2_guest import walker
from tests.functional import agent_process

# Nothing is as fast here as where the agent's own tests run.
agent_process.PATIENCE_S = vms.PATIENCE_S


def pytest_sessionstart(session):
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    if set(mounts) != {cgroup.UNIFIED}:
        raise pytest.UsageError(
            'these tests need a machine that has control groups v2 only: '
            'tools/v2-guest.sh pytest ...'
        )


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


@pytest.fixture(scope='module')
def start(compute, kernel, tmp_path_factory):
    """Start VMs that live as long as the module's tests."""
    made = vms.Starter(
        compute.connect(), kernel, tmp_path_factory.mktemp('consoles')
    )
    yield made
    made.close()
