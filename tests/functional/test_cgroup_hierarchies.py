# SPDX-License-Identifier: Apache-2.0

"""Each control is taken from the hierarchy that has its controller.

The kernel's own table, ``/proc/cgroups``, is the measure: it holds on hosts
with version 1, with version 2 and with both ("hybrid").
"""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import files as groups
from nova_fairness.apply.cgroup import memory
from nova_fairness.collect import files
from nova_fairness.collect import vm_files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import resources

pytestmark = [pytest.mark.real, pytest.mark.beside]

BURN = """
import sys, time
for joined in sys.argv[1:]:
    open(joined, 'w').write('0')
began = time.process_time()
while time.process_time() < began + 0.5:
    pass
print('burned', flush=True)
time.sleep(600)
"""


def version_of(controller):
    """Version of control groups that has a controller here."""
    table = pathlib.Path('/proc/cgroups').read_text()
    numbers = {
        line.split()[0]: line.split()[1] for line in table.splitlines()[1:]
    }
    return 2 if numbers[controller] == '0' else 1


def mounts():
    return cgroup.mounts(pathlib.Path('/proc/self/mountinfo').read_text())


@pytest.fixture(scope='module')
def vm():
    """A process that burned half a second, in groups of a VM everywhere."""
    made = []
    for mount in mounts().values():
        leaf = pathlib.Path(mount.path) / f'qemu-1-h{os.getpid()}.libvirt-qemu'
        if mount.path.name in ('systemd', 'cpuset') or leaf in made:
            continue  # one needs more to take a process, one belongs to others
        leaf.mkdir(exist_ok=True)
        made.append(leaf)
    joins = [str(leaf / 'cgroup.procs') for leaf in made]
    process = subprocess.Popen(
        [sys.executable, '-I', '-S', '-c', BURN, *joins],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b'burned\n'
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for leaf in made:
            leaf.rmdir()


def files_of(vm):
    ticks = groups.start_ticks('/proc', vm.pid)
    incarnation = instance.Incarnation(
        instance.Instance('u', 'h', 1, 2**30), vm.pid, ticks
    )
    return vm_files.VmFiles(
        incarnation,
        pathlib.Path('/proc'),
        mounts(),
        files.DescriptorBudget(64),
    )


def test_cpu_time_is_steered_where_the_controller_is():
    name = {1: 'cpu.shares', 2: 'cpu.weight'}[version_of('cpu')]
    assert control.CpuShares().availability() == (True, name)


def test_memory_is_steered_where_the_controller_is():
    name = {1: 'memory.soft_limit_in_bytes', 2: 'memory.low'}
    works, what = memory.MemoryProtection().availability()
    assert works
    assert what == name[version_of('memory')]


def test_disks_are_steered_where_the_controller_is():
    works, what = disk.DiskWeight().availability()
    assert works
    assert what.startswith({1: 'blkio.', 2: 'io.'}[version_of('blkio')])


def test_a_vm_has_a_group_of_its_own_in_every_hierarchy(vm):
    own = pathlib.Path(f'/proc/{vm.pid}')
    found = vm_files.private_groups(own, mounts())
    wanted = {'cpu', 'memory', 'blkio'} & mounts().keys()
    assert found.keys() >= wanted | ({cgroup.UNIFIED} & mounts().keys())
    for path in found.values():
        pids = (pathlib.Path(path) / 'cgroup.procs').read_text().split()
        assert pids == [str(vm.pid)]


def test_cpu_time_is_counted_and_stall_is_known(vm):
    read = files_of(vm)
    used_s, stalled_s, held, _ = read.read()
    time.sleep(0.2)
    again_s, _, _, _ = read.read()
    read.close()
    assert 0.4 < used_s < 5
    assert used_s <= again_s < used_s + 0.1
    assert (stalled_s >= 0) == (cgroup.UNIFIED in mounts())
    assert held > 2**20


def test_a_vm_leaves_the_idle_class_before_it_gets_shares(vm, monkeypatch):
    monkeypatch.setattr(privileged.context, 'client_mode', False)
    if version_of('cpu') == 2:
        top = pathlib.Path(mounts()[cgroup.UNIFIED].path)
        (top / 'cgroup.subtree_control').write_text('+cpu')
    ticks = groups.start_ticks('/proc', vm.pid)
    knob = allocation.Knob(
        f'u/{vm.pid}/{ticks}', resources.ResourceControl.CPU
    )
    shares = control.CpuShares()
    found = shares.read([knob.incarnation])[knob.incarnation]
    now = found
    for wanted in (allocation.IDLE, 77, allocation.IDLE, found):
        change = allocation.Change(knob, now, wanted)
        (outcome,) = shares.write([change])
        assert outcome.written, outcome.error
        now = shares.read([knob.incarnation])[knob.incarnation]
        assert now == wanted
    shares.close()
