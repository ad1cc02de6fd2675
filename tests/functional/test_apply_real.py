# SPDX-License-Identifier: Apache-2.0


"""Controls of real processes in real control groups of this kernel."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from nova_fairness.apply import applier as appliers
from nova_fairness.apply import control as control_base
from nova_fairness.apply import found_values
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import files
from nova_fairness.model import allocation
from nova_fairness.model import cgroup
from nova_fairness.model import resources
from tests.fixtures import effort
from tests.unit.apply import killed

pytestmark = [pytest.mark.real, pytest.mark.beside]

BEFORE = (1024, 2048, 3072)


class Vms:
    """Sleeping processes in groups as libvirt makes them for VMs."""

    def __init__(self):
        mounts = cgroup.mounts(
            pathlib.Path('/proc/self/mountinfo').read_text()
        )
        self.v1 = 'cpu' in mounts
        mount = mounts['cpu' if self.v1 else cgroup.UNIFIED]
        self.name = 'cpu.shares' if self.v1 else 'cpu.weight'
        self.parent = pathlib.Path(mount.path) / f'fairness-{os.getpid()}'
        self.groups = []
        self.processes = []

    def start(self, value):
        number = len(self.groups) + 1
        group = self.parent / 'machine' / f'qemu-{number}-x.libvirt-qemu'
        inner = group / 'emulator'
        inner.mkdir(parents=True)
        self._enable(group)
        process = subprocess.Popen(['sleep', '600'])
        self.groups.append(group)
        self.processes.append(process)
        (inner / 'cgroup.procs').write_text(str(process.pid))
        self.set(number - 1, value)
        ticks = files.start_ticks('/proc', process.pid)
        return f'uuid-{number}/{process.pid}/{ticks}'

    def _enable(self, group):
        for parent in () if self.v1 else (group.parent.parent, group.parent):
            (parent / 'cgroup.subtree_control').write_text('+cpu')

    def set(self, place, value):
        (self.groups[place] / self.name).write_text(str(value))

    def values(self):
        return tuple(
            int((group / self.name).read_text()) for group in self.groups
        )

    def end(self, place):
        self.processes[place].kill()
        self.processes[place].wait()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        below = [path for path in self.parent.rglob('*') if path.is_dir()]
        for path in sorted(below, reverse=True):
            path.rmdir()
        if self.parent.exists():
            self.parent.rmdir()


@pytest.fixture
def vms():
    made = Vms()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def keys(vms):
    return [vms.start(value) for value in BEFORE]


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(privileged.context, 'client_mode', False)


@pytest.fixture
def helper():
    privileged.prepare()
    yield privileged.context
    privileged.context.stop()


def helper_pid():
    """Process id of the helper that belongs to this process."""
    (pid,) = (
        int(path.parent.name)
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
        if _is_our_helper(path)
    )
    return pid


def _is_our_helper(path):
    try:
        words = path.read_bytes().split(b'\0')
        environment = (path.parent / 'environ').read_bytes().split(b'\0')
    except OSError:
        return False
    mark = f'FAIRNESS_TEST={os.getpid()}'.encode()
    return b'nova_fairness.apply.privileged.context' in words and (
        mark in environment
    )


def change(key, after):
    knob = allocation.Knob(key, resources.ResourceControl.CPU)
    return allocation.Change(knob, None, after)


def open_applier(path):
    found = found_values.FoundValues(path)
    assert found.load() == ''
    return appliers.Applier([group_control.CpuShares()], found), found


def test_the_helper_writes_without_capabilities(
    vms, keys, helper, monkeypatch
):
    monkeypatch.setenv('FAIRNESS_TEST', str(os.getpid()))
    control = group_control.CpuShares()
    outcomes = control.write([change(key, 500) for key in keys])
    assert all(outcome.written for outcome in outcomes)
    assert vms.values() == (500, 500, 500)
    status = pathlib.Path(f'/proc/{helper_pid()}/status').read_text()
    held = dict(line.split(':', 1) for line in status.splitlines())
    for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
        assert int(held[name], 16) == 0


def test_a_helper_that_was_killed_is_started_again(
    vms, keys, helper, monkeypatch
):
    monkeypatch.setenv('FAIRNESS_TEST', str(os.getpid()))
    control = group_control.CpuShares()
    assert control.write([change(keys[0], 500)])[0].written
    first = helper_pid()
    os.kill(first, signal.SIGKILL)
    assert control.write([change(keys[0], 600)])[0].written
    assert helper_pid() != first
    assert vms.values()[0] == 600


def test_a_helper_killed_with_a_request_under_way_is_replaced(
    vms, keys, helper, monkeypatch
):
    monkeypatch.setenv('FAIRNESS_TEST', str(os.getpid()))
    control = group_control.CpuShares()
    assert control.write([change(keys[0], 500)])[0].written
    first = helper_pid()
    os.kill(first, signal.SIGSTOP)
    # The request waits in the socket of the stopped helper when it dies,
    # which resets the connection.
    timer = threading.Timer(1, os.kill, (first, signal.SIGKILL))
    timer.start()
    assert control.write([change(keys[0], 600)])[0].written
    timer.join()
    assert helper_pid() != first
    assert vms.values()[0] == 600


def test_a_helper_that_does_not_answer_delays_no_write(
    vms, keys, helper, monkeypatch
):
    monkeypatch.setenv('FAIRNESS_TEST', str(os.getpid()))
    control = group_control.CpuShares()
    assert control.write([change(keys[0], 500)])[0].written
    first = helper_pid()
    os.kill(first, signal.SIGSTOP)
    try:
        assert control.write([change(keys[0], 600)])[0].written
        assert vms.values()[0] == 600
    finally:
        os.kill(first, signal.SIGKILL)


@pytest.mark.parametrize('value', [-1, 1, 262145, 10**18])
def test_out_of_range_values_leave_the_control_alone(
    vms, keys, in_process, value
):
    (outcome,) = group_control.CpuShares().write([change(keys[0], value)])
    if vms.v1 or value != 1:
        assert f'cannot be {value}' in outcome.error
        assert vms.values() == BEFORE


def test_an_idle_vm_gets_back_its_earlier_values(
    vms, keys, in_process, tmp_path
):
    applier, _found = open_applier(tmp_path / 'found')
    idle = allocation.IDLE
    assert all(item.written for item in applier.apply([change(keys[0], idle)]))
    assert (vms.groups[0] / 'cpu.idle').read_text() == '1\n'
    knob = allocation.Knob(keys[0], resources.ResourceControl.CPU)
    assert applier.read_values(keys)[knob] == idle
    # Nobody can give it shares meanwhile.
    with pytest.raises(OSError, match='Invalid argument'):
        vms.set(0, 700)

    normal = allocation.Change(knob, idle, 500)
    assert applier.apply([normal])[0].written
    assert (vms.groups[0] / 'cpu.idle').read_text() == '0\n'
    assert vms.values() == (500, *BEFORE[1:])

    applier.apply([change(key, idle) for key in keys])
    assert all(item.written for item in applier.restore())
    assert vms.values() == BEFORE


def test_shares_equal_to_the_idle_value_are_treated_as_shares(
    vms, keys, in_process
):
    vms.set(0, 3)
    assert group_control.CpuShares().read(keys)[keys[0]] == 3


def test_a_value_that_the_kernel_adjusted_is_read_back(vms, keys, monkeypatch):
    def meddled(requests):
        vms.set(0, 2)
        return [0]

    control = group_control.CpuShares(writer=meddled)
    (outcome,) = control.write([change(keys[0], 500)])
    assert 'the kernel set 2 instead' in outcome.error


def test_a_vanished_process_keeps_no_other_vm_from_being_written(
    vms, keys, in_process
):
    control = group_control.CpuShares()
    control.read(keys)
    vms.end(1)
    outcomes = control.write([change(key, 500) for key in keys])
    assert [outcome.gone for outcome in outcomes] == [False, True, False]
    assert vms.values() == (500, BEFORE[1], 500)


def test_a_recreated_group_of_the_same_name_is_a_new_group(
    vms, keys, in_process
):
    control = group_control.CpuShares()
    control.read(keys)
    vms.end(1)
    (vms.groups[1] / 'emulator').rmdir()
    vms.groups[1].rmdir()
    vms.groups[1].mkdir()
    vms.set(1, 4096)
    assert set(control.read(keys)) == {keys[0], keys[2]}
    assert control.write([change(keys[1], 500)])[0].gone
    assert vms.values()[1] == 4096


def test_a_reused_process_id_is_not_written(vms, keys, in_process):
    uuid, pid, ticks = keys[0].split('/')
    earlier = f'{uuid}/{pid}/{int(ticks) - 1}'
    control = group_control.CpuShares()
    assert control.read([earlier]) == {}
    assert control.write([change(earlier, 500)])[0].gone
    assert vms.values() == BEFORE


def test_a_process_in_a_shared_group_is_not_written(vms, keys, in_process):
    pid = vms.processes[0].pid
    (vms.parent / 'cgroup.procs').write_text(str(pid))
    control = group_control.CpuShares()
    assert keys[0] not in control.read(keys)
    assert 'not that of one VM' in control.problems()[0]
    outcome = control.write([change(keys[0], 500)])[0]
    assert outcome.error
    assert not outcome.gone


def test_drift_of_a_control_is_detected_and_repaired(
    vms, keys, in_process, tmp_path
):
    applier, _found = open_applier(tmp_path / 'found')
    changes = [change(key, 500) for key in keys]
    applier.apply(changes)
    wanted = {item.knob: item.after for item in changes}
    assert control_base.drift(wanted, applier.read_values(keys)) == {}
    vms.set(1, 777)
    drifted = control_base.drift(wanted, applier.read_values(keys))
    assert drifted == {changes[1].knob: 777}
    applier.apply([change(knob.incarnation, 500) for knob in drifted])
    assert vms.values() == (500, 500, 500)
    applier.restore()
    assert vms.values() == BEFORE


def test_a_read_only_hierarchy_is_an_error_of_each_vm(vms, keys):
    script = textwrap.dedent(
        """
        import sys
        from nova_fairness.apply import privileged
        from nova_fairness.apply.cgroup import control
        from nova_fairness.model import allocation, resources
        privileged.context.set_client_mode(False)
        shares = control.CpuShares()
        for outcome in shares.write([
            allocation.Change(
                allocation.Knob(key, resources.ResourceControl.CPU), None, 500)
            for key in sys.argv[1:]
        ]):
            print(outcome.gone, outcome.error)
        """
    )
    mount = vms.parent.parent
    done = subprocess.run(
        [
            *('unshare', '-m', 'sh', '-c'),
            (
                f'mount --bind {mount} {mount} && '
                f'mount -o remount,ro,bind {mount} && exec "$0" "$@"'
            ),
            *(sys.executable, '-W', 'ignore', '-c', script, *keys),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(keys)
    for line in lines:
        assert line.startswith('False')
        assert 'Read-only file system' in line
    assert vms.values() == BEFORE


class Lives:
    """Lives of an agent whose controls are those of the kernel."""

    def __init__(self, vms, keys, path):
        self.vms, self.keys, self.path = vms, keys, path

    def begin_anew(self):
        for place, value in enumerate(BEFORE):
            (self.vms.groups[place] / 'cpu.idle').write_text('0')
            self.vms.set(place, value)
        for item in self.path.parent.glob(f'{self.path.name}*'):
            item.unlink()

    def whole(self):
        applier, found = open_applier(self.path)
        for value in (100, 200):
            self._steer(applier, value)
        self._steer(applier, allocation.IDLE, step=0)
        applier.restore(self.keys[:1])
        self._stop(applier, found)

    def short(self):
        applier, found = open_applier(self.path)
        self._steer(applier, 300)
        self._stop(applier, found)

    def start_and_stop(self):
        self._stop(*open_applier(self.path))

    def _steer(self, applier, value, step=1):
        changes = [
            change(key, value + step * place)
            for place, key in enumerate(self.keys)
        ]
        assert all(item.written for item in applier.apply(changes))

    def _stop(self, applier, found):
        assert all(item.written for item in applier.restore())
        found.close()


@pytest.mark.parametrize('next_life', ['start_and_stop', 'short'])
def test_killed_at_any_system_call_then_started_and_stopped(
    vms, keys, in_process, tmp_path, next_life
):
    lives = Lives(vms, keys, tmp_path / 'found')
    steered = 0
    for at in killed.moments(lives.whole, lives.begin_anew):
        steered += vms.values() != BEFORE
        assert killed.run(getattr(lives, next_life))
        assert vms.values() == BEFORE, f'killed at {at}'
    assert steered > effort.count_to_try(20, killed.QUICK_STEP)


@pytest.mark.parametrize(
    'at',
    [
        40,
        pytest.param(20, marks=pytest.mark.slow),
        pytest.param(60, marks=pytest.mark.slow),
    ],
)
def test_an_agent_killed_during_its_restore_restores_at_the_next_start(
    vms, keys, in_process, tmp_path, at
):
    lives = Lives(vms, keys, tmp_path / 'found')

    def begin_killed():
        lives.begin_anew()
        assert not killed.run(lives.whole, at)

    for again in killed.moments(lives.short, begin_killed):
        assert killed.run(lives.start_and_stop)
        assert vms.values() == BEFORE, again
