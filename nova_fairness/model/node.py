# SPDX-License-Identifier: Apache-2.0

"""The resources of a node."""

import dataclasses

from nova_fairness.model import resources


@dataclasses.dataclass(frozen=True, eq=False)
class NodeResources:
    """Node resource information (NRI, paper section 5.1.3).

    :ivar host: name by which peers know the node.
    :ivar cpus: numbers of the CPUs that VMs may use, ascending, not empty.
    :ivar speed_factor: weighted seconds per second of one CPU, > 0
        (BogoMIPS unless configured).
    :ivar capacity: (r,) finite, >= 0; per second where time-shared.
        ``cpu_time`` is number of CPUs x ``speed_factor``.
    """

    host: str
    cpus: tuple[int, ...]
    speed_factor: float
    capacity: resources.Vector

    def supply(self, interval_s: float) -> resources.Vector:
        """Supply of the node in an interval, shape (r,)."""
        return resources.RESOURCES.over(self.capacity, interval_s)
