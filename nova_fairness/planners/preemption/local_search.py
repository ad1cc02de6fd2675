# SPDX-License-Identifier: Apache-2.0

"""Local search that exchanges the hosts of preemptors while that lowers the
price.

The victims on one host, for all servers that are put there, are found exactly
as in :mod:`.bounds`. A step puts one server on another host, or exchanges the
hosts of two. A step is taken if it lowers the price of all hosts together. The
number of evaluations is bounded; a large problem is not changed.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools

import numpy as np

from nova_fairness.planners.preemption import bounds
from nova_fairness.planners.preemption import candidates

LOOKS = 600
"""Largest number of evaluations of a host with some servers in one search."""

_NEAR = 8
"""Largest number of further hosts that are tried for a server, the cheapest
ones.
"""

_MOST = 12
"""Largest number of servers for which the search runs."""

_PAIRS = 6
"""Largest number of servers for which any two may change hosts in one step."""

_Layout = tuple[int, ...]
"""Row of the host of each server."""

_LEAST_GAIN = 1e-9
"""Smallest gain, as a part of the price; a smaller gain is a rounding
error.
"""


def improve_choices(
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
    choices: Sequence[candidates.VictimChoice],
) -> list[candidates.VictimChoice]:
    """Return choices that cost the same or less.

    :param needs: needs with the same candidates.
    :param choices: choices that make room for all needs.
    """
    search = _Search(needs, field)
    if not 0 < len(search.servers) <= _MOST:
        return list(choices)
    begun = tuple(
        row for each in choices for rows in each.rows for row in rows
    )
    found = search.run(begun)
    if found is None:
        return list(choices)
    layout, parties = found
    paid = candidates.price(field, choices)
    if field.price[parties].sum() >= paid * (1 - _LEAST_GAIN):
        return list(choices)
    return candidates.assigned(field, search.shaped(layout), parties)


class _Search:
    """Evaluates layouts that differ by one step from the best layout so
    far.
    """

    def __init__(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> None:
        self._needs, self._field = needs, field
        self._pool = candidates.FreeCapacity(field)
        self.servers = [
            (n, k)
            for n, need in enumerate(needs)
            for k, piece in enumerate(need.pieces)
            for _ in range(piece.count)
        ]
        self._known: dict[
            tuple[int, tuple[int, ...]], tuple[float, list[int]] | None
        ] = {}
        self._near: dict[tuple[int, int], list[int]] = {}

    def run(self, layout: _Layout) -> tuple[_Layout, list[int]] | None:
        """Return the best layout that steps reach, and the candidates that
        are evicted for it.
        """
        paid = self._layout_price(layout)
        if paid is None:
            return None
        is_better = True
        while is_better and len(self._known) < LOOKS:
            is_better = False
            for other in self._next_layouts(layout):
                cost = self._layout_price(other)
                if cost is not None and cost < paid * (1 - _LEAST_GAIN):
                    layout, paid, is_better = other, cost, True
                    break
                if len(self._known) >= LOOKS:
                    break
        left = set[int]()
        for row, those in self._servers_by_host(layout).items():
            found = self._cached_price(row, those)
            left.update(found[1] if found else ())
        return layout, sorted(left)

    def shaped(self, layout: _Layout) -> list[tuple[tuple[int, ...], ...]]:
        """Return a layout as rows of hosts for each piece of each need."""
        rows = iter(layout)
        return [
            tuple(
                tuple(itertools.islice(rows, piece.count))
                for piece in need.pieces
            )
            for need in self._needs
        ]

    def _next_layouts(self, layout: _Layout) -> Iterator[_Layout]:
        used = sorted(set(layout))
        places = [
            list(dict.fromkeys([*used, *self._cheapest_hosts(n, k)]))
            for n, k in self.servers
        ]
        for i, rows in enumerate(places):
            for row in rows:
                if row != layout[i]:
                    yield _with_moves(layout, {i: row})
        for i, j in itertools.combinations(range(len(layout)), 2):
            if layout[i] != layout[j] and self.servers[i] != self.servers[j]:
                yield _with_moves(layout, {i: layout[j], j: layout[i]})
        if len(layout) > _PAIRS:
            return
        for i, j in itertools.combinations(range(len(layout)), 2):
            for row, other in itertools.product(places[i], places[j]):
                if row != layout[i] and other != layout[j]:
                    yield _with_moves(layout, {i: row, j: other})

    def _cheapest_hosts(self, n: int, k: int) -> list[int]:
        """Return the hosts with the lowest bound of the price for one
        server alone.
        """
        if (n, k) not in self._near:
            need, piece = self._needs[n], self._needs[n].pieces[k]
            rows = piece.rows & (need.limit > 0)
            free = self._pool.fits(piece, rows).tolist()
            found = bounds.host_entries(piece, rows, need.may, self._pool)
            if found is not None:
                order = np.argsort(found.bound, kind='stable')
                free += found.rows[order].tolist()
            self._near[n, k] = free[:_NEAR]
        return self._near[n, k]

    def _servers_by_host(self, layout: _Layout) -> dict[int, tuple[int, ...]]:
        """Return the servers on each host; equal servers have the same
        number.
        """
        found: dict[int, list[int]] = {}
        for i, row in enumerate(layout):
            found.setdefault(row, []).append(
                self.servers.index(self.servers[i])
            )
        return {row: tuple(those) for row, those in found.items()}

    def _layout_price(self, layout: _Layout) -> float | None:
        """Return the price of a layout; ``None`` if the layout is not
        possible.
        """
        total = 0.0
        for row, those in self._servers_by_host(layout).items():
            found = self._cached_price(row, those)
            if found is None:
                return None
            total += found[0]
        return total

    def _cached_price(
        self, row: int, servers: tuple[int, ...]
    ) -> tuple[float, list[int]] | None:
        """Return the price of room for some servers on one host, and the
        candidates; ``None`` if impossible.
        """
        key = row, servers
        if key not in self._known:
            self._known[key] = self._evaluate_host(row, servers)
        return self._known[key]

    def _evaluate_host(
        self, row: int, servers: tuple[int, ...]
    ) -> tuple[float, list[int]] | None:
        placed = [self.servers[i] for i in servers]
        if not self._is_allowed(row, placed):
            return None
        only = np.arange(self._field.free.shape[1]) == row
        amounts = sum(self._needs[n].pieces[k].amounts for n, k in placed)
        together = candidates.Piece(np.asarray(amounts), only)
        if len(self._pool.fits(together, only)):
            return 0.0, []
        may = self._needs[0].may
        found = bounds.host_entries(together, only, may, self._pool)
        if found is None:
            return None
        return bounds.BranchAndBound(found.of(0), np.inf).run()

    def _is_allowed(self, row: int, placed: Sequence[tuple[int, int]]) -> bool:
        counts: dict[int, int] = {}
        for n, k in placed:
            if not self._needs[n].pieces[k].rows[row]:
                return False
            counts[n] = counts.get(n, 0) + 1
        return all(
            count <= self._needs[n].limit[row] for n, count in counts.items()
        )


def _with_moves(layout: _Layout, rows: Mapping[int, int]) -> _Layout:
    return tuple(rows.get(i, row) for i, row in enumerate(layout))
