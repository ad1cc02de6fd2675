# SPDX-License-Identifier: Apache-2.0

"""Hosts of a simulated cloud."""

import dataclasses

import numpy as np

from fairness_lab.queue_sim import workload
from nova_fairness.model import cluster


class SimulatedHosts:
    """Capacity of hosts, and allocations on them.

    :param capacity: (h, c) of each.

    :ivar providers: (h,) as planners know them.
    """

    def __init__(self, capacity: cluster.Amounts) -> None:
        self._capacity = capacity
        self._used = np.zeros_like(capacity)
        names = [f'host-{n:04d}' for n in range(len(capacity))]
        self.providers = tuple(cluster.Provider(name, name) for name in names)
        self._row = {name: row for row, name in enumerate(names)}

    def set_accepts_servers(self, row: int, takes: bool) -> None:
        """Set whether servers may start on a host."""
        providers = list(self.providers)
        providers[row] = dataclasses.replace(providers[row], takes=takes)
        self.providers = tuple(providers)

    def free_amounts(self) -> cluster.Amounts:
        """(h, c) what is left on each."""
        return self._capacity - self._used

    def inventory(self) -> cluster.Inventory:
        """Of this moment."""
        return cluster.Inventory(
            self._capacity,
            self._used.copy(),
            self._capacity,
            np.ones_like(self._capacity),
        )

    def rows(self, names: tuple[str, ...]) -> list[int]:
        """Where hosts stand."""
        return [self._row[name] for name in names]

    def allocate(
        self, rows: list[int], cloud: workload.QueuedCloud, size: int
    ) -> None:
        """Allocate a request's servers."""
        self._change(rows, cloud.stream.sizes[size], 1)

    def is_overallocated(self) -> bool:
        """Whether some host has more allocated than it has."""
        return bool((self._used > self._capacity).any())

    def free(
        self, rows: list[int], cloud: workload.QueuedCloud, size: int
    ) -> None:
        """Free the room that a request's servers had."""
        self._change(rows, cloud.stream.sizes[size], -1)

    def _change(self, rows: list[int], size: workload.Size, sign: int) -> None:
        one = sign * size.amounts // size.servers
        for row in rows:
            self._used[row] += one
