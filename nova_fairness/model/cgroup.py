# SPDX-License-Identifier: Apache-2.0

"""Parsers of the kernel's files about control groups of processes.

Paths are never guessed: ``/proc/PID/cgroup`` contains the group of a process,
``/proc/self/mountinfo`` the mount point of its hierarchy.
"""

from collections.abc import Mapping
import dataclasses
import pathlib
import re

UNIFIED = ''
"""Key of the v2 hierarchy in mappings by v1 controller."""

FIRST_VCPU = -2
"""Level of the group of a VM's first VCPU; each next VCPU has a level one
lower.
"""

# libvirt puts the threads of a VM into children of the VM's own group;
# under systemd there is a "libvirt" level between the scope and these.
_OF_LIBVIRT = re.compile(r'(^|-)(qemu|lxc)(-|\\x2d)\d+(-|\\x2d)')
_OCTAL = re.compile(r'\\([0-3][0-7]{2})')
_OF_VMS = ('machine', 'machine.slice')
_INNER = re.compile(r'(/libvirt)?/(emulator|vcpu\d+|iothread\d+)$')
_BELOW_SCOPE = '/libvirt'


@dataclasses.dataclass(frozen=True, slots=True)
class Mount:
    """Mount point of one hierarchy.

    :ivar path: the mount point.
    :ivar root: the group that the mount point shows, ``/`` unless bound.
    """

    path: pathlib.PurePosixPath
    root: str


def groups_of_process(proc_cgroup: str) -> Mapping[str, str]:
    """Parse ``/proc/PID/cgroup``.

    :returns: path of the process's group by controller name;
        :data:`UNIFIED` stands for the v2 hierarchy.
    """
    groups: dict[str, str] = {}
    for line in proc_cgroup.removesuffix('\n').split('\n'):
        number, _, rest = line.partition(':')
        controllers, _, path = rest.partition(':')
        if number == '0':
            groups[UNIFIED] = path
            continue
        for controller in controllers.split(','):
            groups[controller] = path
    return groups


def group_of_vm(process_group: str) -> str:
    """Group that holds a whole VM, from that of its main thread.

    >>> group_of_vm('/machine/qemu-1-a.libvirt-qemu/emulator')
    '/machine/qemu-1-a.libvirt-qemu'
    >>> group_of_vm('/machine.slice/machine-qemu-1-a.scope/libvirt')
    '/machine.slice/machine-qemu-1-a.scope'
    """
    outer = _INNER.sub('', process_group)
    scope = outer.removesuffix(_BELOW_SCOPE)
    return (scope if is_private(scope) else outer) or '/'


def is_private(vm_group: str) -> bool:
    r"""Return whether a group can belong to one VM only.

    If libvirt does not manage a controller, its VMs are in the root group or
    in the group of the daemon. Values there do not belong to a VM. libvirt
    names a VM's group after its driver, the domain's number and its name, also
    if systemd creates it.

    >>> is_private(r'/machine.slice/machine-qemu\x2d1\x2da.scope')
    True
    >>> is_private('/user.slice/session-3.scope')
    False
    """
    return _OF_LIBVIRT.search(vm_group.rsplit('/', 1)[-1]) is not None


def is_for_vms(group: str) -> bool:
    r"""Tell whether a group is one of a VM, or holds those of VMs only.

    >>> is_for_vms('/machine.slice')
    True
    >>> is_for_vms(r'/a.slice/machine-qemu\x2d1\x2da.scope/libvirt/emulator')
    True
    >>> is_for_vms('/system.slice')
    False
    >>> is_for_vms('/system.slice/machine.slice')
    False
    """
    parts = group.strip('/').split('/')
    if '..' in parts:
        return False
    return parts[0] in _OF_VMS or is_private(group_of_vm(group))


def ancestor_group(process_group: str, level: int) -> str:
    """A group on the way from the root to that of a VM's main thread.

    >>> relative('/machine/qemu-1-a.libvirt-qemu/emulator', 1)
    '/machine'
    >>> relative('/a.slice/machine-qemu-1-a.scope/libvirt/emulator', -1)
    '/a.slice/machine-qemu-1-a.scope/libvirt'

    >>> relative('/machine/qemu-1-a.libvirt-qemu/emulator', FIRST_VCPU - 1)
    '/machine/qemu-1-a.libvirt-qemu/vcpu1'

    :param level: 0 is the group of the whole VM, 1 its parent and so on;
        -1 the one between that and those of the VM's threads;
        :data:`FIRST_VCPU` that of its first VCPU, and so on down.
    :raises ValueError: if there is no such group below the root.
    """
    own = group_of_vm(process_group)
    if level <= FIRST_VCPU and _INNER.search(process_group):
        above = process_group.rpartition('/')[0]
        return f'{above}/vcpu{FIRST_VCPU - level}'
    if level < 0:
        inner = f'{own}{_BELOW_SCOPE}'
        if level == -1 and f'{process_group}/'.startswith(f'{inner}/'):
            return inner
        raise ValueError(f'{own} has no group of level {level}')
    parts = own.strip('/').split('/')
    if level >= len(parts):
        raise ValueError(f'{own} has no group {level} levels above')
    return '/' + '/'.join(parts[: len(parts) - level])


def mounts(mountinfo: bytes | str) -> Mapping[str, Mount]:
    """Parse ``/proc/self/mountinfo``.

    Bytes are preferred, because users may mount something at a path of any
    bytes.

    :returns: mount by controller name, :data:`UNIFIED` for v2. If one
        hierarchy is mounted more than once, the last mount is returned,
        because it covers the others.
    """
    found: dict[str, Mount] = {}
    if isinstance(mountinfo, bytes):
        mountinfo = mountinfo.decode('utf-8', 'surrogateescape')
    # A path may contain other characters that separate lines or words.
    for line in mountinfo.split('\n'):
        before, _, after = line.partition(' - ')
        fields, tail = before.split(' '), after.split(' ')
        if len(fields) < 5 or len(tail) < 3:
            continue
        path, root = (_unescaped(fields[at]) for at in (4, 3))
        mount = Mount(pathlib.PurePosixPath(path), root)
        if tail[0] == 'cgroup2':
            found[UNIFIED] = mount
        elif tail[0] == 'cgroup':
            for option in tail[2].split(','):
                found[option] = mount
    return found


def _unescaped(path: str) -> str:
    r"""A path of mountinfo, in which the kernel escapes blanks and the like.

    >>> _unescaped(r'/a\040b\134040')
    '/a b\\040'
    """
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), path)


def directory(mount: Mount, group: str) -> pathlib.PurePosixPath:
    """Directory of a group below the mount of its hierarchy.

    ``/proc/PID/cgroup`` is relative to the reader's cgroup namespace, as is
    the root in mountinfo; a group outside the mount's root starts with
    ``/..`` and has no directory here.

    :raises ValueError: if the mount does not show the group.
    """
    root = '' if mount.root == '/' else mount.root
    if group.startswith('/..') or not (group + '/').startswith(root + '/'):
        raise ValueError(f'{mount.path} shows {mount.root}, not {group}')
    return mount.path / group[len(root) :].lstrip('/')
