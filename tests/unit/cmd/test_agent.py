# SPDX-License-Identifier: Apache-2.0

"""One agent per host; what it does then is tested on real guests."""

import os
import subprocess
import sys
import uuid

import pytest

ALONE = """
import sys
from nova_fairness import exception
from nova_fairness.cmd import agent
try:
    held = agent.acquire_agent_lock(sys.argv[1], 0.2)
except exception.StateError as error:
    sys.exit(str(error))
print('alone', flush=True)
sys.stdin.read()
"""


def begin(uri):
    """A process of its own, which chooses how oslo runs threads."""
    return subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', ALONE, uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def uri():
    return f'qemu:///{uuid.uuid4()}'


def test_a_second_agent_of_the_same_vms_is_refused_and_told_the_first(uri):
    with begin(uri) as first:
        assert first.stdout.readline() == 'alone\n'
        with begin(uri) as second:
            _, said = second.communicate()
        assert second.returncode == 1
        assert uri in said
        assert f'(process {first.pid} of user {os.getuid()})' in said
        with begin(f'{uri}-other') as other:
            assert other.communicate()[0] == 'alone\n'
        first.kill()
    with begin(uri) as third:
        assert third.communicate()[0] == 'alone\n'
