# SPDX-License-Identifier: Apache-2.0

"""Where the kernel keeps a process's control groups."""

import pathlib

import pytest

from nova_fairness.model import cgroup

HYBRID_PROCESS = """\
9:name=systemd:/
4:memory:/machine/qemu-2-a.libvirt-qemu
3:cpuset:/machine/qemu-2-a.libvirt-qemu/emulator
1:cpu,cpuacct:/machine/qemu-2-a.libvirt-qemu/emulator
0::/machine/qemu-2-a.libvirt-qemu/emulator
"""
HYBRID_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw shared:7 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_a_process_has_a_group_per_controller():
    groups = cgroup.groups_of_process(HYBRID_PROCESS)
    assert groups['memory'] == '/machine/qemu-2-a.libvirt-qemu'
    assert groups['cpu'] == groups['cpuacct']
    assert groups[cgroup.UNIFIED] == groups['cpu']
    assert groups['name=systemd'] == '/'


def test_a_group_with_a_colon_in_its_name_is_kept_whole():
    groups = cgroup.groups_of_process('0::/machine/qemu-2-a:b.libvirt-qemu')
    assert groups[cgroup.UNIFIED] == '/machine/qemu-2-a:b.libvirt-qemu'


@pytest.mark.parametrize(
    ('process', 'vm'),
    [
        (
            '/machine/qemu-2-a.libvirt-qemu/emulator',
            '/machine/qemu-2-a.libvirt-qemu',
        ),
        (
            '/machine/qemu-2-a.libvirt-qemu/vcpu11',
            '/machine/qemu-2-a.libvirt-qemu',
        ),
        ('/machine/qemu-2-a.libvirt-qemu', '/machine/qemu-2-a.libvirt-qemu'),
        (
            '/machine.slice/machine-qemu\\x2d1\\x2da.scope/libvirt/emulator',
            '/machine.slice/machine-qemu\\x2d1\\x2da.scope',
        ),
        # Memory and blkio of v1 have no groups of threads.
        (
            '/machine.slice/machine-qemu\\x2d1\\x2da.scope/libvirt',
            '/machine.slice/machine-qemu\\x2d1\\x2da.scope',
        ),
        ('/system.slice/libvirt', '/system.slice/libvirt'),
        ('/libvirt', '/libvirt'),
        ('/emulator', '/'),
        ('/', '/'),
    ],
)
def test_the_group_of_a_vm_is_above_those_of_its_threads(process, vm):
    assert cgroup.group_of_vm(process) == vm


@pytest.mark.parametrize(
    ('group', 'private'),
    [
        ('/machine/qemu-2-a.libvirt-qemu', True),
        ('/node/machine/qemu-12-instance-0000002a.libvirt-qemu', True),
        ('/machine.slice/machine-qemu\\x2d1\\x2da.scope', True),
        ('/machine/lxc-7-box.libvirt-lxc', True),
        ('/', False),
        ('/machine', False),
        ('/machine.slice', False),
        ('/system.slice/libvirtd.service', False),
        ('/user.slice/user-0.slice/session-3.scope', False),
        ('/qemu-hosts', False),
    ],
)
def test_only_a_group_that_libvirt_made_is_private(group, private):
    assert cgroup.is_private(group) is private


def test_mounts_are_found_by_controller():
    mounts = cgroup.mounts(HYBRID_MOUNTS)
    assert mounts['cpuacct'] == mounts['cpu']
    assert str(mounts['memory'].path) == '/sys/fs/cgroup/memory'
    assert str(mounts[cgroup.UNIFIED].path) == '/sys/fs/cgroup/unified'


def test_the_last_mount_of_a_hierarchy_covers_the_others():
    again = '50 31 0:38 / /elsewhere rw,relatime - cgroup2 cgroup2 rw\n'
    mounts = cgroup.mounts(HYBRID_MOUNTS + again)
    assert str(mounts[cgroup.UNIFIED].path) == '/elsewhere'


@pytest.mark.parametrize('text', ['', 'nonsense\n', '1 2 - \n'])
def test_a_line_that_is_no_mount_is_passed_over(text):
    assert cgroup.mounts(text) == {}


