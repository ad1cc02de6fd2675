# SPDX-License-Identifier: Apache-2.0

"""Pressure on memory and disks: readings, and the time between two."""

from collections.abc import Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import instance

Scalars = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class DiskPath:
    """One disk of a VM and the block devices that its requests pass.

    :ivar target: device name inside the domain, such as ``vda``.
    :ivar devices: ``major:minor`` of whole devices of this host, that which
        the VM's process writes to first; empty where this host's block layer
        never sees the disk.
    """

    target: str
    devices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceTotals:
    """One block device at one moment.

    :ivar name: the kernel's, such as ``sda``.
    :ivar scheduler: of its requests, such as ``bfq``; empty where requests
        only pass (device mapper).
    :ivar cost_model: whether weights are kept by the kernel's model of what
        requests cost (``io.cost.qos`` enables it).
    :ivar busy_s: cumulative seconds with a request under way.
    :ivar queued_s: cumulative seconds that requests took, all added up.
    """

    name: str
    scheduler: str
    cost_model: bool = False
    busy_s: float = 0.0
    queued_s: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class PressureSample:
    """Counters of one moment; rows as in ``incarnations``.

    :ivar time_s: monotonic clock, seconds.
    :ivar incarnations: the VMs.
    :ivar faulted_bytes: (n,) cumulative bytes that the VM had to wait for
        because they were not in memory; NaN where not told.
    :ivar memory_stall_s: (n,) cumulative seconds in which some thread waited
        for memory; NaN where not told.
    :ivar held_bytes: (n,) resident and swapped out now; NaN where not told.
    :ivar disks: (n) of each VM.
    :ivar reclaimed_bytes: cumulative bytes that this node took away from
        anybody because it was short of memory; NaN where not told.
    :ivar devices: by ``major:minor``, those that disks pass.
    """

    time_s: float
    incarnations: tuple[instance.Incarnation, ...]
    faulted_bytes: Scalars
    memory_stall_s: Scalars
    held_bytes: Scalars
    disks: tuple[tuple[DiskPath, ...], ...]
    reclaimed_bytes: float
    devices: Mapping[str, DeviceTotals]


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceLoad:
    """One block device in one interval.

    :ivar name: the kernel's.
    :ivar busy: part of the interval, 0..1, with a request under way.
    :ivar depth: mean number of requests under way or waiting, >= 0.
    """

    name: str
    busy: float
    depth: float


@dataclasses.dataclass(frozen=True, eq=False)
class Pressure:
    """How long VMs waited in one interval; rows as in ``incarnations``.

    :ivar interval_s: length, seconds, > 0.
    :ivar incarnations: the VMs.
    :ivar fault_rate: (n,) bytes per second, NaN where not told.
    :ivar memory_stall: (n,) part of the interval, 0..1, NaN where not told.
    :ivar held_bytes: (n,) resident and swapped out at its end, NaN where
        not told.
    :ivar disks: (n) of each VM.
    :ivar reclaim_rate: bytes per second that the node took away; NaN where
        not told.
    :ivar devices: by ``major:minor``.
    """

    interval_s: float
    incarnations: tuple[instance.Incarnation, ...]
    fault_rate: Scalars
    memory_stall: Scalars
    held_bytes: Scalars
    disks: tuple[tuple[DiskPath, ...], ...]
    reclaim_rate: float
    devices: Mapping[str, DeviceLoad]


BFQ_FILES = frozenset({'blkio.bfq.weight', 'io.bfq.weight'})
CFQ_FILE = 'blkio.weight'
COST_FILE = 'io.weight'


def honours(device: DeviceTotals, file: str) -> bool:
    """Tell whether a device serves groups by the weight in a file.

    :param file: name of a control group's file.
    """
    if file in BFQ_FILES:
        return device.scheduler == 'bfq'
    if file == CFQ_FILE:
        return device.scheduler == 'cfq'
    return file == COST_FILE and device.cost_model


def is_weighed(
    disk: DiskPath, devices: Mapping[str, DeviceTotals], file: str
) -> bool:
    """Tell whether some device that a disk's requests pass honours a file."""
    return any(
        honours(devices[number], file)
        for number in disk.devices
        if number in devices
    )


def why_unweighed(disk: DiskPath, devices: Mapping[str, DeviceTotals]) -> str:
    """Say why no weight does anything for a disk."""
    known = [devices[number] for number in disk.devices if number in devices]
    if not known:
        return f'disk {disk.target} is on no block device of this node'
    scheduler = known[-1].scheduler or 'no scheduler'
    return f'device {known[-1].name} uses {scheduler}'
