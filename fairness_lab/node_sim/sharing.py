# SPDX-License-Identifier: Apache-2.0

"""Divide resources of many nodes as their kernels do.

Time-shared resources are divided in proportion to shares. No VM gets more than
it wants, and nothing stays idle that a VM wants (weighted max-min, the fluid
limit of CFS, BFQ, iocost and HTB). Memory is held under protection.
"""

import dataclasses

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

Scalars = usage_model.Scalars
Indices = usage_model.Indices

_MOST_SWEEPS = 200
_SETTLED = 1e-9
_PLENTY = np.inf


class CoupledVms:
    """VMs of nodes on which some VM uses several resources together.

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
        """Compute the received and wished amounts, (n, r).

        :param held: (n, r); only its space-shared columns count.
        """
        columns = self._scarce_columns()
        offers = self._offers_of_memory(held)
        rows = np.arange(len(self._node))
        for _ in range(_MOST_SWEEPS):
            if not rows.size:
                break
            part = self._select_rows(rows)
            now = offers[rows]
            for column in columns:
                part.divide_resource(now, column)
            before = np.minimum(offers[rows], 1.0)
            moved = np.abs(np.minimum(now, 1.0) - before)
            offers[rows] = now
            # Nodes are apart: where nothing moved any more, nothing will.
            moving = np.zeros(len(self._capacity), dtype=np.bool_)
            moving[part.nodes[(moved > _SETTLED).any(axis=1)]] = True
            rows = rows[moving[part.nodes]]
        return self._fitting_amounts(offers, columns)

    @property
    def nodes(self) -> Indices:
        """(n,) index of each VM's node."""
        return self._node

    def _select_rows(self, rows: Indices) -> 'CoupledVms':
        if len(rows) == len(self._node):
            return self
        return CoupledVms(
            self._capacity,
            self._node[rows],
            self._demand[rows],
            self._coupled[rows],
            self._shares[rows],
        )

    def _scarce_columns(self) -> Indices:
        """Columns whose demand exceeds the capacity of some node."""
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
        """Create the first offers: memory as held, plenty of all else.

        :returns: (n, r) of its demand what each VM could use together.
        """
        offers = np.full(self._demand.shape, _PLENTY)
        space = self._coupled & ~resources.RESOURCES.time_shared
        offers[space] = held[space] / self._demand[space]
        return offers

    def _fraction_within_limits(
        self, offers: resources.Vector, column: np.intp | int
    ) -> Scalars:
        """Fraction of its demand to which other resources limit each VM."""
        # What is not coupled is never offered less than plenty.
        limit = np.ones(len(offers))
        for other in range(offers.shape[1]):
            if other != column:
                np.minimum(limit, offers[:, other], out=limit)
        return np.where(self._coupled[:, column], limit, 1.0)

    def divide_resource(
        self, offers: resources.Vector, column: np.intp | int
    ) -> None:
        """Divide one resource among VMs that no other resource limits.

        :param offers: (n, r); one column is replaced.
        """
        _, level = filling.fill(
            self._capacity[:, column],
            self._node,
            self._demand[:, column]
            * self._fraction_within_limits(offers, column),
            self._shares[:, column],
        )
        mine = self._coupled[:, column]
        offers[mine, column] = (
            level[self._node[mine]]
            * self._shares[mine, column]
            / self._demand[mine, column]
        )

    def _fitting_amounts(
        self, offers: resources.Vector, columns: Indices
    ) -> tuple[resources.Vector, resources.Vector]:
        """Reduce amounts to the capacity, if the search has not converged."""
        wished = self._demand.copy()
        for column in np.flatnonzero(resources.RESOURCES.time_shared):
            wished[:, column] *= self._fraction_within_limits(offers, column)
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


@dataclasses.dataclass(frozen=True, eq=False)
class Division:
    """Division of resources among VMs.

    :ivar received: (n, r) rates, and bytes of memory.
    :ivar wished: (n, r) what each VM would use of a resource if there were
        plenty of that one only; a VM waits for what it wished and did not
        receive.
    """

    received: resources.Vector
    wished: resources.Vector


def divide_memory(
    capacity: Scalars,
    node: Indices,
    wanted: Scalars,
    shares: Scalars,
    protected: bool,
) -> Scalars:
    """Divide the memory of every node among its VMs.

    Where it does not suffice, what is not protected is reclaimed, everywhere
    in the same proportion (``memory.low`` of cgroup v2). Agents protect all
    of a node's memory, in proportion to the shares; without them nothing is.

    :param capacity: (m,) bytes.
    :param wanted: (n,) bytes, finite, >= 0.
    :param shares: (n,) > 0.
    :param protected: whether anything is.
    :returns: (n,) bytes held.
    """
    nodes = len(capacity)
    total = np.bincount(node, wanted, nodes)
    short = total > capacity
    if not short.any():
        return wanted.copy()
    safe = np.zeros(len(node))
    if protected:
        safe, _ = filling.fill(capacity, node, wanted, shares)
    beyond = wanted - safe
    excess = np.bincount(node, beyond, nodes)
    left = capacity - np.bincount(node, safe, nodes)
    part = np.divide(left, excess, out=np.ones(nodes), where=excess > 0)
    held = safe + beyond * np.clip(part, 0.0, 1.0)[node]
    return np.where(short[node], held, wanted)


def divide(
    capacity: resources.Vector,
    node: Indices,
    demand: resources.Vector,
    coupled: resources.Mask,
    shares: resources.Vector,
    protected: bool = True,
) -> Division:
    """Divide all resources of every node.

    A VM that uses resources together (Leontief) is as fast as the scarcest of
    them lets it be, and leaves of the others what it cannot use. Then every VM
    that wants more has a resource that is used up and that no other VM has
    more of per share. The levels where this holds are found by turns, one
    resource after the other.

    :param capacity: (m, r).
    :param node: (n,) index of each VM's node.
    :param demand: (n, r) finite, >= 0.
    :param coupled: (n, r) which are used together.
    :param shares: (n, r) > 0.
    :param protected: whether memory is, in proportion to its shares.
    """
    timed = np.flatnonzero(resources.RESOURCES.time_shared)
    received = demand.copy()
    for column in np.flatnonzero(~resources.RESOURCES.time_shared):
        received[:, column] = divide_memory(
            capacity[:, column],
            node,
            demand[:, column],
            shares[:, column],
            protected,
        )
    mixed = np.zeros(len(capacity), dtype=np.bool_)
    mixed[node[coupled.any(axis=1)]] = True
    alone = ~mixed[node]
    for column in timed:
        received[alone, column], _ = filling.fill(
            capacity[:, column],
            node[alone],
            demand[alone, column],
            shares[alone, column],
        )
    if alone.all():
        return Division(received, demand.copy())
    rows = np.flatnonzero(~alone)
    together = CoupledVms(
        capacity, node[rows], demand[rows], coupled[rows], shares[rows]
    )
    return _merge_amounts(received, demand, rows, timed, together)


def _merge_amounts(
    received: resources.Vector,
    demand: resources.Vector,
    rows: Indices,
    timed: Indices,
    together: CoupledVms,
) -> Division:
    """Merge the amounts of coupled VMs into those of all VMs."""
    wished = demand.copy()
    places = np.ix_(rows, timed)
    got, wish = together.divide(received[rows])
    received[places], wished[places] = got[:, timed], wish[:, timed]
    return Division(received, wished)
