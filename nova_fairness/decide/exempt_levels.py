# SPDX-License-Identifier: Apache-2.0

"""Division beside VMs whose weight is always 1.

On a node with such VMs a common factor of all other weights decides how much
they get: it is the *level* of the node, the rate per size of weight 1. With
given levels these VMs have a given amount. The rest is divided as if they were
not there, but what they have counts for their owners. Then levels move: up
where the lightest owner of such a VM is lighter than those who are steered
there, down where that owner is heavier, as far as weights reach.

Turns need not come nearer to an end, since each changes what is fair on other
nodes. So of all turns the division counts in which the lightest have most.
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
"""Divisions that are tried; more found nothing better in 25 random clouds."""

PART = 0.5
"""Of the way to a level that is gone in a turn: others move as well."""

FARTHEST = 1.0
"""Step of a level (natural logarithm): how much heavier an owner is says only
the direction."""

CLEARLY = 0.005
"""Part of what users have: by less no division is better for the lightest."""

_LEAST = 1e-6
"""Part of a node that is left for those who are steered, at least."""

Scalars = usage_model.Scalars
Indices = usage_model.Indices
Mask = resources.Mask


@dataclasses.dataclass(frozen=True, eq=False)
class MixedRows:
    """The rows of a demand, of VMs with weight 1 and of others.

    :ivar node: (p,) of each row.
    :ivar cell: (p,) of each row.
    :ivar owner: (p,) of each row.
    :ivar user: (k,) of each owner.
    :ivar wanted: (p,) > 0.
    :ivar size: (p,) > 0.
    :ivar supply: (m,) of each node.
    :ivar short: (m,) whether more is wanted than there is.
    :ivar fixed: (p,) rows with weight 1 on nodes that are short.
    :ivar mixed: (m,) nodes that have such rows.
    :ivar low: (m,) level if all others have the largest weight; so is
        ``high``, with the least one. Infinite where no row is fixed.
    :ivar reach: how far from neutral a weight can be, a logarithm.
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
        """Take the rows of a demand.

        :param owner: (n,) of each cell.
        :param ratio: largest by smallest weight of a node, >= 1.
        :returns: ``None`` if none of a short node has weight 1.
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
    def full(self) -> Scalars:
        """Rates per size with which rows have all they want, logarithms."""
        return np.asarray(np.log(self.wanted / self.size))

    def divided(
        self,
        levels: Scalars | None,
        weigh: weighted.Weigh,
        begin: maxmin.Begin | None,
        steps: int,
    ) -> maxmin.MaxMinDivision:
        """Divide what is left at these levels.

        :param levels: (m,); ``None`` as if all rows were steered.
        :param weigh: rows -> owners, as in :mod:`.maxmin`.
        """
        nodes = len(self.supply)
        wanted, left, node = self.wanted, self.supply, self.node
        if levels is not None:
            wanted = self.asked(levels)
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
        )
        return dataclasses.replace(
            found, got=found.got[back], log=found.log[back]
        )

    def asked(self, levels: Scalars) -> Scalars:
        """Wants, and what fixed rows have at these levels, (p,)."""
        rate = np.exp(np.minimum(self.full, levels[self.node]))
        return np.where(self.fixed, self.size * rate, self.wanted)

    def weights(
        self, found: maxmin.MaxMinDivision, levels: Scalars | None
    ) -> Scalars:
        """Logarithms of weights that a kernel can have, (p,).

        Those of nodes without fixed rows have no common measure.
        """
        if levels is None:
            return self._beside(found)
        top = self._top(found)
        log = found.log + (top - np.where(self.mixed, levels, 0.0))[self.node]
        log = np.where(self.fixed, 0.0, log.clip(-self.reach, self.reach))
        return np.where(self.mixed[self.node], log, found.log)

    def _beside(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Weights that are nearest to what all have if none is fixed."""
        log = found.log.copy()
        here = np.flatnonzero(self.mixed[self.node])
        names, cell = np.unique(self.cell[here], return_inverse=True)
        node = np.unique(self.node[here], return_inverse=True)[1]
        due = np.bincount(self.cell, found.got).astype(np.float64)[names]
        log[here] = beside_exempt.aimed(
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

    def got(self, log: Scalars) -> Scalars:
        """Divide with these weights as a kernel does, (p,)."""
        supply = np.where(self.short, self.supply, np.inf)
        got, _ = filling.fill(
            supply, self.node, self.wanted, self.size * np.exp(log)
        )
        return got

    def begin(
        self, found: maxmin.MaxMinDivision, known: Scalars | None
    ) -> Scalars:
        """First levels: the middle of the rates of each node, (m,).

        :param known: (m,) levels that were good before, if any.
        """
        if known is not None and len(known) == len(self.supply):
            is_known = self.mixed & np.isfinite(known)
        else:
            known, is_known = self.low, np.zeros_like(self.mixed)
        rate = np.log(found.got / self.size)
        high, low = self._most(rate, True), -self._most(-rate, True)
        with np.errstate(invalid='ignore'):
            return self._bounded(np.where(is_known, known, (high + low) / 2))

    def moved(
        self,
        levels: Scalars,
        found: maxmin.MaxMinDivision,
        heavy: Scalars,
    ) -> Scalars:
        """Levels of the next turn, (m,).

        :param heavy: (k,) of the owners with what was found.
        """
        rate = np.log(found.got / self.size)
        log = np.log(np.maximum(heavy, weighted.LIGHT))[self.owner]
        content = found.got >= self.wanted * (1 - weighted.SAME)
        free = ~self.fixed & ~content
        waits = self.fixed & (self.full > levels[self.node])
        steered = -self._most(-log, free)
        alone = -self._most(-log, waits)
        known = np.isfinite(steered) & np.isfinite(alone)
        with np.errstate(invalid='ignore'):
            step = (steered - alone).clip(-FARTHEST, FARTHEST)
            low = self._top(found) - self.reach
            high = -self._most(-rate, free) + self.reach
            wish = np.minimum(np.maximum(levels + step, low), high)
            wish = np.where(low > high, (low + high) / 2, wish)
        wish = self._bounded(np.where(known, wish, self.high))
        move = np.where(self.mixed, wish, 0.0) - np.where(
            self.mixed, levels, 0.0
        )
        return np.where(self.mixed, levels + PART * move, np.inf)

    def _bounded(self, levels: Scalars) -> Scalars:
        return np.where(
            self.mixed,
            np.minimum(np.maximum(levels, self.low), self.high),
            np.inf,
        )

    def _top(self, found: maxmin.MaxMinDivision) -> Scalars:
        """Highest rate of those who are steered on each node, (m,)."""
        rate = np.log(found.got / self.size)
        return self._most(rate, ~self.fixed)

    def _most(self, values: Scalars, counts: Mask | bool) -> Scalars:
        """Largest value of the rows of each mixed node that count, (m,)."""
        most = np.full(len(self.supply), -np.inf)
        rows = np.flatnonzero(self.mixed[self.node] & counts)
        np.maximum.at(most, self.node[rows], values[rows])
        return most


def is_better(heavy: Scalars, than: Scalars) -> bool:
    """Tell whether the lightest have more; if as much, then the next.

    :param heavy: (k,) of owners; so is ``than``, in any order.
    """
    one, other = np.sort(heavy), np.sort(than)
    apart = one - other
    clear = np.abs(apart) > CLEARLY * np.maximum(np.abs(other), weighted.LIGHT)
    first = int(np.argmax(clear))
    return bool(clear[first] and apart[first] > 0)
