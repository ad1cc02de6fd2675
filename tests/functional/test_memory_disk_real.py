# SPDX-License-Identifier: Apache-2.0

"""Memory and disks of real processes in real control groups.

On a host with the controllers in v1 hierarchies these files are steered, on
one with v2 those; every test runs on either.
"""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from nova_fairness.apply import applier as appliers
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import files
from nova_fairness.apply.cgroup import memory
from nova_fairness.apply.cgroup import throttle
from nova_fairness.collect import block_devices
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import pressure
from nova_fairness.model import resources

pytestmark = [pytest.mark.real, pytest.mark.beside]

MIB = 1 << 20
MEMORY, BLKIO = (
    resources.ResourceControl.MEMORY,
    resources.ResourceControl.DISK,
)


class Vms:
    """Sleeping processes in groups as libvirt makes them for VMs.

    They stand in every hierarchy that has memory or block I/O.
    """

    def __init__(self):
        text = pathlib.Path('/proc/self/mountinfo').read_text()
        mounts = cgroup.mounts(text)
        self.v1 = 'memory' in mounts
        names = ('memory', 'blkio') if self.v1 else (cgroup.UNIFIED,)
        # With v2 the helper writes empty groups, of VMs only, as well.
        within = '' if self.v1 else 'machine'
        self.tops = [
            pathlib.Path(mounts[name].path, within, f'fairness-{os.getpid()}')
            for name in names
        ]
        self.processes = []

    def start(self, inner=''):
        """Start a VM; gives its incarnation's key."""
        number = len(self.processes) + 1
        name = f'machine/qemu-{number}-x.libvirt-qemu'
        process = subprocess.Popen(['sleep', '600'])
        self.processes.append(process)
        for top in self.tops:
            leaf = top / f'{name}{inner}' / 'emulator'
            leaf.mkdir(parents=True)
            if not self.v1:
                self._enable(top, name, inner)
            (leaf / 'cgroup.procs').write_text(str(process.pid))
        ticks = files.start_ticks('/proc', process.pid)
        return f'uuid-{number}/{process.pid}/{ticks}'

    def _enable(self, top, name, inner):
        """Hand memory and block I/O down to the VM's group, and inside."""
        group = top / name
        upper = [top.parent.parent, top.parent, top, group.parent]
        for parent in [*upper, group] if inner else upper:
            (parent / 'cgroup.subtree_control').write_text('+memory +io')

    def group(self, number, file):
        top = self.tops[-1 if file.startswith('blkio') else 0]
        return top / f'machine/qemu-{number}-x.libvirt-qemu'

    def value(self, number, file, level=0):
        group = self.group(number, file)
        group = group / 'libvirt' if level < 0 else group
        for _ in range(level):
            group = group.parent
        return (group / file).read_text().strip()

    def end(self, number):
        process = self.processes[number - 1]
        process.kill()
        process.wait()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        for top in self.tops:
            below = [path for path in top.rglob('*') if path.is_dir()]
            for path in sorted(below, reverse=True):
                path.rmdir()
            if top.exists():
                top.rmdir()


@pytest.fixture
def vms():
    made = Vms()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope='module')
def helper():
    """The real helper, a process of its own without capabilities."""
    privileged.prepare()
    yield
    privileged.context.stop()


def record(path):
    opened = found_values.FoundValues(path)
    assert opened.load() == ''
    return opened


class Node:
    """Controls and records of one agent."""

    def __init__(self, directory, sample=None):
        self.found = record(directory / 'found.json')
        self.shared = record(directory / 'groups.json')
        self.files = record(directory / 'disks.json')
        self.memory = memory.MemoryProtection(self.shared)
        self.blkio = disk.DiskWeight(self.files, lambda: sample)
        self.applier = appliers.Applier([self.memory, self.blkio], self.found)

    def apply(self, kind, values):
        self.applier.read_values(list(values))
        outcomes = self.applier.apply(
            [
                allocation.Change(allocation.Knob(key, kind), None, value)
                for key, value in values.items()
            ]
        )
        assert [item.error for item in outcomes] == [''] * len(values)

    def close(self):
        for item in (self.memory, self.blkio):
            item.close()
        for item in (self.found, self.shared, self.files):
            item.close()


@pytest.fixture
def node(tmp_path, helper):
    made = Node(tmp_path)
    yield made
    made.close()


