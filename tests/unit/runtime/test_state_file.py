# SPDX-License-Identifier: Apache-2.0

"""What policies remember survives a restart."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from nova_fairness import exception
from nova_fairness.runtime import state_file


def test_a_saved_memory_is_loaded(tmp_path):
    path = tmp_path / 'policies.json'
    state_file.PolicyMemory(path).save({'feedback': {'a': [1, 2.5]}})
    assert state_file.PolicyMemory(path).load() == {
        'feedback': {'a': [1, 2.5]}
    }


def test_an_absent_file_is_an_empty_memory(tmp_path):
    assert state_file.PolicyMemory(tmp_path / 'none.json').load() == {}


@pytest.mark.parametrize(
    'text',
    [
        '',
        '{',
        '[]',
        '{"version": 1}',
        '{"version": 99, "policies": {}}',
        '{"version": 1, "policies": {"feedback": 3}}',
    ],
)
def test_a_file_that_cannot_be_understood_is_an_empty_memory(tmp_path, text):
    path = tmp_path / 'policies.json'
    path.write_text(text)
    assert state_file.PolicyMemory(path).load() == {}


def test_memory_that_is_not_json_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / 'policies.json'
    memory = state_file.PolicyMemory(path)
    memory.save({'a': {}})
    before = path.read_text()
    with pytest.raises(exception.StateError, match='not JSON'):
        memory.save({'a': {'x': object()}})
    assert path.read_text() == before


def test_an_unwritable_memory_is_reported_and_saved_later(tmp_path, caplog):
    path = tmp_path / 'gone' / 'policies.json'
    memory = state_file.PolicyMemory(path)
    memory.save({'a': {}})
    assert memory.problem == f'cannot write {path}: No such file or directory'
    assert memory.problem in caplog.text
    memory.retry()
    assert memory.problem
    assert list(tmp_path.iterdir()) == []
    path.parent.mkdir()
    memory.retry()
    assert not memory.problem
    assert memory.load() == {'a': {}}


def test_unchanged_state_is_not_written_again(tmp_path):
    file = state_file.StateFile(tmp_path / 'paused.json')
    assert file.write('yes') == ''
    file.path.unlink()
    file.retry()
    assert not file.path.exists()


def test_an_unchanged_memory_is_not_written_again(tmp_path):
    path = tmp_path / 'policies.json'
    memory = state_file.PolicyMemory(path)
    memory.save({'a': {}})
    path.unlink()
    memory.save({'a': {}})
    assert not path.exists()


@pytest.mark.parametrize('durable', [True, False])
def test_a_durable_file_is_forced_to_disk_before_its_name(
    tmp_path, monkeypatch, durable
):
    path = tmp_path / 'state.json'
    forced = []

    def remember(descriptor):
        is_name = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        forced.append(('name' if is_name else 'text', path.exists()))

    monkeypatch.setattr(os, 'fsync', remember)
    state_file.replace(path, 'content', durable=durable)
    expected = [('text', False), ('name', True)] if durable else []
    assert forced == expected
    assert path.read_text() == 'content'
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, pathlib, signal, sys
from nova_fairness.runtime import state_file
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
state_file.replace(pathlib.Path(sys.argv[1]), 'half', durable=True)
"""


def test_a_writer_that_is_killed_leaves_nothing_that_stays(tmp_path):
    path = tmp_path / 'found.json'
    state_file.replace(path, 'old', durable=True)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, '-c', KILLED, path], check=False
        )
        assert done.returncode == -signal.SIGKILL
        assert path.read_text() == 'old'
        assert len(list(tmp_path.iterdir())) == 2
    state_file.replace(path, 'new', durable=True)
    assert path.read_text() == 'new'
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
