# SPDX-License-Identifier: Apache-2.0


"""The helper trusts nothing that it is told."""

import errno
import os
import pathlib
import sys

from oslo_config import cfg
from oslo_privsep import priv_context
import pytest

from nova_fairness import exception
from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_client
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup


@pytest.fixture
def restored_default():
    yield
    cfg.CONF.reset()
    cfg.CONF.clear_default('helper_command', group=privileged.SECTION)


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / 'a file.conf'
    path.write_text('[fairness]\ninterval = 10\n')
    return path


@pytest.mark.parametrize(
    ('name', 'text', 'ticks', 'expected'),
    [
        ('cpu.shares', '500', 500, 0),
        ('cpu.shares', '500', 499, errno.ESRCH),
        ('cgroup.procs', '500', 500, errno.EINVAL),
        ('cpu.cfs_quota_us', '500', 500, errno.EINVAL),
        ('../cpu.shares', '500', 500, errno.EINVAL),
        ('/etc/passwd', '500', 500, errno.EINVAL),
        ('', '500', 500, errno.EINVAL),
        ('cpu.shares', '-1', 500, errno.EINVAL),
        ('cpu.shares', '500\n1', 500, errno.EINVAL),
        ('cpu.shares', '500\n', 500, errno.EINVAL),
        ('cpu.shares', '', 500, errno.EINVAL),
        ('cpu.shares', '٣', 500, errno.EINVAL),
        ('cpu.shares', '1' * 20, 500, errno.EINVAL),
    ],
)
def test_only_known_files_and_whole_numbers_are_written(
    host, name, text, ticks, expected
):
    key = host.start(7)
    assert privileged.write_controls([(name, text, 7, ticks)]) == [expected]
    assert host.value(key) == (1024 if expected else 500)


@pytest.mark.parametrize(
    'lines',
    [
        '3:cpu:/',
        '3:cpu:/system.slice/nova-compute.service',
        '3:cpu:/../qemu-outside',
        '3:memory:/machine/qemu-1-a',
    ],
)
def test_a_group_that_is_no_vms_own_is_never_written(host, lines):
    host.start(7)
    (host.proc / '7' / 'cgroup').write_text(lines + '\n')
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [errno.EPERM]


@pytest.mark.parametrize('level', [0, 1])
def test_a_group_that_a_user_made_and_named_like_a_vms_is_never_written(
    host, monkeypatch, level
):
    key = host.start(7)
    monkeypatch.setattr(privileged.os, 'geteuid', lambda: 4711)
    request = ('cpu.shares', '500', 7, 500, level)
    expected = errno.EINVAL if level else errno.EPERM
    assert privileged.write_controls([request]) == [expected]
    assert host.value(key) == 1024


def swap(monkeypatch, group, other):
    """Put another group in the place of one, as soon as it was looked at."""
    look = {'stat': os.stat, 'fstat': os.fstat}
    done = []

    def looking(name):
        def looked(*arguments, **named):
            found = look[name](*arguments, **named)
            place = look['stat'](group) if not done else None
            if place and (found.st_ino, found.st_dev) == (
                place.st_ino,
                place.st_dev,
            ):
                done.append(name)
                group.rename(group.with_name('aside'))
                other.rename(group)
            return found

        return looked

    for name in look:
        monkeypatch.setattr(privileged.os, name, looking(name))
    return done


def test_the_group_that_was_looked_at_is_the_one_that_is_written(
    host, monkeypatch, tmp_path
):
    """Between both a path may come to lead to a group of somebody else."""
    key = host.start(7)
    group = host.file_of(key).parent
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'cpu.shares').write_text('1024')
    done = swap(monkeypatch, group, other)
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [0]
    assert done
    assert (group / 'cpu.shares').read_text() == '1024'
    aside = group.with_name('aside')
    assert (aside / 'cpu.shares').read_text().startswith('500')


def test_a_group_that_is_a_link_is_not_followed(host, tmp_path):
    key = host.start(7)
    group = host.file_of(key).parent
    group.rename(tmp_path / 'elsewhere')
    group.symlink_to(tmp_path / 'elsewhere')
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [errno.ENOTDIR]
    assert (tmp_path / 'elsewhere/cpu.shares').read_text() == '1024\n'


def test_the_helper_never_creates_files(host):
    key = host.start(7)
    host.file_of(key).unlink()
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [errno.ENOENT]
    assert not host.file_of(key).exists()


def test_the_helper_follows_no_symbolic_link(host, tmp_path):
    key = host.start(7)
    victim = tmp_path / 'victim'
    victim.write_text('untouched')
    host.file_of(key).unlink()
    host.file_of(key).symlink_to(victim)
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [errno.ELOOP]
    assert victim.read_text() == 'untouched'


def test_a_refused_write_does_not_prevent_others(host):
    first, last = host.start(7), host.start(9)
    requests = [
        ('cpu.shares', '500', 7, 500),
        ('cpu.shares', '501', 8, 500),
        ('cpu.shares', '502', 9, 500),
    ]
    assert privileged.write_controls(requests) == [0, errno.ENOENT, 0]
    assert (host.value(first), host.value(last)) == (500, 502)


@pytest.mark.parametrize('name', files.FILES)
def test_every_control_file_accepts_whole_numbers(name):
    item = files.FILES[name]
    assert 0 <= item.lowest <= item.default <= item.highest
    assert item.controller in (
        'cpu',
        'cpuset',
        'memory',
        'blkio',
        cgroup.UNIFIED,
    )
    assert not item.allows('', files.OWN)
    assert not item.allows('1\n', files.OWN)
    assert not item.allows('-1', files.OWN)


