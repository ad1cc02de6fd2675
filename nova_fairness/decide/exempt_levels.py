# SPDX-License-Identifier: Apache-2.0

"""Fair division of nodes on which some VMs always have weight 1.

On such a node a common factor of all other weights decides how much these VMs
get. This is the *level* of the node: the rate per size at weight 1. For given
levels these VMs get a given amount, which counts for their owners. The other
VMs share the rest. Then levels change, as far as weights reach: a level rises
if the lightest owner of a VM with weight 1 is lighter than the owners of the
other VMs of the node, and falls if that owner is heavier.

These turns need not converge, because each changes what is fair on other
nodes. So the best division of all turns counts.
"""

import dataclasses

import numpy as np

from nova_fairness.decide import beside_exempt
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling
from nova_fairness.shares import maxmin
from nova_fairness.shares import weighted

TURNS = 12
"""Number of turns. More turns found no better division in 25 random clouds."""

PART = 0.5
"""Part of the wanted change of a level that is made in a turn. The levels of
other nodes change in the same turn."""

FARTHEST = 1.0
"""Largest change of the natural logarithm of a level in a turn. The heaviness
of owners shows the direction, but not how far."""

CLEARLY = 0.005
"""Part of a user's heaviness. Users differ between two divisions only if
their heaviness differs by more than this part."""

_LEAST = 1e-6
"""Least part of a node that VMs without weight 1 share."""

Scalars = usage_model.Scalars
Indices = usage_model.Indices
Mask = resources.Mask