@pytest.mark.parametrize(
    ('root', 'group', 'expected'),
    [
        ('/', '/a/b', '/m/a/b'),
        ('/', '/', '/m'),
        ('/node', '/node/a', '/m/a'),
        ('/node', '/node', '/m'),
    ],
)
def test_a_group_has_a_directory_below_the_mount(root, group, expected):
    mount = cgroup.Mount(pathlib.PurePosixPath('/m'), root)
    assert str(cgroup.directory(mount, group)) == expected


@pytest.mark.parametrize(
    ('root', 'group'),
    [('/node', '/nodes/a'), ('/node', '/'), ('/', '/../outside')],
)
def test_a_group_outside_the_mount_has_no_directory(root, group):
    mount = cgroup.Mount(pathlib.PurePosixPath('/m'), root)
    with pytest.raises(ValueError, match='/m shows'):
        cgroup.directory(mount, group)


SCOPE = '/machine.slice/machine-qemu\\x2d1\\x2da.scope'


@pytest.mark.parametrize(
    ('process_group', 'level', 'expected'),
    [
        (f'{SCOPE}/libvirt/emulator', 0, SCOPE),
        (f'{SCOPE}/libvirt/emulator', 1, '/machine.slice'),
        (f'{SCOPE}/libvirt/emulator', -1, f'{SCOPE}/libvirt'),
        ('/a/b/qemu-1-x.libvirt-qemu/emulator', 2, '/a'),
        (SCOPE, 0, SCOPE),
        (f'{SCOPE}/libvirt/emulator', -2, f'{SCOPE}/libvirt/vcpu0'),
        (
            '/machine/qemu-2-a.libvirt-qemu/emulator',
            -5,
            '/machine/qemu-2-a.libvirt-qemu/vcpu3',
        ),
    ],
)
def test_groups_on_the_way_from_the_root(process_group, level, expected):
    assert cgroup.ancestor_group(process_group, level) == expected


@pytest.mark.parametrize(
    ('process_group', 'level'),
    [
        (f'{SCOPE}/libvirt/emulator', 2),
        (f'{SCOPE}/emulator', -1),
        (SCOPE, -2),
        ('/', 1),
    ],
)
def test_there_is_no_group_beyond_the_root_or_beside_the_way(
    process_group, level
):
    with pytest.raises(ValueError, match='no group'):
        cgroup.ancestor_group(process_group, level)


@pytest.mark.parametrize(
    'name',
    [' ', '\t', '\n', '\\', '#', ' - ', '\\040', '\x85', '\u2028', '\xa0'],
)
def test_a_mount_is_found_with_any_characters_in_its_path(name):
    where = f'/cg{name}x'
    told = ''.join(
        f'\\{ord(sign):03o}' if sign in ' \t\n\\#' else sign for sign in where
    )
    line = f'41 31 0:38 {told} {told} rw - cgroup2 none rw\n'
    found = cgroup.mounts(line)[cgroup.UNIFIED]
    assert str(found.path) == where
    assert found.root == where


@pytest.mark.parametrize('sign', ['\x0b', '\x85', '\u2028'])
def test_a_name_of_a_group_makes_no_line_of_its_own(sign):
    text = f'3:cpu:/a{sign}4:memory:/b\n'
    assert cgroup.groups_of_process(text) == {'cpu': f'/a{sign}4:memory:/b'}


@pytest.mark.parametrize(
    ('group', 'expected'),
    [
        ('/machine.slice', True),
        ('/machine', True),
        (r'/a.slice/machine-qemu\x2d1\x2da.scope/libvirt', True),
        (r'/a.slice/machine-qemu\x2d1\x2da.scope/libvirt/vcpu0', True),
        ('/', False),
        ('/system.slice', False),
        ('/machine.slice/../system.slice', False),
        ('/user.slice/machine', False),
    ],
)
def test_a_group_of_vms_is_known_by_where_libvirt_puts_it(group, expected):
    assert cgroup.is_for_vms(group) == expected