def memory_file(vms):
    return 'memory.soft_limit_in_bytes' if vms.v1 else 'memory.low'


def test_the_host_steers_memory_by_the_file_of_its_version(vms, node):
    assert node.memory.availability() == (True, memory_file(vms))


def test_memory_is_written_by_the_helper_and_restored(vms, node):
    file = memory_file(vms)
    one, two = vms.start(), vms.start()
    (vms.group(2, file) / file).write_text(str(300 * MIB))
    before = [vms.value(number, file) for number in (1, 2)]
    node.apply(MEMORY, {one: 512 * MIB, two: 256 * MIB})
    assert vms.value(1, file) == str(512 * MIB)
    assert vms.value(2, file) == str(256 * MIB)
    node.applier.restore()
    assert [vms.value(number, file) for number in (1, 2)] == before


def test_memory_limits_that_stop_a_vm_are_never_written(vms, node):
    names = (
        ('memory.limit_in_bytes', 'memory.memsw.limit_in_bytes')
        if vms.v1
        else ('memory.high', 'memory.max')
    )
    key = vms.start()

    def hard():
        paths = [vms.group(1, 'memory') / name for name in names]
        return [path.read_text() for path in paths if path.exists()]

    before = hard()
    node.apply(MEMORY, {key: 64 * MIB})
    assert before
    assert hard() == before


