# SPDX-License-Identifier: Apache-2.0

"""Checks on which interfaces the privileged helper may set traffic control.

The helper does not trust its caller: the kernel tells the kind of an
interface.
"""

from collections.abc import Sequence
import os
import pathlib
import re
import stat

from nova_fairness.apply.network import state

SYS = pathlib.Path('/sys/class/net')

ALLOWED = pathlib.Path('/etc/nova-fairness/uplinks')
"""File with additional uplinks; used only if root alone can write it."""

ROOT = 0
"""User ID of the owner that the file :data:`ALLOWED` must have."""

_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}')
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TAP_FLAG = 0x0002
_LOOPBACK = '772'
_USER_SPACE = 'ovs-netdev'

_TAP_OPERATIONS = frozenset(('clsact',))
_UPLINK_OPERATIONS = frozenset(('root', 'ingress', 'redirect'))
"""Operations that create the first object on an uplink. All other
operations depend on such objects, or remove objects of this agent."""


def device_error(
    operation: Sequence[object],
    sys: pathlib.Path = SYS,
    allowed: pathlib.Path = ALLOWED,
) -> str:
    """Return why an operation is not allowed on its interface; empty if it is.

    :param operation: with fields of the right form.
    :param sys: where the kernel lists its interfaces.
    :param allowed: file with additional uplinks.
    """
    device = str(operation[1]) if len(operation) > 1 else ''
    if not _NAME.fullmatch(device) or not (sys / device).exists():
        return ''  # The kernel says so, and does nothing.
    if operation[0] in _TAP_OPERATIONS:
        return '' if is_tap(device, sys) else f'{device} is no tap of a VM'
    if operation[0] not in _UPLINK_OPERATIONS or device in state.IFBS:
        return ''
    if is_uplink(device, sys) or device in read_allowed_uplinks(allowed):
        return ''
    return (
        f'{device} is under no bridge and no port of a switch, so it is no '
        f'uplink of VMs; if it is one, name it in {allowed}'
    )


def is_tap(device: str, sys: pathlib.Path = SYS) -> bool:
    """Check whether an interface is the host's end of a VM's interface.

    For a libvirt container (LXC) it is a veth that is a port of a switch.
    """
    if not _NAME.fullmatch(device):
        return False
    return _is_tun(device, sys) or (
        _is_switch_port(sys / device) and _is_veth(device, sys)
    )


def _is_tun(device: str, sys: pathlib.Path) -> bool:
    flags = _read_attribute(device, 'tun_flags', sys)
    try:
        return bool(int(flags, 16) & _TAP_FLAG)
    except ValueError:
        return False


def _is_veth(device: str, sys: pathlib.Path) -> bool:
    """Check whether an interface is one end of a veth pair."""
    other = _read_attribute(device, 'iflink', sys)
    return (
        other not in ('', _read_attribute(device, 'ifindex', sys))
        and 'DEVTYPE=' not in _read_attribute(device, 'uevent', sys)
        and not (sys / device / 'device').exists()
    )


def is_uplink(device: str, sys: pathlib.Path = SYS) -> bool:
    """Check whether VMs' traffic can leave by an interface.

    An uplink is a bridge, a port of a bridge or switch, or an interface below
    such a port. A switch in user space is invisible in the kernel; where one
    exists, any physical interface counts.
    """
    if not _NAME.fullmatch(device) or not (sys / device).exists():
        return False
    if _read_attribute(device, 'type', sys) == _LOOPBACK or _is_tun(
        device, sys
    ):
        return False
    if (sys / _USER_SPACE).exists() and (sys / device / 'device').exists():
        return True
    seen: set[str] = set()
    left = [device]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if _is_switch_port(sys / name):
            return True
        left += _upper_devices(sys / name)
    return False


def _is_switch_port(path: pathlib.Path) -> bool:
    if (path / 'bridge').exists() or (path / 'brport').exists():
        return True
    master = pathlib.Path(os.path.realpath(path / 'master')).name
    return master == 'ovs-system'


def _upper_devices(path: pathlib.Path) -> list[str]:
    try:
        names = [item.name for item in path.iterdir()]
    except OSError:
        return []
    return [
        name.removeprefix('upper_')
        for name in names
        if name.startswith('upper_')
    ]


def read_allowed_uplinks(allowed: pathlib.Path = ALLOWED) -> frozenset[str]:
    """Read the names of the operator's additional uplinks.

    :returns: empty if a user other than root can write the file.
    """
    try:
        # Opening a pipe for reading would wait for a writer.
        descriptor = os.open(
            allowed, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except OSError:
        return frozenset()
    with os.fdopen(descriptor, encoding='utf-8', errors='replace') as file:
        facts = os.fstat(file.fileno())
        is_file = stat.S_ISREG(facts.st_mode)
        if not is_file or facts.st_uid != ROOT:
            return frozenset()
        if facts.st_mode & _OTHERS_WRITE:
            return frozenset()
        return frozenset(file.read(1 << 16).split())


def _read_attribute(device: str, name: str, sys: pathlib.Path) -> str:
    if not _NAME.fullmatch(device):
        return ''
    # A helper that is nobody may not be able to load a further codec.
    try:
        return (sys / device / name).read_text('utf-8').strip()
    except (OSError, ValueError):
        return ''
