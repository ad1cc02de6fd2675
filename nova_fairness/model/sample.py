# SPDX-License-Identifier: Apache-2.0

"""One reading of a node's counters."""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import instance
from nova_fairness.model import resources


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Cumulative counters of every VM of a node at one time.

    :ivar time_s: monotonic clock when the reading began, seconds.
    :ivar incarnations: the VMs, row order of all arrays, sorted by UUID.
    :ivar totals: (n, r) float64. Time-shared entries are cumulative and raw
        (``cpu_time`` in seconds of CPU, not yet weighted); space-shared
        entries are present values. NaN where a counter could not be read.
    :ivar cpu_stall_s: (n,) cumulative seconds in which some thread of the VM
        wanted a CPU and had none; NaN where the kernel does not tell.
    :ivar read_at_s: (n,) monotonic time at which each VM was read, seconds.
    :ivar cpu_busy_s: cumulative seconds in which a CPU was busy, by number of
        the CPU; NaN for numbers that no CPU has; empty if the kernel does not
        report them.
    """

    time_s: float
    incarnations: tuple[instance.Incarnation, ...]
    totals: resources.Vector
    cpu_stall_s: npt.NDArray[np.float64]
    read_at_s: npt.NDArray[np.float64]
    cpu_busy_s: npt.NDArray[np.float64] = dataclasses.field(
        default_factory=lambda: np.zeros(0)
    )

    def __len__(self) -> int:
        return len(self.incarnations)
