# SPDX-License-Identifier: Apache-2.0

"""Readings of what VMs wait for, from files like the kernel's."""

import math
import os
import pathlib

import numpy as np
import pytest

from nova_fairness.collect import block_devices
from nova_fairness.collect import kernel_text
from nova_fairness.collect import pressure
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import sample
from tests.unit.collect import fake_kernel

PAGE = os.sysconf('SC_PAGE_SIZE')
VMSTAT = (
    'nr_free_pages 1\npgsteal_kswapd {kswapd}\npgsteal_direct {direct}\n'
    'pgsteal_khugepaged 7\n'
)
MEMINFO = 'MemTotal: 1000 kB\nSwapTotal: {total} kB\nSwapFree: {free} kB\n'


class FakeSys:
    """Block devices below ``/sys`` that are files and links."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        (root / 'dev' / 'block').mkdir(parents=True)

    def add(self, number, name, scheduler='', busy_ms=0, queued_ms=0):
        own = self.root / 'block' / name
        own.mkdir(parents=True)
        (own / 'dev').write_text(f'{number}\n')
        (own / 'stat').write_text(
            f' 1 2 3 4 5 6 7 8 0 {busy_ms} {queued_ms} 0 0\n'
        )
        if scheduler:
            (own / 'queue').mkdir()
            (own / 'queue' / 'scheduler').write_text(scheduler + '\n')
        (self.root / 'dev' / 'block' / number).symlink_to(own)
        return own

    def add_partition(self, number, name, whole):
        own = self.root / 'block' / whole / name
        own.mkdir()
        (own / 'partition').write_text('1\n')
        (own / 'dev').write_text(f'{number}\n')
        (self.root / 'dev' / 'block' / number).symlink_to(own)

    def put_over(self, upper, *lower):
        slaves = self.root / 'block' / upper / 'slaves'
        slaves.mkdir()
        for name in lower:
            (slaves / name).symlink_to(self.root / 'block' / name)


class FakeBlockDevices(block_devices.BlockDevices):
    """Says on which device a path is, as a kernel would."""

    def __init__(self, sys, mountinfo, places):
        super().__init__(str(sys), str(mountinfo))
        self._places = places

    def _device_of(self, status):
        return self._places.get(status.st_ino)


@pytest.fixture
def sysfs(tmp_path):
    return FakeSys(tmp_path / 'sys')


@pytest.fixture
def on(tmp_path, sysfs):
    """A finder that knows on which device files are."""
    places = {}

    def put(name, number):
        path = tmp_path / name
        path.write_text('')
        places[path.stat().st_ino] = number
        return str(path)

    put.finder = FakeBlockDevices(sysfs.root, tmp_path / 'none', places)
    return put


def test_a_file_is_on_the_whole_device_of_its_partition(on, sysfs):
    sysfs.add('8:0', 'sda')
    sysfs.add_partition('8:1', 'sda1', 'sda')
    assert on.finder.devices_of(on('disk.raw', '8:1')) == ('8:0',)


def test_parts_of_a_device_are_below_it(on, sysfs):
    sysfs.add('8:0', 'sda')
    sysfs.add('8:16', 'sdb')
    sysfs.add('253:0', 'dm-0')
    sysfs.put_over('dm-0', 'sda', 'sdb')
    assert on.finder.devices_of(on('disk.raw', '253:0')) == (
        '253:0',
        '8:0',
        '8:16',
    )


def test_the_file_behind_a_loop_device_is_below_it(on, sysfs):
    sysfs.add('8:0', 'sda')
    loop = sysfs.add('7:0', 'loop0')
    (loop / 'loop').mkdir()
    (loop / 'loop' / 'backing_file').write_text(on('image', '8:0') + '\n')
    assert on.finder.devices_of(on('disk.raw', '7:0')) == ('7:0', '8:0')


def test_a_loop_device_over_itself_ends(on, sysfs):
    loop = sysfs.add('7:0', 'loop0')
    (loop / 'loop').mkdir()
    path = on('image', '7:0')
    (loop / 'loop' / 'backing_file').write_text(path + '\n')
    assert on.finder.devices_of(path) == ('7:0',)


@pytest.mark.parametrize('number', ['9:9', None])
def test_a_file_on_no_device_here_has_none(on, sysfs, number):
    assert on.finder.devices_of(on('disk.raw', number)) == ()


def test_a_file_that_is_not_there_is_on_no_device(on):
    assert on.finder.devices_of('/nowhere/at/all') == ()


def test_a_network_disk_is_on_no_device(on):
    vm = instance.Instance(
        'uuid',
        'vm',
        1,
        1 << 30,
        disks=(instance.Disk('vda', 'rbd:pool/volume', network=True),),
    )
    (disk,) = on.finder.disks(vm)
    assert (disk.target, disk.devices) == ('vda', ())


def test_totals_and_scheduler_of_a_device(on, sysfs):
    sysfs.add('8:0', 'sda', 'none mq-deadline kyber [bfq]', 1500, 90000)
    found = on.finder.totals('8:0', cost_model=True)
    assert (found.name, found.scheduler) == ('sda', 'bfq')
    assert (found.busy_s, found.queued_s) == (1.5, 90.0)
    assert found.cost_model


def test_a_device_without_a_queue_has_no_scheduler(on, sysfs):
    sysfs.add('253:0', 'dm-0')
    assert on.finder.totals('253:0').scheduler == ''


def test_a_device_that_is_gone_has_no_totals(on):
    assert on.finder.totals('8:0') is None


def test_this_file_is_where_the_kernel_says():
    found = block_devices.BlockDevices().devices_of(__file__)
    for number in found:
        assert pathlib.Path('/sys/dev/block', number).exists()


def test_the_devices_that_keep_weights_by_cost(tmp_path):
    (tmp_path / 'io.cost.qos').write_text(
        '8:0 enable=1 ctrl=auto rpct=0.00\n8:16 enable=0 ctrl=auto\n'
    )
    mounts = {cgroup.UNIFIED: cgroup.Mount(tmp_path, '/')}
    assert block_devices.cost_models(mounts) == {'8:0'}
    assert block_devices.cost_models({}) == frozenset()


MOUNTS = (
    '23 1 0:21 / /sys rw - sysfs sysfs rw\n'
    '60 1 0:30 /root / rw shared:1 - btrfs /dev/sda2 rw\n'
    '61 1 0:44 / /mnt rw - nfs4 server:/export rw\n'
)


@pytest.mark.parametrize(
    ('number', 'expected'),
    [('0:30', '/dev/sda2'), ('0:44', None), ('0:99', None)],
)
def test_the_device_behind_a_file_system_of_its_own_numbers(number, expected):
    assert kernel_text.device_of_mount(MOUNTS.encode(), number) == expected


@pytest.mark.parametrize('text', ['', '1 2 3'])
def test_a_stat_of_no_device_is_an_error(text):
    with pytest.raises(ValueError, match='expected 11 numbers'):
        kernel_text.parse_device_times(text)


def test_major_faults_are_found_behind_any_name():
    stat = b'7 (a) b (c) S 1 1 1 0 -1 0 20 0 33 0 5 6 0 0 20 0 5 0 9 1 1'
    assert kernel_text.major_faults(stat) == 33


@pytest.fixture
def kernel(tmp_path):
    made = fake_kernel.FakeKernel(tmp_path / 'host')
    (made.proc / 'vmstat').write_text(VMSTAT.format(kswapd=10, direct=5))
    (made.proc / 'meminfo').write_text(MEMINFO.format(total=0, free=0))
    return made


def reader(kernel, sysfs):
    return pressure.PressureReader(
        str(kernel.proc), str(sysfs.root), clock=lambda: 4.0
    )


def taken(*vms):
    totals = np.full((len(vms), len(resources.RESOURCES)), np.nan)
    totals[:, resources.RESOURCES.index('memory')] = 5000.0
    nothing = np.full(len(vms), np.nan)
    return sample.Sample(4.0, vms, totals, nothing, nothing)


def set_faults(kernel, vm, faults):
    stat = kernel.proc / str(vm.pid) / 'stat'
    before, _, after = stat.read_text().rpartition(') ')
    fields = after.split()
    fields[9] = str(faults)
    stat.write_text(f'{before}) {" ".join(fields)}\n')


def set_pressure(kernel, number, total_us):
    group = kernel.groups / 'machine' / f'qemu-{number}-vm'
    kernel.write(
        group / 'memory.pressure',
        f'some avg10=0 avg60=0 avg300=0 total={total_us}\nfull total=0\n',
    )


def test_a_reading_has_a_row_per_vm(kernel, sysfs):
    one, two = kernel.add_vm(1), kernel.add_vm(2)
    set_faults(kernel, one, 3)
    set_pressure(kernel, 1, 2_500_000)
    found = reader(kernel, sysfs).read(taken(one, two))
    assert found.faulted_bytes.tolist() == [3 * PAGE, 0.0]
    assert found.memory_stall_s[0] == 2.5
    assert math.isnan(found.memory_stall_s[1])
    assert found.held_bytes.tolist() == [5000.0, 5000.0]
    assert found.reclaimed_bytes == 15 * PAGE


def test_swapped_out_memory_is_still_held(kernel, sysfs):
    vm = kernel.add_vm(1)
    (kernel.proc / 'meminfo').write_text(MEMINFO.format(total=9, free=1))
    status = kernel.proc / str(vm.pid) / 'status'
    status.write_text(status.read_text() + 'VmSwap:\t8 kB\n')
    found = reader(kernel, sysfs).read(taken(vm))
    assert found.held_bytes.tolist() == [5000.0 + 8192]


def test_a_vm_that_has_ended_tells_nothing(kernel, sysfs):
    vm = kernel.add_vm(1)
    for path in sorted((kernel.proc / str(vm.pid)).iterdir()):
        path.unlink()
    found = reader(kernel, sysfs).read(taken(vm))
    assert math.isnan(found.faulted_bytes[0])
    assert found.disks == ((),)


def test_a_kernel_that_tells_nothing_of_the_node_is_no_error(kernel, sysfs):
    (kernel.proc / 'vmstat').unlink()
    (kernel.proc / 'meminfo').unlink()
    found = reader(kernel, sysfs).read(taken(kernel.add_vm(1)))
    assert math.isnan(found.reclaimed_bytes)


def open_files():
    return len(list(pathlib.Path('/proc/self/fd').iterdir()))


def test_descriptors_are_given_back(kernel, sysfs):
    made = reader(kernel, sysfs)
    vm = kernel.add_vm(1)
    before = open_files()
    made.read(taken(vm))
    assert open_files() > before
    made.read(taken())
    assert open_files() == before
