# SPDX-License-Identifier: Apache-2.0

"""Pressure on memory and disks: counters, and rates over an interval."""

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
    """Counters of one block device at one time.

    :ivar name: name in the kernel, such as ``sda``.
    :ivar scheduler: scheduler of its requests, such as ``bfq``; empty if
        requests only pass the device (device mapper).
    :ivar cost_model: whether the kernel enforces weights by its model of the
        cost of requests (``io.cost.qos`` enables it).
    :ivar busy_s: cumulative seconds with at least one request in flight.
    :ivar queued_s: cumulative sum of the seconds of all requests.
    """

    name: str
    scheduler: str
    cost_model: bool = False
    busy_s: float = 0.0
    queued_s: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class PressureSample:
    """Counters at one time; rows as in ``incarnations``.

    NaN stands for a value that the kernel does not report.

    :ivar time_s: monotonic clock, seconds.
    :ivar incarnations: the VMs.
    :ivar faulted_bytes: (n,) cumulative bytes for which the VM had to wait
        because they were not in memory.
    :ivar memory_stall_s: (n,) cumulative seconds in which some thread waited
        for memory.
    :ivar held_bytes: (n,) bytes of each VM, resident or swapped out.
    :ivar disks: (n) disks of each VM.
    :ivar reclaimed_bytes: cumulative bytes that the node reclaimed from any
        process because it was short of memory.
    :ivar devices: devices of the disks, by ``major:minor``.
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

    :ivar name: name in the kernel.
    :ivar busy: part of the interval, 0..1, with a request in flight.
    :ivar depth: mean number of requests in flight or waiting, >= 0.
    """

    name: str
    busy: float
    depth: float


@dataclasses.dataclass(frozen=True, eq=False)
class Pressure:
    """Waits of VMs in one interval; rows as in ``incarnations``.

    NaN stands for a value that the kernel does not report.

    :ivar interval_s: length of the interval, seconds, > 0.
    :ivar incarnations: the VMs.
    :ivar fault_rate: (n,) ``faulted_bytes`` per second.
    :ivar memory_stall: (n,) part of the interval, 0..1, in which some thread
        waited for memory.
    :ivar held_bytes: (n,) bytes of each VM, resident or swapped out, at the
        end of the interval.
    :ivar disks: (n) disks of each VM.
    :ivar reclaim_rate: ``reclaimed_bytes`` per second.
    :ivar devices: load of devices, by ``major:minor``.
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
    """Return whether a device serves control groups by the weight in a file.

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
    """Return whether a device of a disk serves control groups by the weight in
    a file.
    """
    return any(
        honours(devices[number], file)
        for number in disk.devices
        if number in devices
    )


def reason_without_weights(
    disk: DiskPath, devices: Mapping[str, DeviceTotals]
) -> str:
    """Return the reason why weights have no effect on a disk, as a text."""
    known = [devices[number] for number in disk.devices if number in devices]
    if not known:
        return f'disk {disk.target} is on no block device of this node'
    scheduler = known[-1].scheduler or 'no scheduler'
    return f'device {known[-1].name} uses {scheduler}'
