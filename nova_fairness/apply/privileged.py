# SPDX-License-Identifier: Apache-2.0

"""Writes files of control groups as root.

:func:`write_as_root` runs in a separate process that is root without any
    capability: root owns the files of control groups. It does not trust its
    caller. A request names a process, never a path. The function itself finds
    the group of the process, opens the file, and writes only if the process is
    still the same.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import errno
import os
import pathlib
import re

from oslo_privsep import priv_context

from nova_fairness import exception
from nova_fairness.apply import privileged_client
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup

SECTION = privileged_client.SECTION
"""Configuration section with oslo.privsep's options for the helper."""

PROC = '/proc'
MOUNTINFO = '/proc/self/mountinfo'
_MAX_GROUPS = 100000
_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
"""Open flags that neither create a file nor follow a link."""

Request = tuple[str, str, int, int] | tuple[str, str, int, int, int]
"""Name of the control file, value, process ID, start time in ticks, and
level of the group (default :data:`files.OWN`)."""

context = priv_context.PrivContext(
    __name__,
    cfg_section=SECTION,
    pypath=f'{__name__}.context',
    capabilities=privileged_client.KEPT[f'{__name__}.context'],
    timeout=3.0,
)
client = privileged_client.PrivilegedClient(context)
prepare = client.prepare


def write_controls(requests: Sequence[Request]) -> list[int]:
    """Write control files of any number of VMs in one call of the helper.

    :returns: per request 0, or the error number: ``ESRCH``, ``ENOENT`` or
        ``ENODEV`` if the VM ended.
    :raises ControlUnavailable: if the helper cannot be started or does not
        answer; then it is unknown what was written.
    """
    return list(client.call(write_as_root, list(requests)))


@context.entrypoint
def write_as_root(requests: Sequence[Request]) -> list[int]:
    """Validate and write each request; runs in the helper.

    :returns: as :func:`write_controls`.
    """
    mounts = cgroup.mounts(pathlib.Path(MOUNTINFO).read_bytes())
    return [_write_request(mounts, *request) for request in requests]


def _write_request(
    mounts: Mapping[str, cgroup.Mount],
    name: str,
    text: str,
    pid: int,
    start_ticks: int,
    level: int = files.OWN,
) -> int:
    if name not in files.FILES or not files.FILES[name].allows(text, level):
        return errno.EINVAL
    try:
        group, path = files.control_paths(PROC, mounts, int(pid), name, level)
        with _open_root_group(group) as held:
            beside = os.path.relpath(path, group)
            control = os.open(beside, os.O_WRONLY | _NO_FOLLOW, dir_fd=held)
    except exception.WriteRefused:
        return errno.EPERM
    except OSError as error:
        return error.errno or errno.EIO
    return _write_if_running(control, f'{text}\n', int(pid), start_ticks)


@contextlib.contextmanager
def _open_root_group(group: str) -> Iterator[int]:
    """Open the directory of a group that root created, as a context manager.

    Users can create groups with the name of a VM's group, which would lead to
    other groups. A descriptor stays with its group, but a path may not.

    :raises OSError: if there is no such group, or a user created it.
    """
    held = os.open(group, os.O_PATH | os.O_DIRECTORY | _NO_FOLLOW)
    try:
        if os.fstat(held).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        yield held
    finally:
        os.close(held)


def _write_if_running(
    control: int, text: str, pid: int, start_ticks: int
) -> int:
    """Write unless the process ended; closes ``control``.

    The sequence matters: an open file stays with its group. If the group is
    deleted and another gets its name, the write fails with ENODEV.
    """
    try:
        if files.start_ticks(PROC, pid) != start_ticks:
            return errno.ESRCH
        os.write(control, text.encode('ascii'))
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        os.close(control)
    return 0


def protect_empty_group(number: int, text: str) -> int:
    """Write the memory protection of a group without a process.

    Only groups that libvirt creates for VMs, or groups above these, are
    written. A group is identified by its inode number, which the kernel never
    reuses.

    :param number: of the inode of its directory.
    :param text: bytes, or ``max``.
    :returns: 0, or an error number: ``ENOENT`` if there is no such group,
        ``EBUSY`` if it or a group below has a process, ``EPERM`` if it is not
        for VMs.
    :raises ControlUnavailable: if the helper does not answer.
    """
    return int(client.call(protect_empty_group_as_root, number, text))


@context.entrypoint
def protect_empty_group_as_root(number: int, text: str) -> int:
    """Validate and write the protection; runs in the helper.

    :returns: as :func:`protect_empty_group`.
    """
    if not files.FILES[files.MEMORY_LOW].allows(text, files.OWN):
        return errno.EINVAL
    mountinfo = pathlib.Path(MOUNTINFO).read_bytes()
    unified = cgroup.mounts(mountinfo).get(cgroup.UNIFIED)
    if unified is None:
        return errno.ENOENT
    group = _find_group(str(unified.path), number)
    if group is None:
        return errno.ENOENT
    # libvirt in a container has its groups at the top of what it sees.
    if not cgroup.is_for_vms('/' + os.path.relpath(group, unified.path)):
        return errno.EPERM
    try:
        with _open_root_group(group) as held:
            return _write_protection(held, number, text)
    except OSError as error:
        return error.errno or errno.EIO


def _find_group(top: str, number: int) -> str | None:
    for seen, (path, _, _) in enumerate(os.walk(top)):
        try:
            if pathlib.Path(path).stat().st_ino == number:
                return path
        except FileNotFoundError:
            continue
        if seen > _MAX_GROUPS:
            break
    return None


def _write_protection(group: int, number: int, text: str) -> int:
    """Write the limit of a group that has no process and was not replaced.

    :param group: descriptor of its directory.
    """
    if os.fstat(group).st_ino != number:
        return errno.ENOENT
    opened = os.open('cgroup.events', os.O_RDONLY | _NO_FOLLOW, dir_fd=group)
    with os.fdopen(opened, encoding='ascii') as events:
        if not re.search(r'^populated 0$', events.read(), re.MULTILINE):
            return errno.EBUSY
    low = os.open(files.MEMORY_LOW, os.O_WRONLY | _NO_FOLLOW, dir_fd=group)
    with os.fdopen(low, 'w', encoding='ascii') as control:
        control.write(f'{text}\n')
    return 0
