# SPDX-License-Identifier: Apache-2.0

"""Search for the cheapest victims on one host, and lower bounds of their price
on all hosts.

The bound is that of the fractional knapsack; the search is branch and bound.
"""

from typing import NamedTuple

import numpy as np

from nova_fairness.planners.preemption import candidates

_NODES = 2000
"""Largest number of nodes of branch and bound on one host; then the best
result so far is used.
"""


class CandidatesOnHost(NamedTuple):
    """Candidates on one host, the one with the best ratio of use to price
    first.

    :ivar lack: (k,) lack of the host in each needed class.
    :ivar party: (e,) numbers of the candidates.
    :ivar price: (e,) prices of the candidates.
    :ivar amounts: (e, k) amounts of the candidates on the host.
    """

    lack: list[int]
    party: list[int]
    price: list[float]
    amounts: list[list[int]]


class HostEntries(NamedTuple):
    """Hosts on which candidates could make room, with a lower bound of the
    price.

    :ivar rows: (h,) rows of the hosts.
    :ivar bound: (h,) lower bound of the price of room on each host.
    :ivar first: (h + 1,) index of the first entry of each host.
    :ivar party: (e,) candidate of each entry.
    :ivar price: (e,) price of this candidate.
    :ivar amounts: (e, k) amounts of the entry in the asked classes.
    :ivar lack: (e, k) lack of the host of the entry.
    """

    rows: candidates.Rows
    bound: candidates.Floats
    first: candidates.Rows
    party: candidates.Rows
    price: candidates.Floats
    amounts: candidates.Rows
    lack: candidates.Rows

    def of(self, host: int) -> CandidatesOnHost:
        """Return the candidates and the lack of one host, by its index in
        ``rows``.
        """
        some = slice(int(self.first[host]), int(self.first[host + 1]))
        return CandidatesOnHost(
            self.lack[some.start].tolist(),
            self.party[some].tolist(),
            self.price[some].tolist(),
            self.amounts[some].tolist(),
        )


def host_entries(
    piece: candidates.Piece,
    rows: candidates.Marks,
    may: candidates.Marks,
    pool: candidates.FreeCapacity,
) -> HostEntries | None:
    """Return candidates by host; the bound is that of the fractional knapsack.

    A candidate covers a part of the lack in every class, at most all of it.
    The victims together cover at least all of each lack.

    :returns: ``None`` if no candidate covers anything.
    """
    field, asked = pool.field, np.flatnonzero(piece.amounts > 0)
    found = pool.entries(piece, rows, may)
    row, have = field.row[found], field.amounts[found][:, asked]
    deficit = (piece.amounts[asked, np.newaxis] - pool.free[asked]).T
    lack = np.maximum(deficit[row], 0)
    brings = np.minimum(have, lack) / np.maximum(lack, 1)
    use: candidates.Floats = brings.sum(axis=1)
    keep = np.flatnonzero(use > 0)
    if not len(keep):
        return None
    price = field.price[field.party[found[keep]]]
    ratio = price / use[keep]
    order = np.lexsort((found[keep], ratio, row[keep]))
    keep, price, ratio = keep[order], price[order], ratio[order]
    row, use, lack = row[keep], use[keep], lack[keep]
    hosts, first = np.unique(row, return_index=True)
    bound = _bounds(use, price, ratio, (lack > 0).sum(axis=1), first)
    return HostEntries(
        hosts,
        bound,
        np.append(first, len(row)),
        field.party[found[keep]],
        price,
        have[keep],
        lack,
    )


def _bounds(
    use: candidates.Floats,
    price: candidates.Floats,
    ratio: candidates.Floats,
    wanted: candidates.Rows,
    first: candidates.Rows,
) -> candidates.Floats:
    """Return the lowest price of room on each host if parts of candidates
    could be evicted, (h,).
    """
    sizes = np.diff(np.append(first, len(use)))

    def within(values: candidates.Floats) -> candidates.Floats:
        total = np.cumsum(values)
        before = np.repeat(total[first] - values[first], sizes)
        summed: candidates.Floats = total - before
        return summed

    used, paid = within(use), within(price)
    # Rounding must not leave a host without an entry that is enough.
    full: candidates.Marks = np.asarray(used >= wanted - 1e-9)
    full[np.append(first[1:], len(use)) - 1] = True
    at = np.flatnonzero(full)
    host = np.repeat(np.arange(len(first)), sizes)
    _, which = np.unique(host[at], return_index=True)
    at = at[which]
    lacks = np.maximum(wanted[at] - (used[at] - use[at]), 0.0)
    bound: candidates.Floats = paid[at] - price[at] + lacks * ratio[at]
    return bound * (1 - 1e-12)


class BranchAndBound:
    """Search for the cheapest victims on one host, by branch and bound."""

    def __init__(self, here: CandidatesOnHost, most: float) -> None:
        self._here = here
        self._least = most
        self._nodes = 0
        self._found: list[int] | None = None
        classes = range(len(here.lack))
        # Least price of one unit among this party and those behind it.
        self._unit: list[list[float]] = [[np.inf] * len(here.lack)]
        for price, amounts in zip(
            reversed(here.price), reversed(here.amounts), strict=True
        ):
            last = self._unit[-1]
            self._unit.append(
                [
                    min(last[k], price / amounts[k] if amounts[k] else np.inf)
                    for k in classes
                ]
            )
        self._unit.reverse()

    def run(self) -> tuple[float, list[int]] | None:
        """Return the price and the candidates; ``None`` if no set costs at
        most ``most``.
        """
        self._branch(0, self._here.lack, 0.0, [])
        if self._found is None:
            return None
        return self._least, self._found

    def _branch(
        self, at: int, lack: list[int], paid: float, chosen: list[int]
    ) -> None:
        self._nodes += 1
        if max(lack, default=0) <= 0:
            if paid < self._least or (
                paid == self._least
                and (self._found is None or len(chosen) < len(self._found))
            ):
                self._least = paid
                self._found = [self._here.party[n] for n in chosen]
            return
        bound = paid + max(
            n * unit
            for n, unit in zip(lack, self._unit[at], strict=True)
            if n > 0
        )
        if bound > self._least or self._nodes > _NODES:
            return
        amounts = self._here.amounts[at]
        rest = [n - each for n, each in zip(lack, amounts, strict=True)]
        self._branch(at + 1, rest, paid + self._here.price[at], [*chosen, at])
        self._branch(at + 1, lack, paid, chosen)
