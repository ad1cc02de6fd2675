# SPDX-License-Identifier: Apache-2.0

"""Foresight: wants and CPUs of all nodes, and their fair division.

Rows are *cells*. A cell is a pair of a user and a node, and stands for all VMs
of that user on that node.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

SAME = 0.01
"""Part of a user's use on all nodes. A change of the user's demand on one node
by less than this counts as no change."""

ALIKE = 0.01
"""Relative difference below which supplies and quotas count as the same. They
differ a little because no two intervals are equally long."""

_TIME = resources.RESOURCES.index('cpu_time')

Name = str | int
"""Name of a user or a node; its index if it has no name."""

Weigh = Callable[[resources.Vector], npt.NDArray[np.float64]]
"""(n, r) amounts that cells would use -> (n,) heaviness of each cell; or the
same for users: (u, r) -> (u,)."""


@dataclasses.dataclass(frozen=True, eq=False)
class CpuDemand:
    """Demand for CPUs; a row stands for vCPUs of a cell that want the same.

    :ivar cell: (p,) index of each row's cell, ascending; every cell has a row.
    :ivar wanted: (p,) > 0, as in :class:`CpuKnowledge`.
    :ivar vcpus: (p,) > 0, vCPUs, by which a kernel weighs the row.
    :ivar exempt: (p,) whether the row's VMs always have weight 1.
    """

    cell: usage_model.Indices
    wanted: usage_model.Scalars
    vcpus: usage_model.Scalars
    exempt: resources.Mask

    def left_alone(self, cells: int) -> usage_model.Scalars:
        """Return the sum of the wants of each cell's exempt VMs, (n,).

        :param cells: number of cells.
        """
        wanted = np.where(self.exempt, self.wanted, 0.0)
        return np.bincount(self.cell, wanted, cells).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class CpuKnowledge:
    """Demand and supply of nodes in one interval, from their reports.

    :ivar node: (n,) index of each cell's node. Cells are sorted by node, then
        by user.
    :ivar user: (n,) index of each cell's user.
    :ivar wanted: (n, r) finite, >= 0, amounts that cells would use if no node
        were short.
    :ivar used: (n, r) finite, >= 0, at most ``wanted``, amounts that cells
        used.
    :ivar supply: (m, r) finite, >= 0, amounts of each node.
    :ivar one_cpu: (m,) > 0, CPU time of one CPU of each node.
    :ivar demand: demand for CPUs in more detail than ``wanted``.
    :ivar weigh: returns the heaviness of cells for any use.
    :ivar weigh_users: returns the heaviness of users for any sums of use, in
        the order of their indices; ``None`` for a metric that depends on more
        than these sums.
    :ivar metric: name of the metric.
    :ivar quota: (u, r) quotas of users.
    :ivar hosts: names of the nodes; empty if nodes have only indices.
    :ivar users: names of the users; empty if users have only indices.
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
        """Return one unique name for each node."""
        return self.hosts or range(len(self.supply))

    def user_names(self) -> Sequence[Name]:
        """Return one unique name for each user."""
        return self.users or range(int(self.user.max(initial=-1)) + 1)

    def is_like(self, other: 'CpuKnowledge') -> bool:
        """Whether demand and supply differ by next to nothing.

        The same division is fair for both then.
        """
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
        """Whether the same users have VMs on the same nodes."""
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
        """Return the use of each user on all nodes, (max user + 1, r)."""
        return np.stack(
            [np.bincount(self.user, each) for each in self.used.T], axis=1
        )

    def given(self) -> resources.Vector:
        """Return the use of all users on each node, (m, r)."""
        nodes = len(self.supply)
        return np.stack(
            [np.bincount(self.node, each, nodes) for each in self.used.T],
            axis=1,
        )

    def cells_of(
        self, node: usage_model.Indices | int, user: usage_model.Indices
    ) -> usage_model.Indices:
        """Return the rows of cells by node and user; the cells must exist.

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
    """Fair division of the CPUs of all nodes.

    :ivar log: (n,) logarithms of the cells' weights. The middle of the weights
        of a node is 0, which is neutral. Beside exempt VMs it can be another
        number, because their weight is always neutral.
    :ivar due: (n,) CPU time that cells get with these weights, >= 0.
    :ivar short: (m,) whether users want more CPU time than the node has.
    :ivar sharpness: part of their heaviness by which users may differ for
        each unit of the natural logarithm of weights; infinite if there is no
        division.
    """

    log: usage_model.Scalars
    due: usage_model.Scalars
    short: resources.Mask
    sharpness: float


@dataclasses.dataclass(frozen=True, eq=False)
class NodeKnowledge:
    """Knowledge of one node about all nodes.

    :ivar knowledge: demand and supply of all nodes.
    :ivar place: index of this node.
    :ivar user: (n,) index of the user of each VM on this node.
    """

    knowledge: CpuKnowledge
    place: int
    user: usage_model.Indices


@dataclasses.dataclass(frozen=True, eq=False)
class SharedView:
    """Nodes that have the same reports, and so decide by the same division.

    :ivar deciding: (k,) indices of these nodes among all that decide.
    :ivar place: (k,) their indices in the knowledge.
    :ivar knowledge: demand and supply of all nodes.
    :ivar end: the fair division of these.
    """

    deciding: usage_model.Indices
    place: usage_model.Indices
    knowledge: CpuKnowledge
    end: CpuTarget


@dataclasses.dataclass(frozen=True, eq=False)
class Foresight:
    """Input of a policy with foresight; rows are VMs of nodes that decide.

    :ivar used: (n, r) amounts that VMs used in the newest interval, >= 0.
    :ivar wanted: (n, r) amounts that VMs want, at least ``used``.
    :ivar user: (n,) index of each VM's user in the knowledge.
    :ivar ratio: (c,) largest weight of a node divided by the smallest, >= 1,
        for each control.
    :ivar views: divisions. A node without one decides by feedback.
    :ivar exempt: (n,) VMs whose weight is always 1.
    """

    used: resources.Vector
    wanted: resources.Vector
    user: usage_model.Indices
    ratio: usage_model.Scalars
    views: Sequence[SharedView]
    exempt: resources.Mask

    def reordered(self, order: usage_model.Indices) -> 'Foresight':
        """Return the same input with rows in another order."""
        return dataclasses.replace(
            self,
            used=self.used[order],
            wanted=self.wanted[order],
            user=self.user[order],
            exempt=self.exempt[order],
        )
