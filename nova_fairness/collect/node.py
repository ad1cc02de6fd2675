# SPDX-License-Identifier: Apache-2.0

"""Resources of this host for VMs, found without disturbing any.

Nothing is measured by doing it: a benchmark would take what the VMs need.
Where the kernel cannot say how fast a device is, a cautious value of its
class is assumed, and the log says so.
"""

from collections.abc import Iterator
import logging
import os
import pathlib

from nova_fairness.collect import bandwidth
from nova_fairness.collect import kernel_text
from nova_fairness.model import cgroup
from nova_fairness.model import cpus as cpus_model
from nova_fairness.model import node
from nova_fairness.model import resources

# Below the root: with and without systemd.
_MACHINE = ('machine.slice', 'machine')
_CPUS = (
    'cpuset.cpus.effective',
    'cpuset.effective_cpus',
    'cpuset.cpus',
)
_MEMORY = ('memory.max', 'memory.limit_in_bytes')


def cpus_of_vms(proc: pathlib.Path) -> tuple[int, ...]:
    """The CPUs that VMs may use.

    :param proc: where the process file system is mounted.
    :returns: those of the machine partition if it exists, the one that holds
        VMs if there are two, else of this process's own group; ascending,
        empty if no cpuset tells.
    """
    places = [*_machine(proc, 'cpuset'), *_own(proc, 'cpuset')]
    for text in _texts(places, _CPUS):
        try:
            found = cpus_model.numbers(text)
        except ValueError:
            continue
        if found:
            return found
    return ()


def memory_limit_bytes(proc: pathlib.Path) -> int | None:
    """The smallest memory limit above the VMs.

    The group of this process is no such place: its limit is meant for the
    agent alone.

    :param proc: where the process file system is mounted.
    :returns: ``None`` if there is no limit.
    """
    places = [*_machine(proc, 'memory'), *_roots(proc, 'memory')]
    limits = [
        int(text)
        for text in _texts(places, _MEMORY)
        if text.strip().isdecimal()
    ]
    return min(limits, default=None)


def _roots(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    """Yield what shows a controller's topmost group, v2 last."""
    mounts = cgroup.mounts(_text(proc / 'self' / 'mountinfo'))
    for name in (controller, cgroup.UNIFIED):
        if name in mounts:
            yield pathlib.Path(mounts[name].path)


def _machine(proc: pathlib.Path, controller: str) -> list[pathlib.Path]:
    """Machine partitions that hold VMs; all if none does."""
    roots = _roots(proc, controller)
    places = [root / name for root in roots for name in _MACHINE]
    # libvirt leaves the other one behind when systemd takes over.
    return [place for place in places if _holds_vms(place)] or places


def _holds_vms(place: pathlib.Path) -> bool:
    try:
        return any(cgroup.is_private(path.name) for path in place.iterdir())
    except OSError:
        return False


def _own(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    mounts = cgroup.mounts(_text(proc / 'self' / 'mountinfo'))
    groups = cgroup.groups_of_process(_text(proc / 'self' / 'cgroup'))
    for name in (controller, cgroup.UNIFIED):
        if name not in mounts or name not in groups:
            continue
        try:
            yield pathlib.Path(cgroup.directory(mounts[name], groups[name]))
        except ValueError:
            continue


def _texts(
    places: list[pathlib.Path], names: tuple[str, ...]
) -> Iterator[str]:
    for place in places:
        for name in names:
            text = _text(place / name)
            if text.strip():
                yield text


def _text(path: pathlib.Path) -> str:
    """A file's text; empty if it cannot be read."""
    try:
        return path.read_bytes().decode('utf-8', 'surrogateescape')
    except OSError:
        return ''


LOG = logging.getLogger(__name__)

_NO_BOGOMIPS = 1.0


def read_node_resources(
    *,
    host: str,
    cpus: tuple[int, ...] | None = None,
    speed_factor: float | None = None,
    disk_read_bandwidth: float | None = None,
    disk_write_bandwidth: float | None = None,
    network_bandwidth: float | None = None,
    network_interface: str | None = None,
    reserved_memory_bytes: int = 0,
    proc: str = '/proc',
    sys: str = '/sys',
) -> node.NodeResources:
    """Read or assume what this host has.

    :param host: name under which peers know this host.
    :param cpus: numbers of the CPUs that VMs may use; ``None`` for those
        that the cpuset of the machine partition allows.
    :param speed_factor: weighted seconds per second of one CPU; ``None`` for
        the mean BogoMIPS.
    :param disk_read_bandwidth: bytes per second of all disks; ``None`` for
        an assumption from the class of each.
    :param disk_write_bandwidth: as ``disk_read_bandwidth``.
    :param network_bandwidth: bytes per second in each direction; ``None``
        for the link speed of ``network_interface``.
    :param network_interface: ``None`` for that of the default route.
    :param reserved_memory_bytes: what the host keeps for itself.
    :param proc: where the process file system is mounted.
    :param sys: where the system file system is mounted.
    :returns: the resources, per second where time-shared.
    """
    proc_root, sys_root = pathlib.Path(proc), pathlib.Path(sys)
    allowed = cpus or _cpus(proc_root)
    factor = speed_factor or _speed_factor(proc_root)
    read, written = _disk_bandwidth(
        sys_root, disk_read_bandwidth, disk_write_bandwidth
    )
    network = network_bandwidth or bandwidth.of_network(
        proc_root, sys_root, network_interface
    )
    capacity = resources.RESOURCES.vector(
        cpu_time=len(allowed) * factor,
        disk_read=read,
        disk_written=written,
        net_received=network,
        net_sent=network,
        memory=_memory_bytes(proc_root, reserved_memory_bytes),
    )
    return _said(node.NodeResources(host, allowed, factor, capacity))


def _disk_bandwidth(
    sys: pathlib.Path, read: float | None, written: float | None
) -> tuple[float, float]:
    if read and written:
        return read, written
    assumed = bandwidth.of_disks(sys)
    LOG.info('disk bandwidth assumed: %s', assumed.reason)
    return read or assumed.read, written or assumed.write


def _said(found: node.NodeResources) -> node.NodeResources:
    pairs = zip(resources.RESOURCES.names, found.capacity, strict=True)
    amounts = ', '.join(f'{name} {amount:.6g}' for name, amount in pairs)
    LOG.info('resources of %s: CPUs %s, %s', found.host, found.cpus, amounts)
    return found


def _cpus(proc: pathlib.Path) -> tuple[int, ...]:
    allowed = cpus_of_vms(proc)
    if allowed:
        return allowed
    LOG.info('no cpuset names the CPUs of VMs: those of this process count')
    return tuple(sorted(os.sched_getaffinity(0)))


def _speed_factor(proc: pathlib.Path) -> float:
    try:
        mean = kernel_text.mean_bogomips((proc / 'cpuinfo').read_text())
    except (OSError, ValueError):
        mean = None
    if mean is None:
        LOG.info('no BogoMIPS in cpuinfo: speed factor 1 assumed')
        return _NO_BOGOMIPS
    return mean


def _memory_bytes(proc: pathlib.Path, reserved: int) -> float:
    """Memory that is left for VMs, bytes; never below zero."""
    total = kernel_text.total_memory_bytes((proc / 'meminfo').read_text())
    limit = memory_limit_bytes(proc)
    usable = total - reserved
    return float(max(0, usable if limit is None else min(usable, limit)))
