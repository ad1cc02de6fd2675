# SPDX-License-Identifier: Apache-2.0

"""Mounts of any path keep the agent from nothing.

Users of a host may mount something below their own directories (FUSE), and
paths are any bytes.
"""

import pathlib

import pytest

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control
from nova_fairness.apply.cgroup import disk
from nova_fairness.apply.cgroup import memory
from nova_fairness.cmd import status_node
from nova_fairness.collect import kernel_text
from nova_fairness.collect import node as node_module
from nova_fairness.model import cgroup
from tests.unit.apply import fake_groups
from tests.unit.apply import fake_host

ODD = (b'\xff', b'\xc3(', b'\r', b'\x0b', b'\x85', b'\xc2\x85', b'\x1c\x1d')


def mount_oddly(mountinfo, odd):
    """A mount of a user before and after what is there already."""
    path = (
        b'/run/user/7/' + odd + b' - cgroup2 none rw'.replace(b' ', b'\\040')
    )
    line = b'90 31 0:77 / ' + path + b' rw - fuse.x /dev/x rw\n'
    mountinfo.write_bytes(line + mountinfo.read_bytes() + line)


@pytest.mark.parametrize('odd', ODD)
def test_an_unusual_mount_path_does_not_prevent_writing_controls(
    tmp_path, monkeypatch, odd
):
    host = fake_host.FakeHost(tmp_path / 'host')
    host.let_helper_see_it(monkeypatch)
    key = host.start(7)
    mount_oddly(host.mountinfo, odd)
    request = ('cpu.shares', '500', 7, 500)
    assert privileged.write_controls([request]) == [0]
    assert host.value(key) == 500
    control.CpuShares(str(host.proc), str(host.mountinfo))


@pytest.mark.parametrize('odd', ODD)
def test_an_unusual_mount_path_does_not_prevent_finding_controls(
    tmp_path, monkeypatch, odd
):
    groups = fake_groups.FakeGroups(tmp_path, 'v2')
    plain = cgroup.mounts(groups.mountinfo.read_bytes())
    mount_oddly(groups.mountinfo, odd)
    raw = groups.mountinfo.read_bytes()
    assert cgroup.mounts(raw) == plain
    assert kernel_text.device_of_mount(raw, '0:77') == '/dev/x'
    for kind in (memory.MemoryProtection, disk.DiskWeight):
        kind(mountinfo_path=str(groups.mountinfo))
    monkeypatch.setattr(status_node, '_MOUNTINFO', str(groups.mountinfo))
    assert status_node._versions() == 'cgroup v2'
    own = tmp_path / 'proc' / 'self'
    own.mkdir(parents=True)
    (own / 'mountinfo').write_bytes(raw)
    roots = list(node_module._root_groups(tmp_path / 'proc', 'cpu'))
    assert roots == [pathlib.Path(plain[cgroup.UNIFIED].path)]