@pytest.mark.parametrize(
    ('name', 'text', 'level', 'allowed'),
    [
        ('memory.low', '1048576', 0, True),
        ('memory.low', 'max', 3, True),
        ('memory.low', '0', -1, True),
        ('memory.low', '0', -2, False),
        ('memory.low', 'maximum', 0, False),
        ('cpu.weight', '100', 1, False),
        ('cpu.weight', '100', -1, False),
        ('memory.soft_limit_in_bytes', '1048576', 1, False),
        ('io.weight', 'default 100', 0, True),
        ('io.weight', '8:0 100', 0, False),
        ('io.max', '8:16 rbps=1048576 wbps=max', 0, True),
        ('io.max', '8:16', 0, False),
        ('io.max', '8:16 rbps=1\n8:17 rbps=1', 0, False),
        ('io.max', '8:16 latency=1', 0, False),
        ('blkio.throttle.read_bps_device', '8:16 1048576', 0, True),
        ('blkio.throttle.read_bps_device', '1048576', 0, False),
        ('cpuset.cpus', '3', -2, True),
        ('cpuset.cpus', '0-1,7', -130, True),
        ('cpuset.cpus', '', -2, True),
        ('cpuset.cpus', '3', 0, False),
        ('cpuset.cpus', '3', -1, False),
        ('cpuset.cpus', '3', 1, False),
        ('cpuset.cpus', '3,', -2, False),
        ('cpuset.cpus', '3\n4', -2, False),
        ('cpu.weight', '100', -2, False),
    ],
)
def test_each_file_has_its_form_of_values(name, text, level, allowed):
    assert files.FILES[name].allows(text, level) == allowed


def test_protection_is_written_to_the_groups_above_but_not_beside(tmp_path):
    group = '/a.slice/machine-qemu-1-a.scope'
    for name in ('', '/a.slice', group, f'{group}/libvirt'):
        directory = tmp_path / name.lstrip('/')
        directory.mkdir(exist_ok=True)
        (directory / 'memory.low').write_text('0')
    proc = tmp_path / 'proc' / '7'
    proc.mkdir(parents=True)
    (proc / 'cgroup').write_text(f'0::{group}/libvirt/emulator\n')
    mounts = {cgroup.UNIFIED: cgroup.Mount(pathlib.PurePath(tmp_path), '/')}

    def path(level):
        return files.control_path(
            str(tmp_path / 'proc'), mounts, 7, 'memory.low', level
        )

    assert path(0) == f'{tmp_path}{group}/memory.low'
    assert path(1) == f'{tmp_path}/a.slice/memory.low'
    assert path(-1) == f'{tmp_path}{group}/libvirt/memory.low'
    for level in (2, 9, -2):
        with pytest.raises(exception.WriteRefused):
            path(level)


def test_a_helper_that_cannot_start_says_which_option_to_set(monkeypatch):
    monkeypatch.setattr(privileged.context, 'client_mode', True)
    cfg.CONF.set_override(
        'helper_command', '/nonexistent/helper', group=privileged.SECTION
    )
    try:
        with pytest.raises(
            exception.ControlUnavailable, match='helper_command'
        ):
            privileged.write_controls([('cpu.shares', '500', 7, 500)])
    finally:
        cfg.CONF.clear_override('helper_command', group=privileged.SECTION)


PROGRAM = str(
    pathlib.Path(sys.executable).with_name(privileged_client.PROGRAM)
)
ASKED = [
    '--privsep_context',
    'nova_fairness.apply.privileged.context',
    '--privsep_sock_path',
    '/tmp/s',
]


@pytest.mark.parametrize(('user', 'before'), [(0, []), (1000, ['sudo'])])
def test_the_program_beside_the_interpreter_is_started(
    monkeypatch, restored_default, config_file, user, before
):
    monkeypatch.setattr(os, 'geteuid', lambda: user)
    privileged.prepare([str(config_file)])
    command = privileged.context.helper_command('/tmp/s')
    assert command == [*before, PROGRAM, *ASKED]


@pytest.mark.parametrize('user', [0, 1000])
def test_a_helper_command_of_the_operator_is_used(
    monkeypatch, restored_default, config_file, user
):
    config_file.write_text(
        f'[{privileged.SECTION}]\nhelper_command = doas helper --config-file x'
    )
    monkeypatch.setattr(os, 'geteuid', lambda: user)
    privileged.prepare([str(config_file)])
    command = privileged.context.helper_command('/tmp/s')
    assert command == ['doas', 'helper', '--config-file', 'x', *ASKED]


def test_a_helper_command_of_one_section_applies_to_the_other(
    monkeypatch, restored_default, config_file
):
    other = priv_context.PrivContext(
        __name__, 'test_door', f'{__name__}.other', capabilities=[]
    )
    monkeypatch.setattr(sys.modules[__name__], 'other', other, raising=False)
    config_file.write_text(
        f'[{privileged.SECTION}]\nhelper_command = doas helper'
    )
    privileged.prepare([str(config_file)])
    privileged_client.PrivilegedClient(other).prepare(like=privileged.SECTION)
    assert other.helper_command('/tmp/s')[:2] == ['doas', 'helper']
    cfg.CONF.set_override('helper_command', 'own', group='test_door')
    assert other.helper_command('/tmp/s')[0] == 'own'
    cfg.CONF.clear_override('helper_command', group='test_door')


def test_the_helper_keeps_no_capability():
    assert list(cfg.CONF[privileged.SECTION].capabilities) == []
