# SPDX-License-Identifier: Apache-2.0

"""What each VM is spared of memory, in groups that are real files."""

import errno
import pathlib

import pytest

from nova_fairness import exception
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import files
from nova_fairness.apply.cgroup import memory
from nova_fairness.model import resources
from tests.unit.apply import fake_groups

MIB = 1 << 20
LOW = files.MEMORY_LOW
SOFT = files.MEMORY_SOFT_LIMIT


class Host:
    """A host, the control on it, and its record."""

    def __init__(self, root, version='v2'):
        self.groups = fake_groups.FakeGroups(root, version)
        self.record_path = root / 'shared.json'
        self.lowered = []
        self.lower_result = 0
        self.record = self.open_record()
        self.control = self.make()

    def open_record(self):
        record = found_values.FoundValues(self.record_path, 'boot')
        record.load()
        return record

    def lower_empty(self, number, text):
        self.lowered.append((number, text))
        return self.lower_result

    def make(self):
        return memory.MemoryProtection(
            self.record,
            lower_empty=self.lower_empty,
            **self.groups.options(),
        )

    def again(self):
        """Die, and come back as another process."""
        self.record.close()
        self.control.close()
        self.record = self.open_record()
        self.control = self.make()

    def write(self, values):
        self.control.read(list(values))
        outcomes = self.control.write(
            [
                fake_groups.change(
                    key, resources.ResourceControl.MEMORY, value
                )
                for key, value in values.items()
            ]
        )
        assert self.control.settle() == ()
        return outcomes


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_memory_in_v1_is_steered_by_the_soft_limit(tmp_path):
    host = Host(tmp_path, 'v1')
    key = host.groups.start(1)
    assert host.control.availability() == (True, SOFT)
    assert host.control.read([key]) == {key: memory.UNLIMITED}
    (outcome,) = host.write({key: 512 * MIB})
    assert outcome.written
    assert host.groups.value(key, SOFT) == str(512 * MIB)


def test_memory_in_v1_is_restored_to_no_limit(tmp_path):
    host = Host(tmp_path, 'v1')
    key = host.groups.start(1)
    host.write({key: 512 * MIB})
    host.write({key: memory.UNLIMITED})
    assert host.groups.value(key, SOFT) in {'max', str(memory.UNLIMITED)}
    assert host.control.read([key]) == {key: memory.UNLIMITED}


def test_memory_values_that_stop_a_vm_cannot_be_written():
    for name in ('memory.high', 'memory.max', 'memory.limit_in_bytes'):
        assert name not in files.FILES


def test_every_parent_group_gets_the_sum_of_its_children(host):
    one = host.groups.start(1, 'top/machine')
    two = host.groups.start(2, 'top/machine')
    host.write({one: 300 * MIB, two: 200 * MIB})
    assert host.groups.value(one, LOW) == str(300 * MIB)
    assert host.groups.value(one, LOW, 1) == str(500 * MIB)
    assert host.groups.value(one, LOW, 2) == str(500 * MIB)


def test_memory_protection_set_by_others_is_added(host):
    key = host.groups.start(1)
    other = host.groups.path(key, LOW, 1).parent / 'other'
    other.mkdir()
    (other / LOW).write_text(f'{50 * MIB}\n')
    host.write({key: 300 * MIB})
    assert host.groups.value(key, LOW, 1) == str(350 * MIB)


def test_a_parent_group_with_more_protection_keeps_it(host):
    key = host.groups.start(1)
    host.groups.path(key, LOW, 1).write_text('max\n')
    host.write({key: 300 * MIB})
    assert host.groups.value(key, LOW, 1) == 'max'


def test_the_inner_group_of_a_vm_gets_its_full_protection(host):
    key = host.groups.start(1, 'machine.slice', inner='/libvirt')
    host.write({key: 300 * MIB})
    assert host.groups.value(key, LOW, -1) == 'max'


