# SPDX-License-Identifier: Apache-2.0

"""Weights of disks on control groups v2: kept, or said to be without effect.

Real processes in groups as libvirt makes them read a real disk of the
machine, slow enough that a few of them keep it busy.
"""

import contextlib
import os
import pathlib
import subprocess

import pytest

from fairness_lab.testbed.guests import fleet
from fairness_lab.testbed.nodes import namespace
from fairness_lab.testbed.nodes import processes
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import disk as blkio
from nova_fairness.collect import counters
from nova_fairness.collect import pressure
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from tests.fixtures.v2_guest import vms as vms_module
from tests.functional import test_memory_disk_real as groups_of_vms

DISK = pathlib.Path('/dev/vdb')
QUEUE = pathlib.Path('/sys/block', DISK.name, 'queue')
COST = pathlib.Path('/sys/fs/cgroup/io.cost.qos')
MIB = 1 << 20
MEASURED = 40 * MIB


def number():
    device = DISK.stat().st_rdev
    return f'{os.major(device)}:{os.minor(device)}'


@pytest.fixture(scope='module')
def vms():
    """Two VMs, of which each has a disk on the same device."""
    made = groups_of_vms.Vms()
    try:
        made.keys = [made.start(), made.start()]
        yield made
    finally:
        made.close()


@pytest.fixture(scope='module')
def helper():
    privileged.prepare()
    yield
    privileged.context.stop()


@pytest.fixture
def control(vms, helper):
    made = blkio.DiskWeight(None, lambda: sample(vms.keys))
    yield made
    made.close()


def sample(keys):
    """Read counters and devices as an agent does."""
    found = []
    for key in keys:
        uuid, pid, ticks = instance.parse_key(key)
        disk = instance.Disk('vda', str(DISK), 'none')
        vm = instance.Instance(uuid, uuid, 1, 1 << 30, disks=(disk,))
        found.append(instance.Incarnation(vm, pid, ticks))
    with (
        contextlib.closing(counters.CounterReader()) as counted,
        contextlib.closing(pressure.PressureReader()) as waited,
    ):
        return waited.read(counted.read(found))


def schedule(name):
    (QUEUE / 'scheduler').write_text(name)


def write(control, keys, *weights):
    control.read(keys)
    return control.write(
        [
            allocation.Change(
                allocation.Knob(key, resources.ResourceControl.DISK),
                None,
                weight,
            )
            for key, weight in zip(keys, weights, strict=True)
        ]
    )


@pytest.mark.parametrize('scheduler', ['none', 'mq-deadline', 'kyber'])
def test_a_disk_scheduler_without_weights_is_named(vms, control, scheduler):
    schedule(scheduler)
    assert control.read(vms.keys) == {}
    said = f'device {DISK.name} uses {scheduler}'
    assert control.availability() == (False, f'without effect: {said}')
    assert control.without_effect() == dict.fromkeys(
        vms.keys, f'without effect: {said}'
    )
    for outcome in write(control, vms.keys, 50, 500):
        assert not outcome.written
        assert said in outcome.error
    for place in (1, 2):
        assert vms.value(place, 'io.weight') == 'default 100'


def test_a_cost_model_keeps_weights_with_any_scheduler(vms, control):
    schedule('none')
    COST.write_text(f'{number()} enable=1')
    try:
        outcomes = write(control, vms.keys, 50, 500)
        assert [item.error for item in outcomes] == ['', '']
        held = [vms.value(place, 'io.weight') for place in (1, 2)]
        assert held == ['default 50', 'default 500']
        assert control.availability() == (True, 'io.weight')
        assert control.read(vms.keys) == dict(
            zip(vms.keys, (50, 500), strict=True)
        )
    finally:
        write(control, vms.keys, 100, 100)
        COST.write_text(f'{number()} enable=0')


@contextlib.contextmanager
def readers(vms):
    """Let both VMs read at random places, many requests at once."""
    started = []
    try:
        for place in (1, 2):
            group = vms.group(place, 'io.stat') / 'emulator'
            job = fleet.VmLoad(f'vm-{place}', 0, DISK, True, 64, 16)
            command = namespace.joining(
                [group / 'cgroup.procs'], job.command(600)
            )
            started.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        yield
    finally:
        for place in range(1, len(started) + 1):
            group = vms.group(place, 'io.stat') / 'emulator'
            end_others(group, vms.processes[place - 1].pid)
        for process in started:
            process.wait()


def end_others(group, kept):
    """Kill all of a group but one, also what it starts meanwhile."""

    def others():
        pids = (group / 'cgroup.procs').read_text().split()
        return [int(pid) for pid in pids if int(pid) != kept]

    def kill():
        for pid in others():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        return not others()

    assert processes.wait_until(kill, vms_module.PATIENCE_S, 0.05)


def bytes_read(vms):
    """Bytes that each VM has read from the disk."""
    found = []
    for place in (1, 2):
        text = vms.value(place, 'io.stat')
        line = next(
            (row for row in text.splitlines() if row.startswith(number())), ''
        )
        fields = dict(item.split('=') for item in line.split()[1:])
        found.append(int(fields.get('rbytes', 0)))
    return found


def await_read(vms, is_enough):
    """Wait until enough was read; give what each VM has from now on."""
    before = bytes_read(vms)

    def read():
        now = bytes_read(vms)
        return [new - old for old, new in zip(before, now, strict=True)]

    assert processes.wait_until(
        lambda: is_enough(read()), vms_module.PATIENCE_S, 0.1
    ), f'too little was read: {read()}'
    return read()


@pytest.mark.parametrize(('first', 'second'), [(100, 400), (400, 100)])
def test_bfq_divides_a_busy_disk_by_weight(vms, control, first, second):
    schedule('bfq')
    (QUEUE / 'iosched/strict_guarantees').write_text('1')
    outcomes = write(control, vms.keys, first, second)
    assert [item.error for item in outcomes] == ['', '']
    assert control.availability() == (True, 'io.bfq.weight')
    try:
        with readers(vms):
            await_read(vms, lambda read: min(read) > MIB)
            ours, theirs = await_read(vms, lambda read: sum(read) > MEASURED)
    finally:
        write(control, vms.keys, 100, 100)
    assert theirs / ours == pytest.approx(second / first, rel=0.3)
    assert vms.value(1, 'io.bfq.weight') == 'default 100'
