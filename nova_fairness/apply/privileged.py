# SPDX-License-Identifier: Apache-2.0

"""Writes controls of control groups as root.

Everything in :func:`write_as_root` runs in a process of its own that is root
without a single capability: the files of control groups belong to root, and
that is all it needs. It trusts nothing that it is told. A request names a
process, never a path: the entry point itself looks up which group the process
is in, opens the control there, and writes only if the process still is the one
that was meant.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import errno
import os
import pathlib

from oslo_privsep import priv_context

from nova_fairness import exception
from nova_fairness.apply import door as door_module
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup

SECTION = 'nova_fairness_privileged'
"""Configuration section with oslo.privsep's options for the helper."""

PROC = '/proc'
MOUNTINFO = '/proc/self/mountinfo'

Request = tuple[str, str, int, int] | tuple[str, str, int, int, int]
"""Name of the control file, value, process id, its start time in ticks; and
the level of the group, :data:`groups.OWN` if left out."""

context = priv_context.PrivContext(
    __name__,
    cfg_section=SECTION,
    pypath=f'{__name__}.context',
    capabilities=door_module.KEPT[f'{__name__}.context'],
    timeout=3.0,
)
door = door_module.Door(context)
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
    mounts = cgroup.mounts(pathlib.Path(MOUNTINFO).read_text('utf-8'))
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
        path = files.control_path(PROC, mounts, int(pid), name, level)
        # Neither created nor followed: a control is a file of the kernel.
        control = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except exception.WriteRefused:
        return errno.EPERM
    except OSError as error:
        return error.errno or errno.EIO
    return _write_if_same(control, f'{text}\n', int(pid), start_ticks)


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
