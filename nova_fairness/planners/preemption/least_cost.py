# SPDX-License-Identifier: Apache-2.0

"""Default choice of victims: those with the lowest price.

A price depends on the excess of the account over its share, on lost work, and
on the number of servers; see :mod:`.pricing`. A small problem is solved
exactly, by an integer program over all needs at once. A large one is solved
one server after the other: bounds find the best host, and branch and bound
finds the best victims on it. At the end, victims that are not needed stay.
This is done from the first need to the last, and from the last to the first.
Both results are improved by :mod:`.local_search`, and the cheaper one counts.
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
"""Largest number of hosts that are tried although their bound equals the
best price.
"""


@dataclasses.dataclass(frozen=True)
class Least(victims.OneByOne):
    """Chooses the victims with the lowest price.

    :ivar exact: largest number of variables of the integer program, 0 to
        10,000; 0 never uses the program.
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
        """Choose victims for all needs at once if they are few; see the
        module.
        """
        first = _without_unneeded_victims(
            super().choose(needs, field), needs, field
        )
        # If different parties may leave for different needs, the need of each
        # victim matters.
        if (
            not needs
            or None in first
            or any((each.may != needs[0].may).any() for each in needs)
        ):
            return first
        if ilp.variable_count(needs, field) <= self.exact:
            best = ilp.cheapest_choices(needs, field)
            if best is not None:
                return best
        begun = [[each for each in first if each]]
        begun += self._choose_from_last(needs, field)
        found = [
            _without_unneeded_victims(
                local_search.improve_choices(needs, field, choices),
                needs,
                field,
            )
            for choices in begun
        ]
        return min(found, key=lambda each: candidates.price(field, each))

    def _choose_from_last(
        self,
        needs: Sequence[candidates.Need],
        field: candidates.VictimCandidates,
    ) -> list[list[candidates.VictimChoice]]:
        """Return choices that are made from the last need to the first.

        :returns: a list with them, or an empty list if one is missing.
        """
        back = needs[::-1]
        last = _without_unneeded_victims(
            super().choose(back, field), back, field
        )
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
        """Choose victims for one server; the host with the lowest bound is
        tried first.
        """
        found = bounds.host_entries(piece, rows, may, pool)
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
            over = _remaining_room(piece, int(found.rows[host]), left, pool)
            key = (price, len(left), over, int(found.rows[host]))
            if best is None or key < best:
                best, parties = key, left
        return (best[3], sorted(parties)) if best else None


def _remaining_room(
    piece: candidates.Piece,
    row: int,
    parties: Sequence[int],
    pool: candidates.FreeCapacity,
) -> float:
    """Return the room that remains on a host beside a server, relative to the
    server.

    This is the sum over the classes for which the server asks.
    """
    field = pool.field
    entries = np.isin(field.party, parties) & (field.row == row)
    left = pool.free[:, row] + field.amounts[entries].sum(axis=0)
    asked = piece.amounts > 0
    return float(((left - piece.amounts)[asked] / piece.amounts[asked]).sum())


def _without_unneeded_victims(
    choices: Sequence[candidates.VictimChoice | None],
    needs: Sequence[candidates.Need],
    field: candidates.VictimCandidates,
) -> list[candidates.VictimChoice | None]:
    """Return the choices without victims whose room is not used.

    The victims with the highest price are put back first.
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
