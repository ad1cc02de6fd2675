# SPDX-License-Identifier: Apache-2.0


"""The record of found values survives what may happen to it."""

import json
import stat

import pytest

from nova_fairness import exception
from nova_fairness.apply import found_values
from tests.unit.apply import fake_host

BOOT = 'boot-1'
A = fake_host.knob('uuid-a/10/500')
B = fake_host.knob('uuid-b/11/600')


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'state' / 'found.json'


def opened(path, boot_id=BOOT):
    found = found_values.FoundValues(path, boot_id)
    assert found.load() == ''
    return found


def again(path, boot_id=BOOT):
    """What an agent that starts next finds."""
    found = opened(path, boot_id)
    values = dict(found.values)
    found.close()
    return values


def test_without_a_file_the_record_is_empty(path):
    assert again(path) == {}


def test_recorded_values_are_read_after_a_restart(path):
    found = opened(path)
    found.remember({A: 1024, B: 2048})
    found.close()
    assert again(path) == {A: 1024, B: 2048}


def test_the_first_recorded_value_is_kept(path):
    found = opened(path)
    found.remember({A: 1024})
    found.remember({A: 7, B: 2048})
    assert found.values == {A: 1024, B: 2048}


def test_the_file_is_for_its_owner_only(path):
    found = opened(path)
    found.remember({A: 1024})
    for item in (path, path.with_name('found.json.lock')):
        assert stat.S_IMODE(item.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_recording_known_values_writes_nothing(path):
    found = opened(path)
    found.remember({A: 1024})
    before = path.stat()
    found.remember({A: 3})
    found.flush()
    assert path.stat() == before


def test_removed_values_are_saved_with_the_next_write(path):
    found = opened(path)
    found.remember({A: 1024, B: 2048})
    found.forget([A])
    assert found.values == {B: 2048}
    assert 'uuid-a' in path.read_text()
    found.flush()
    assert 'uuid-a' not in path.read_text()
    found.close()
    assert again(path) == {B: 2048}


def test_removing_an_unknown_vm_changes_nothing(path):
    found = opened(path)
    found.remember({A: 1024})
    before = path.stat()
    found.forget([B])
    found.flush()
    assert path.stat() == before


def test_two_agents_cannot_share_a_record(path):
    first = opened(path)
    second = found_values.FoundValues(path, BOOT)
    with pytest.raises(exception.StateError, match='another agent'):
        second.load()
    first.close()
    first.close()
    assert second.load() == ''


def test_a_refused_agent_leaves_the_record_alone(path):
    first = opened(path)
    first.remember({A: 1024})
    second = found_values.FoundValues(path, BOOT)
    with pytest.raises(exception.StateError):
        second.load()
    second.close()
    with pytest.raises(exception.StateError):
        found_values.FoundValues(path, BOOT).load()
    assert first.values == {A: 1024}


def test_values_of_an_earlier_boot_are_dropped(path):
    found = opened(path)
    found.remember({A: 1024})
    found.close()
    assert again(path, 'boot-2') == {}


def record(**changes):
    content = {
        'version': 1,
        'boot_id': BOOT,
        'lost_before': -1,
        'found': {A.incarnation: {'cpu': 1024}},
    }
    return json.dumps(content | changes)


@pytest.mark.parametrize(
    'content',
    [
        '',
        '{',
        '[]',
        'null',
        '[' * 100_000,
        record()[:-5],
        record(version=2),
        record(version=None),
        record(found=None),
        record(found=[]),
        record(found={'not a key': {'cpu': 1}}),
        record(found={A.incarnation: 1}),
        record(found={A.incarnation: {'gpu': 1}}),
        record(found={A.incarnation: {'cpu': '1'}}),
        record(found={A.incarnation: {'cpu': True}}),
        record(found={A.incarnation: {'cpu': None}}),
        record(lost_before=None),
    ],
)
def test_a_corrupt_record_is_moved_aside(path, content):
    path.parent.mkdir()
    path.write_text(content)
    found = found_values.FoundValues(path, BOOT)
    message = found.load()
    assert str(path) in message
    assert 'found.json.corrupt-1' in message
    aside = path.with_name('found.json.corrupt-1')
    assert aside.read_text() == content
    assert found.values == {}
    found.remember({A: 1024})
    found.close()
    assert again(path) == {A: 1024}


def test_a_record_of_undecodable_bytes_is_moved_aside(path):
    path.parent.mkdir()
    for number in (1, 2):
        path.write_bytes(b'\xff\xfe\x00')
        found = found_values.FoundValues(path, BOOT)
        assert f'corrupt-{number}' in found.load()
        found.close()


def test_processes_of_a_lost_record_are_unknown_until_the_next_boot(path):
    path.parent.mkdir()
    path.write_text('{')
    lost = found_values.FoundValues(path, BOOT)
    lost.load()
    lost.remember({A: 1024})
    lost.close()
    for found, expected in (
        (opened(path), True),
        (opened(path.with_name('other')), False),
    ):
        assert found.is_unknown('uuid-c/12/0') is expected
        assert not found.is_unknown(f'uuid-d/13/{10**15}')
        found.close()
    rebooted = opened(path, 'boot-2')
    assert not rebooted.is_unknown('uuid-c/12/0')


def test_values_that_cannot_be_saved_are_not_recorded(path):
    found = opened(path)
    path.mkdir()
    with pytest.raises(exception.StateError, match='cannot be written'):
        found.remember({A: 1024})
    assert found.values == {}
    assert str(path) in found.problem
    # Nothing of it is in force, so nothing waits to be written.
    found.retry()
    assert found.problem == ''


def test_a_failed_removal_of_a_value_is_repeated_later(path):
    found = opened(path)
    found.remember({A: 1024})
    path.with_name(f'{path.name}.new').mkdir()
    found.forget([A])
    found.retry()
    assert str(path) in found.problem
    path.with_name(f'{path.name}.new').rmdir()
    found.retry()
    assert found.problem == ''
    found.close()
    assert opened(path).values == {}


@pytest.mark.parametrize('name', ['found.json', 'found.json.lock'])
def test_a_directory_in_the_way_is_named(path, name):
    path.with_name(name).mkdir(parents=True)
    with pytest.raises(
        exception.StateError, match=r'cannot be (read|renamed)'
    ):
        found_values.FoundValues(path, BOOT).load()


def test_a_file_where_the_directory_should_be_is_named(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(
        exception.StateError, match=r'cannot be (read|renamed)'
    ):
        found_values.FoundValues(tmp_path / 'file' / 'x', BOOT).load()


def test_a_symbolic_link_is_never_followed_when_writing(path, tmp_path):
    found = opened(path)
    victim = tmp_path / 'victim'
    victim.write_text('untouched')
    path.symlink_to(victim)
    found.remember({A: 1024})
    assert victim.read_text() == 'untouched'
    assert not path.is_symlink()


def test_the_boot_id_comes_from_the_kernel(path):
    found = found_values.FoundValues(path)
    found.load()
    found.remember({A: 1})
    assert len(json.loads(path.read_text())['boot_id']) == 36
