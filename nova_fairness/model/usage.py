# SPDX-License-Identifier: Apache-2.0

"""Use of VMs in one interval, and their owners."""

from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import instance
from nova_fairness.model import resources

Indices = npt.NDArray[np.intp]
Scalars = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Usage:
    """Runtime utilisation information (RUI) of the VMs of one interval.

    :ivar interval_s: length of the interval, seconds, > 0.
    :ivar incarnations: the VMs, row order of all arrays.
    :ivar amounts: (n, r) finite, >= 0: weighted seconds, bytes.
    :ivar known: (n,) whether the VM was seen at both ends of an interval; the
        rows of other VMs are zero (or the decayed past).
    :ivar cpu_stall: (n,) part of the interval, 0..1, in which the VM waited
        for a CPU; NaN if the kernel does not report it.
    :ivar cpu_busy: part of the interval, 0..1, in which a CPU was busy, for
        VMs or for the host, by number of the CPU; NaN for numbers that no CPU
        has; empty if the kernel does not report it.
    :ivar unsmoothed: (n, r) amounts of the newest interval alone, if
        ``amounts`` are smoothed; otherwise ``None``.
    """

    interval_s: float
    incarnations: tuple[instance.Incarnation, ...]
    amounts: resources.Vector
    known: resources.Mask
    cpu_stall: Scalars
    cpu_busy: Scalars = dataclasses.field(default_factory=lambda: np.zeros(0))
    unsmoothed: resources.Vector | None = None

    def busy_part(self, cpus: Sequence[int]) -> float:
        """Return the mean busy part of some CPUs; NaN if it is unknown for one
        of them.
        """
        known = [number for number in cpus if number < len(self.cpu_busy)]
        if len(known) < len(cpus):
            return float('nan')
        return float(self.cpu_busy[known].mean())

    @property
    def newest(self) -> resources.Vector:
        """Use in the newest interval alone, (n, r)."""
        return self.amounts if self.unsmoothed is None else self.unsmoothed


@dataclasses.dataclass(frozen=True, eq=False)
class CpuWaits:
    """VMs that wait for a CPU, judged over several intervals.

    :ivar vms: (n,) whether each VM wants more than it uses.
    :ivar nodes: (m,) whether the VMs of each node want more than it has.
    :ivar lacking: (n,) part of its want that each VM lacks because it waits,
        0..1; NaN if the kernel does not report waits.
    """

    vms: resources.Mask
    nodes: resources.Mask
    lacking: Scalars


@dataclasses.dataclass(frozen=True, eq=False)
class Ownership:
    """Owner and node of each row.

    The agent knows one node, the simulator thousands: both use this.

    :ivar users: ids of the compared entities (users or projects), sorted.
    :ivar user_index: (n,) position in ``users`` of each VM's owner.
    :ivar node_index: (n,) position of each VM's node, 0 in an agent.
    """

    users: tuple[str, ...]
    user_index: Indices
    node_index: Indices
