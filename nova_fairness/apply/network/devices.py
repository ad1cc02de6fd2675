# SPDX-License-Identifier: Apache-2.0

"""On which interfaces the privileged helper makes traffic control.

The one who asks is not believed: what an interface is, the kernel says.
"""

from collections.abc import Sequence
import os
import pathlib
import re
import stat

from nova_fairness.apply.network import state

SYS = pathlib.Path('/sys/class/net')

ALLOWED = pathlib.Path('/etc/nova-fairness/uplinks')
"""Names further uplinks; counts only if root alone can write it."""

ROOT = 0
"""The user that must own the file :data:`ALLOWED`."""

_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}')
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TAP_FLAG = 0x0002
_LOOPBACK = '772'
_USER_SPACE = 'ovs-netdev'

_AT_TAPS = frozenset(('clsact',))
_AT_UPLINKS = frozenset(('root', 'ingress', 'redirect'))
"""Operations that bring something to an interface on which nothing of ours
was. All others need what these made, or take away what is ours."""


def refusal(
    item: Sequence[object],
    sys: pathlib.Path = SYS,
    allowed: pathlib.Path = ALLOWED,
) -> str:
    """Say why an operation is not for its interface; empty if it is.

    :param item: an operation whose fields have the right form.
    :param sys: where the kernel lists its interfaces.
    :param allowed: names further uplinks.
    """
    device = str(item[1]) if len(item) > 1 else ''
    if not _NAME.fullmatch(device) or not (sys / device).exists():
        return ''  # The kernel says so, and does nothing.
    if item[0] in _AT_TAPS:
        return '' if is_tap(device, sys) else f'{device} is no tap of a VM'
    if item[0] not in _AT_UPLINKS or device in state.IFBS:
        return ''
    if is_uplink(device, sys) or device in named(allowed):
        return ''
    return (
        f'{device} is under no bridge and no port of a switch, so it is no '
        f'uplink of VMs; if it is one, name it in {allowed}'
    )


def is_tap(device: str, sys: pathlib.Path = SYS) -> bool:
    """Tell whether an interface is the host's end of a VM's.

    That of a container of libvirt (LXC) is one of a pair, and a port.
    """
    if not _NAME.fullmatch(device):
        return False
    return _is_tun(device, sys) or (
        _leads_to_a_switch(sys / device) and _is_of_pair(device, sys)
    )


def _is_tun(device: str, sys: pathlib.Path) -> bool:
    flags = _text(device, 'tun_flags', sys)
    try:
        return bool(int(flags, 16) & _TAP_FLAG)
    except ValueError:
        return False


def _is_of_pair(device: str, sys: pathlib.Path) -> bool:
    """Whether it is a veth: linked to another one, and of no other type."""
    other = _text(device, 'iflink', sys)
    return (
        other not in ('', _text(device, 'ifindex', sys))
        and 'DEVTYPE=' not in _text(device, 'uevent', sys)
        and not (sys / device / 'device').exists()
    )


def is_uplink(device: str, sys: pathlib.Path = SYS) -> bool:
    """Tell whether VMs' traffic can leave by an interface.

    It is a port of a bridge or switch, or what such a port is made of, or a
    bridge. A switch in user space leaves no trace in the kernel; where there
    is one, any physical interface can be its port.
    """
    if not _NAME.fullmatch(device) or not (sys / device).exists():
        return False
    if _text(device, 'type', sys) == _LOOPBACK or _is_tun(device, sys):
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
        if _leads_to_a_switch(sys / name):
            return True
        left += _uppers(sys / name)
    return False


def _leads_to_a_switch(path: pathlib.Path) -> bool:
    if (path / 'bridge').exists() or (path / 'brport').exists():
        return True
    master = pathlib.Path(os.path.realpath(path / 'master')).name
    return master == 'ovs-system'


def _uppers(path: pathlib.Path) -> list[str]:
    try:
        names = [item.name for item in path.iterdir()]
    except OSError:
        return []
    return [
        name.removeprefix('upper_')
        for name in names
        if name.startswith('upper_')
    ]


def named(allowed: pathlib.Path = ALLOWED) -> frozenset[str]:
    """Uplinks that an operator named.

    :returns: nothing if a user other than root could have written it.
    """
    try:
        # Whoever reads a pipe waits until somebody writes into it.
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


def _text(device: str, name: str, sys: pathlib.Path) -> str:
    if not _NAME.fullmatch(device):
        return ''
    # A helper that is nobody may not be able to load a further codec.
    try:
        return (sys / device / name).read_text('utf-8').strip()
    except (OSError, ValueError):
        return ''
