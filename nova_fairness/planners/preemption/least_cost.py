# SPDX-License-Identifier: Apache-2.0

"""The victims of this product: those that cost least.

A price depends on the excess of its account over its share, on lost work, and
on the number of servers; see :mod:`.pricing`. A small problem is solved
exactly, by an integer program over all needs at once. A large one is solved
one server after the other: the best host is found by bounds, the best victims
on it by branch and bound; at the end victims that are not needed stay. The
same is done from the last need to the first. Both are improved by
:mod:`.local_search`, and the cheaper one counts.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.planners.preemption import bounds
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import ilp
from nova_fairness.planners.preemption import local_search
from nova_fairness.planners.preemption import victims

_EQUAL_HOSTS = 20
"""Hosts that are tried though their bound is no better than what is known."""


@dataclasses.dataclass(frozen=True)
class Least(victims.OneByOne):
    """The victims that cost least.

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
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> Sequence[candidates.VictimChoice | None]:
        """Choose for all at once if they are few; see the module."""
        first = _without_needless(super().choose(needs, field), needs, field)
        # Different parties for different needs: who leaves for whom counts.
        if (
            not needs
            or None in first
            or any((each.may != needs[0].may).any() for each in needs)
        ):
            return first
        if ilp.size(needs, field) <= self.exact:
            best = ilp.best(needs, field)
            if best is not None:
                return best
        begun = [[each for each in first if each]]
        begun += self._from_last(needs, field)
        found = [
            _without_needless(
                local_search.improved(needs, field, choices), needs, field
            )
            for choices in begun
        ]
        return min(found, key=lambda each: candidates.price(field, each))

    def _from_last(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> list[list[candidates.VictimChoice]]:
        """Choices that are made from the last need on; empty without."""
        back = needs[::-1]
        last = _without_needless(super().choose(back, field), back, field)
        found = [each for each in reversed(last) if each]
        if len(found) < len(needs):
            return []
        rows = [each.rows for each in found]
        parties = [v for each in found for v in each.parties]
        return [candidates.assigned(field, rows, parties)]

    def one(
        self,
        piece: candidates.Piece,
        rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Look at hosts, those with the lowest bound first."""
        found = bounds.entries(piece, rows, may, pool)
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
            chosen = bounds.BranchAndBound(found.of(host), most).run()
            if chosen is None:
                continue
            price, left = chosen
            over = _left_over(piece, int(found.rows[host]), left, pool)
            key = (price, len(left), over, int(found.rows[host]))
            if best is None or key < best:
                best, parties = key, left
        return (best[3], sorted(parties)) if best else None


def _left_over(
    piece: candidates.Piece,
    row: int,
    parties: Sequence[int],
    pool: candidates.FreeCapacity,
) -> float:
    """Room that is left on a host, of all its classes, without a unit."""
    field = pool.field
    entries = np.isin(field.party, parties) & (field.row == row)
    left = pool.free[:, row] + field.amounts[entries].sum(axis=0)
    asked = piece.amounts > 0
    return float(((left - piece.amounts)[asked] / piece.amounts[asked]).sum())


def _without_needless(
    choices: Sequence[candidates.VictimChoice | None],
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
) -> list[candidates.VictimChoice | None]:
    """The same choices without the victims whose room is not used.

    The dearest are put back first.
    """
    pool = candidates.FreeCapacity(field)
    for need, choice in zip(needs, choices, strict=True):
        if choice is not None:
            pool.carry_out(need, choice)
    gone = np.flatnonzero(~pool.here)
    dearest = gone[np.lexsort((gone, -field.price[gone]))]
    stay = {v for v in dearest.tolist() if pool.put_back(v)}
    return [
        each
        and candidates.VictimChoice(
            each.rows, tuple(v for v in each.parties if v not in stay)
        )
        for each in choices
    ]
