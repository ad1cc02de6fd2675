# SPDX-License-Identifier: Apache-2.0

"""Packing of servers of few kinds on the fewest hosts, by column generation.

A *pattern* is the number of servers of each kind on one host. Useful patterns
are found one after another (Gilmore and Gomory 1961). The linear program over
patterns, in which a part of a pattern may be used, returns a bound that is
nearly always reached. An integer program over the found patterns returns a
packing. Hosts are grouped into sorts. The work is counted and limited, so that
computers of any speed find the same packing.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nova_fairness import exception
from nova_fairness.planners.consolidation import knapsack
from nova_fairness.shares import programs

Counts = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

_SAME, _SURE = 1e-7, 1e-6
_ROUNDS = 1000
"""Largest number of rounds; each computes prices, and patterns that are
worth more than they cost.
"""
_CELLS = 2_000_000_000
"""Largest number of table cells that are computed, which takes some
seconds.
"""
_NODES = 200
"""Largest number of nodes in the search tree of the integer program."""


@dataclasses.dataclass(frozen=True, eq=False)
class PackingTask:
    """Servers, and the hosts on which they are to be packed.

    :ivar sizes: (k, c) amounts of a server of each kind, not all 0.
    :ivar counts: (k,) number of servers of each kind, > 0.
    :ivar room: (q, c) free amounts of a host of each sort.
    :ivar most: (q, k) largest number of servers of each kind on one host of
        each sort.
    :ivar hosts: number and cost of the hosts of each sort.
    """

    sizes: Counts
    counts: Counts
    room: Counts
    most: Counts
    hosts: programs.Sorts


@dataclasses.dataclass(frozen=True, eq=False)
class FewestHostsPacking:
    """A packing, with a lower bound of its cost.

    :ivar bound: lower bound of the cost of any packing.
    :ivar sort: (h,) sort of each used host.
    :ivar counts: (h, k) servers of each kind on each host.
    """

    bound: int
    sort: Rows
    counts: Counts


def pack(task: PackingTask) -> FewestHostsPacking | None:
    """Pack servers on hosts at the lowest cost that the search finds.

    :returns: ``None`` if no packing was found.
    """
    search = _Search(task)
    packing = search.pack_fractionally(task.counts, task.hosts.most)
    if not packing.fractional_cover.is_whole:
        return None
    bound = math.ceil(search.bound - _SURE)
    found = search.pack_by_diving(packing)
    if found is None or task.hosts.cost[found[0]].sum() > bound + _SAME:
        found = search.pack_whole(found)
    return None if found is None else FewestHostsPacking(bound, *found)


_Hosts = tuple[Rows, Counts]
"""Sorts of hosts, (h,), and the number of servers of each kind, (h, k)."""

_Listed = dict[bytes, tuple[int, Counts]]
"""By key: a sort of hosts, and a pattern for it."""


@dataclasses.dataclass(frozen=True, eq=False)
class _FractionalPacking:
    """Patterns, the sorts of their hosts, and the fractional use of each
    pattern.
    """

    of: Rows
    patterns: Counts
    fractional_cover: programs.Cover


class _Search:
    """Search for patterns; it stores all patterns that it has found.

    :ivar bound: lower bound of the cost of hosts.
    """

    def __init__(self, task: PackingTask) -> None:
        self._task = task
        self._hosts = [
            knapsack.KnapsackHost(
                task.sizes, room, np.minimum(most, task.counts)
            )
            for room, most in zip(task.room, task.most, strict=True)
        ]
        self._is_exact = all(each.is_exact for each in self._hosts)
        self._found: _Listed = {}
        self._rounds, self._cells = _ROUNDS, _CELLS
        self.bound = 0.0

    def pack_fractionally(
        self, left: Counts, hosts: Counts
    ) -> _FractionalPacking:
        """Find patterns until no further pattern lowers the cost.

        :param left: (k,) servers of each kind that are on no host.
        :param hosts: (q,) unused hosts of each sort.
        """
        self._add_single_kind_patterns(left)
        # A pattern with more servers than are left would waste room.
        there = {
            key: each
            for key, each in self._found.items()
            if (each[1] <= left).all()
        }
        sorts = programs.Sorts(hosts, self._task.hosts.cost)
        while True:
            of, patterns = _as_arrays(there)
            found = programs.cover_kinds(patterns, of, left, sorts)
            new = self._improving_patterns(found, left, hosts)
            self._found |= new
            if new.keys() <= there.keys():
                return _FractionalPacking(of, patterns, found)
            there |= new

    def _add_single_kind_patterns(self, left: Counts) -> None:
        """Add patterns with servers of one kind each."""
        for k in map(int, np.flatnonzero(left)):
            holds = [int(each.most[k]) for each in self._hosts]
            alone = np.zeros(len(left), dtype=np.int64)
            alone[k] = min(max(holds), left[k])
            q = holds.index(max(holds))
            self._found[_pattern_key(q, alone)] = q, alone

    def _improving_patterns(
        self, found: programs.Cover, left: Counts, hosts: Counts
    ) -> _Listed:
        """Return new patterns that are worth more than they cost at the
        present prices.
        """
        new: _Listed = {}
        if self._rounds <= 0 or self._cells <= 0:
            return new
        self._rounds -= 1
        cost = self._task.hosts.cost
        worth = np.zeros(len(cost))
        for q in map(int, np.flatnonzero(hosts)):
            self._cells -= self._hosts[q].work(left)
            pattern = self._hosts[q].pattern(found.price, left)
            worth[q] = pattern @ found.price
            if worth[q] > cost[q] + found.rent[q] + _SAME:
                new[_pattern_key(q, pattern)] = q, pattern
        if self._is_exact and left is self._task.counts:
            self._raise_lower_bound(float(found.price @ left), worth)
        return new

    def _raise_lower_bound(
        self, total: float, prices: programs.Floats
    ) -> None:
        """Raise the lower bound by the prices, and by scaled prices
        (Farley's bound).
        """
        hosts = self._task.hosts
        cut = hosts.cost / np.maximum(prices, _SAME)
        for part in (1.0, *cut[cut < 1.0]):
            beyond = np.maximum(part * prices - hosts.cost, 0.0)
            bound = float(part * total - hosts.most @ beyond)
            self.bound = max(self.bound, bound)

    def pack_by_diving(self, packing: _FractionalPacking) -> _Hosts | None:
        """Return a packing that fills hosts one after another with the
        pattern that the fractional packing uses most.
        """
        left, hosts = self._task.counts, self._task.hosts.most.copy()
        taken: list[tuple[int, Counts]] = []
        while packing.fractional_cover.is_whole:
            most = packing.fractional_cover.parts + _SAME
            n = int(most.argmax())
            q, pattern = int(packing.of[n]), packing.patterns[n]
            for _ in range(max(int(most[n]), 1)):
                taken.append((q, np.minimum(pattern, left)))
                left = left - taken[-1][1]
                hosts[q] -= 1
                self._found[_pattern_key(*taken[-1])] = taken[-1]
            if not left.any():
                return _as_arrays(dict(enumerate(taken)))
            packing = self.pack_fractionally(left, hosts)
        return None

    def pack_whole(self, known: _Hosts | None) -> _Hosts | None:
        """Return the best packing by all patterns; ``known`` if no better
        packing is found.

        ``known`` is returned if no better solution is found.
        """
        task, (of, patterns) = self._task, _as_arrays(self._found)
        row, column = np.nonzero(patterns.T)
        kinds = len(task.counts)
        rows = programs.ProgramRows(
            np.concatenate([row, kinds + of]),
            np.concatenate([column, np.arange(len(of))]),
            np.concatenate([patterns.T[row, column], np.ones(len(of))]),
            np.concatenate([task.counts, np.full(len(task.room), -np.inf)]),
            np.concatenate([np.full(kinds, np.inf), task.hosts.most]),
        )
        cost, most = task.hosts.cost[of], task.hosts.most[of].astype(float)
        try:
            found = programs.solve_integer_program(
                cost, most, rows, nodes=_NODES
            )
        except exception.SolverFailed:
            return known
        if found is None:
            return known
        if known and task.hosts.cost[known[0]].sum() <= found.cost + _SAME:
            return known
        hosts = np.repeat(patterns, found.chosen, axis=0)
        return np.repeat(of, found.chosen), _without_surplus(
            hosts, task.counts
        )


def _pattern_key(sort: int, pattern: Counts) -> bytes:
    return sort.to_bytes(4, 'big') + pattern.tobytes()


def _as_arrays(listed: Mapping[Any, tuple[int, Counts]]) -> _Hosts:
    sorts, patterns = zip(*listed.values(), strict=True)
    return np.array(sorts, dtype=np.intp), np.array(patterns)


def _without_surplus(counts: Counts, wanted: Counts) -> Counts:
    """Remove servers beyond the wanted number of each kind."""
    over = counts.sum(axis=0) - wanted
    for each in counts:
        less = np.minimum(each, over)
        each -= less
        over -= less
    return counts
