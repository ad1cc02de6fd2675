# SPDX-License-Identifier: Apache-2.0

"""The process of a domain."""

import itertools
import pathlib

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text


def start_ticks(proc: pathlib.Path, pid: int) -> int | None:
    """The start time of a process, clock ticks since boot.

    :returns: ``None`` if there is no such process or it has ended.
    :raises OSError: if that cannot be known, for want of descriptors say.
    """
    try:
        stat = (proc / str(pid) / 'stat').read_bytes()
        if kernel_text.has_ended(stat):
            return None
        return kernel_text.start_ticks(stat)
    except OSError as error:
        if files.is_gone(error):
            return None
        raise
    except (ValueError, IndexError):
        return None


def runs_domain(proc: pathlib.Path, pid: int, uuid: str) -> bool:
    """Tell whether a process was started for a domain.

    libvirt gives QEMU the UUID as an argument of its own, so that no name
    chosen by a user can be mistaken for it.

    :raises OSError: if no descriptor is left.
    """
    try:
        line = (proc / str(pid) / 'cmdline').read_bytes()
    except OSError as error:
        if files.none_left(error):
            raise
        return False
    arguments = line.lower().split(b'\0')
    return _follows(arguments, b'-uuid', uuid.lower().encode())


def _follows(arguments: list[bytes], option: bytes, value: bytes) -> bool:
    pairs = itertools.pairwise(arguments)
    return (option, value) in pairs


def find_pid(
    proc: pathlib.Path, run: pathlib.Path, domain: str, uuid: str
) -> int | None:
    """Find the process of a running domain.

    :param run: directory into which libvirt writes ``DOMAIN.pid``.
    :returns: ``None`` if it cannot be found.
    :raises OSError: if no descriptor is left.
    """
    pid = _noted_pid(run / f'{domain}.pid')
    if pid is not None and runs_domain(proc, pid, uuid):
        return pid
    return _search(proc, uuid)


def _noted_pid(path: pathlib.Path) -> int | None:
    try:
        return int(path.read_text())
    except OSError as error:
        if files.none_left(error):
            raise
        return None
    except ValueError:
        return None


def _search(proc: pathlib.Path, uuid: str) -> int | None:
    """Look at every process; the oldest wins, since children come later."""
    pids = sorted(
        int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()
    )
    for pid in pids:
        if runs_domain(proc, pid, uuid):
            return pid
    return None