def test_release_restores_found_values(host):
    key = host.groups.start(1, 'top/machine', inner='/libvirt')
    host.groups.path(key, LOW, 1).write_text(f'{7 * MIB}\n')
    host.write({key: 300 * MIB})
    host.write({key: 0})
    assert host.control.release() == ()
    assert host.groups.value(key, LOW, 1) == str(7 * MIB)
    assert host.groups.value(key, LOW, 2) == '0'
    assert host.groups.value(key, LOW, -1) == '0'
    assert not host.record.values


def test_values_found_by_a_dead_agent_are_restored_by_the_next(host):
    key = host.groups.start(1)
    host.groups.path(key, LOW, 1).write_text(f'{7 * MIB}\n')
    host.write({key: 300 * MIB})
    host.again()
    host.write({key: 100 * MIB})
    assert host.groups.value(key, LOW, 1) == str(100 * MIB)
    host.write({key: 0})
    host.control.release()
    assert host.groups.value(key, LOW, 1) == str(7 * MIB)


def test_groups_without_vms_are_restored_by_inode_number(host):
    key = host.groups.start(1)
    number = host.groups.path(key, LOW, 1).parent.stat().st_ino
    host.write({key: 300 * MIB})
    host.groups.end(key)
    host.again()
    assert host.control.release() == ()
    assert (number, '0') in host.lowered
    assert not host.record.values


def test_a_value_that_cannot_be_restored_stays_recorded(host):
    key = host.groups.start(1)
    host.write({key: 300 * MIB})
    host.groups.end(key)
    host.again()
    host.lower_result = errno.EBUSY
    (problem, *_) = host.control.release()
    assert 'memory.low of control group number' in problem
    assert host.record.values


def test_parent_groups_no_longer_count_an_ended_vm(host):
    one, two = host.groups.start(1), host.groups.start(2)
    host.write({one: 300 * MIB, two: 200 * MIB})
    group = host.groups.path(two, LOW).parent
    host.groups.end(two)
    (group / LOW).unlink()
    host.write({one: 300 * MIB})
    assert host.groups.value(one, LOW, 1) == str(300 * MIB)


def test_no_vm_is_written_if_its_parent_groups_cannot_be_recorded(host):
    key = host.groups.start(1)
    host.record_path.parent.joinpath('shared.json').mkdir()
    host.control.read([key])
    (outcome,) = host.control.write(
        [fake_groups.change(key, resources.ResourceControl.MEMORY, MIB)]
    )
    assert 'cannot be written' in outcome.error
    assert host.groups.value(key, LOW) == '0'


def test_a_group_that_refuses_is_named(host):
    key = host.groups.start(1)
    host.write({key: 300 * MIB})
    host.control.read([key])
    host.control.write(
        [fake_groups.change(key, resources.ResourceControl.MEMORY, 200 * MIB)]
    )
    host.groups.refused = {LOW: errno.EPERM}
    (problem,) = host.control.settle()
    assert problem.endswith('Operation not permitted')


def test_a_missing_helper_is_reported(host):
    key = host.groups.start(1)
    host.write({key: 300 * MIB})
    host.groups.broken = 'no helper'
    (outcome,) = host.control.write(
        [fake_groups.change(key, resources.ResourceControl.MEMORY, 200 * MIB)]
    )
    assert outcome.error == 'no helper'


def test_a_host_without_the_controller_says_so(tmp_path):
    path = tmp_path / 'mountinfo'
    path.write_text('')
    why = '^no memory controller is mounted'
    with pytest.raises(exception.ControlUnavailable, match=why):
        memory.MemoryProtection(mountinfo_path=str(path))


