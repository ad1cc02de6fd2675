# SPDX-License-Identifier: Apache-2.0


"""Which group a process is in, and whether it is the one that was meant."""

import pytest

from nova_fairness import exception
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup
from tests.unit.apply import fake_host

MOUNTS = cgroup.mounts(
    '32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n'
    '41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n'
)
SCOPE = '/machine.slice/machine-qemu\\x2d1\\x2da.scope'


def test_the_start_time_is_parsed_after_an_awkward_process_name(host):
    host.start(7, ticks=123)
    assert files.start_ticks(str(host.proc), 7) == 123


def test_a_process_that_is_gone_or_a_zombie_has_no_start(host):
    host.start(7, state='Z')
    assert files.start_ticks(str(host.proc), 7) is None
    assert files.start_ticks(str(host.proc), 8) is None


def test_a_process_that_cannot_be_read_is_not_taken_for_gone(host):
    host.start(7)
    (host.proc / '7' / 'stat').unlink()
    (host.proc / '7' / 'stat').mkdir()
    with pytest.raises(IsADirectoryError):
        files.is_running(str(host.proc), 'u/7/500')


@pytest.mark.parametrize(
    ('ticks', 'expected'), [(500, True), (499, False), (501, False)]
)
def test_a_reused_process_id_is_another_process(host, ticks, expected):
    host.start(7, ticks=500)
    assert files.is_running(str(host.proc), f'u/7/{ticks}') is expected


@pytest.mark.parametrize(
    ('lines', 'name', 'expected'),
    [
        (
            '3:cpu,cpuacct:/machine/qemu-1-a.libvirt-qemu/emulator',
            'cpu.shares',
            '/cg/cpu,cpuacct/machine/qemu-1-a.libvirt-qemu/cpu.shares',
        ),
        (
            f'3:cpu,cpuacct:{SCOPE}/emulator\n0::/user',
            'cpu.shares',
            f'/cg/cpu,cpuacct{SCOPE}/cpu.shares',
        ),
        (
            f'0::{SCOPE}/libvirt/emulator',
            'cpu.weight',
            f'/cg/unified{SCOPE}/cpu.weight',
        ),
    ],
)
def test_the_control_is_in_the_group_of_the_whole_vm(
    host, lines, name, expected
):
    host.start(7)
    (host.proc / '7' / 'cgroup').write_text(lines + '\n')
    path = files.control_path(str(host.proc), MOUNTS, 7, name)
    assert path == expected


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        ('3:cpu:/', 'not that of one VM'),
        ('3:cpu:/system.slice/libvirtd.service', 'not that of one VM'),
        ('3:memory:/machine/qemu-1-a', 'none of its control groups'),
        ('3:cpu:/../qemu-1-a', 'not visible here'),
    ],
)
def test_a_group_that_is_not_the_vms_own_is_refused(host, lines, message):
    host.start(7)
    (host.proc / '7' / 'cgroup').write_text(lines + '\n')
    with pytest.raises(exception.WriteRefused, match=message):
        files.control_path(str(host.proc), MOUNTS, 7, 'cpu.shares')


def test_a_controller_that_is_not_mounted_is_refused(host):
    host.start(7)
    with pytest.raises(
        exception.WriteRefused, match='none of its control groups'
    ):
        files.control_path(str(host.proc), {}, 7, 'cpu.shares')


def test_the_fake_procfs_has_awkward_process_names():
    assert fake_host.stat_line(1, 2).count(')') == 2
