# SPDX-License-Identifier: Apache-2.0

"""Counters, read from recorded files and from processes that end."""

import os
import pathlib
import resource
import shutil
import subprocess

import numpy as np
import pytest

from nova_fairness.collect import counters
from nova_fairness.collect import processes
from nova_fairness.model import instance
from nova_fairness.model import resources
from tests.unit.collect import fake_kernel

PAGE = os.sysconf('SC_PAGE_SIZE')
KEPT = 4
"""Descriptors of a VM."""


@pytest.fixture
def kernel(tmp_path):
    return fake_kernel.FakeKernel(tmp_path)


@pytest.fixture
def reader(kernel):
    with_files = counters.CounterReader(proc=str(kernel.proc))
    yield with_files
    with_files.close()


def value(sample, row, name):
    return sample.totals[row, resources.RESOURCES.index(name)]


def tap(name, kind='bridge', mac='fa:16:3e:00:00:01'):
    return instance.Nic(mac, kind, name)


def test_a_sample_without_vms_is_empty(reader):
    sample = reader.read(())
    assert len(sample) == 0
    assert sample.totals.shape == (0, len(resources.RESOURCES))


def test_every_counter_lands_in_its_column(kernel, reader):
    vm = kernel.add_vm(1, nics=(tap('tap1'),))
    kernel.set_group(1, 2_500_000, 500_000)
    kernel.set_io(vm.pid, 4096, 8192)
    kernel.set_interfaces({'tap1': (30, 40), 'eth0': (1, 1)})
    sample = reader.read((vm,))
    expected = resources.RESOURCES.vector(
        cpu_time=2.5,
        disk_read=4096,
        disk_written=8192,
        net_received=40,
        net_sent=30,
        memory=50 * PAGE,
    )
    np.testing.assert_array_equal(sample.totals, [expected])
    assert sample.cpu_stall_s.tolist() == [0.5]


def test_a_later_reading_sees_changes(kernel, reader):
    vm = kernel.add_vm(1)
    reader.read((vm,))
    kernel.set_group(1, 7_000_000, 0)
    kernel.set_io(vm.pid, 11, 22)
    sample = reader.read((vm,))
    assert value(sample, 0, 'cpu_time') == 7
    assert value(sample, 0, 'disk_read') == 11


def test_times_of_counters_come_from_the_monotonic_clock(kernel):
    ticks = iter(range(100, 200))
    reader = counters.CounterReader(
        proc=str(kernel.proc), clock=lambda: float(next(ticks))
    )
    vms = (kernel.add_vm(1), kernel.add_vm(2))
    sample = reader.read(vms)
    assert sample.time_s == 100
    assert sample.read_at_s.tolist() == [101, 102]


def test_memory_never_exceeds_the_memory_of_the_vm(kernel, reader):
    vm = kernel.add_vm(1, memory_bytes=10 * PAGE)
    assert value(reader.read((vm,)), 0, 'memory') == 10 * PAGE


def test_huge_pages_count_as_memory(kernel, reader):
    vm = kernel.add_vm(1)
    kernel.write(
        kernel.proc / str(vm.pid) / 'status',
        'Name:\tqemu\nVmRSS:\t100 kB\nHugetlbPages:\t2048 kB\n',
    )
    assert value(reader.read((vm,)), 0, 'memory') == 2148 * 1024


def test_cpu_time_comes_from_cpuacct_where_there_is_no_v2_group(
    kernel, reader
):
    vm = kernel.add_vm(1)
    kernel.mount_v1('cpuacct')
    kernel.write(
        kernel.proc / str(vm.pid) / 'cgroup',
        '2:cpuacct:/machine/qemu-1-vm/emulator\n0::/\n',
    )
    kernel.write(
        kernel.groups / 'cpuacct/machine/qemu-1-vm/cpuacct.usage',
        '1500000000\n',
    )
    assert value(reader.read((vm,)), 0, 'cpu_time') == 1.5


def test_cpu_time_comes_from_the_process_where_no_group_is_its_own(
    kernel, reader
):
    vm = kernel.add_vm(1)
    own = kernel.proc / str(vm.pid)
    kernel.write(own / 'cgroup', '0::/\n')
    kernel.write(kernel.groups / 'cpu.stat', 'usage_usec 999000000\n')
    kernel.write(
        own / 'stat',
        fake_kernel.STAT.format(
            pid=vm.pid, user=200, system=100, start=vm.start_ticks
        ),
    )
    hertz = os.sysconf('SC_CLK_TCK')
    assert value(reader.read((vm,)), 0, 'cpu_time') == 300 / hertz


