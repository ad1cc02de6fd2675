# SPDX-License-Identifier: Apache-2.0

"""VMs whose groups systemd makes: where they are, counted and steered."""

import pathlib
import time

import libvirt
import numpy as np
import pytest

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.collect import counters
from nova_fairness.collect import inventory
from nova_fairness.collect import vm_files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import resources

MIB = 2**20
TOUCHED_MIB = 32


@pytest.fixture(scope='module')
def vms(start):
    """Two VMs that want all of one CPU that both have."""
    made = {
        name: start(name, name[:3], mib=TOUCHED_MIB, rate=10**7)
        for name in ('ann-1', 'bob-1')
    }
    for vm in made.values():
        vm.await_started()
        pin(vm)
    return made


def pin(vm):
    """Leave a VM's threads one CPU, as its group allows no other."""
    (vm.group / 'cpuset.cpus').write_text('0')


@pytest.fixture(scope='module')
def found(compute, vms):
    made = inventory.VmInventory('qemu:///system', 600)
    made.start()
    assert made.wait_ready(60)
    assert len(made.incarnations()) == len(vms)
    yield made
    made.stop()


@pytest.fixture
def keys(found):
    return {vm.instance.domain_name: vm.key for vm in found.incarnations()}


@pytest.fixture(scope='module')
def control():
    privileged.prepare()
    made = group_control.CpuShares()
    yield made
    made.close()
    privileged.context.stop()


def weights(vms):
    return {
        name: int((vm.group / 'cpu.weight').read_text())
        for name, vm in vms.items()
    }


def change(key, after):
    knob = allocation.Knob(key, resources.ResourceControl.CPU)
    return allocation.Change(knob, None, after)


def test_a_vm_is_in_a_scope_and_its_threads_in_groups_of_libvirt(vms):
    for number, (name, vm) in enumerate(vms.items(), 1):
        escaped = f'qemu-{number}-{name}'.replace('-', '\\x2d')
        text = pathlib.Path(f'/proc/{vm.pid}/cgroup').read_text()
        assert text == (
            f'0::/machine.slice/machine-{escaped}.scope/libvirt/emulator\n'
        )
        vcpus = (vm.group / 'libvirt/vcpu0/cgroup.threads').read_text()
        assert len(vcpus.split()) == 1


def test_the_scope_is_found_to_be_the_vms_own_group(vms):
    mounts = cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())
    for vm in vms.values():
        groups = vm_files.private_groups(
            pathlib.Path(f'/proc/{vm.pid}'), mounts
        )
        assert dict(groups) == {
            cgroup.UNIFIED: pathlib.PurePosixPath(vm.group)
        }


def test_every_counter_is_that_of_the_scope(vms, found):
    reader = counters.CounterReader()
    told = {name: vm.cpu_s() for name, vm in vms.items()}
    sample = reader.read(found.incarnations())
    reader.close()
    assert np.isfinite(sample.totals).all()
    cpu_time = sample.totals[:, resources.RESOURCES.index('cpu_time')]
    memory = sample.totals[:, resources.RESOURCES.index('memory')]
    for row, incarnation in enumerate(found.incarnations()):
        used = told[incarnation.instance.domain_name]
        assert used <= cpu_time[row] <= used + 5
        assert memory[row] > TOUCHED_MIB * MIB


def test_two_vms_on_one_cpu_have_stall_time(vms, found):
    reader = counters.CounterReader()
    before = reader.read(found.incarnations())
    time.sleep(3)
    after = reader.read(found.incarnations())
    reader.close()
    passed = after.time_s - before.time_s
    stalled = (after.cpu_stall_s - before.cpu_stall_s) / passed
    assert (stalled > 0.25).all()


def test_libvirt_and_the_control_read_the_same_weight(vms, keys, control):
    vm = vms['ann-1']
    vm.domain.setSchedulerParameters({'cpu_shares': 250})
    try:
        assert control.read([keys['ann-1']]) == {keys['ann-1']: 250}
    finally:
        vm.domain.setSchedulerParameters({'cpu_shares': 100})
    (outcome,) = control.write([change(keys['ann-1'], 400)])
    assert outcome.written
    try:
        told = vm.domain.schedulerParameters()['cpu_shares']
        assert told == 400
    finally:
        assert control.write([change(keys['ann-1'], 100)])[0].written


@pytest.mark.parametrize(
    ('ann', 'bob', 'ratio'), [(100, 100, 1.0), (100, 300, 3.0)]
)
def test_cpu_time_follows_the_weights(vms, keys, control, ann, bob, ratio):
    changes = [change(keys['ann-1'], ann), change(keys['bob-1'], bob)]
    assert all(item.written for item in control.write(changes))
    assert weights(vms) == {'ann-1': ann, 'bob-1': bob}
    before = {name: vm.cpu_s() for name, vm in vms.items()}
    wanted = pytest.approx(ratio, rel=0.15)
    # Others keep the machine waiting, for which the VM of the moment is
    # charged: the longer the look, the less that counts.
    for _ in range(10):
        time.sleep(8)
        used = {name: vm.cpu_s() - before[name] for name, vm in vms.items()}
        if used['bob-1'] / used['ann-1'] == wanted:
            break
    assert used['bob-1'] / used['ann-1'] == wanted


def test_a_vm_that_ends_takes_its_scope_along(start, control, found):
    vm = start('carl-1', 'carl')
    assert vm.domain.state()[0] == libvirt.VIR_DOMAIN_RUNNING
    group = vm.group
    deadline = time.monotonic() + 60
    while len(found.incarnations()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (key,) = (
        item.key
        for item in found.incarnations()
        if item.instance.domain_name == 'carl-1'
    )
    assert control.read([key]) == {key: 100}
    vm.domain.destroy()
    start.vms.remove(vm)
    while group.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert control.read([key]) == {}
    assert control.write([change(key, 200)])[0].gone
