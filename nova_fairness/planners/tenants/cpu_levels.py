# SPDX-License-Identifier: Apache-2.0

"""CPU time of owners on all hosts, now and after a move.

The *level* of an owner is the CPU time of all its servers, as a part of the
time that they would get if the whole cloud were one host that is divided by
shares; it is at most 1. The CPU time on each host is predicted from the
weights that its kernel has.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import tenants
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.consolidation import layout as layout_module
from nova_fairness.shares import filling

Floats = npt.NDArray[np.float64]
Rows = hosts_module.Rows

_NOTHING = 1e-9
_LEAST_PART = 0.5
"""Smallest part of its CPUs that a host is assumed to provide."""

BREADTH = 32
"""Largest number of hosts that are tried for a server, those with the most
spare CPUs.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """Results of moving one server to each of several hosts.

    :ivar rows: (j,) rows of the hosts.
    :ivar level: (j,) level of the helped owner after the move.
    :ivar lowest: (j,) lowest level of the owners who get less than before; 1
        if there are none.
    """

    rows: Rows
    level: Floats
    lowest: Floats


class CpuLevels:
    """CPU time of all servers while a plan is made.

    :param given: the cloud and the CPU time that servers want.
    :param layout: layout of the cloud; :meth:`move` changes it.

    :ivar owners: (u,) names of owners, in the order of their first items.
    :ivar owner: (n,) index of each item's owner; -1 if nothing is known.
    :ivar wanted: (n,) CPUs that each item wants.
    :ivar capacity: (p,) CPUs that each host gives; 0 if it did not report.
    :ivar got: (n,) predicted CPUs of each item.
    :ivar ideal: (u,) CPUs that each owner would get if the cloud were one
        host; 0 for an owner who wants none.
    """

    def __init__(
        self, given: tenants.Tenants, layout: layout_module.HostLayout
    ) -> None:
        self.layout = layout
        wants = [given.wants.get(each.uuid) for each in layout.items]
        # The order is that of servers, so that names have no effect.
        self.owners = list(dict.fromkeys(each.owner for each in wants if each))
        index = {name: u for u, name in enumerate(self.owners)}
        self.owner = np.array(
            [index[each.owner] if each else -1 for each in wants], np.intp
        )
        self._cpus = np.array(
            [given.cpus.get(name, 0.0) for name in layout.hosts.names]
        )
        told = self._cpus[layout.at] > 0
        self.owner[~told] = -1
        self.wanted = np.array(
            [
                max(each.wanted_cpus, each.used_cpus) if each else 0.0
                for each in wants
            ]
        )
        self.wanted = np.where(told, self.wanted, 0.0)
        self._weight = np.array(
            [each.weight if each else 1.0 for each in wants]
        )
        used = np.array([each.used_cpus if each else 0.0 for each in wants])
        self.capacity = self._provided_cpus(np.where(told, used, 0.0))
        shares = [given.shares.get(name, 1.0) for name in self.owners]
        self.ideal = self._ideal_use(np.array(shares))
        self.predict_cpu_time()

    @property
    def levels(self) -> Floats:
        """Return the levels of all owners, 0 to 1, (u,)."""
        return self._levels_of_owners(self._sums, np.arange(len(self.owners)))

    def lacking(self, owner: int) -> Rows:
        """Return the rows of hosts on which servers of an owner lack CPU
        time.
        """
        lacks = self.got < self.wanted * (1 - _NOTHING) - _NOTHING
        return np.unique(self.layout.at[(self.owner == owner) & lacks])

    def most(self, n: int, owner: int) -> float:
        """Return an upper bound of the rise of an owner's level if an item
        moves.
        """
        gives = self.got[n]
        if self.owner[n] == owner:
            gives = self.wanted[n]
        return float(gives / self.ideal[owner])

    def outcomes(self, n: int, owner: int, allowed: Rows) -> Outcomes:
        """Return the results of moves of an item, for an owner.

        :param allowed: rows of hosts that have room for the item.
        """
        rows = self._emptiest_hosts(allowed)
        left = self._items_left_behind(n)
        items, place = self._items_with_arrival(n, rows)
        new, _ = filling.fill(
            self.capacity[rows], place, self.wanted[items], self._weight[items]
        )
        change = new - self.got[items]
        # The gain of the other items on its host counts for every target.
        items = np.concatenate([items, np.tile(left[0], len(rows))])
        place = np.concatenate(
            [place, np.repeat(np.arange(len(rows)), len(left[0]))]
        )
        change = np.concatenate([change, np.tile(left[1], len(rows))])
        level, lowest = self._levels_after_move(
            owner, items, place, change, len(rows)
        )
        return Outcomes(rows, level, lowest)

    def move(self, n: int, row: int) -> None:
        """Move an item, and predict the CPU time of all items."""
        self.layout.put(n, row)
        self.predict_cpu_time()

    def back(self, mark: int) -> None:
        """Undo all moves since a mark of the layout."""
        self.layout.back(mark)
        self.predict_cpu_time()

    def predict_cpu_time(self) -> None:
        """Predict the CPU time of all items."""
        self.got, _ = filling.fill(
            self.capacity, self.layout.at, self.wanted, self._weight
        )
        self._sums = self._sum_by_owner(self.got)

    def _provided_cpus(self, used: Floats) -> Floats:
        """Return the CPUs that hosts provide for servers, (p,): all of them,
        or fewer if fewer were measured.

        If servers wanted more than they used, their use is all that the host
        had for them: the host itself and quiet hours take the rest.
        """
        count = len(self._cpus)
        at = self.layout.at
        seen = np.bincount(at, used, count)
        asked = np.bincount(at, self.wanted, count)
        is_short = asked > seen * (1 + _NOTHING) + _NOTHING
        least = _LEAST_PART * self._cpus
        found: Floats = np.where(
            is_short, np.clip(seen, least, self._cpus), self._cpus
        )
        return found

    def _ideal_use(self, shares: Floats) -> Floats:
        wanted = self._sum_by_owner(self.wanted)
        nowhere = np.zeros(len(wanted), dtype=np.intp)
        total = np.array([self.capacity.sum()])
        found, _ = filling.fill(total, nowhere, wanted, shares)
        return found

    def _sum_by_owner(self, amounts: Floats) -> Floats:
        """Return the sums of amounts by owner, (u,)."""
        known = self.owner >= 0
        found = np.bincount(
            self.owner[known], amounts[known], len(self.owners)
        )
        return np.asarray(found, np.float64)

    def _levels_of_owners(self, sums: Floats, owners: Rows) -> Floats:
        ideal = self.ideal[owners]
        wants = ideal > _NOTHING
        found: Floats = np.where(
            wants, np.minimum(sums / np.where(wants, ideal, 1.0), 1.0), 1.0
        )
        return found

    def _emptiest_hosts(self, allowed: Rows) -> Rows:
        asked = np.bincount(self.layout.at, self.wanted, len(self.capacity))
        spare = (self.capacity - asked)[allowed]
        first = np.argsort(-spare, kind='stable')[:BREADTH]
        return np.sort(allowed[first])

    def _items_left_behind(self, n: int) -> tuple[Rows, Floats]:
        """Return the other items on the host of an item, and their gain if
        the item leaves.
        """
        row = int(self.layout.at[n])
        on = self.layout.on(row)
        others = on[on != n]
        return others, self._divide_host(others, row) - self.got[others]

    def _items_with_arrival(self, n: int, rows: Rows) -> tuple[Rows, Rows]:
        """Return the items on hosts, with the arriving item on each, and their
        places.

        A place is an index in ``rows``.
        """
        order = np.full(len(self.capacity), -1, dtype=np.intp)
        order[rows] = np.arange(len(rows))
        place = order[self.layout.at]
        on = np.flatnonzero(place >= 0)
        items = np.append(on, np.full(len(rows), n))
        return items, np.append(place[on], np.arange(len(rows)))

    def _divide_host(self, items: Rows, row: int) -> Floats:
        got, _ = filling.fill(
            self.capacity[[row]],
            np.zeros(len(items), dtype=np.intp),
            self.wanted[items],
            self._weight[items],
        )
        return got

    def _levels_after_move(
        self, owner: int, items: Rows, place: Rows, change: Floats, count: int
    ) -> tuple[Floats, Floats]:
        """Return the level of an owner, and the lowest level of owners who get
        less, (j,).

        :param place: index of the target of each change.
        :param count: number of targets.
        """
        known = self.owner[items] >= 0
        key = place[known] * len(self.owners) + self.owner[items[known]]
        pairs, inverse = np.unique(key, return_inverse=True)
        changes = np.bincount(inverse, change[known], len(pairs))
        at, who = np.divmod(pairs, len(self.owners))
        level = self._levels_of_owners(self._sums[who] + changes, who)
        mine = np.full(count, float(self.levels[owner]))
        is_mine = who == owner
        mine[at[is_mine]] = level[is_mine]
        lowest = np.ones(count)
        loses = changes < -_NOTHING
        np.minimum.at(lowest, at[loses], level[loses])
        return mine, lowest
