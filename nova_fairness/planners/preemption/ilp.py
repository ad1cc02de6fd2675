# SPDX-License-Identifier: Apache-2.0

"""Integer program that finds the lowest price for all needs at once.

The variables are candidates that leave (0 or 1) and the number of servers of
each piece on each host. The constraints are: every server has a host; no host
holds more than its free room and the room of its victims; a need has at most
its limit of servers on a host.
"""

from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from nova_fairness import exception
from nova_fairness.planners.preemption import candidates
from nova_fairness.shares import programs

Needs = Sequence[candidates.Need]

_Entry = tuple[int, float]
_Row = tuple[list[_Entry], float, float]
"""Entries of a row, and the lower and upper bound of their sum."""


def variable_count(needs: Needs, field: candidates.VictimCandidates) -> int:
    """Return the number of variables of the program."""
    spots = sum(
        int(piece.rows.sum()) for need in needs for piece in need.pieces
    )
    return len(field.servers) + spots


def cheapest_choices(
    needs: Needs, field: candidates.VictimCandidates
) -> list[candidates.VictimChoice] | None:
    """Return choices for all needs with the lowest possible price.

    :returns: ``None`` if not all needs can have room, or if different
        candidates may leave for different needs: then the preemptor of each
        victim matters.
    """
    if not needs or any((each.may != needs[0].may).any() for each in needs):
        return None
    spots = [
        (n, k, row)
        for n, need in enumerate(needs)
        for k, piece in enumerate(need.pieces)
        for row in np.flatnonzero(piece.rows).tolist()
    ]
    parties = len(field.servers)
    rows = list(_constraint_rows(needs, field, spots))
    scale = float(field.price.max(initial=1.0))
    cost = np.concatenate([field.price / scale, np.zeros(len(spots))])
    most = np.concatenate(
        [
            needs[0].may.astype(float),
            [float(needs[n].pieces[k].count) for n, k, _ in spots],
        ]
    )
    try:
        found = programs.solve_integer_program(cost, most, _row_table(rows))
    except exception.SolverFailed:
        return None
    if found is None:
        return None
    return _parse_choices(
        needs, field, spots, found.chosen[:parties] > 0, found
    )


def _constraint_rows(
    needs: Needs,
    field: candidates.VictimCandidates,
    spots: Sequence[tuple[int, int, int]],
) -> Iterator[_Row]:
    first = len(field.servers)
    for n, need in enumerate(needs):
        for k, piece in enumerate(need.pieces):
            mine = [
                (first + at, 1.0)
                for at, spot in enumerate(spots)
                if spot[:2] == (n, k)
            ]
            yield mine, float(piece.count), float(piece.count)
    hosts = sorted({row for _, _, row in spots})
    for row in hosts:
        here = [(at, spot) for at, spot in enumerate(spots) if spot[2] == row]
        for n, need in enumerate(needs):
            mine = [(first + at, 1.0) for at, spot in here if spot[0] == n]
            if mine:
                yield mine, 0.0, float(need.limit[row])
        entries = np.flatnonzero(field.row == row).tolist()
        for c in range(field.free.shape[0]):
            sums = [
                (first + at, float(needs[n].pieces[k].amounts[c]))
                for at, (n, k, _) in here
                if needs[n].pieces[k].amounts[c]
            ]
            if not sums:
                continue
            # Victims only reduce a lack that exists already.
            sums += [
                (int(field.party[e]), -float(field.amounts[e, c]))
                for e in entries
                if field.amounts[e, c]
            ]
            yield sums, -np.inf, float(field.free[c, row])


def _row_table(rows: Sequence[_Row]) -> programs.ProgramRows:
    entries = [
        (r, column, value)
        for r, (those, _, _) in enumerate(rows)
        for column, value in those
    ]
    r, column, value = zip(*entries, strict=True)
    return programs.ProgramRows(
        np.array(r, dtype=np.intp),
        np.array(column, dtype=np.intp),
        np.array(value, dtype=np.float64),
        np.array([low for _, low, _ in rows]),
        np.array([high for _, _, high in rows]),
    )


def _parse_choices(
    needs: Needs,
    field: candidates.VictimCandidates,
    spots: Sequence[tuple[int, int, int]],
    leaves: candidates.Marks,
    found: programs.ProgramSolution,
) -> list[candidates.VictimChoice]:
    counts = found.chosen[len(field.servers) :]
    rows = [
        tuple(
            tuple(
                row
                for at, (m, j, row) in enumerate(spots)
                if (m, j) == (n, k)
                for _ in range(int(counts[at]))
            )
            for k in range(len(need.pieces))
        )
        for n, need in enumerate(needs)
    ]
    return candidates.assigned(field, rows, np.flatnonzero(leaves).tolist())
