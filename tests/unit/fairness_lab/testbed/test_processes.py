# SPDX-License-Identifier: Apache-2.0

import os
import signal
import subprocess

import pytest

from fairness_lab.testbed.nodes import processes
from nova_fairness import exception


@pytest.fixture
def sleeper():
    child = subprocess.Popen(['sleep', '60'])
    yield child
    child.kill()
    child.wait()


def test_a_process_is_known_by_number_and_start(sleeper):
    identity = processes.identify(sleeper.pid)
    assert processes.is_alive(identity)
    other = processes.Identity(identity.pid, identity.start_ticks + 1)
    assert not processes.is_alive(other)


def test_a_zombie_is_not_alive(sleeper):
    identity = processes.identify(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGKILL)
    assert processes.wait_until(lambda: not processes.is_alive(identity), 10)
    assert sleeper.returncode is None


def test_a_process_of_others_gets_no_signal(sleeper):
    assert not processes.send(sleeper.pid, signal.SIGKILL, lambda _: False)
    assert processes.identify(sleeper.pid)


def test_an_own_process_gets_its_signal(sleeper):
    ours = sleeper.pid
    assert processes.send(ours, signal.SIGTERM, lambda pid: pid == ours)
    assert sleeper.wait(10) == -signal.SIGTERM


def test_a_process_that_is_gone_gets_no_signal(sleeper):
    sleeper.kill()
    sleeper.wait()
    assert not processes.send(sleeper.pid, signal.SIGTERM, lambda _: True)


def test_a_process_that_ignores_sigterm_is_killed():
    child = subprocess.Popen(
        ['sh', '-c', 'trap "" TERM; echo; sleep 60 & wait; wait'],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    child.stdout.readline()
    processes.end(child, 0.1)
    os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL


def test_all_processes_of_a_set_are_ended(sleeper):
    processes.end_all(lambda: [sleeper.pid], lambda _: True)
    assert sleeper.wait(10) == -signal.SIGKILL


def test_processes_that_do_not_end_are_named(sleeper):
    with pytest.raises(exception.LabError, match=str(sleeper.pid)):
        processes.end_all(lambda: [sleeper.pid], lambda _: False, 0.05)


def test_a_command_that_is_missing_is_named():
    with pytest.raises(exception.LabEnvironmentError, match='no-such-thing'):
        processes.run(['no-such-thing'])


def test_a_command_that_fails_says_why():
    with pytest.raises(exception.LabError, match='exit code 3: no luck'):
        processes.run(['sh', '-c', 'echo no luck >&2; exit 3'])


def test_a_command_returns_its_output(tmp_path):
    assert processes.run(['pwd'], cwd=tmp_path) == f'{tmp_path}\n'
