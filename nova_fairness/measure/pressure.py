# SPDX-License-Identifier: Apache-2.0

"""From two readings to what VMs waited for between them."""

import dataclasses
import math

import numpy as np

from nova_fairness.model import pressure


def between(
    before: pressure.PressureSample, after: pressure.PressureSample
) -> pressure.Pressure:
    """Amounts between two readings.

    A VM that was not there before, and a counter that was reset, tell
    nothing: NaN.

    :param after: read later than ``before``.
    :returns: rows as in ``after``.
    :raises ValueError: if no time has passed.
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
        reclaim_rate=_grown(before.reclaimed_bytes, after.reclaimed_bytes)
        / interval_s,
        devices={
            number: _load(before.devices[number], device, interval_s)
            for number, device in after.devices.items()
            if number in before.devices
        },
    )


def counted(
    found: pressure.Pressure, apart: frozenset[str]
) -> pressure.Pressure:
    """Leave out what VMs waited for that others must not feel.

    :param apart: keys of these VMs.
    """
    if not apart:
        return found
    kept = np.array([vm.key not in apart for vm in found.incarnations], bool)
    return dataclasses.replace(
        found,
        fault_rate=np.where(kept, found.fault_rate, 0.0),
        memory_stall=np.where(kept, found.memory_stall, 0.0),
    )


def _grown(before: float, after: float) -> float:
    return after - before if after >= before else math.nan


def _load(
    before: pressure.DeviceTotals,
    after: pressure.DeviceTotals,
    interval_s: float,
) -> pressure.DeviceLoad:
    busy = max(0.0, after.busy_s - before.busy_s) / interval_s
    depth = max(0.0, after.queued_s - before.queued_s) / interval_s
    return pressure.DeviceLoad(after.name, min(1.0, busy), depth)
