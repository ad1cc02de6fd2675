# SPDX-License-Identifier: Apache-2.0

"""The victims of this product: those that cost least.

A price has in it who is over their share, work that is lost, and the number of
servers; see :mod:`.pricing`. What is small is chosen exactly, by an integer
program over all needs at once. What is large is chosen one server after the
other: the best host is found by bounds, the best parties on it by branch and
bound; at the end whoever is not needed stays. The same is done from the last
need to the first, and the cheaper one counts.
"""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from nova_fairness.planners.preemption import field as field_module
from nova_fairness.planners.preemption import program
from nova_fairness.planners.preemption import victims

_NODES = 2000
"""Of branch and bound on one host; the best that was found by then counts."""

_EQUAL_HOSTS = 20
"""Hosts that are tried though their bound is no better than what is known."""


@dataclasses.dataclass(frozen=True)
class Least(victims.OneByOne):
    """Whoever costs least.

    :ivar exact: largest number of variables of the integer program, >= 0; 0
        never asks it.
    """

    description = (
        'Owners furthest over their share first, then least work lost, then'
        ' fewest servers.'
    )

    exact: float = 100.0

    def __post_init__(self) -> None:
        if not 0 <= self.exact <= 10_000:
            raise ValueError(
                f'exact must be from 0 to 10000, got {self.exact!r}'
            )

    def choose(
        self,
        needs: Sequence[field_module.Need],
        field: field_module.Field,
    ) -> Sequence[field_module.Choice | None]:
        """Choose for all at once if they are few; see the module."""
        first = _without_needless(super().choose(needs, field), needs, field)
        # Different parties for different needs: who leaves for whom counts.
        if None in first or any(
            (each.may != needs[0].may).any() for each in needs
        ):
            return first
        if program.size(needs, field) <= self.exact:
            best = program.best(needs, field)
            if best is not None:
                return best
        return self._cheaper(first, needs, field)

    def _cheaper(
        self,
        first: Sequence[field_module.Choice | None],
        needs: Sequence[field_module.Need],
        field: field_module.Field,
    ) -> Sequence[field_module.Choice | None]:
        """Choices, or cheaper ones that are made from the last need on."""
        back = needs[::-1]
        last = _without_needless(super().choose(back, field), back, field)
        found = [each for each in reversed(last) if each]
        if len(found) < len(needs) or (
            field_module.price(field, found)
            >= field_module.price(field, first)
        ):
            return first
        rows = [each.rows for each in found]
        parties = [v for each in found for v in each.parties]
        return field_module.assigned(field, rows, parties)

    def one(
        self,
        piece: field_module.Piece,
        rows: field_module.Marks,
        may: field_module.Marks,
        pool: field_module.Pool,
    ) -> victims.Found | None:
        """Look at hosts, those with the lowest bound first."""
        found = _entries(piece, rows, may, pool)
        if found is None:
            return None
        best: tuple[float, int, float, int] | None = None
        parties: list[int] = []
        equal = 0
        for host in np.argsort(found.bound, kind='stable').tolist():
            bound = float(found.bound[host])
            if best is not None and bound >= best[0]:
                equal += 1
                if bound > best[0] or equal > _EQUAL_HOSTS:
                    break
            most = np.inf if best is None else best[0]
            chosen = _Search(found.of(host), most).run()
            if chosen is None:
                continue
            price, left = chosen
            over = _left_over(piece, int(found.rows[host]), left, pool)
            key = (price, len(left), over, int(found.rows[host]))
            if best is None or key < best:
                best, parties = key, left
        return (best[3], sorted(parties)) if best else None


class _OnHost(NamedTuple):
    """Parties on one host, those that help most for their price first."""

    lack: list[int]
    party: list[int]
    price: list[float]
    amounts: list[list[int]]


class _Entries(NamedTuple):
    """Hosts on which parties could make room, and a bound of its price."""

    rows: field_module.Rows
    bound: field_module.Floats
    first: field_module.Rows
    party: field_module.Rows
    price: field_module.Floats
    amounts: field_module.Rows
    lack: field_module.Rows

    def of(self, host: int) -> _OnHost:
        """What there is on one of the hosts."""
        some = slice(int(self.first[host]), int(self.first[host + 1]))
        return _OnHost(
            self.lack[some.start].tolist(),
            self.party[some].tolist(),
            self.price[some].tolist(),
            self.amounts[some].tolist(),
        )


