# SPDX-License-Identifier: Apache-2.0

"""Who wants memory that others have."""

import numpy as np

from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources

FAULT_RATE = 20 * 4096.0
"""Bytes per second that a VM waits for, from which it wants more memory. One
that comes back from a pause faults for a moment; one whose memory does not
fit faults all the time."""

STALL = 0.05
"""Part of an interval in which a VM waits for memory, likewise."""

RECLAIM_RATE = 1024 * 1024.0
"""Bytes per second that the node takes away, from which it is short. Some
page cache is always recycled."""


def judge(pressure: pressure_model.Pressure) -> tuple[bool, resources.Mask]:
    """Judge who wants more memory on one node.

    A VM that waits because of a limit of its own, or for a disk, does not
    compete with anybody: the node itself must be short.

    :returns: whether VMs compete, and (n,) who wants more; rows as in
        ``pressure``.
    """
    faults = _at_least(pressure.fault_rate, FAULT_RATE)
    stalls = _at_least(pressure.memory_stall, STALL)
    running = np.array(
        [not item.paused for item in pressure.incarnations], dtype=np.bool_
    )
    wanting = np.asarray((faults | stalls) & running)
    holding = _at_least(pressure.held_bytes, 1.0)
    short = pressure.reclaim_rate >= RECLAIM_RATE
    compete = bool(wanting.any()) and int((wanting | holding).sum()) > 1
    return short and compete, wanting


def _at_least(values: pressure_model.Scalars, bound: float) -> resources.Mask:
    """Compare; what is not known is not enough."""
    return np.asarray(np.where(np.isfinite(values), values, -1.0) >= bound)
