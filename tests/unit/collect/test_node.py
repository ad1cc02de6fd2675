# SPDX-License-Identifier: Apache-2.0

"""What a host has, read from recorded files."""

import logging
import os

import pytest

from nova_fairness.collect import node
from nova_fairness.model import resources

CPUINFO = 'processor : 0\nbogomips : 4000.00\nbogomips : 6000.00\n'
MIB = 2**20


class FakeHost:
    """Files that describe a host with v1 groups beside a v2 tree."""

    def __init__(self, root):
        self.root = root
        self.proc, self.sys = root / 'proc', root / 'sys'
        self.write('proc/cpuinfo', CPUINFO)
        self.write('proc/meminfo', 'MemTotal: 4194304 kB\n')
        self.write('proc/net/route', 'Iface Destination\n')
        self.write('proc/self/cgroup', '2:cpuset:/agent\n0::/\n')
        self.write(
            'proc/self/mountinfo',
            f'1 0 0:1 / {root}/cpuset rw - cgroup c rw,cpuset\n'
            f'2 0 0:2 / {root}/memory rw - cgroup c rw,memory\n'
            f'3 0 0:3 / {root}/unified rw - cgroup2 c rw\n',
        )

    def write(self, path, text):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def add_disk(self, name, rotational='0', removable='0', size='99'):
        self.write(f'sys/block/{name}/queue/rotational', f'{rotational}\n')
        self.write(f'sys/block/{name}/removable', f'{removable}\n')
        self.write(f'sys/block/{name}/size', f'{size}\n')
        self.write(f'sys/block/{name}/device/model', 'x\n')

    def route_by(self, interface):
        self.write(
            'proc/net/route',
            f'head\n{interface} 00000000 1 0003 0 0 0 00000000 0 0 0\n',
        )

    def read(self, **options):
        return node.read_node_resources(
            host='a', proc=str(self.proc), sys=str(self.sys), **options
        )


@pytest.fixture
def host(tmp_path):
    return FakeHost(tmp_path)


def capacity(found, name):
    return found.capacity[resources.RESOURCES.index(name)]


def test_configured_capacities_override_detected_ones(host):
    found = host.read(
        cpus=(2, 3),
        speed_factor=10.0,
        disk_read_bandwidth=1e6,
        disk_write_bandwidth=2e6,
        network_bandwidth=3e6,
        reserved_memory_bytes=1024 * MIB,
    )
    assert (found.host, found.cpus, found.speed_factor) == ('a', (2, 3), 10)
    assert dict(
        zip(resources.RESOURCES.names, found.capacity, strict=True)
    ) == {
        'cpu_time': 20,
        'disk_read': 1e6,
        'disk_written': 2e6,
        'net_received': 3e6,
        'net_sent': 3e6,
        'memory': 3072 * MIB,
    }


def test_cpus_are_those_of_the_machine_partition(host):
    host.write('cpuset/agent/cpuset.effective_cpus', '0\n')
    host.write('cpuset/machine/cpuset.effective_cpus', '1-2\n')
    assert host.read().cpus == (1, 2)


def test_a_slice_of_systemd_is_a_machine_partition(host):
    host.write('unified/machine.slice/cpuset.cpus.effective', '4,6\n')
    assert host.read().cpus == (4, 6)


@pytest.mark.parametrize(
    ('group', 'expected'),
    [
        ('machine/qemu-1-a.libvirt-qemu', (0,)),
        (r'machine.slice/machine-qemu\x2d1\x2da.scope', (1,)),
        ('machine/other', (1,)),
    ],
)
def test_the_machine_partition_that_holds_vms_counts(host, group, expected):
    host.write('unified/machine/cpuset.cpus.effective', '0\n')
    host.write('unified/machine/memory.max', f'{512 * MIB}\n')
    host.write('unified/machine.slice/cpuset.cpus.effective', '1\n')
    host.write('unified/machine.slice/memory.max', f'{256 * MIB}\n')
    host.write(f'unified/{group}/cgroup.procs', '')
    found = host.read()
    assert found.cpus == expected
    smallest = 512 if expected == (0,) else 256
    assert capacity(found, 'memory') == smallest * MIB


def test_without_a_machine_partition_the_own_group_tells_the_cpus(host):
    host.write('cpuset/agent/cpuset.effective_cpus', '3\n')
    assert host.read().cpus == (3,)