def _entries(
    piece: field_module.Piece,
    rows: field_module.Marks,
    may: field_module.Marks,
    pool: field_module.Pool,
) -> _Entries | None:
    """Entries by host; the bound is that of the fractional knapsack.

    Of every class that is missing a party brings a part, at most all of it;
    whoever makes room brings at least one of each.
    """
    field, asked = pool.field, np.flatnonzero(piece.amounts > 0)
    entries = pool.entries(piece, rows, may)
    row, have = field.row[entries], field.amounts[entries][:, asked]
    deficit = (piece.amounts[asked, np.newaxis] - pool.free[asked]).T
    lack = np.maximum(deficit[row], 0)
    brings = np.minimum(have, lack) / np.maximum(lack, 1)
    use: field_module.Floats = brings.sum(axis=1)
    keep = np.flatnonzero(use > 0)
    if not len(keep):
        return None
    price = field.price[field.party[entries[keep]]]
    ratio = price / use[keep]
    order = np.lexsort((entries[keep], ratio, row[keep]))
    keep, price, ratio = keep[order], price[order], ratio[order]
    row, use, lack = row[keep], use[keep], lack[keep]
    hosts, first = np.unique(row, return_index=True)
    bound = _bounds(use, price, ratio, (lack > 0).sum(axis=1), first)
    return _Entries(
        hosts,
        bound,
        np.append(first, len(row)),
        field.party[entries[keep]],
        price,
        have[keep],
        lack,
    )


def _bounds(
    use: field_module.Floats,
    price: field_module.Floats,
    ratio: field_module.Floats,
    wanted: field_module.Rows,
    first: field_module.Rows,
) -> field_module.Floats:
    """Least price for each host, (h,), if parts of parties could leave."""
    sizes = np.diff(np.append(first, len(use)))

    def within(values: field_module.Floats) -> field_module.Floats:
        total = np.cumsum(values)
        before = np.repeat(total[first] - values[first], sizes)
        summed: field_module.Floats = total - before
        return summed

    used, paid = within(use), within(price)
    # Rounding must not leave a host without an entry that is enough.
    full: field_module.Marks = np.asarray(used >= wanted - 1e-9)
    full[np.append(first[1:], len(use)) - 1] = True
    at = np.flatnonzero(full)
    host = np.repeat(np.arange(len(first)), sizes)
    _, which = np.unique(host[at], return_index=True)
    at = at[which]
    lacks = np.maximum(wanted[at] - (used[at] - use[at]), 0.0)
    bound: field_module.Floats = paid[at] - price[at] + lacks * ratio[at]
    return bound * (1 - 1e-12)


class _Search:
    """Branch and bound among the parties on one host."""

    def __init__(self, here: _OnHost, most: float) -> None:
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
        """Price and parties; ``None`` if nothing is as cheap as is known."""
        self._go(0, self._here.lack, 0.0, [])
        if self._found is None:
            return None
        return self._least, self._found

    def _go(
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
        self._go(at + 1, rest, paid + self._here.price[at], [*chosen, at])
        self._go(at + 1, lack, paid, chosen)


def _left_over(
    piece: field_module.Piece,
    row: int,
    parties: Sequence[int],
    pool: field_module.Pool,
) -> float:
    """Room that is left on a host, of all its classes, without a unit."""
    field = pool.field
    entries = np.isin(field.party, parties) & (field.row == row)
    left = pool.free[:, row] + field.amounts[entries].sum(axis=0)
    asked = piece.amounts > 0
    return float(((left - piece.amounts)[asked] / piece.amounts[asked]).sum())


def _without_needless(
    choices: Sequence[field_module.Choice | None],
    needs: Sequence[field_module.Need],
    field: field_module.Field,
) -> list[field_module.Choice | None]:
    """The same choices; parties whose room nobody has stay.

    The dearest are put back first.
    """
    pool = field_module.Pool(field)
    for need, choice in zip(needs, choices, strict=True):
        if choice is not None:
            pool.carry_out(need, choice)
    gone = np.flatnonzero(~pool.here)
    dearest = gone[np.lexsort((gone, -field.price[gone]))]
    stay = {v for v in dearest.tolist() if pool.put_back(v)}
    return [
        each
        and field_module.Choice(
            each.rows, tuple(v for v in each.parties if v not in stay)
        )
        for each in choices
    ]
