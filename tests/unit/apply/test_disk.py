# SPDX-License-Identifier: Apache-2.0

"""Weights of disks, and limits, in groups that are real files."""

import errno
import logging

import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.apply import found_values
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import throttle
from nova_fairness.model import instance
from nova_fairness.model import pressure
from nova_fairness.model import resources
from tests.unit.apply import fake_groups

KIND = resources.ResourceControl.DISK
BFQ = pressure.DeviceTotals('sda', 'bfq')
DEADLINE = pressure.DeviceTotals('vda', 'mq-deadline')
COST = pressure.DeviceTotals('sdc', 'none', cost_model=True)
DEVICES = {'8:0': BFQ, '253:0': DEADLINE, '8:32': COST}


def sample(places):
    """A reading in which VMs, by key, have disks on devices."""
    vms = []
    for key in places:
        uuid, pid, ticks = instance.parse_key(key)
        vms.append(
            instance.Incarnation(
                instance.Instance(uuid, uuid, 1, 1 << 30), pid, ticks
            )
        )
    nothing = np.full(len(vms), np.nan)
    return pressure.PressureSample(
        0.0,
        tuple(vms),
        nothing,
        nothing,
        nothing,
        tuple(
            tuple(
                pressure.DiskPath(f'vd{"ab"[place]}', (number,))
                for place, number in enumerate(numbers)
            )
            for numbers in places.values()
        ),
        0.0,
        DEVICES,
    )


class Host:
    def __init__(self, root, version):
        self.groups = fake_groups.FakeGroups(root, version)
        self.path = root / 'record.json'
        self.sample = None
        self.record = self.open_record()
        self.control = self.make()

    def open_record(self):
        record = found_values.FoundValues(self.path, 'boot')
        record.load()
        return record

    def make(self):
        return disk.DiskWeight(
            self.record, lambda: self.sample, **self.groups.options()
        )

    def again(self):
        self.record.close()
        self.record = self.open_record()
        self.control = self.make()

    def write(self, key, value):
        (outcome,) = self.control.write([fake_groups.change(key, KIND, value)])
        return outcome


VERSIONS = {'v1': 'blkio.bfq.weight', 'v2': 'io.bfq.weight'}


@pytest.fixture(params=VERSIONS)
def host(tmp_path, request):
    return Host(tmp_path, request.param)


@pytest.fixture
def v2(tmp_path):
    return Host(tmp_path, 'v2')


def file_of(host):
    return VERSIONS[host.groups.version]


def test_a_vm_on_a_device_that_keeps_weights_is_steered(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['8:0']})
    assert host.control.read([key]) == {key: 100}
    assert host.write(key, 250).written
    (line, *_) = host.groups.value(key, file_of(host)).splitlines()
    assert line.removeprefix('default ') == '250'
    assert host.control.read([key]) == {key: 250}
    assert host.control.availability() == (True, file_of(host))


def test_weights_of_single_devices_stay(v2):
    key = v2.groups.start(1)
    v2.sample = sample({key: ['8:0']})
    v2.control.read([key])
    v2.write(key, 250)
    assert v2.groups.value(key, 'io.bfq.weight') == 'default 250\n8:0 200'


def test_a_vm_on_an_unsuitable_scheduler_is_named_and_not_steered(
    host, caplog
):
    key = host.groups.start(1)
    host.sample = sample({key: ['253:0']})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert host.control.read([key]) == {}
    said = 'without effect: device vda uses mq-deadline'
    assert host.control.availability() == (False, said)
    assert host.control.without_effect() == {key: said}
    assert [record.getMessage() for record in caplog.records] == [
        f'weights of disks are {said}'
    ]


def test_a_network_disk_is_named(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['0:99']})
    assert host.control.read([key]) == {}
    assert host.control.without_effect() == {
        key: 'without effect: disk vda is on no block device of this node'
    }


def test_a_vm_without_disks_is_not_steered(host):
    key = host.groups.start(1)
    host.sample = sample({key: []})
    assert host.control.read([key]) == {}
    assert host.control.without_effect() == {key: 'without effect: no disk'}


def test_one_disk_that_keeps_weights_is_enough(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['253:0', '8:0']})
    assert host.control.read([key]) == {key: 100}


