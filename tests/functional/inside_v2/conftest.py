# SPDX-License-Identifier: Apache-2.0

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


def pytest_sessionstart(session):
    # Only where these tests run: pytest reads this file everywhere.
    agent_process.PATIENCE_S = vms.PATIENCE_S
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
