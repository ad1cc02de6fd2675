# SPDX-License-Identifier: Apache-2.0

"""Counters against what real guests did and what libvirt says of it.

The table of cache modes in ``doc/source/reference/counters.rst`` is what
these tests found; a kernel that behaves differently makes them fail.
"""

import dataclasses
import os
import pathlib
import socket
import time

import libvirt
import pytest

from fairness_lab.scenario import values as scenario_module
from fairness_lab.testbed.guests import guest as lab_guest
from fairness_lab.testbed.guests import image
from fairness_lab.testbed.nodes import namespace
from nova_fairness.collect import counters
from nova_fairness.collect import hypervisor
from nova_fairness.collect import inventory
from nova_fairness.model import resources
from tests.fixtures import lab

pytestmark = pytest.mark.real

MIB = 2**20
MOVED = 32 * MIB
MEMORY_MIB = 512
BOOT_S = 120.0

# A raw disk has no metadata; the guest's kernel may look at the partition
# table, and a file system may round to its blocks.
DISK_SLACK = MIB // 4

# Ethernet, IPv4 and UDP headers of a payload of 1400 bytes; ARP besides.
HEADERS = 42
PAYLOAD = 1400
NET_SLACK = 4096


@dataclasses.dataclass
class Machine:
    """One guest with what is needed to compare its counters."""

    guest: lab_guest.Guest
    domain: 'libvirt.virDomain'
    found: inventory.VmInventory
    reader: counters.CounterReader

    def read(self):
        vms = [
            vm
            for vm in self.found.incarnations()
            if vm.instance.uuid == self.guest.uuid
        ]
        sample = self.reader.read(tuple(vms))
        names = resources.RESOURCES.names
        return dict(zip(names, sample.totals[0], strict=True))


@pytest.fixture(scope='module')
def node():
    hypervisor._start_event_loop()
    with lab.own_node('truth-a') as made:
        yield made


@pytest.fixture(scope='module')
def boot(node):
    return image.ensure(image.default_cache())


@pytest.fixture(scope='module')
def connection(node):
    opened = libvirt.open(node.libvirt_uri)
    yield opened
    opened.close()


@pytest.fixture(scope='module')
def found(node):
    made = inventory.VmInventory(
        node.libvirt_uri, 600, run=str(node.root / 'run/libvirt/qemu')
    )
    made.start()
    assert made.wait_ready(60)
    yield made
    made.stop()