def test_free_memory_goes_to_a_vm_with_little_protection(vms, node):
    key = vms.start()
    node.apply(MEMORY, {key: 1 * MIB})
    leaf = vms.group(1, 'memory') / 'emulator' / 'cgroup.procs'
    program = 'held = bytearray(64 << 20); print(len(held))'
    joined = f'echo $$ >{leaf} && exec {sys.executable} -c "{program}"'
    done = subprocess.run(
        ['sh', '-c', joined], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == str(64 * MIB)
    assert int(vms.value(1, memory_file(vms))) == MIB


def shared_lows(vms):
    return [vms.value(1, 'memory.low', level) for level in (1, 2)]


def test_parent_groups_get_protection_where_it_has_an_effect(vms, node):
    one, two = vms.start(), vms.start()
    file = memory_file(vms)
    parent = vms.group(1, file).parent / file
    before = parent.read_text()
    node.apply(MEMORY, {one: 64 * MIB, two: 32 * MIB})
    if vms.v1:
        assert parent.read_text() == before
    else:
        assert shared_lows(vms) == [str(96 * MIB)] * 2
    node.applier.restore()
    assert parent.read_text() == before


def test_the_inner_group_gets_protection_where_it_exists(vms, node):
    key = vms.start(inner='/libvirt')
    file = memory_file(vms)
    inside = vms.value(1, file, -1)
    node.apply(MEMORY, {key: 64 * MIB})
    assert vms.value(1, file) == str(64 * MIB)
    assert vms.value(1, file, -1) == (inside if vms.v1 else 'max')
    node.applier.restore()
    assert vms.value(1, file, -1) == inside


def test_groups_are_restored_after_their_vms_ended(vms, tmp_path, helper):
    key = vms.start()
    file = memory_file(vms)
    parent = vms.group(1, file).parent / file
    before = parent.read_text()
    first = Node(tmp_path)
    first.apply(MEMORY, {key: 64 * MIB})
    first.close()
    vms.end(1)
    second = Node(tmp_path)
    second.applier.restore()
    assert parent.read_text() == before
    assert not second.shared.values
    second.close()


DEVICE = '8:240'


def sample_of(keys, vms):
    """Say that VMs have disks on a device that keeps weights.

    Which device that is, the kernel does not ask.
    """
    vms_there = []
    for key in keys:
        uuid, pid, ticks = instance.parse_key(key)
        vm = instance.Instance(uuid, uuid, 1, 1 << 30)
        vms_there.append(instance.Incarnation(vm, pid, ticks))
    nothing = np.full(len(keys), np.nan)
    file = weight_file(vms)
    device = pressure.DeviceTotals(
        'sdx', 'bfq' if 'bfq' in file else 'none', file == 'io.weight'
    )
    return pressure.PressureSample(
        0.0,
        tuple(vms_there),
        nothing,
        nothing,
        nothing,
        tuple((pressure.DiskPath('vda', (DEVICE,)),) for _ in keys),
        0.0,
        {DEVICE: device},
    )


def weight_file(vms):
    """File of weights that this kernel has."""
    for name in disk.FILES:
        if (vms.group(1, name) / name).exists():
            return name
    raise AssertionError('this kernel has no weights of block I/O')


def test_weights_are_written_by_the_helper_and_restored(vms, tmp_path, helper):
    one, two = vms.start(), vms.start()
    file = weight_file(vms)
    (vms.group(2, file) / file).write_text('321')
    before = [vms.value(number, file) for number in (1, 2)]
    first = Node(tmp_path, sample_of([one, two], vms))
    first.apply(BLKIO, {one: 50, two: 800})
    assert vms.value(1, file).split()[-1] == '50'
    assert vms.value(2, file).split()[-1] == '800'
    first.close()
    # Another process that knows nothing of disks, as after a kill.
    second = Node(tmp_path)
    second.applier.restore()
    assert [vms.value(number, file) for number in (1, 2)] == before
    assert not second.files.values
    second.close()


def some_device():
    """A whole device of this machine that has a size."""
    for path in sorted(pathlib.Path('/sys/block').iterdir()):
        if int((path / 'size').read_text()) > 0:
            return (path / 'dev').read_text().strip()
    raise AssertionError('this machine has no block device')


def rules(vms):
    if vms.v1:
        names = [
            f'blkio.throttle.{kind}_bps_device' for kind in ('read', 'write')
        ]
    else:
        names = ['io.max']
    return [vms.value(1, name) for name in names]


def expected_limit_lines(vms, device, read, written):
    if vms.v1:
        return [f'{device} {read}', f'{device} {written}']
    return [f'{device} rbps={read} wbps={written} riops=max wiops=max']


def test_disk_limits_are_set_and_lifted(vms, tmp_path, helper):
    key, device = vms.start(), some_device()
    before = rules(vms)
    made = throttle.DiskThrottle(record(tmp_path / 'throttles.json'))
    assert made.apply({(key, device): (5 * MIB, 3 * MIB)}) == ()
    assert rules(vms) == expected_limit_lines(vms, device, 5 * MIB, 3 * MIB)
    assert made.apply({}) == ()
    assert rules(vms) == before


KILLED = """
import os, pathlib, signal, sys
from nova_fairness.apply import found_values, privileged
from nova_fairness.apply.cgroup import throttle
privileged.prepare()
record = found_values.FoundValues(sys.argv[1])
record.load()
made = throttle.DiskThrottle(record)
print(made.apply({(sys.argv[2], sys.argv[3]): (5 << 20, 3 << 20)}), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_limits_of_a_killed_agent_are_lifted(vms, tmp_path, helper):
    key, device = vms.start(), some_device()
    before, path = rules(vms), tmp_path / 'throttles.json'
    done = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(KILLED), path, key, device],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, '()\n')
    assert rules(vms) == expected_limit_lines(vms, device, 5 * MIB, 3 * MIB)
    made = throttle.DiskThrottle(record(path))
    assert made.in_force == ((key, device),)
    assert made.lift() == ()
    assert rules(vms) == before


def test_a_disk_limit_of_another_program_stays(vms, tmp_path, helper):
    key, device = vms.start(), some_device()
    made = throttle.DiskThrottle(record(tmp_path / 'throttles.json'))
    if vms.v1:
        file = 'blkio.throttle.read_bps_device'
        (vms.group(1, file) / file).write_text(f'{device} {9 * MIB}')
    else:
        (vms.group(1, 'io.max') / 'io.max').write_text(f'{device} riops=77')
    before = rules(vms)
    assert made.apply({(key, device): (5 * MIB, 3 * MIB)}) == ()
    made.lift()
    assert rules(vms) == before


def test_the_device_of_a_file_equals_the_device_in_the_kernel(tmp_path):
    path = tmp_path / 'disk.raw'
    path.write_bytes(b'x')
    reader = block_devices.BlockDevices()
    found = reader.devices_of(str(path))
    number = path.stat().st_dev
    if os.major(number):
        assert found
    for name in found:
        totals = reader.totals(name)
        link = pathlib.Path('/sys/dev/block', name).resolve()
        assert totals is not None
        assert totals.name == link.name
        assert totals.queued_s >= 0
