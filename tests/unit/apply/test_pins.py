# SPDX-License-Identifier: Apache-2.0

"""Cores of VCPUs, in groups that are real files."""

import errno

import pytest

from nova_fairness.apply import found_values
from nova_fairness.apply.cgroup import files
from nova_fairness.apply.cgroup import pins
from tests.unit.apply import fake_groups

CPUS = files.CPUSET_CPUS
ALL = (0, 1, 2, 3)
FOUND = {'v1': '0-3', 'v2': ''}
THREADS = {'v1': 'tasks', 'v2': 'cgroup.threads'}


class Host:
    """Four CPUs, and VMs whose VCPUs have threads of their own."""

    def __init__(self, root, version):
        self.groups = fake_groups.FakeGroups(root, version)
        self.path = root / 'pins.json'
        self.online = root / 'online'
        self.online.write_text('0-3\n')
        self.affinity = {}
        self.record = None
        self.again()

    def again(self):
        if self.record is not None:
            self.record.close()
        self.record = found_values.FoundValues(self.path, 'boot')
        self.record.load()
        self.pins = pins.VcpuPins(
            self.record,
            online=str(self.online),
            affinity=lambda thread: self.affinity.get(thread, ALL),
            **self.groups.options(),
        )

    def start(self, number, vcpus=2):
        key = self.groups.start(number)
        for vcpu in range(vcpus):
            path = self.groups.path(key, CPUS, files.vcpu_level(vcpu))
            path.parent.mkdir()
            path.write_text(f'{FOUND[self.groups.version]}\n')
            threads = path.with_name(THREADS[self.groups.version])
            threads.write_text(f'{10 * number + vcpu}\n')
        return key

    def held(self, key):
        return [
            self.groups.value(key, CPUS, files.vcpu_level(vcpu))
            for vcpu in range(2)
        ]

    def as_found(self):
        return [FOUND[self.groups.version]] * 2


@pytest.fixture(params=FOUND)
def host(tmp_path, request):
    return Host(tmp_path, request.param)


def test_vcpus_are_pinned_and_unpinned(host):
    key = host.start(1)
    assert host.pins.cores() == ALL
    assert host.pins.may_pin(key, 2, ALL)
    assert host.pins.apply({(key, 0): 3, (key, 1): 0}) == ()
    assert host.held(key) == ['3', '0']
    assert host.pins.in_force == ((key, 0), (key, 1))
    assert host.pins.lift() == ()
    assert host.held(key) == host.as_found()
    assert host.pins.in_force == ()


def test_only_changes_are_written(host):
    key = host.start(1)
    host.pins.apply({(key, 0): 3, (key, 1): 0})
    host.groups.written.clear()
    host.pins.apply({(key, 0): 3, (key, 1): 2})
    assert host.groups.written == [(CPUS, '2', files.vcpu_level(1))]


def test_a_vm_pinned_by_this_agent_can_be_pinned_again(host):
    key = host.start(1)
    host.pins.apply({(key, 0): 3, (key, 1): 0})
    host.affinity.update({10: (3,), 11: (0,)})
    assert host.pins.may_pin(key, 2, ALL)


def test_an_agent_after_a_kill_releases_pins_in_force(host):
    key = host.start(1)
    host.pins.apply({(key, 0): 3, (key, 1): 0})
    host.again()
    assert host.pins.in_force == ((key, 0), (key, 1))
    assert host.pins.lift() == ()
    assert host.held(key) == host.as_found()
    host.again()
    assert host.pins.in_force == ()


def test_found_cores_are_on_the_disk_before_a_pin_is_set(host):
    key = host.start(1)
    host.groups.broken = 'killed here'
    problems = host.pins.apply({(key, 0): 3})
    assert problems == ('killed here',)
    host.groups.broken = ''
    host.again()
    assert host.pins.in_force == ((key, 0),)
    host.pins.lift()
    assert host.held(key) == host.as_found()


@pytest.mark.parametrize('where', [(1,), (0, 1, 2)])
def test_a_vm_with_restricted_cpus_is_not_pinned(host, where):
    key = host.start(1)
    host.affinity[11] = where
    assert not host.pins.may_pin(key, 2, ALL)


def test_a_vm_without_vcpu_threads_is_not_pinned(host):
    key = host.start(1, vcpus=1)
    assert not host.pins.may_pin(key, 2, ALL)
    host.groups.end(key)
    assert not host.pins.may_pin(key, 1, ALL)


def test_pins_changed_by_other_programs_are_repaired(host):
    key = host.start(1)
    host.pins.apply({(key, 0): 3})
    host.groups.path(key, CPUS, files.vcpu_level(0)).write_text('0-1\n')
    host.pins.apply({(key, 0): 3})
    assert host.held(key)[0] == '3'


def test_pins_of_a_vm_that_ended_are_forgotten(host):
    one, two = host.start(1), host.start(2)
    host.pins.apply({(one, 0): 0, (two, 0): 1})
    host.groups.end(one)
    assert host.pins.apply({(two, 0): 1}) == ()
    assert host.pins.in_force == ((two, 0),)
    assert host.pins.lift() == ()
    assert host.held(two) == host.as_found()


def test_a_pin_that_cannot_be_released_stays_recorded(host):
    key = host.start(1)
    host.pins.apply({(key, 0): 3})
    host.groups.refused[CPUS] = errno.EACCES
    problems = host.pins.lift()
    assert problems == (f'VCPU 0 of {key}: Permission denied',)
    host.groups.refused.clear()
    host.again()
    host.pins.lift()
    assert host.held(key) == host.as_found()


def test_a_removed_cpu_is_not_written(tmp_path):
    host = Host(tmp_path, 'v1')
    key = host.start(1)
    host.pins.apply({(key, 0): 1})
    host.online.write_text('0-2\n')
    host.pins.lift()
    assert host.held(key)[0] == '0-2'
    host.online.unlink()
    assert host.pins.cores() == ()
