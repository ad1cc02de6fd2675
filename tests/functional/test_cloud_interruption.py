# SPDX-License-Identifier: Apache-2.0

"""``tools/nova.sh`` ends at any moment of its start, and leaves nothing."""

import signal
import subprocess

import pytest

from fairness_lab.testbed import qemu
from fairness_lab.testbed.nodes import groups
from tests.fixtures.nova_cloud import environment

pytestmark = [pytest.mark.real, pytest.mark.slow]

ENDED = {130, -signal.SIGINT, -signal.SIGTERM}

PATIENCE_S = 30
"""Three times what the operator is promised."""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('after_s', [0.5, 5, 12, 20, 35])
def test_a_cloud_that_is_interrupted_leaves_nothing(tmp_path, after_s, number):
    before = {*qemu.living_runs()}
    log = tmp_path / 'log'
    with log.open('w') as out:
        starting = subprocess.Popen(
            ['tools/nova.sh', 'up'],
            cwd=environment.TOP,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_listens,
        )
    with pytest.raises(subprocess.TimeoutExpired):
        starting.wait(after_s)
    starting.send_signal(number)
    assert starting.wait(PATIENCE_S) in ENDED, log.read_text()
    assert {*qemu.living_runs()} == before
    assert groups.runs_with_groups() == {run.name for run in before}
    assert not _left(starting.pid), log.read_text()


def _left(session):
    shown = subprocess.run(
        ['ps', '-o', 'stat=,args=', '-s', str(session)],
        check=False,
        capture_output=True,
        text=True,
    )
    # The dead are in the list until init has taken note of them.
    return [each for each in shown.stdout.splitlines() if each[0] != 'Z']


def _listens():
    """Undo what a test runner in the background would hand down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
