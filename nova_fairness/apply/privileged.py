# SPDX-License-Identifier: Apache-2.0

"""Writes controls of control groups as root.

Everything in :func:`write_as_root` runs in a process of its own that is root
without a single capability: the files of control groups belong to root, and
that is all it needs. It trusts nothing that it is told. A request names a
process, never a path: the entry point itself looks up which group the process
is in, opens the control there, and writes only if the process still is the one
that was meant.
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
_MOST_GROUPS = 100000
_AS_IT_IS = os.O_NOFOLLOW | os.O_CLOEXEC
"""Neither created nor followed: a control is a file of the kernel."""

Request = tuple[str, str, int, int] | tuple[str, str, int, int, int]
"""Name of the control file, value, process id, its start time in ticks; and
the level of the group, :data:`files.OWN` if left out."""

context = priv_context.PrivContext(
    __name__,
    cfg_section=SECTION,
    pypath=f'{__name__}.context',
    capabilities=privileged_client.KEPT[f'{__name__}.context'],
    timeout=3.0,
)
door = privileged_client.PrivilegedClient(context)
prepare = door.prepare


def write_controls(requests: Sequence[Request]) -> list[int]:
    """Write controls of any number of VMs in one round trip.

    :returns: per request zero, or the error number of why it was not
        written: ``ESRCH``, ``ENOENT`` or ``ENODEV`` if the VM is gone.
    :raises ControlUnavailable: if the helper cannot be started or does not
        answer; then it is unknown what was written.
    """
    return list(door.ask(write_as_root, list(requests)))


@context.entrypoint
def write_as_root(requests: Sequence[Request]) -> list[int]:
    """Check and write each request; runs in the helper.

    :returns: as :func:`write_controls`.
    """
    mounts = cgroup.mounts(pathlib.Path(MOUNTINFO).read_bytes())
    return [_write(mounts, *request) for request in requests]


def _write(
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
        group, path = files.paths(PROC, mounts, int(pid), name, level)
        with _group_of_root(group) as held:
            beside = os.path.relpath(path, group)
            control = os.open(beside, os.O_WRONLY | _AS_IT_IS, dir_fd=held)
    except exception.WriteRefused:
        return errno.EPERM
    except OSError as error:
        return error.errno or errno.EIO
    return _write_if_same(control, f'{text}\n', int(pid), start_ticks)


@contextlib.contextmanager
def _group_of_root(group: str) -> Iterator[int]:
    """Hold a group that root made; a file opened from it is in it.

    Users may have groups of their own, and give them any name: one like that
    of a VM would lead to the groups above it, which are others'. A path may
    lead to another group a moment later; a descriptor does not.

    :raises OSError: if there is none, or a user made it.
    """
    held = os.open(group, os.O_PATH | os.O_DIRECTORY | _AS_IT_IS)
    try:
        if os.fstat(held).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        yield held
    finally:
        os.close(held)


def _write_if_same(control: int, text: str, pid: int, start_ticks: int) -> int:
    """Write unless the process ended; closes ``control``.

    The order matters: an open control stays that of its group. If the group
    goes and another of the same name comes, the write fails with ENODEV.
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


def lower_empty(number: int, text: str) -> int:
    """Write the memory protection of a group that holds no process.

    Only a group that libvirt makes for a VM, or one that holds these, is
    written: others are empty at times, too. A group is named by the number
    that the kernel gave it, which is never given again, so that it cannot be
    mistaken for another of its name.

    :param number: of the inode of its directory.
    :param text: bytes, or ``max``.
    :returns: zero, or an error number: ``ENOENT`` if there is no such
        group, ``EBUSY`` if a process is in it or below it, ``EPERM`` if it
        is not for VMs.
    :raises ControlUnavailable: if the helper cannot be asked.
    """
    return int(door.ask(lower_empty_as_root, number, text))


@context.entrypoint
def lower_empty_as_root(number: int, text: str) -> int:
    """Check and write; runs in the helper.

    :returns: as :func:`lower_empty`.
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
        with _group_of_root(group) as held:
            return _write_low(held, number, text)
    except OSError as error:
        return error.errno or errno.EIO


def _find_group(top: str, number: int) -> str | None:
    for seen, (path, _, _) in enumerate(os.walk(top)):
        try:
            if pathlib.Path(path).stat().st_ino == number:
                return path
        except FileNotFoundError:
            continue
        if seen > _MOST_GROUPS:
            break
    return None


def _write_low(group: int, number: int, text: str) -> int:
    """Write the limit of a group that has no process and was not replaced.

    :param group: descriptor of its directory.
    """
    if os.fstat(group).st_ino != number:
        return errno.ENOENT
    opened = os.open('cgroup.events', os.O_RDONLY | _AS_IT_IS, dir_fd=group)
    with os.fdopen(opened, encoding='ascii') as events:
        if not re.search(r'^populated 0$', events.read(), re.MULTILINE):
            return errno.EBUSY
    low = os.open(files.MEMORY_LOW, os.O_WRONLY | _AS_IT_IS, dir_fd=group)
    with os.fdopen(low, 'w', encoding='ascii') as control:
        control.write(f'{text}\n')
    return 0
