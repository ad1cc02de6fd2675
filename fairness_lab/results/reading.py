# SPDX-License-Identifier: Apache-2.0

"""The kernel's readings of a VM, without the agent's code.

The laboratory judges the agent, so it reads CPU time and shares itself.
"""

import pathlib

from nova_fairness.model import cgroup

_IO_WEIGHTS = (
    ('blkio', 'blkio.bfq.weight'),
    (cgroup.UNIFIED, 'io.bfq.weight'),
    (cgroup.UNIFIED, 'io.weight'),
)
_VCPU_THREADS = ('CPU ', 'ALL CPUs')
_SHARES = {'cpu': 'cpu.shares', cgroup.UNIFIED: 'cpu.weight'}


def cpu_seconds(pid: int | None) -> float | None:
    """CPU time that a VM's control group has used.

    :param pid: the VM's QEMU process.
    :returns: seconds; ``None`` if the VM is gone.
    """
    try:
        unified = _directory(pid, cgroup.UNIFIED)
        if unified is not None:
            lines = (unified / 'cpu.stat').read_text().splitlines()
            values = dict(line.split() for line in lines)
            return int(values['usage_usec']) / 1e6
        accounting = _directory(pid, 'cpuacct')
        if accounting is not None:
            return int((accounting / 'cpuacct.usage').read_text()) / 1e9
    except OSError:
        return None
    return None


def cpu_shares(pid: int | None) -> int | None:
    """CPU shares (v1) or the CPU weight (v2) of a VM.

    :param pid: the VM's QEMU process.
    :returns: kernel units; ``None`` if the VM is gone.
    """
    for controller, name in _SHARES.items():
        directory = _directory(pid, controller)
        if directory is not None and (directory / name).is_file():
            try:
                return int((directory / name).read_text())
            except OSError:
                return None
    return None


def io_weight(pid: int | None) -> int | None:
    """Weight of a VM's block I/O.

    :param pid: the VM's QEMU process.
    :returns: kernel units; ``None`` if it has none, or is gone.
    """
    for controller, name in _IO_WEIGHTS:
        directory = _directory(pid, controller)
        if directory is not None and (directory / name).is_file():
            try:
                line = (directory / name).read_text().splitlines()[0]
            except (OSError, IndexError):
                return None
            return int(line.split()[-1])
    return None


def wait_seconds(pid: int | None) -> float | None:
    """Seconds for which the vCPUs of a VM were ready and had no CPU.

    :param pid: the VM's QEMU process.
    :returns: seconds, the mean over the vCPUs; ``None`` if it is gone.
    """
    try:
        waited = [
            int((task / 'schedstat').read_text().split()[1])
            for task in pathlib.Path(f'/proc/{pid}/task').iterdir()
            if (task / 'comm').read_text().startswith(_VCPU_THREADS)
        ]
    except OSError:
        return None
    return sum(waited) / len(waited) / 1e9 if waited else None


def parent_groups(pid: int) -> dict[str, pathlib.Path]:
    """Control groups that contain the groups of a VM, by controller."""
    found = {}
    for controller in ('blkio', cgroup.UNIFIED):
        directory = _directory(pid, controller)
        if directory is not None:
            found[controller] = directory.parent
    return found


def _directory(pid: int | None, controller: str) -> pathlib.Path | None:
    try:
        text = pathlib.Path(f'/proc/{pid}/cgroup').read_text()
        mountinfo = pathlib.Path('/proc/self/mountinfo').read_bytes()
        process_group = cgroup.groups_of_process(text)[controller]
        group = cgroup.group_of_vm(process_group)
        mount = cgroup.mounts(mountinfo)[controller]
        directory = cgroup.directory(mount, group)
    except (OSError, KeyError, ValueError):
        return None
    return pathlib.Path(directory) if cgroup.is_private(group) else None