@pytest.mark.parametrize('text', ['', '\n', 'nonsense\n'])
def test_without_any_cpuset_the_own_affinity_tells_the_cpus(host, text):
    host.write('cpuset/machine/cpuset.effective_cpus', text)
    assert host.read().cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_cpu_capacity_is_cpus_times_mean_bogomips(host):
    found = host.read(cpus=(0, 1))
    assert found.speed_factor == 5000
    assert capacity(found, 'cpu_time') == 10000


def test_without_bogomips_the_speed_factor_is_one_and_said(host, caplog):
    host.write('proc/cpuinfo', 'processor : 0\n')
    with caplog.at_level(logging.INFO):
        assert host.read().speed_factor == 1
    assert 'speed factor: no BogoMIPS in cpuinfo; 1 is assumed' in caplog.text


@pytest.mark.parametrize(
    ('files', 'reserved', 'expected'),
    [
        ({}, 0, 4096 * MIB),
        ({}, 512 * MIB, 3584 * MIB),
        ({'memory/machine/memory.limit_in_bytes': 1024 * MIB}, 0, 1024 * MIB),
        ({'memory/memory.limit_in_bytes': 2048 * MIB}, 0, 2048 * MIB),
        ({'memory/memory.limit_in_bytes': 2**63 - 4096}, 0, 4096 * MIB),
        ({'unified/machine/memory.max': 'max'}, 0, 4096 * MIB),
        ({'unified/machine/memory.max': 1024 * MIB}, 0, 1024 * MIB),
        ({}, 8192 * MIB, 0),
    ],
)
def test_memory_is_bounded_by_reserve_and_group(
    host, files, reserved, expected
):
    for path, text in files.items():
        host.write(path, f'{text}\n')
    found = host.read(reserved_memory_bytes=reserved)
    assert capacity(found, 'memory') == expected


@pytest.mark.parametrize(
    ('disks', 'read', 'written'),
    [
        ([], 100e6, 100e6),
        ([('sda', '1')], 120e6, 120e6),
        ([('sda', '0')], 400e6, 300e6),
        ([('nvme0n1', '0')], 1500e6, 1000e6),
        ([('vda', '1')], 200e6, 200e6),
        ([('sda', '1'), ('sdb', '1')], 240e6, 240e6),
        ([('sda', '1'), ('sdb', '0', '1')], 120e6, 120e6),
        ([('sda', '1'), ('sdb', '0', '0', '0')], 120e6, 120e6),
    ],
)
def test_disk_bandwidth_is_assumed_by_class(host, disks, read, written):
    for disk in disks:
        host.add_disk(*disk)
    found = host.read()
    assert capacity(found, 'disk_read') == read
    assert capacity(found, 'disk_written') == written


def test_devices_made_of_others_are_not_counted_again(host):
    host.add_disk('sda', '1')
    for name in ('loop0', 'dm-0', 'md0', 'zram0'):
        host.write(f'sys/block/{name}/size', '99\n')
    assert capacity(host.read(), 'disk_read') == 120e6


def test_an_assumed_bandwidth_is_logged(host, caplog):
    host.add_disk('sda', '1')
    with caplog.at_level(logging.INFO):
        host.read()
    assert (
        'disk bandwidth: assumed from the class of each disk: sda is '
        'rotational' in caplog.text
    )
    assert '1000 Mbit/s assumed' in caplog.text


def test_the_link_speed_of_the_default_route_is_taken(host):
    host.route_by('eth3')
    host.write('sys/class/net/eth3/speed', '10000\n')
    found = host.read()
    assert capacity(found, 'net_received') == 1.25e9
    assert capacity(found, 'net_sent') == 1.25e9


def test_the_configured_interface_wins_over_the_default_route(host):
    host.route_by('eth3')
    host.write('sys/class/net/eth3/speed', '10000\n')
    host.write('sys/class/net/bond0/speed', '25000\n')
    found = host.read(network_interface='bond0')
    assert capacity(found, 'net_sent') == 3.125e9


@pytest.mark.parametrize('speed', ['-1\n', '0\n', '', 'odd\n'])
def test_an_unknown_link_speed_is_one_gigabit(host, speed):
    host.route_by('eth3')
    host.write('sys/class/net/eth3/speed', speed)
    assert capacity(host.read(), 'net_sent') == 1.25e8
