# SPDX-License-Identifier: Apache-2.0

"""Commands that ``tools/nova.sh run`` starts inside the cloud."""

import pathlib
import subprocess
import sys

import pytest

from fairness_lab.testbed.nodes import namespace
from tests.fixtures.nova_cloud import __main__ as command
from tests.fixtures.nova_cloud import environment
from tests.fixtures.nova_cloud import places
from tests.integration.nova import watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(watching.TIMEOUT_S)]
pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)


SHOW = 'cat /proc/self/cgroup; ip -br address'


def run_outside(cloud, *words):
    """Run a command line as a terminal outside of the cloud does."""
    home = [path / 'cgroup.procs' for path in cloud.controller._home]
    done = subprocess.run(
        namespace.joining(home, words),
        cwd=environment.TOP,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_command_has_the_cpu_share_and_the_network_of_the_cloud(cloud):
    command.note(cloud)
    inside = (sys.executable, '-m', 'tests.fixtures.nova_cloud', 'run')
    # The controller has taken these tests into its groups.
    own = pathlib.Path('/proc/self/cgroup').read_text()
    assert not run_outside(cloud, 'sh', '-c', SHOW).startswith(own)
    shown = run_outside(cloud, *inside, 'sh', '-c', SHOW)
    assert shown.startswith(own)
    assert places.ADDRESS in shown
