# SPDX-License-Identifier: Apache-2.0

"""Who waits for the same disk."""

from collections.abc import Iterator
from collections.abc import Mapping

import numpy as np

from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

BUSY = 0.9
"""Part of an interval with a request under way, from which a device may be
saturated ..."""

DEPTH = 2.0
"""... if besides so many requests are under way or wait, on average. A lone
request at a time keeps a device busy, too, and is served at once. This counts
requests of guests that use queues (Linux AIO, io_uring), whose waiting the
kernel's pressure stall information does not see, since no thread waits."""

USED = 0.02
"""Part of what all VMs moved from which a VM uses a saturated device."""


def saturated(devices: Mapping[str, pressure_model.DeviceLoad]) -> set[str]:
    """Give the devices at which requests wait for each other.

    :returns: ``major:minor``.
    """
    return {
        number
        for number, load in devices.items()
        if load.busy >= BUSY and load.depth >= DEPTH
    }


def rivals(
    pressure: pressure_model.Pressure, moved: usage_model.Scalars
) -> Iterator[tuple[str, usage_model.Indices]]:
    """Yield each saturated device with the VMs that compete for it.

    :param moved: (n,) bytes that each VM read and wrote, >= 0; rows as in
        ``pressure``.
    :returns: ``major:minor``, and rows of at least two VMs.
    """
    running = np.array(
        [not item.paused for item in pressure.incarnations], dtype=np.bool_
    )
    active = running & (moved > USED * float(moved.sum()))
    for number in sorted(saturated(pressure.devices)):
        uses = np.array(
            [_uses(disks, number) for disks in pressure.disks], dtype=np.bool_
        )
        rows = np.flatnonzero(uses & active)
        if len(rows) > 1:
            yield number, rows


def judge(
    pressure: pressure_model.Pressure, moved: usage_model.Scalars
) -> tuple[bool, resources.Mask]:
    """Judge who wants more of a disk of one node.

    :param moved: (n,) bytes that each VM read and wrote in the interval.
    :returns: whether VMs compete, and (n,) who wants more; rows as in
        ``pressure``.
    """
    wanting = np.zeros(len(pressure.incarnations), dtype=np.bool_)
    for _, rows in rivals(pressure, moved):
        wanting[rows] = True
    return bool(wanting.any()), wanting


def _uses(disks: tuple[pressure_model.DiskPath, ...], number: str) -> bool:
    return any(number in disk.devices for disk in disks)