def test_each_vm_is_written_through_the_file_that_has_an_effect(v2):
    one, two = v2.groups.start(1), v2.groups.start(2)
    v2.sample = sample({one: ['8:0'], two: ['8:32']})
    assert v2.control.read([one, two]) == {one: 100, two: 100}
    v2.write(two, 300)
    v2.write(one, 400)
    assert v2.groups.value(two, 'io.weight') == 'default 300'
    assert v2.groups.value(one, 'io.weight') == 'default 100'
    assert v2.groups.value(one, 'io.bfq.weight').startswith('default 400')
    assert v2.control.availability() == (True, 'io.bfq.weight, io.weight')


def test_a_later_changed_disk_scheduler_is_noticed(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['253:0']})
    assert host.control.read([key]) == {}
    host.sample = sample({key: ['8:0']})
    assert host.control.read([key]) == {key: 100}
    assert host.control.without_effect() == {}


def test_a_written_vm_is_read_also_when_its_scheduler_changed(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['8:0']})
    host.control.read([key])
    host.write(key, 250)
    host.sample = sample({key: ['253:0']})
    assert host.control.read([key]) == {key: 250}


def test_another_process_restores_without_knowing_any_disk(v2):
    key = v2.groups.start(1)
    v2.sample = sample({key: ['8:32']})
    v2.control.read([key])
    v2.write(key, 300)
    v2.sample = None
    v2.again()
    assert v2.control.read([key]) == {key: 300}
    assert v2.write(key, 100).written
    assert v2.groups.value(key, 'io.weight') == 'default 100'
    assert v2.control.release() == ()
    assert not v2.record.values


def test_a_weight_that_could_not_be_restored_stays_known(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['8:0']})
    host.control.read([key])
    host.groups.refused = {file_of(host): errno.EPERM}
    assert host.write(key, 300).error
    host.control.release()
    assert host.record.values


def test_a_vm_that_cannot_be_steered_is_not_written(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['253:0']})
    host.control.read([key])
    assert 'device vda uses mq-deadline' in host.write(key, 300).error
    assert not host.groups.written


def test_a_file_that_cannot_be_recorded_is_not_written(host):
    key = host.groups.start(1)
    host.sample = sample({key: ['8:0']})
    host.control.read([key])
    host.path.with_name('record.json').mkdir()
    assert 'cannot be written' in host.write(key, 300).error
    assert not host.groups.written


def test_vms_that_are_gone_are_forgotten(host):
    one, two = host.groups.start(1), host.groups.start(2)
    host.sample = sample({one: ['8:0'], two: ['8:0']})
    host.control.read([one, two])
    host.write(one, 300)
    host.sample = sample({two: ['8:0']})
    host.control.read([two])
    assert not host.record.values


def test_a_host_without_the_controller_says_so(tmp_path):
    path = tmp_path / 'mountinfo'
    path.write_text('')
    why = '^no controller of block I/O is mounted'
    with pytest.raises(exception.ControlUnavailable, match=why):
        disk.DiskWeight(mountinfo_path=str(path))


READ = 'blkio.throttle.read_bps_device'
WRITE = 'blkio.throttle.write_bps_device'
MIB = 1 << 20


class Throttled:
    def __init__(self, root, version):
        self.groups = fake_groups.FakeGroups(root, version)
        self.path = root / 'throttles.json'
        self.record = None
        self.again()

    def again(self):
        if self.record is not None:
            self.record.close()
        self.record = found_values.FoundValues(self.path, 'boot')
        self.record.load()
        self.throttle = throttle.DiskThrottle(
            self.record, **self.groups.options()
        )

    def rules(self, key):
        if self.groups.version == 'v2':
            return self.groups.value(key, 'io.max')
        return '|'.join(self.groups.value(key, name) for name in (READ, WRITE))


@pytest.fixture(params=VERSIONS)
def limited(tmp_path, request):
    return Throttled(tmp_path, request.param)


def shown(limited, read, written):
    if limited.groups.version == 'v2':
        return f'8:0 rbps={read} wbps={written}'
    return f'8:0 {read}|8:0 {written}'


NONE = {'v1': '|', 'v2': ''}


