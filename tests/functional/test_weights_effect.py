# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-status effect`` on the groups of this machine."""

import errno
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from nova_fairness.cmd import status_effect
from tests.fixtures import patience

pytestmark = [pytest.mark.real, pytest.mark.beside]

COMMAND = (sys.executable, '-m', 'nova_fairness.cmd.status', 'effect')


@pytest.fixture
def hierarchy():
    return status_effect._hierarchy()


def start_check():
    return subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_effect_check_passes_where_shares_take_effect(hierarchy):
    process = start_check()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert out.splitlines()[0].startswith('heavy: expected 25%, got ')
    assert out.endswith(': CPU weights work\n')
    assert not (hierarchy.top / status_effect.NAME).exists()


def test_the_effect_check_fails_where_weights_have_no_effect(
    hierarchy, monkeypatch
):
    """The same groups without weights stand for a kernel that ignores them."""
    monkeypatch.setattr(status_effect, '_rewrite', lambda *_: None)
    got = status_effect.measure(hierarchy, 2.0)
    code, verdict = status_effect.verdict_of(got['light'])
    assert code == 2, got
    assert verdict.startswith('CPU weights have no effect')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_effect_check_removes_groups_and_tasks(
    hierarchy, number
):
    group = hierarchy.top / status_effect.NAME
    last = group / 'light' / 'vcpu1' / 'cgroup.procs'
    process = start_check()
    try:
        patience.wait_for_value(lambda: last.exists() and last.read_text())
        pids = last.read_text().split()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in {130, 255}
    assert 'Traceback' not in err
    assert not group.exists()
    assert not any(pathlib.Path('/proc', pid).exists() for pid in pids)


def test_a_second_simultaneous_effect_check_is_refused(hierarchy):
    with status_effect._groups(hierarchy) as groups:
        keeper = subprocess.Popen(['sleep', '60'])
        place = groups['light'] / 'vcpu0' / 'cgroup.procs'
        place.write_text(str(keeper.pid))
        try:
            done = subprocess.run(
                COMMAND, capture_output=True, text=True, check=False
            )
        finally:
            keeper.kill()
            keeper.wait()
    assert done.returncode == 255
    assert 'only once at the same time' in done.stderr
    assert os.strerror(errno.EEXIST) in done.stderr
