# SPDX-License-Identifier: Apache-2.0

"""Takes back, as root, what groups keep that no VM is in any more."""

import errno
import os
import pathlib
import re

from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import files
from nova_fairness.model import cgroup

_MOST_GROUPS = 100000


def lower_empty(number: int, text: str) -> int:
    """Write the memory protection of a group that holds no process.

    A group is named by the number that the kernel gave it, which is never
    given again, so that it cannot be mistaken for another of its name.

    :param number: of the inode of its directory.
    :param text: bytes, or ``max``.
    :returns: zero, or an error number: ``ENOENT`` if there is no such
        group, ``EBUSY`` if a process is in it or below it.
    :raises ControlUnavailable: if the helper cannot be asked.
    """
    return int(privileged.door.ask(lower_empty_as_root, number, text))


@privileged.context.entrypoint
def lower_empty_as_root(number: int, text: str) -> int:
    """Check and write; runs in the helper.

    :returns: as :func:`lower_empty`.
    """
    if not files.FILES[files.MEMORY_LOW].allows(text, files.OWN):
        return errno.EINVAL
    mountinfo = pathlib.Path(privileged.MOUNTINFO).read_text('utf-8')
    unified = cgroup.mounts(mountinfo).get(cgroup.UNIFIED)
    if unified is None:
        return errno.ENOENT
    group = _find(str(unified.path), number)
    return errno.ENOENT if group is None else _write(group, text)


def _find(top: str, number: int) -> str | None:
    for seen, (path, _, _) in enumerate(os.walk(top)):
        try:
            if pathlib.Path(path).stat().st_ino == number:
                return path
        except FileNotFoundError:
            continue
        if seen > _MOST_GROUPS:
            break
    return None


def _write(group: str, text: str) -> int:
    try:
        events = pathlib.Path(group, 'cgroup.events').read_text('ascii')
        if not re.search(r'^populated 0$', events, re.MULTILINE):
            return errno.EBUSY
        pathlib.Path(group, files.MEMORY_LOW).write_text(f'{text}\n', 'ascii')
    except OSError as error:
        return error.errno or errno.EIO
    return 0
