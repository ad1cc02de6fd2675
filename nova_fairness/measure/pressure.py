# SPDX-License-Identifier: Apache-2.0

"""Computes how long VMs waited between two readings."""

import dataclasses
import math

import numpy as np

from nova_fairness.model import pressure


def pressure_between(
    before: pressure.PressureSample, after: pressure.PressureSample
) -> pressure.Pressure:
    """Return the pressure in the interval between two readings.

    Values are NaN for a VM that the earlier reading lacks, and for a counter
    that was reset.

    :param after: read later than ``before``.
    :returns: rows as in ``after``.
    :raises ValueError: if ``after`` is not later.
    """
    interval_s = after.time_s - before.time_s
    if interval_s <= 0:
        raise ValueError(
            f'expected a reading after {before.time_s}, got {after.time_s}'
        )
    rows = {item.key: row for row, item in enumerate(before.incarnations)}
    places = [rows.get(item.key, -1) for item in after.incarnations]

    def rate(old: pressure.Scalars, new: pressure.Scalars) -> pressure.Scalars:
        known = np.append(old, np.nan)[places]
        grown = new - known
        return np.where(grown >= 0, grown, np.nan) / interval_s

    stall = rate(before.memory_stall_s, after.memory_stall_s)
    return pressure.Pressure(
        interval_s=interval_s,
        incarnations=after.incarnations,
        fault_rate=rate(before.faulted_bytes, after.faulted_bytes),
        memory_stall=np.minimum(stall, 1.0),
        held_bytes=after.held_bytes,
        disks=after.disks,
        reclaim_rate=_increase(before.reclaimed_bytes, after.reclaimed_bytes)
        / interval_s,
        devices={
            number: _device_load(before.devices[number], device, interval_s)
            for number, device in after.devices.items()
            if number in before.devices
        },
    )


def without_vms(
    found: pressure.Pressure, excluded: frozenset[str]
) -> pressure.Pressure:
    """Return the pressure with the waits of some VMs set to 0.

    :param excluded: keys of these VMs.
    """
    if not excluded:
        return found
    kept = np.array(
        [vm.key not in excluded for vm in found.incarnations], bool
    )
    return dataclasses.replace(
        found,
        fault_rate=np.where(kept, found.fault_rate, 0.0),
        memory_stall=np.where(kept, found.memory_stall, 0.0),
    )


def _increase(before: float, after: float) -> float:
    return after - before if after >= before else math.nan


def _device_load(
    before: pressure.DeviceTotals,
    after: pressure.DeviceTotals,
    interval_s: float,
) -> pressure.DeviceLoad:
    busy = max(0.0, after.busy_s - before.busy_s) / interval_s
    depth = max(0.0, after.queued_s - before.queued_s) / interval_s
    return pressure.DeviceLoad(after.name, min(1.0, busy), depth)