def test_a_disk_limit_is_set_and_lifted(limited):
    key = limited.groups.start(1)
    assert limited.throttle.apply({(key, '8:0'): (5 * MIB, 3 * MIB)}) == ()
    assert limited.rules(key) == shown(limited, 5 * MIB, 3 * MIB)
    assert limited.throttle.in_force == ((key, '8:0'),)
    assert limited.throttle.apply({}) == ()
    assert limited.rules(key) == NONE[limited.groups.version]
    assert limited.throttle.in_force == ()


def test_an_agent_after_a_kill_lifts_limits_in_force(limited):
    key = limited.groups.start(1)
    limited.throttle.apply({(key, '8:0'): (5 * MIB, 3 * MIB)})
    limited.again()
    assert limited.throttle.in_force == ((key, '8:0'),)
    assert limited.throttle.lift() == ()
    assert limited.rules(key) == NONE[limited.groups.version]
    limited.again()
    assert limited.throttle.in_force == ()


def test_a_limit_is_on_the_disk_before_it_is_in_force(limited):
    key = limited.groups.start(1)
    limited.groups.broken = 'killed here'
    problems = limited.throttle.apply({(key, '8:0'): (5 * MIB, 3 * MIB)})
    assert problems == ('killed here',)
    limited.groups.broken = ''
    limited.again()
    assert limited.throttle.in_force == ((key, '8:0'),)


def test_a_limit_of_another_program_is_never_touched(limited):
    key = limited.groups.start(1)
    name = 'io.max' if limited.groups.version == 'v2' else READ
    limited.groups.path(key, name).write_text('8:0 rbps=99\n')
    assert limited.throttle.apply({(key, '8:0'): (5 * MIB, 3 * MIB)}) == ()
    assert not limited.groups.written
    limited.throttle.lift()
    assert limited.groups.value(key, name) == '8:0 rbps=99'


def test_a_foreign_limit_on_another_device_is_ignored(limited):
    key = limited.groups.start(1)
    name = 'io.max' if limited.groups.version == 'v2' else READ
    limited.groups.path(key, name).write_text('8:16 rbps=99\n')
    limited.throttle.apply({(key, '8:0'): (5 * MIB, 3 * MIB)})
    assert limited.throttle.in_force == ((key, '8:0'),)
    limited.throttle.lift()
    assert limited.groups.value(key, name) == '8:16 rbps=99'


def test_small_changes_are_not_written(limited):
    key = limited.groups.start(1)
    limited.throttle.apply({(key, '8:0'): (100 * MIB, 100 * MIB)})
    limited.groups.written.clear()
    limited.throttle.apply({(key, '8:0'): (102 * MIB, 99 * MIB)})
    assert not limited.groups.written
    limited.throttle.apply({(key, '8:0'): (120 * MIB, 99 * MIB)})
    assert limited.groups.written


def test_the_limits_of_a_vm_that_ended_are_forgotten(limited):
    one, two = limited.groups.start(1), limited.groups.start(2)
    limits = {(one, '8:0'): (MIB, MIB), (two, '8:0'): (MIB, MIB)}
    limited.throttle.apply(limits)
    limited.groups.end(one)
    assert limited.throttle.lift() == ()
    assert limited.throttle.in_force == ()
    assert limited.rules(two) == NONE[limited.groups.version]


def test_a_limit_that_cannot_be_lifted_stays_recorded(limited):
    key = limited.groups.start(1)
    limited.throttle.apply({(key, '8:0'): (MIB, MIB)})
    limited.groups.refused = {'io.max': errno.EPERM, READ: errno.EPERM}
    (problem,) = limited.throttle.lift()
    assert 'Operation not permitted' in problem
    assert limited.throttle.in_force == ((key, '8:0'),)


def test_a_limit_that_cannot_be_recorded_is_not_brought_into_force(limited):
    key = limited.groups.start(1)
    limited.path.with_name('throttles.json').mkdir()
    (problem,) = limited.throttle.apply({(key, '8:0'): (MIB, MIB)})
    assert 'cannot be written' in problem
    assert not limited.groups.written


def test_a_vm_with_unreadable_limits_is_not_changed(limited):
    assert limited.throttle.apply({('uuid/4242/1', '8:0'): (1, 1)}) == ()
    assert limited.throttle.in_force == ()