class Empty:
    """A group that no VM names, behind the door to root."""

    def __init__(self, root, monkeypatch):
        self.groups = fake_groups.FakeGroups(root, 'v2')
        key = self.groups.start(1)
        self.group = self.groups.path(key, LOW, 1).parent
        self.events = self.group / 'cgroup.events'
        self.events.write_text('populated 0\nfrozen 0\n')
        self.number = self.group.stat().st_ino
        monkeypatch.setattr(
            privileged, 'MOUNTINFO', str(self.groups.mountinfo)
        )
        monkeypatch.setattr(privileged.context, 'client_mode', False)

    @property
    def low(self):
        return (self.group / LOW).read_text().strip()


@pytest.fixture
def empty(tmp_path, monkeypatch):
    return Empty(tmp_path, monkeypatch)


def test_the_helper_writes_an_empty_group_by_its_number(empty):
    assert privileged.protect_empty_group(empty.number, '4096') == 0
    assert empty.low == '4096'


def test_the_helper_refuses_a_group_with_a_process(empty):
    empty.events.write_text('populated 1\nfrozen 0\n')
    assert privileged.protect_empty_group(empty.number, '9') == errno.EBUSY
    assert empty.low == '0'


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('system.slice', errno.EPERM),
        ('system.slice/mariadb.service', errno.EPERM),
        ('user.slice/user-1000.slice/machine.slice', errno.EPERM),
        ('init.scope', errno.EPERM),
        ('machine.slice', 0),
        ('machine.slice/machine-qemu\\x2d1\\x2da.scope', 0),
        ('machine.slice/machine-qemu\\x2d1\\x2da.scope/libvirt', 0),
        ('production.slice/machine-qemu\\x2d1\\x2da.scope', 0),
    ],
)
def test_the_helper_writes_empty_groups_of_vms_only(empty, name, expected):
    top = empty.group.parent
    group = top / name
    group.mkdir(parents=True, exist_ok=True)
    (group / LOW).write_text('0\n')
    (group / 'cgroup.events').write_text('populated 0\nfrozen 0\n')
    number = group.stat().st_ino
    assert privileged.protect_empty_group(number, '4096') == expected
    shown = (group / LOW).read_text().strip()
    assert shown == ('0' if expected else '4096')


def test_the_helper_writes_no_empty_group_that_another_user_made(
    empty, monkeypatch
):
    monkeypatch.setattr(privileged.os, 'geteuid', lambda: 4711)
    assert privileged.protect_empty_group(empty.number, '4096') == errno.EPERM
    assert empty.low == '0'


def test_the_helper_writes_no_group_that_came_in_the_place_of_one(
    empty, monkeypatch
):
    find = privileged._find_group

    def found(*asked):
        path = find(*asked)
        empty.group.rename(empty.group.with_name('aside'))
        empty.group.mkdir()
        (empty.group / LOW).write_text('0\n')
        (empty.group / 'cgroup.events').write_text('populated 0\n')
        return path

    monkeypatch.setattr(privileged, '_find_group', found)
    assert privileged.protect_empty_group(empty.number, '4096') == errno.ENOENT
    assert empty.low == '0'


def test_the_helper_follows_no_link_in_a_group(empty, tmp_path):
    victim = tmp_path / 'victim'
    victim.write_text('untouched')
    (empty.group / LOW).unlink()
    (empty.group / LOW).symlink_to(victim)
    assert privileged.protect_empty_group(empty.number, '4096') == errno.ELOOP
    assert victim.read_text() == 'untouched'


def test_the_helper_knows_no_group_of_another_number(empty):
    assert privileged.protect_empty_group(1, '4096') == errno.ENOENT


@pytest.mark.parametrize('text', ['', '-1', '1\n', 'max 1', '1' * 30])
def test_the_helper_refuses_values_that_are_no_limit(empty, text):
    assert privileged.protect_empty_group(empty.number, text) == errno.EINVAL
    assert empty.low == '0'


def test_a_group_is_searched_in_the_v2_hierarchy_only(empty):
    pathlib.Path(privileged.MOUNTINFO).write_text('')
    assert privileged.protect_empty_group(empty.number, '1') == errno.ENOENT
