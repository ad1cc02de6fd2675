# SPDX-License-Identifier: Apache-2.0

"""Finds the process of a domain."""

import itertools
import pathlib

from nova_fairness.collect import files
from nova_fairness.collect import kernel_text


def start_ticks(proc: pathlib.Path, pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since boot.

    :returns: ``None`` if the process does not exist or has ended.
    :raises OSError: if it cannot be read, for example without free
        descriptors.
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
    """Check whether a process was started for a domain.

    libvirt passes the UUID to QEMU as a separate argument, so that a name
    chosen by a user cannot be mistaken for it.

    :raises OSError: if no file descriptor is free.
    """
    try:
        line = (proc / str(pid) / 'cmdline').read_bytes()
    except OSError as error:
        if files.no_descriptor_free(error):
            raise
        return False
    arguments = line.lower().split(b'\0')
    return _has_option(arguments, b'-uuid', uuid.lower().encode())


def _has_option(arguments: list[bytes], option: bytes, value: bytes) -> bool:
    pairs = itertools.pairwise(arguments)
    return (option, value) in pairs


def find_pid(
    proc: pathlib.Path, run: pathlib.Path, domain: str, uuid: str
) -> int | None:
    """Return the process ID of a running domain.

    :param run: directory in which libvirt writes ``DOMAIN.pid``.
    :returns: ``None`` if there is no such process.
    :raises OSError: if no file descriptor is free.
    """
    pid = _read_pid_file(run / f'{domain}.pid')
    if pid is not None and runs_domain(proc, pid, uuid):
        return pid
    return _search_processes(proc, uuid)


def _read_pid_file(path: pathlib.Path) -> int | None:
    try:
        return int(path.read_text())
    except OSError as error:
        if files.no_descriptor_free(error):
            raise
        return None
    except ValueError:
        return None


def _search_processes(proc: pathlib.Path, uuid: str) -> int | None:
    """Search all processes; return the oldest match, because children are
    newer.
    """
    pids = sorted(
        int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()
    )
    for pid in pids:
        if runs_domain(proc, pid, uuid):
            return pid
    return None