@pytest.fixture(scope='module')
def machine(node, boot, connection, found):
    """A guest with one disk of each cache mode and two interfaces."""
    spec = scenario_module.Vm(
        'truth',
        'alice',
        memory_mib=MEMORY_MIB,
        disks=tuple(
            scenario_module.GuestDisk(2 * MOVED // MIB, cache)
            for cache in scenario_module.CACHE_MODES
        ),
        nics=2,
    )
    made = lab_guest.Guest(node, spec, boot)
    made.start(connection)
    reader = counters.CounterReader(net_dev=f'/proc/{node.pid}/net/dev')
    try:
        made.await_ready(BOOT_S)
        await_known(found, made.uuid)
        domain = connection.lookupByUUIDString(made.uuid)
        yield Machine(made, domain, found, reader)
    finally:
        reader.close()
        made.destroy(connection)


def await_known(found, uuid):
    deadline = time.monotonic() + 60
    while uuid not in {vm.instance.uuid for vm in found.incarnations()}:
        assert time.monotonic() < deadline, 'the guest is not in the list'
        time.sleep(0.05)


def difference(before, after, name):
    return after[name] - before[name]


def test_the_owner_and_the_flavor_are_those_of_the_guest(machine):
    (vm,) = machine.found.incarnations()
    assert vm.instance.user_name == 'alice'
    assert vm.instance.display_name == 'truth'
    assert vm.instance.memory_bytes == MEMORY_MIB * MIB
    assert [disk.cache for disk in vm.instance.disks] == list(
        scenario_module.CACHE_MODES
    )
    assert all(nic.tap for nic in vm.instance.nics)


def test_cpu_time_equals_the_time_the_guest_burned(machine):
    before, told = machine.read(), libvirt_cpu_s(machine)
    process = process_cpu_s(machine)
    began = time.monotonic()
    machine.guest.command('cpu-burn-seconds 3')
    lasted = time.monotonic() - began
    used = difference(before, machine.read(), 'cpu_time')
    stolen = lasted - used  # other work on this machine takes some of it
    assert 0.5 < used < lasted * 1.1 + 0.2, f'stolen {stolen:.2f} s'
    assert used == pytest.approx(libvirt_cpu_s(machine) - told, abs=0.1)
    assert used == pytest.approx(process_cpu_s(machine) - process, abs=0.1)


def process_cpu_s(machine):
    """What the kernel counts without any control group."""
    stat = pathlib.Path(f'/proc/{machine.guest.pid}/stat').read_text()
    user, system = stat.rpartition(')')[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')


def libvirt_cpu_s(machine):
    return machine.domain.getCPUStats(True)[0]['cpu_time'] / 1e9


def device(cache):
    return f'vd{"abcde"[scenario_module.CACHE_MODES.index(cache)]}'


def moved(machine, cache, command):
    """Move a known number of bytes; give what was counted and told."""
    name = device(cache)
    before, told = machine.read(), machine.domain.blockStats(name)
    answer = machine.guest.command(f'{command} {MOVED} /dev/{name}')
    assert int(answer[0]) == MOVED
    after, now = machine.read(), machine.domain.blockStats(name)
    return (
        difference(before, after, 'disk_read'),
        difference(before, after, 'disk_written'),
        now[1] - told[1],
        now[3] - told[3],
    )


@pytest.mark.parametrize('cache', scenario_module.CACHE_MODES)
def test_written_bytes_are_counted_in_every_cache_mode(machine, cache):
    read, written, _, told_written = moved(machine, cache, 'disk-write')
    assert written == pytest.approx(MOVED, abs=DISK_SLACK)
    assert told_written == pytest.approx(MOVED, abs=DISK_SLACK)
    assert read <= DISK_SLACK


@pytest.mark.parametrize('cache', ['none', 'directsync'])
def test_direct_reads_are_counted_each_time(machine, cache):
    moved(machine, cache, 'disk-write')
    for _ in range(2):
        read, written, told_read, _ = moved(machine, cache, 'disk-read')
        assert read == pytest.approx(MOVED, abs=DISK_SLACK)
        assert told_read == pytest.approx(MOVED, abs=DISK_SLACK)
        assert written <= DISK_SLACK


@pytest.mark.parametrize('cache', ['writethrough', 'writeback', 'unsafe'])
def test_page_cache_reads_are_counted_by_libvirt_only(machine, cache):
    moved(machine, cache, 'disk-write')
    # The host may reclaim pages of its cache at any time.
    reads = [moved(machine, cache, 'disk-read') for _ in range(3)]
    for _, _, told_read, _ in reads:
        assert told_read == pytest.approx(MOVED, abs=DISK_SLACK)
    assert min(read for read, *_ in reads) <= DISK_SLACK


@pytest.mark.parametrize('cache', ['writethrough', 'writeback', 'unsafe'])
def test_reading_through_an_empty_page_cache_is_counted(machine, cache):
    moved(machine, cache, 'disk-write')
    forget_pages(machine, cache)
    read, _, told_read, _ = moved(machine, cache, 'disk-read')
    assert told_read == pytest.approx(MOVED, abs=DISK_SLACK)
    # The host reads ahead, at most to the end of the disk.
    assert MOVED - DISK_SLACK <= read <= 2 * MOVED + DISK_SLACK


def forget_pages(machine, cache):
    """Drop one disk image from the host's page cache, and nothing else."""
    (source,) = (
        disk.source
        for disk in machine.found.incarnations()[0].instance.disks
        if disk.cache == cache
    )
    path = pathlib.Path(f'{machine.guest.node.root}{source}')
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def taps(machine):
    (vm,) = machine.found.incarnations()
    return [nic.tap for nic in vm.instance.nics]


def interface_stats(machine):
    stats = [machine.domain.interfaceStats(tap) for tap in taps(machine)]
    return sum(one[0] for one in stats), sum(one[4] for one in stats)


def test_sent_bytes_are_counted_from_the_side_of_the_vm(machine):
    payload = 2000 * PAYLOAD
    address, _ = namespace.addresses(machine.guest.node.index, 0, 0)
    host = address.split('/')[0]
    # Until its neighbour is known, the guest drops what it cannot queue.
    machine.guest.command(f'net-send 1 {host} 9')
    time.sleep(1)
    before, told = machine.read(), interface_stats(machine)
    machine.guest.command(f'net-send {payload} {host} 9')
    time.sleep(1)  # what is queued in the guest follows its answer
    after, now = machine.read(), interface_stats(machine)
    sent = difference(before, after, 'net_sent')
    expected = payload + 2000 * HEADERS
    assert sent == pytest.approx(expected, abs=NET_SLACK)
    assert sent == pytest.approx(now[1] - told[1], abs=NET_SLACK)
    assert difference(before, after, 'net_received') <= NET_SLACK


def test_received_bytes_of_all_nics_are_summed(machine):
    count = 500
    before, told = machine.read(), interface_stats(machine)
    with machine.guest.node.open_socket(socket.AF_INET) as sender:
        for address, _ in machine.guest.addresses:
            for _ in range(count):
                sender.sendto(bytes(PAYLOAD), (address.split('/')[0], 9))
                time.sleep(0.0005)
    time.sleep(1)
    after, now = machine.read(), interface_stats(machine)
    received = difference(before, after, 'net_received')
    expected = 2 * count * (PAYLOAD + HEADERS)
    assert received == pytest.approx(expected, abs=NET_SLACK)
    assert received == pytest.approx(now[0] - told[0], abs=NET_SLACK)


def test_touched_memory_stays_counted_as_resident(machine):
    touched = 128 * MIB
    # What the guest freed after its boot is resident already: use that up.
    machine.guest.command(f'memory {64 * MIB}')
    before = machine.read()['memory']
    machine.guest.command(f'memory {64 * MIB + touched}')
    during = machine.read()['memory']
    assert during - before >= touched * 0.8
    told = machine.domain.memoryStats()['rss'] * 1024
    limit = MEMORY_MIB * MIB
    assert during == pytest.approx(min(told, limit), abs=4 * MIB)
    machine.guest.command('memory 0')
    assert machine.read()['memory'] >= during - 4 * MIB
