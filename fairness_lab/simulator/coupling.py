# SPDX-License-Identifier: Apache-2.0


"""VMs that use resources together: as fast as the scarcest lets them be."""

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

Scalars = usage_model.Scalars
Indices = usage_model.Indices

_MOST_SWEEPS = 200
_SETTLED = 1e-9
_PLENTY = np.inf


class Coupled:
    """The rows of nodes on which a VM uses resources together.

    :param capacity: (m, r) of all nodes.
    :param node: (n,) index of each VM's node.
    :param demand: (n, r) finite, >= 0.
    :param coupled: (n, r) which are used together.
    :param shares: (n, r) > 0.
    """

    def __init__(
        self,
        capacity: resources.Vector,
        node: Indices,
        demand: resources.Vector,
        coupled: resources.Mask,
        shares: resources.Vector,
    ) -> None:
        self._capacity = capacity
        self._node = node
        self._demand = demand
        self._coupled = coupled & (demand > 0)
        self._shares = shares

    def divide(
        self, held: resources.Vector
    ) -> tuple[resources.Vector, resources.Vector]:
        """Received and wished amounts, (n, r).

        :param held: (n, r) of which only space-shared columns count.
        """
        columns = self._scarce()
        offers = self._offers_of_memory(held)
        rows = np.arange(len(self._node))
        for _ in range(_MOST_SWEEPS):
            if not rows.size:
                break
            part = self._of(rows)
            now = offers[rows]
            for column in columns:
                part.turn(now, column)
            before = np.minimum(offers[rows], 1.0)
            moved = np.abs(np.minimum(now, 1.0) - before)
            offers[rows] = now
            # Nodes are apart: where nothing moved any more, nothing will.
            moving = np.zeros(len(self._capacity), dtype=np.bool_)
            moving[part.nodes[(moved > _SETTLED).any(axis=1)]] = True
            rows = rows[moving[part.nodes]]
        return self._final(offers, columns)

    @property
    def nodes(self) -> Indices:
        """(n,) index of each VM's node."""
        return self._node

    def _of(self, rows: Indices) -> 'Coupled':
        if len(rows) == len(self._node):
            return self
        return Coupled(
            self._capacity,
            self._node[rows],
            self._demand[rows],
            self._coupled[rows],
            self._shares[rows],
        )

    def _scarce(self) -> Indices:
        """Columns of which some node has less than is wanted."""
        timed = np.flatnonzero(resources.RESOURCES.time_shared)
        nodes = len(self._capacity)
        return np.array(
            [
                column
                for column in timed
                if (
                    np.bincount(self._node, self._demand[:, column], nodes)
                    > self._capacity[:, column]
                ).any()
            ],
            dtype=np.intp,
        )

    def _offers_of_memory(self, held: resources.Vector) -> resources.Vector:
        """Begin with plenty of all but of memory.

        :returns: (n, r) of its demand what each VM could use together.
        """
        offers = np.full(self._demand.shape, _PLENTY)
        space = self._coupled & ~resources.RESOURCES.time_shared
        offers[space] = held[space] / self._demand[space]
        return offers

    def _limit(
        self, offers: resources.Vector, column: np.intp | int
    ) -> Scalars:
        """Part of its demand to which the others limit a VM."""
        # What is not coupled is never offered less than plenty.
        limit = np.ones(len(offers))
        for other in range(offers.shape[1]):
            if other != column:
                np.minimum(limit, offers[:, other], out=limit)
        return np.where(self._coupled[:, column], limit, 1.0)

    def turn(self, offers: resources.Vector, column: np.intp | int) -> None:
        """Divide one resource among those whom the others let have it.

        :param offers: (n, r), of which one column is replaced.
        """
        _, level = filling.fill(
            self._capacity[:, column],
            self._node,
            self._demand[:, column] * self._limit(offers, column),
            self._shares[:, column],
        )
        mine = self._coupled[:, column]
        offers[mine, column] = (
            level[self._node[mine]]
            * self._shares[mine, column]
            / self._demand[mine, column]
        )

    def _final(
        self, offers: resources.Vector, columns: Indices
    ) -> tuple[resources.Vector, resources.Vector]:
        """What fits, also where the turns have not quite settled."""
        wished = self._demand.copy()
        for column in np.flatnonzero(resources.RESOURCES.time_shared):
            wished[:, column] *= self._limit(offers, column)
        pace = np.minimum(offers.min(axis=1), 1.0)
        paced = self._coupled & resources.RESOURCES.time_shared
        got = np.where(paced, pace[:, np.newaxis] * self._demand, self._demand)
        fitting = pace.copy()
        for column in columns:
            got[:, column], _ = filling.fill(
                self._capacity[:, column],
                self._node,
                got[:, column],
                self._shares[:, column],
            )
            mine = self._coupled[:, column]
            fitting[mine] = np.minimum(
                fitting[mine], got[mine, column] / self._demand[mine, column]
            )
        return (
            np.where(paced, fitting[:, np.newaxis] * self._demand, got),
            wished,
        )