def test_stall_is_the_mean_over_vcpu_threads_without_a_v2_group(
    kernel, reader
):
    vm = kernel.add_vm(1)
    own = kernel.proc / str(vm.pid)
    kernel.write(own / 'cgroup', '0::/\n')
    for thread, name, waited in (
        (1, 'qemu-system-x86', 9_000_000_000),
        (2, 'CPU 0/KVM', 1_000_000_000),
        (3, 'CPU 1/KVM', 2_000_000_000),
    ):
        kernel.write(own / f'task/{thread}/comm', f'{name}\n')
        kernel.write(own / f'task/{thread}/schedstat', f'5 {waited} 7\n')
    assert reader.read((vm,)).cpu_stall_s.tolist() == [1.5]


def test_stall_is_unknown_where_nothing_tells(kernel, reader):
    vm = kernel.add_vm(1)
    kernel.write(kernel.proc / str(vm.pid) / 'cgroup', '0::/\n')
    sample = reader.read((vm,))
    assert np.isnan(sample.cpu_stall_s).tolist() == [True]
    assert value(sample, 0, 'memory') == 50 * PAGE


def test_disk_traffic_comes_from_the_group_where_io_is_closed(kernel, reader):
    vm = kernel.add_vm(1)
    (kernel.proc / str(vm.pid) / 'io').unlink()
    kernel.write(
        kernel.groups / 'machine/qemu-1-vm/io.stat',
        '254:0 rbytes=5 wbytes=6 rios=1 wios=1\n',
    )
    sample = reader.read((vm,))
    assert value(sample, 0, 'disk_read') == 5
    assert value(sample, 0, 'disk_written') == 6


def test_disk_traffic_that_nothing_tells_is_nan_and_the_rest_is_not(
    kernel, reader
):
    vm = kernel.add_vm(1)
    (kernel.proc / str(vm.pid) / 'io').unlink()
    sample = reader.read((vm,))
    unknown = {
        name
        for name, amount in zip(
            resources.RESOURCES.names, sample.totals[0], strict=True
        )
        if np.isnan(amount)
    }
    assert unknown == {'disk_read', 'disk_written'}


def test_several_nics_are_summed(kernel, reader):
    vm = kernel.add_vm(1, nics=(tap('a', mac='00:01'), tap('b', mac='00:02')))
    kernel.set_interfaces({'a': (1, 10), 'b': (2, 20)})
    sample = reader.read((vm,))
    assert value(sample, 0, 'net_sent') == 3
    assert value(sample, 0, 'net_received') == 30


def test_a_macvtap_looks_from_the_side_of_the_vm(kernel, reader):
    vm = kernel.add_vm(1, nics=(tap('macvtap0', 'direct'),))
    kernel.set_interfaces({'macvtap0': (30, 40)})
    sample = reader.read((vm,))
    assert value(sample, 0, 'net_received') == 30
    assert value(sample, 0, 'net_sent') == 40


def test_a_nic_without_a_tap_contributes_nothing(kernel, reader):
    vm = kernel.add_vm(1, nics=(instance.Nic('00:01', 'hostdev'),))
    kernel.set_interfaces({'': (1, 1), 'eth0': (2, 2)})
    sample = reader.read((vm,))
    assert value(sample, 0, 'net_sent') == 0


def test_a_vanished_tap_keeps_its_last_value(kernel, reader):
    vm = kernel.add_vm(1, nics=(tap('a', mac='00:01'), tap('b', mac='00:02')))
    kernel.set_interfaces({'a': (1, 10), 'b': (2, 20)})
    reader.read((vm,))
    kernel.set_interfaces({'b': (5, 50)})
    sample = reader.read((vm,))
    assert value(sample, 0, 'net_sent') == 6
    assert value(sample, 0, 'net_received') == 60


def test_a_tap_made_again_counts_on(kernel, reader):
    vm = kernel.add_vm(1, nics=(tap('a'),))
    kernel.set_interfaces({'a': (100, 1000)})
    reader.read((vm,))
    kernel.set_interfaces({'a': (3, 4)})
    sample = reader.read((vm,))
    assert value(sample, 0, 'net_sent') == 103
    assert value(sample, 0, 'net_received') == 1004


