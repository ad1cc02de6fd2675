# SPDX-License-Identifier: Apache-2.0

"""Resources of this host for VMs, read without a load on the host.

Nothing is benchmarked. Where the kernel reports no speed of a device, a
cautious value for its class is assumed and logged.
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
    """Return the CPUs that VMs may use.

    :param proc: where procfs is mounted.
    :returns: CPUs of the machine partition if there is one (with two, of the
        one with VMs), else of this process's own group; ascending, empty if
        there is no cpuset.
    """
    places = [*_machine_groups(proc, 'cpuset'), *_own_groups(proc, 'cpuset')]
    for text in _read_texts(places, _CPUS):
        try:
            found = cpus_model.parse_cpus(text)
        except ValueError:
            continue
        if found:
            return found
    return ()


def memory_limit_bytes(proc: pathlib.Path) -> int | None:
    """Return the smallest memory limit of the groups above the VMs.

    The limit of this process's own group is ignored, because it is meant for
    the agent only.

    :param proc: where procfs is mounted.
    :returns: ``None`` without a limit.
    """
    places = [*_machine_groups(proc, 'memory'), *_root_groups(proc, 'memory')]
    limits = [
        int(text)
        for text in _read_texts(places, _MEMORY)
        if text.strip().isdecimal()
    ]
    return min(limits, default=None)


def _root_groups(
    proc: pathlib.Path, controller: str
) -> Iterator[pathlib.Path]:
    """Yield the directories of a controller's root groups, v2 last."""
    mounts = cgroup.mounts(_read_text(proc / 'self' / 'mountinfo'))
    for name in (controller, cgroup.UNIFIED):
        if name in mounts:
            yield pathlib.Path(mounts[name].path)


def _machine_groups(proc: pathlib.Path, controller: str) -> list[pathlib.Path]:
    """Return the machine partitions with VMs; all of them if none has VMs."""
    roots = _root_groups(proc, controller)
    places = [root / name for root in roots for name in _MACHINE]
    # libvirt leaves the other one behind when systemd takes over.
    return [place for place in places if _holds_vms(place)] or places


def _holds_vms(place: pathlib.Path) -> bool:
    try:
        return any(cgroup.is_private(path.name) for path in place.iterdir())
    except OSError:
        return False


def _own_groups(proc: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    mounts = cgroup.mounts(_read_text(proc / 'self' / 'mountinfo'))
    groups = cgroup.groups_of_process(_read_text(proc / 'self' / 'cgroup'))
    for name in (controller, cgroup.UNIFIED):
        if name not in mounts or name not in groups:
            continue
        try:
            yield pathlib.Path(cgroup.directory(mounts[name], groups[name]))
        except ValueError:
            continue


def _read_texts(
    places: list[pathlib.Path], names: tuple[str, ...]
) -> Iterator[str]:
    for place in places:
        for name in names:
            text = _read_text(place / name)
            if text.strip():
                yield text


def _read_text(path: pathlib.Path) -> str:
    """Return a file's text; empty if it cannot be read."""
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
    """Read the resources of this host, or assume them.

    :param host: name of this host for its peers.
    :param cpus: numbers of the CPUs that VMs may use; ``None`` for those of
        the machine partition's cpuset.
    :param speed_factor: weighted seconds per second of one CPU; ``None`` for
        the mean BogoMIPS.
    :param disk_read_bandwidth: bytes per second of all disks; ``None`` for an
        assumption by the class of each.
    :param disk_write_bandwidth: as ``disk_read_bandwidth``.
    :param network_bandwidth: bytes per second in each direction; ``None`` for
        the link speed of ``network_interface``.
    :param network_interface: ``None`` for the interface of the default route.
    :param reserved_memory_bytes: memory that is reserved for the host.
    :param proc: where procfs is mounted.
    :param sys: where sysfs is mounted.
    :returns: the resources, per second where time-shared.
    """
    proc_root, sys_root = pathlib.Path(proc), pathlib.Path(sys)
    allowed = cpus or _cpus_for_vms(proc_root)
    factor = speed_factor or _speed_factor(proc_root)
    read, written = _disk_bandwidth(
        sys_root, disk_read_bandwidth, disk_write_bandwidth
    )
    network = network_bandwidth or bandwidth.network_bandwidth(
        proc_root, sys_root, network_interface
    )
    capacity = resources.RESOURCES.vector(
        cpu_time=len(allowed) * factor,
        disk_read=read,
        disk_written=written,
        net_received=network,
        net_sent=network,
        memory=_memory_for_vms(proc_root, reserved_memory_bytes),
    )
    return _log_resources(node.NodeResources(host, allowed, factor, capacity))


def _disk_bandwidth(
    sys: pathlib.Path, read: float | None, written: float | None
) -> tuple[float, float]:
    if read and written:
        return read, written
    assumed = bandwidth.disk_bandwidth(sys)
    LOG.info(
        'disk bandwidth: assumed from the class of each disk: %s',
        assumed.reason,
    )
    return read or assumed.read, written or assumed.write


def _log_resources(found: node.NodeResources) -> node.NodeResources:
    pairs = zip(resources.RESOURCES.names, found.capacity, strict=True)
    amounts = ', '.join(f'{name} {amount:.6g}' for name, amount in pairs)
    LOG.info('resources of %s: CPUs %s, %s', found.host, found.cpus, amounts)
    return found


def _cpus_for_vms(proc: pathlib.Path) -> tuple[int, ...]:
    allowed = cpus_of_vms(proc)
    if allowed:
        return allowed
    LOG.info(
        'CPUs of VMs: there is no cpuset; the CPUs of this process are used'
    )
    return tuple(sorted(os.sched_getaffinity(0)))


def _speed_factor(proc: pathlib.Path) -> float:
    try:
        mean = kernel_text.mean_bogomips((proc / 'cpuinfo').read_text())
    except (OSError, ValueError):
        mean = None
    if mean is None:
        LOG.info('speed factor: no BogoMIPS in cpuinfo; 1 is assumed')
        return _NO_BOGOMIPS
    return mean


def _memory_for_vms(proc: pathlib.Path, reserved: int) -> float:
    """Return the memory for VMs in bytes, >= 0."""
    total = kernel_text.total_memory_bytes((proc / 'meminfo').read_text())
    limit = memory_limit_bytes(proc)
    usable = total - reserved
    return float(max(0, usable if limit is None else min(usable, limit)))
