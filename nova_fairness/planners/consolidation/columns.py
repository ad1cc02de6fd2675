# SPDX-License-Identifier: Apache-2.0

"""The fewest hosts for servers of few kinds, by what a host can hold.

A *pattern* says how many servers of each kind lie on one host. Patterns that
are worth it are found one after the other (Gilmore and Gomory 1961): the
program without whole numbers gives a bound that is hardly ever missed, and
whole numbers of the patterns found are a packing. Hosts are of sorts; work is
counted and bounded, so that machines of any speed find the same.
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
"""In which prices are found, and patterns that are worth more."""
_CELLS = 2_000_000_000
"""Cells of all tables that are looked at: some seconds."""
_NODES = 200
"""Of the tree of whole numbers."""


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Servers, and hosts on which they are to be packed.

    :ivar sizes: (k, c) of a server of each kind, not all 0.
    :ivar counts: (k,) servers of each kind, > 0.
    :ivar room: (q, c) of a host of each sort.
    :ivar most: (q, k) servers of each kind that may lie on one of each sort.
    :ivar hosts: of each sort, and what one costs.
    """

    sizes: Counts
    counts: Counts
    room: Counts
    most: Counts
    hosts: programs.Sorts


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """A packing, and what it is worth.

    :ivar bound: hosts do not cost less.
    :ivar sort: (h,) of each host that is taken.
    :ivar counts: (h, k) servers of each kind on each.
    """

    bound: int
    sort: Rows
    counts: Counts


def packed(task: Task) -> Packed | None:
    """Pack servers on hosts that cost as little as can be.

    :returns: ``None`` if nothing was found.
    """
    search = _Search(task)
    parts = search.cover(task.counts, task.hosts.most)
    if not parts.cover.is_whole:
        return None
    bound = math.ceil(search.bound - _SURE)
    found = search.dived(parts)
    if found is None or task.hosts.cost[found[0]].sum() > bound + _SAME:
        found = search.whole(found)
    return None if found is None else Packed(bound, *found)


_Hosts = tuple[Rows, Counts]
"""Sorts of hosts, (h,), and what lies on each, (h, k)."""

_Listed = dict[bytes, tuple[int, Counts]]
"""Sorts of hosts and patterns, by both."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Parts:
    """Patterns, the sorts of their hosts, and how they cover all in parts."""

    of: Rows
    patterns: Counts
    cover: programs.Cover


class _Search:
    """Patterns that were found so far.

    :ivar bound: of what hosts cost.
    """

    def __init__(self, task: Task) -> None:
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

    def cover(self, left: Counts, hosts: Counts) -> _Parts:
        """Find patterns until no other one is worth it.

        :param left: (k,) servers of each kind that lie nowhere yet.
        :param hosts: (q,) of each sort that are not taken yet.
        """
        self._add_alone(left)
        # One that holds more than there is would be cut, and lose room.
        there = {
            key: each
            for key, each in self._found.items()
            if (each[1] <= left).all()
        }
        sorts = programs.Sorts(hosts, self._task.hosts.cost)
        while True:
            of, patterns = _arrays(there)
            found = programs.cover(patterns, of, left, sorts)
            new = self._priced(found, left, hosts)
            self._found |= new
            if new.keys() <= there.keys():
                return _Parts(of, patterns, found)
            there |= new

    def _add_alone(self, left: Counts) -> None:
        """Take in patterns of one kind each."""
        for k in map(int, np.flatnonzero(left)):
            holds = [int(each.most[k]) for each in self._hosts]
            alone = np.zeros(len(left), dtype=np.int64)
            alone[k] = min(max(holds), left[k])
            q = holds.index(max(holds))
            self._found[_key(q, alone)] = q, alone

    def _priced(
        self, found: programs.Cover, left: Counts, hosts: Counts
    ) -> _Listed:
        """Patterns that are worth more than they cost."""
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
                new[_key(q, pattern)] = q, pattern
        if self._is_exact and left is self._task.counts:
            self._bind(float(found.price @ left), worth)
        return new

    def _bind(self, total: float, worth: programs.Floats) -> None:
        """Raise the bound by prices, also cut to what hosts cost (Farley)."""
        hosts = self._task.hosts
        cut = hosts.cost / np.maximum(worth, _SAME)
        for part in (1.0, *cut[cut < 1.0]):
            beyond = np.maximum(part * worth - hosts.cost, 0.0)
            bound = float(part * total - hosts.most @ beyond)
            self.bound = max(self.bound, bound)

    def dived(self, parts: _Parts) -> _Hosts | None:
        """Hosts filled one after the other by what is used most in parts."""
        left, hosts = self._task.counts, self._task.hosts.most.copy()
        taken: list[tuple[int, Counts]] = []
        while parts.cover.is_whole:
            most = parts.cover.parts + _SAME
            n = int(most.argmax())
            q, pattern = int(parts.of[n]), parts.patterns[n]
            for _ in range(max(int(most[n]), 1)):
                taken.append((q, np.minimum(pattern, left)))
                left = left - taken[-1][1]
                hosts[q] -= 1
                self._found[_key(*taken[-1])] = taken[-1]
            if not left.any():
                return _arrays(dict(enumerate(taken)))
            parts = self.cover(left, hosts)
        return None

    def whole(self, known: _Hosts | None) -> _Hosts | None:
        """The best whole numbers of all patterns, or ``known`` without any."""
        task, (of, patterns) = self._task, _arrays(self._found)
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
            found = programs.choose(cost, most, rows, nodes=_NODES)
        except exception.SolverFailed:
            return known
        if found is None:
            return known
        if known and task.hosts.cost[known[0]].sum() <= found.cost + _SAME:
            return known
        hosts = np.repeat(patterns, found.chosen, axis=0)
        return np.repeat(of, found.chosen), _cut(hosts, task.counts)


def _key(sort: int, pattern: Counts) -> bytes:
    return sort.to_bytes(4, 'big') + pattern.tobytes()


def _arrays(listed: Mapping[Any, tuple[int, Counts]]) -> _Hosts:
    sorts, patterns = zip(*listed.values(), strict=True)
    return np.array(sorts, dtype=np.intp), np.array(patterns)


def _cut(counts: Counts, wanted: Counts) -> Counts:
    """Take away what is more than wanted."""
    over = counts.sum(axis=0) - wanted
    for each in counts:
        less = np.minimum(each, over)
        each -= less
        over -= less
    return counts