def test_counters_of_a_reused_process_id_are_nan(kernel, reader):
    vm = kernel.add_vm(1, start=1000)
    kernel.add_process(vm.pid, start=2000, group='/machine/qemu-1-vm')
    assert np.isnan(reader.read((vm,)).totals).all()


def test_a_process_that_has_ended_but_was_not_reaped_is_nan(kernel, reader):
    vm = kernel.add_vm(1)
    reader.read((vm,))
    kernel.write(kernel.proc / str(vm.pid) / 'statm', '0 0 0 0 0 0 0\n')
    assert np.isnan(reader.read((vm,)).totals).all()
    assert reader.descriptors == 0


def test_an_ended_vm_costs_the_others_nothing(kernel, reader):
    gone, other = kernel.add_vm(1), kernel.add_vm(2)
    shutil.rmtree(kernel.proc / str(gone.pid))
    sample = reader.read((gone, other))
    assert np.isnan(sample.totals[0]).all()
    assert np.isfinite(sample.totals[1]).all()


@pytest.mark.parametrize('most', [0, 3, 8192])
def test_counters_of_an_ended_process_are_nan(most):
    child = subprocess.Popen(['sleep', '60'])
    try:
        started = processes.start_ticks(pathlib.Path('/proc'), child.pid)
        assert started is not None
        vm = instance.Incarnation(
            instance.Instance(fake_kernel.UUID.format(1), 'a', 1, 2**30),
            child.pid,
            started,
        )
        reader = counters.CounterReader(max_descriptors=most)
        assert value(reader.read((vm,)), 0, 'memory') > 0
    finally:
        child.kill()
        child.wait()
    assert np.isnan(reader.read((vm,)).totals).all()
    assert reader.descriptors == 0


def test_descriptors_of_a_vm_that_left_are_closed(kernel, reader):
    vms = (kernel.add_vm(1), kernel.add_vm(2))
    reader.read(vms)
    assert reader.descriptors == 8
    reader.read(vms[:1])
    assert reader.descriptors == 4
    reader.close()
    assert reader.descriptors == 0


def test_beyond_the_budget_files_are_opened_for_each_reading(kernel):
    reader = counters.CounterReader(proc=str(kernel.proc), max_descriptors=5)
    vms = (kernel.add_vm(1), kernel.add_vm(2))
    reader.read(vms)
    kernel.set_group(2, 3_000_000, 0)
    assert reader.descriptors == 5
    assert value(reader.read(vms), 1, 'cpu_time') == 3


def test_without_kept_descriptors_a_reused_number_is_noticed(kernel):
    reader = counters.CounterReader(proc=str(kernel.proc), max_descriptors=0)
    vm = kernel.add_vm(1, start=1000)
    reader.read((vm,))
    kernel.add_process(vm.pid, start=2000, group='/machine/qemu-1-vm')
    assert np.isnan(reader.read((vm,)).totals).all()


def test_a_garbled_counter_is_nan_and_the_rest_is_not(kernel, reader):
    vm = kernel.add_vm(1)
    reader.read((vm,))
    kernel.write(kernel.groups / 'machine/qemu-1-vm/cpu.stat', 'nonsense\n')
    sample = reader.read((vm,))
    assert np.isnan(value(sample, 0, 'cpu_time'))
    assert value(sample, 0, 'disk_read') == 0


def test_without_descriptors_nothing_is_read_wrong_for_good(kernel, reader):
    vm, new = kernel.add_vm(1, nics=(tap('a'),)), kernel.add_vm(2)
    kernel.set_group(2, 5_000_000, 0)
    kernel.set_interfaces({'a': (7, 7)})
    before = reader.read((vm,))
    with fake_kernel.no_descriptors():
        without = reader.read((vm, new))
    assert value(without, 0, 'memory') == value(before, 0, 'memory')
    # A counter that cannot be read has not stood still.
    assert np.isnan(value(without, 0, 'net_sent'))
    assert np.isnan(without.totals[1]).all()
    after = reader.read((vm, new))
    assert value(after, 0, 'net_sent') == 7
    assert value(after, 1, 'cpu_time') == 5


@pytest.mark.parametrize('left', range(8))
def test_running_out_of_descriptors_midway_leaves_none_behind(
    kernel, reader, left
):
    vm = kernel.add_vm(1)
    kernel.set_group(1, 5_000_000, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open('/dev/null', os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, hard))
    try:
        reader.read((vm,))
        within = reader.descriptors
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert within in (0, KEPT)
    assert value(reader.read((vm,)), 0, 'cpu_time') == 5
    assert reader.descriptors == KEPT
