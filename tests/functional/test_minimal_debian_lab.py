# SPDX-License-Identifier: Apache-2.0

"""What the README shows with real guests, on the smallest Debian 12."""

import os
import re
import signal

import pytest

from fairness_lab.testbed.nodes import processes
from tests.fixtures import minimal_debian
from tests.integration.nova import readme_lines

# Debian and an OpenStack are downloaded, and guests are measured for minutes;
# the scenario on this machine is in test_lab_scenarios.py, and the cloud in
# tests/integration/nova.
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]

README = minimal_debian.README
PATIENCE_S = 1800.0
"""For all that is downloaded, and a cloud that comes up."""


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    with minimal_debian.running_debian(
        tmp_path_factory.mktemp('debian')
    ) as made:
        yield made


def test_one_command_of_the_readme_shows_fair_shares(debian):
    (see,), *_ = minimal_debian.blocks(README, 'Demonstration')
    said = debian.typed(see)
    assert 'compared' in said, said
    made = debian.root / 'clone/results/one-node-cpu'
    kinds = {path.suffix for path in made.rglob('*')}
    assert {'.json', '.csv', '.png'} <= kinds


@pytest.fixture(scope='module')
def cloud(debian):
    """A cloud that is full and has a queue, until Ctrl-C."""
    up, *_ = minimal_debian.blocks(README, 'In an OpenStack cloud')[-1]
    log = debian.root / 'root/cloud.log'
    with log.open('w') as said:
        running = debian.start(up, stdout=said, start_new_session=True)
    try:
        assert processes.wait_until(
            lambda: (
                'It starts when there is room' in log.read_text()
                or running.poll() is not None
            ),
            PATIENCE_S,
            1,
        )
        assert running.poll() is None, log.read_text()
        yield debian
    finally:
        os.killpg(running.pid, signal.SIGINT)
        running.wait()
    assert 'nothing is left of the cloud' in log.read_text()


def test_shells_inside_the_cloud_have_the_files_of_the_readme(cloud):
    *_, shells, _ = minimal_debian.blocks(README, 'In an OpenStack cloud')
    for shell, curl in zip(shells, readme_lines.shown(), strict=True):
        said = cloud.typed(shell, given=f'{curl} -w "\\n%{{http_code}}\\n"\n')
        assert re.search(r'^20[02]$', said, re.MULTILINE), said


def test_a_waiting_server_is_listed_and_starts_when_there_is_room(cloud):
    _, look, delete = minimal_debian.blocks(README, 'In an OpenStack cloud')[
        -1
    ]
    assert re.search(r'\| waiting +\|', cloud.typed(look))
    cloud.typed(delete)
    show = './tools/nova.sh run openstack server list --all-projects'
    assert processes.wait_until(
        lambda: 'carol-waits' in cloud.typed(f'{show} --status ACTIVE'),
        PATIENCE_S,
        1,
    )
