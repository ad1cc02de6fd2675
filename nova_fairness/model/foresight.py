# SPDX-License-Identifier: Apache-2.0

"""Foresight: what is known of all nodes, and what will be fair there.

The rows are *cells*: what one user has on one node. A cell stands for all of
the user's VMs there.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

SAME = 0.01
"""Difference below which a user's demand on a node has not changed: a part of
what the user has on all nodes."""

ALIKE = 0.01
"""Supplies and quotas that differ by less are those of the same nodes and
weights, of intervals that are nearly as long."""

_TIME = resources.RESOURCES.index('cpu_time')

Name = str | int
"""Of a user or a node; its index where it has no other."""

Weigh = Callable[[resources.Vector], npt.NDArray[np.float64]]
"""(n, r) amounts that cells would use -> (n,) how heavy each would be; or the
same of users: (u, r) -> (u,)."""


@dataclasses.dataclass(frozen=True, eq=False)
class CpuDemand:
    """Demand for CPUs, cell by cell: rows are vCPUs that want alike.

    :ivar cell: (p,) ascending; every cell has a row.
    :ivar wanted: (p,) > 0, as in :class:`CpuKnowledge`.
    :ivar vcpus: (p,) > 0, by which a kernel weighs them.
    :ivar exempt: (p,) rows of VMs whose weight is always 1.
    """

    cell: usage_model.Indices
    wanted: usage_model.Scalars
    vcpus: usage_model.Scalars
    exempt: resources.Mask

    def left_alone(self, cells: int) -> usage_model.Scalars:
        """Sum the wants of the rows with weight 1, (n,)."""
        wanted = np.where(self.exempt, self.wanted, 0.0)
        return np.bincount(self.cell, wanted, cells).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class CpuKnowledge:
    """Demand and supply of some nodes, as they are known.

    :ivar node: (n,) index of each cell's node; cells are sorted by node, then
        by user, each pair once.
    :ivar user: (n,) index of each cell's user.
    :ivar wanted: (n, r) finite, >= 0, amounts of an interval: what the cell
        would use if there were plenty.
    :ivar used: (n, r) finite, >= 0, at most ``wanted``.
    :ivar supply: (m, r) finite, >= 0, of each node in the interval.
    :ivar one_cpu: (m,) > 0, what one CPU of each node does in the interval.
    :ivar demand: of the CPUs.
    :ivar weigh: the metric, asked what would be.
    :ivar weigh_users: the same, of what users would use in all, ascending;
        ``None`` for metrics that look at more than these sums.
    :ivar metric: its name.
    :ivar quota: (u, r) of the users it knows, amounts of the interval.
    :ivar hosts: names of the nodes; empty if their indices are names.
    :ivar users: names of the users; empty if their indices are names.
    """

    node: usage_model.Indices
    user: usage_model.Indices
    wanted: resources.Vector
    used: resources.Vector
    supply: resources.Vector
    one_cpu: usage_model.Scalars
    demand: CpuDemand
    weigh: Weigh
    metric: str
    quota: resources.Vector
    weigh_users: Weigh | None = None
    hosts: Sequence[str] = ()
    users: Sequence[str] = ()

    def node_names(self) -> Sequence[Name]:
        """Name of each node that no other node gets later."""
        return self.hosts or range(len(self.supply))

    def user_names(self) -> Sequence[Name]:
        """Name of each user that no other user gets later."""
        return self.users or range(int(self.user.max(initial=-1)) + 1)

    def is_like(self, other: 'CpuKnowledge') -> bool:
        """Tell whether what follows from both differs by next to nothing."""
        same = (
            self.has_cells_of(other)
            # No two intervals are equally long.
            and np.allclose(self.supply, other.supply, rtol=ALIKE)
            and np.allclose(self.quota, other.quota, rtol=ALIKE)
        )
        if not same:
            return False
        moved = np.abs(self.wanted - other.wanted)
        own = np.minimum(self.had(), other.had())
        cells = len(self.node)
        fixed = np.abs(
            self.demand.left_alone(cells) - other.demand.left_alone(cells)
        )
        given = np.abs(self.given() - other.given())
        return bool(
            (moved <= SAME * own[self.user]).all()
            and (fixed <= SAME * own[self.user, _TIME]).all()
            and (given <= ALIKE * self.supply).all()
        )

    def has_cells_of(self, other: 'CpuKnowledge') -> bool:
        """Tell whether the same users are on the same nodes."""
        return (
            self.metric == other.metric
            and tuple(self.hosts) == tuple(other.hosts)
            and tuple(self.users) == tuple(other.users)
            and np.array_equal(self.node, other.node)
            and np.array_equal(self.user, other.user)
            and self.supply.shape == other.supply.shape
            and self.quota.shape == other.quota.shape
        )

    def had(self) -> resources.Vector:
        """Use of each user on all nodes together, (max user + 1, r)."""
        return np.stack(
            [np.bincount(self.user, each) for each in self.used.T], axis=1
        )

    def given(self) -> resources.Vector:
        """Use of all users of each node together, (m, r)."""
        nodes = len(self.supply)
        return np.stack(
            [np.bincount(self.node, each, nodes) for each in self.used.T],
            axis=1,
        )

    def cells_of(
        self, node: usage_model.Indices | int, user: usage_model.Indices
    ) -> usage_model.Indices:
        """Rows of cells by their node and user; all cells must exist.

        :param node: (k,) node of each cell, or the one node of all.
        :param user: (k,) user of each cell.
        :returns: (k,) row of each cell.
        """
        users = int(max(self.user.max(initial=0), user.max(initial=0))) + 1
        return np.asarray(
            np.searchsorted(self.node * users + self.user, node * users + user)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class CpuTarget:
    """Where the CPUs of all known nodes should go.

    :ivar log: (n,) logarithms of the cells' weights, neutral in the middle of
        those of each node who compete.
    :ivar due: (n,) CPU time that cells get with these weights, >= 0.
    :ivar short: (m,) whether more is wanted of a node than it has.
    :ivar sharpness: how far owners may differ, a part of their heaviness by a
        natural logarithm of weights; infinite where nothing was found.
    """

    log: usage_model.Scalars
    due: usage_model.Scalars
    short: resources.Mask
    sharpness: float


@dataclasses.dataclass(frozen=True, eq=False)
class NodeKnowledge:
    """The knowledge that one node has.

    :ivar knowledge: of all nodes.
    :ivar place: index of this one.
    :ivar user: (n,) index in the knowledge of each own VM's user.
    """

    knowledge: CpuKnowledge
    place: int
    user: usage_model.Indices


@dataclasses.dataclass(frozen=True, eq=False)
class SharedView:
    """Nodes that know the same, and so decide alike.

    :ivar deciding: (k,) indices of nodes among those that decide.
    :ivar place: (k,) index of each in the knowledge.
    :ivar knowledge: what they know.
    :ivar end: what follows from it.
    """

    deciding: usage_model.Indices
    place: usage_model.Indices
    knowledge: CpuKnowledge
    end: CpuTarget


@dataclasses.dataclass(frozen=True, eq=False)
class Foresight:
    """Input of a policy with foresight, for VMs of nodes that decide.

    :ivar used: (n, r) of the newest interval, >= 0; rows of the situation.
    :ivar wanted: (n, r) what they want, at least ``used``.
    :ivar user: (n,) index of each VM's user in the knowledge.
    :ivar ratio: (c,) largest by smallest weight of a node, >= 1.
    :ivar views: nodes that are in none know nothing of others.
    :ivar exempt: (n,) VMs whose weight is always 1.
    """

    used: resources.Vector
    wanted: resources.Vector
    user: usage_model.Indices
    ratio: usage_model.Scalars
    views: Sequence[SharedView]
    exempt: resources.Mask

    def reordered(self, order: usage_model.Indices) -> 'Foresight':
        """The same with rows in another order."""
        return dataclasses.replace(
            self,
            used=self.used[order],
            wanted=self.wanted[order],
            user=self.user[order],
            exempt=self.exempt[order],
        )
