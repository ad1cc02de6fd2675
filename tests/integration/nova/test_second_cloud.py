# SPDX-License-Identifier: Apache-2.0

"""``tools/nova.sh`` refuses a second cloud."""

import os
import subprocess

import pytest

from tests.fixtures.nova_cloud import environment

pytest_plugins = ('tests.fixtures.nova_cloud.fixtures',)
pytestmark = pytest.mark.real


def test_a_second_cloud_is_refused_while_one_runs(cloud):
    shown = subprocess.run(
        ['tools/nova.sh', 'up', '--check'],
        check=False,
        cwd=environment.TOP,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 1
    assert f'process {os.getpid()} has a cloud already' in shown.stderr
    assert cloud.services('nova-compute')
