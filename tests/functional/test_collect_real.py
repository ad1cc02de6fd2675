# SPDX-License-Identifier: Apache-2.0

"""The inventory and the counters against a real libvirt and real QEMU."""

import contextlib
import os
import pathlib
import signal
import threading
import uuid

import libvirt
import numpy as np
import pytest

from nova_fairness.collect import counters
from nova_fairness.collect import hypervisor
from nova_fairness.collect import inventory
from nova_fairness.collect import processes
from tests.fixtures import lab
from tests.fixtures.patience import wait_for_value

pytestmark = pytest.mark.real

# No kernel: what the guest does is of no interest here.
XML = """<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid>
<memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os>
<features><acpi/></features>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<interface type='ethernet'><mac address='{mac}'/><target dev='{tap}'/>
<model type='virtio'/></interface></devices></domain>"""

NIC = """<interface type='ethernet'><mac address='52:54:00:00:00:99'/>
<target dev='hotplugged'/><model type='virtio'/></interface>"""


@pytest.fixture(scope='module')
def node():
    with lab.own_node('collect-a') as made:
        yield made


@pytest.fixture
def connection(node):
    hypervisor._start_event_loop()
    opened = libvirt.open(node.libvirt_uri)
    yield opened
    opened.close()
    again = libvirt.open(node.libvirt_uri)
    for domain in again.listAllDomains():
        with contextlib.suppress(libvirt.libvirtError):  # it ended itself
            domain.undefine()  # makes it end for good when destroyed
        with contextlib.suppress(libvirt.libvirtError):
            domain.destroy()
    again.close()


@pytest.fixture
def found(node, connection):
    made = inventory.VmInventory(
        node.libvirt_uri, 600, run=str(node.root / 'run/libvirt/qemu')
    )
    made.start()
    assert made.wait_ready(60)
    yield made
    made.stop()


@pytest.fixture
def reader(node):
    made = counters.CounterReader(net_dev=f'/proc/{node.pid}/net/dev')
    yield made
    made.close()


def xml(name):
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    last = identity.bytes[-3:]
    mac = '52:54:00:' + ':'.join(f'{byte:02x}' for byte in last)
    return XML.format(name=name, uuid=identity, mac=mac, tap=f'tap-{name}')


def names(found):
    return sorted(vm.instance.domain_name for vm in found.incarnations())


def only(found):
    (vm,) = found.incarnations()
    return vm


def test_libvirt_events_report_start_pause_resume_and_stop(connection, found):
    assert names(found) == []
    domain = connection.createXML(xml('a'), 0)
    assert wait_for_value(lambda: names(found) == ['a'])
    assert not only(found).paused
    assert only(found).instance.nics[0].tap == 'tap-a'
    domain.suspend()
    assert wait_for_value(lambda: only(found).paused)
    domain.resume()
    assert wait_for_value(lambda: not only(found).paused)
    domain.destroy()
    assert wait_for_value(lambda: names(found) == [])


def test_a_reset_keeps_the_incarnation_and_a_restart_does_not(
    connection, found
):
    domain = connection.defineXML(xml('a'))
    domain.create()
    assert wait_for_value(lambda: names(found) == ['a'])
    first = only(found).key
    domain.reset()
    domain.suspend()
    assert wait_for_value(lambda: only(found).paused)
    assert only(found).key == first
    domain.destroy()
    assert wait_for_value(lambda: names(found) == [])
    domain.create()
    assert wait_for_value(lambda: names(found) == ['a'])
    assert only(found).key != first
    domain.undefine()
    assert names(found) == ['a']


def test_a_vm_with_a_killed_qemu_is_removed_from_the_inventory(
    connection, found, reader
):
    connection.createXML(xml('a'), 0)
    connection.createXML(xml('b'), 0)
    assert wait_for_value(lambda: names(found) == ['a', 'b'])
    vms = found.incarnations()
    assert np.isfinite(reader.read(vms).totals).all()
    dead = [vm.instance.domain_name for vm in vms].index('a')
    os.kill(vms[dead].pid, signal.SIGKILL)
    # Its threads end before it does.
    proc = pathlib.Path('/proc')
    assert wait_for_value(
        lambda: processes.start_ticks(proc, vms[dead].pid) is None
    )
    totals = reader.read(vms).totals
    assert np.isnan(totals[dead]).all()
    assert np.isfinite(totals[1 - dead]).all()
    assert wait_for_value(lambda: names(found) == ['b'])


def test_a_hotplugged_nic_is_in_the_inventory(connection, found):
    domain = connection.createXML(xml('a'), 0)
    assert wait_for_value(lambda: names(found) == ['a'])
    domain.attachDevice(NIC)
    assert wait_for_value(
        lambda: (
            [nic.tap for nic in only(found).instance.nics]
            == ['tap-a', 'hotplugged']
        )
    )


def test_vms_stay_known_while_libvirt_restarts(
    node, connection, found, reader
):
    connection.createXML(xml('a'), 0)
    assert wait_for_value(lambda: names(found) == ['a'])
    before = only(found).key
    node.stop_libvirt()
    assert wait_for_value(lambda: 'does not answer' in found.problem)
    assert only(found).key == before
    assert np.isfinite(reader.read(found.incarnations()).totals).all()
    node.start_libvirt()
    assert wait_for_value(lambda: found.problem == '')
    assert only(found).key == before


def test_a_vm_that_ends_while_libvirt_is_away_is_dropped(
    node, connection, found
):
    connection.createXML(xml('a'), 0)
    assert wait_for_value(lambda: names(found) == ['a'])
    pid = only(found).pid
    node.stop_libvirt()
    assert wait_for_value(lambda: 'does not answer' in found.problem)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_value(lambda: names(found) == [])
    node.start_libvirt()
    assert wait_for_value(lambda: found.problem == '')


@pytest.fixture
def hung_monitor(node, connection, found):
    """A stopped QEMU with a monitor call that hangs on it."""
    connection.createXML(xml('stuck'), 0)
    assert wait_for_value(lambda: names(found) == ['stuck'])
    pid = only(found).pid
    os.kill(pid, signal.SIGSTOP)
    other = libvirt.open(node.libvirt_uri)
    caller = threading.Thread(
        target=_ask_the_monitor,
        args=(other.lookupByName('stuck'),),
        daemon=True,
    )
    caller.start()
    yield caller
    os.kill(pid, signal.SIGCONT)
    caller.join(60)
    other.close()


def _ask_the_monitor(domain):
    try:
        domain.memoryStats()
    except libvirt.libvirtError:
        return


def test_a_stopped_qemu_costs_no_vm_a_round(
    hung_monitor, connection, found, reader
):
    connection.createXML(xml('b'), 0)
    assert wait_for_value(lambda: names(found) == ['b', 'stuck'])
    totals = reader.read(found.incarnations()).totals
    assert np.isfinite(totals).all()
    connection.lookupByName('b').destroy()
    assert wait_for_value(lambda: names(found) == ['stuck'])
    assert hung_monitor.is_alive(), 'the monitor call was to hang meanwhile'


def test_a_stopped_qemu_does_not_hinder_a_new_inventory(
    hung_monitor, node, found
):
    late = inventory.VmInventory(
        node.libvirt_uri, 600, run=str(node.root / 'run/libvirt/qemu')
    )
    late.start()
    try:
        assert late.wait_ready(60)
        assert names(late) == ['stuck']
    finally:
        late.stop()