@dataclasses.dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of a demand: of VMs with weight 1 and of other VMs.

    :ivar node: (p,) index of each row's node.
    :ivar cell: (p,) index of each row's cell.
    :ivar owner: (p,) index of each row's owner.
    :ivar user: (k,) index of each owner's user.
    :ivar wanted: (p,) CPU time that each row wants, > 0.
    :ivar size: (p,) vCPUs of each row, > 0.
    :ivar supply: (m,) CPU time of each node.
    :ivar short: (m,) whether rows want more than the node has.
    :ivar fixed: (p,) whether the row has weight 1 and its node is short.
    :ivar mixed: (m,) whether the node has a fixed row.
    :ivar low: (m,) level if all other rows have the largest weight; infinite
        if no row is fixed.
    :ivar high: (m,) level if all other rows have the least weight; infinite
        if no row is fixed.
    :ivar reach: largest distance of a weight from neutral, a logarithm.
    """

    node: Indices
    cell: Indices
    owner: Indices
    user: Indices
    wanted: Scalars
    size: Scalars
    supply: Scalars
    short: Mask
    fixed: Mask
    mixed: Mask
    low: Scalars
    high: Scalars
    reach: float

    @classmethod
    def of(
        cls,
        knowledge: foresight_model.CpuKnowledge,
        supply: Scalars,
        short: Mask,
        owner: Indices,
        user: Indices,
        ratio: float,
    ) -> 'MixedRows | None':
        """Return the rows of a demand.

        :param owner: (n,) index of each cell's owner.
        :param ratio: largest weight of a node divided by the smallest, >= 1.
        :returns: ``None`` if no row of a short node has weight 1.
        """
        demand = knowledge.demand
        node = knowledge.node[demand.cell]
        fixed = demand.exempt & short[node]
        if not fixed.any():
            return None
        mixed = np.bincount(node[fixed], minlength=len(supply)) > 0
        reach = float(np.log(ratio) / 2)

        def level(log: float) -> Scalars:
            shares = demand.vcpus * np.exp(np.where(fixed, 0.0, log))
            _, levels = filling.fill(supply, node, demand.wanted, shares)
            return np.where(mixed, np.log(levels), np.inf)

        return cls(
            node=node,
            cell=demand.cell,
            owner=owner[demand.cell],
            user=user,
            wanted=demand.wanted,
            size=demand.vcpus,
            supply=supply,
            short=short,
            fixed=fixed,
            mixed=mixed,
            low=level(reach),
            high=level(-reach),
            reach=reach,
        )

    @property
    def full_rates(self) -> Scalars:
        """Logarithms of rates per size at which rows lack nothing, (p,)."""
        return np.asarray(np.log(self.wanted / self.size))

    def divide_at_levels(
        self,
        levels: Scalars | None,
        weigh: weighted.Weigh,
        begin: maxmin.SearchState | None,
        steps: int,
    ) -> maxmin.MaxMinDivision:
        """Divide all nodes at given levels.

        :param levels: (m,); ``None`` to divide as if no row had weight 1.
        :param weigh: returns the heaviness of owners, as in :mod:`.maxmin`.
        :param begin: state of an earlier search.
        :param steps: Newton steps at most.
        """
        nodes = len(self.supply)
        wanted, left, node = self.wanted, self.supply, self.node
        if levels is not None:
            wanted = self.wants_at_levels(levels)
            had = np.bincount(node[self.fixed], wanted[self.fixed], nodes)
            left = np.maximum(left - had, _LEAST * left)
            node = np.where(self.fixed, nodes + node, node)
        plenty = np.full(nodes, np.inf)
        # Nodes of the rows must ascend.
        order = np.argsort(node, kind='stable')
        back = np.argsort(order, kind='stable')
        found = maxmin.divide(
            maxmin.DemandRows(
                node=node[order],
                owner=self.owner[order],
                user=self.user,
                wanted=wanted[order],
                size=self.size[order],
                supply=np.append(np.where(self.short, left, plenty), plenty),
            ),
            lambda got: weigh(got[back]),
            float(np.exp(2 * self.reach)),
            begin,
            steps,
            repairs=False,
        )
        return dataclasses.replace(
            found, got=found.got[back], log=found.log[back]
        )

    def wants_at_levels(self, levels: Scalars) -> Scalars:
        """Return what rows want; of fixed rows what they get at these levels.

        :returns: (p,).
        """
        rate = np.exp(np.minimum(self.full_rates, levels[self.node]))
        return np.where(self.fixed, self.size * rate, self.wanted)

    def weights(
        self, found: maxmin.MaxMinDivision, levels: Scalars | None
    ) -> Scalars:
        """Return logarithms of weights within the bounds, (p,).

        Fixed rows have weight 1. On nodes without fixed rows only the ratios
        of weights count.
        """
        if levels is None:
            return self._weights_of_mixed_nodes(found)
        top = self._highest_rates(found)
        log = found.log + (top - np.where(self.mixed, levels, 0.0))[self.node]
        log = np.where(self.fixed, 0.0, log.clip(-self.reach, self.reach))
        return np.where(self.mixed[self.node], log, found.log)

    def _weights_of_mixed_nodes(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Return weights that give cells nearly what ``found`` gives them."""
        log = found.log.copy()
        here = np.flatnonzero(self.mixed[self.node])
        names, cell = np.unique(self.cell[here], return_inverse=True)
        node = np.unique(self.node[here], return_inverse=True)[1]
        due = np.bincount(self.cell, found.got).astype(np.float64)[names]
        log[here] = beside_exempt.weights_for_amounts(
            node,
            cell,
            log[here] + self.reach,
            self.wanted[here],
            self.size[here],
            due,
            self.fixed[here],
            self.reach,
        )
        return log

    def amounts_by_weights(self, log: Scalars) -> Scalars:
        """Return the amounts that the kernel gives to each row, (p,).

        :param log: (p,) logarithms of the weights.
        """
        supply = np.where(self.short, self.supply, np.inf)
        got, _ = filling.fill(
            supply, self.node, self.wanted, self.size * np.exp(log)
        )
        return got

    def first_levels(
        self, found: maxmin.MaxMinDivision, known: Scalars | None
    ) -> Scalars:
        """Return the first levels: the middle of the rates of each node, (m,).

        :param known: (m,) best levels of an earlier search, which are taken
            instead; ``None`` if there was none.
        """
        if known is not None and len(known) == len(self.supply):
            is_known = self.mixed & np.isfinite(known)
        else:
            known, is_known = self.low, np.zeros_like(self.mixed)
        rate = np.log(found.got / self.size)
        high, low = (
            self._largest_by_node(rate, True),
            -self._largest_by_node(-rate, True),
        )
        with np.errstate(invalid='ignore'):
            return self._within_bounds(
                np.where(is_known, known, (high + low) / 2)
            )

    def next_levels(
        self,
        levels: Scalars,
        found: maxmin.MaxMinDivision,
        heaviness: Scalars,
    ) -> Scalars:
        """Return the levels of the next turn, (m,).

        :param found: division at the present levels.
        :param heaviness: (k,) heaviness of owners in that division.
        """
        rate = np.log(found.got / self.size)
        log = np.log(np.maximum(heaviness, weighted.LIGHT))[self.owner]
        content = found.got >= self.wanted * (1 - weighted.SAME)
        free = ~self.fixed & ~content
        waits = self.fixed & (self.full_rates > levels[self.node])
        steered = -self._largest_by_node(-log, free)
        alone = -self._largest_by_node(-log, waits)
        known = np.isfinite(steered) & np.isfinite(alone)
        with np.errstate(invalid='ignore'):
            step = (steered - alone).clip(-FARTHEST, FARTHEST)
            low = self._highest_rates(found) - self.reach
            high = -self._largest_by_node(-rate, free) + self.reach
            wish = np.minimum(np.maximum(levels + step, low), high)
            wish = np.where(low > high, (low + high) / 2, wish)
        wish = self._within_bounds(np.where(known, wish, self.high))
        move = np.where(self.mixed, wish, 0.0) - np.where(
            self.mixed, levels, 0.0
        )
        return np.where(self.mixed, levels + PART * move, np.inf)

    def _within_bounds(self, levels: Scalars) -> Scalars:
        return np.where(
            self.mixed,
            np.minimum(np.maximum(levels, self.low), self.high),
            np.inf,
        )

    def _highest_rates(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Return the highest rate of rows without weight 1, (m,)."""
        rate = np.log(found.got / self.size)
        return self._largest_by_node(rate, ~self.fixed)

    def _largest_by_node(
        self, values: Scalars, counts: Mask | bool
    ) -> Scalars:
        """Return the largest value of some rows of each mixed node, (m,).

        :param counts: (p,) whether the row is one of them.
        """
        most = np.full(len(self.supply), -np.inf)
        rows = np.flatnonzero(self.mixed[self.node] & counts)
        np.maximum.at(most, self.node[rows], values[rows])
        return most


def is_fairer(heaviness: Scalars, other: Scalars) -> bool:
    """Whether the lightest owners have more; if they have the same, the next.

    :param heaviness: (k,) heaviness of owners, in any order; so is ``other``.
    """
    mine, theirs = np.sort(heaviness), np.sort(other)
    apart = mine - theirs
    clear = np.abs(apart) > CLEARLY * np.maximum(
        np.abs(theirs), weighted.LIGHT
    )
    first = int(np.argmax(clear))
    return bool(clear[first] and apart[first] > 0)
