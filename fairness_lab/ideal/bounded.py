# SPDX-License-Identifier: Apache-2.0

"""What weights of a bounded ratio can reach, in a linear program.

A kernel gives a VM that wants more ``level x size x weight``, with one level
for all VMs of a node. With weights from ``1`` to ``ratio`` times the least
one, an allocation x can be reached if and only if there is a level L with
``min(demand, L size) <= x <= ratio L size`` for every VM of the node. The
level becomes a column of its own. The lower side is not convex: a VM either
has all it wants or at least ``L size``. Which of the two is found by turns:
at first VMs have all they want only if that follows from the node's least
possible level; then also those for which it turned out so.

Turns end where no single VM wants to change sides, which need not be the best
end. So they are made a second time, from the sides that the agents' own
method finds (:mod:`.sides`), and the better end counts.
"""

import dataclasses

import numpy as np

from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import filling
from fairness_lab.ideal import program as program_module
from fairness_lab.ideal import raising
from fairness_lab.ideal import sides
from fairness_lab.ideal import witness
from nova_fairness import exception

Floats = program_module.Floats
Places = program_module.Places
Bools = program_module.Bools
Columns = columns_module.Columns

_MOST_TURNS = 40
_FULL = 1 - 1e-6
_CLOSE = 1e-5
_MOST = 4000
"""Beyond so many columns nothing is bounded: it would take hours."""

_FEW = 3000
"""Up to so many columns all nodes are bounded at once; beyond, only those
on which weights would not reach what was found without."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Bounds:
    """How weights bound the uses of what is scarce.

    :ivar ratio: of weights.
    :ivar cell: (k,) number of each use's node and resource.
    :ivar part: (k,) of what there is, at full progress.
    :ivar unit: (k,) of the sizes of all that use it there.
    :ivar low: (k,) uses that must have at least ``L x unit`` if the column
        has not all it wants: one of each column.
    :ivar watched: (cells,) where weights are bounded.
    :ivar full: (c,) columns that must have all they want.
    """

    ratio: float
    cell: Places
    part: Floats
    unit: Floats
    low: Bools
    watched: Bools
    full: Bools


def divided(
    wishes: columns_module.Wishes,
    found: Columns,
    ratio: float,
    solver: filling.Solver,
    counts: Floats,
) -> Floats:
    """Divide within what weights can reach.

    :param ratio: of the largest to the smallest weight, >= 1.
    :param counts: as in :func:`.raising.raised`.
    :returns: (u, r) parts of the quotas; for more than :data:`_MOST` columns
        those of the free ideal, which weights may not reach.
    :raises SolverFailed: if turns do not end, and there is no guess.
    """
    rows, cells = columns_module.limits(found, wishes.capacity)
    program = raising.program_of(
        found, wishes.quota, rows, np.ones(len(cells))
    )
    unbounded, _ = raising.raised(program, counts, solver)
    if len(found.node) > _MOST or witness.is_reached(wishes, unbounded, ratio):
        return unbounded
    first = _first_bounds(found, rows, len(cells), ratio)
    guess = sides.content(wishes, found, ratio, counts)
    begins = [first.full] if guess is None else [first.full, guess[0]]
    ends, failed = [], None
    for full in begins:
        bounds = dataclasses.replace(first, full=full)
        try:
            ends.append(_ended(program, rows, bounds, counts, solver))
        except exception.SolverFailed as error:
            failed = error
    if failed is not None and not ends:
        if guess is None:
            raise failed
        # Of numbers too far apart for the solver, the guess is known.
        return guess[1]
    return max(ends, key=lambda parts: raising.rank(parts, counts))


def _ended(
    program: program_module.Program,
    rows: program_module.Entries,
    bounds: _Bounds,
    counts: Floats,
    solver: filling.Solver,
) -> Floats:
    """Make turns until nobody changes sides.

    :returns: (u, r) parts of the quotas.
    :raises SolverFailed: if turns do not end.
    """
    cells = len(bounds.watched)
    for _ in range(_MOST_TURNS):
        inner, free = _with_bounds(program, rows, bounds)
        parts, held = raising.raised(inner, counts, solver)
        value = filling.solution(held, solver, _worth(inner, bounds))
        progress, level = np.ones(len(bounds.full)), np.zeros(cells)
        count = int(free.sum())
        progress[free] = value[:count]
        level[bounds.watched] = value[count:]
        new = _next_bounds(rows.column, bounds, progress, level)
        if new is None:
            return parts
        bounds = new
    raise exception.SolverFailed(
        f'who is content still changes after {_MOST_TURNS} turns, '
        'expected an end'
    )


def _first_bounds(
    found: Columns, rows: program_module.Entries, cells: int, ratio: float
) -> _Bounds:
    size = found.size[found.scarce]
    unit = size / np.bincount(rows.row, size, cells)[rows.row]
    uses = np.bincount(rows.column, minlength=len(found.node))
    # Only where no use depends on another resource is the least level known.
    free = np.bincount(rows.row, uses[rows.column] > 1, cells)[rows.row] == 0
    least = _least_levels(rows, unit, cells, ratio)[rows.row]
    content = free & (rows.value <= least * unit * (1 + 1e-9))
    full = np.zeros(len(found.node), dtype=np.bool_)
    full[rows.column[content]] = True
    few = len(found.node) <= _FEW
    return _Bounds(
        ratio=ratio,
        cell=rows.row,
        part=rows.value,
        unit=unit,
        low=_narrowest(rows, cells),
        watched=np.full(cells, few),
        full=full,
    )


def _least_levels(
    rows: program_module.Entries, unit: Floats, cells: int, ratio: float
) -> Floats:
    """Level at which all with the largest weight use all there is.

    The root of ``sum(min(part, ratio x level x unit)) = 1`` for each cell.
    """
    steep = ratio * unit
    order = np.lexsort((rows.value / steep, rows.row))
    row, part, rise = rows.row[order], rows.value[order], steep[order]
    start = np.searchsorted(row, np.arange(cells))
    before = np.cumsum(part) - part
    before -= before[start][row]
    passed = np.cumsum(rise) - rise
    passed -= passed[start][row]
    left = np.bincount(row, rise, cells)[row] - passed
    level = (1 - before) / left
    fits = level <= part / rise * (1 + 1e-12)
    result = np.zeros(cells)
    # From the last to the first, so that the first that fits remains.
    place = np.flatnonzero(fits)[::-1]
    result[row[place]] = level[place]
    return result


def _narrowest(rows: program_module.Entries, cells: int) -> Bools:
    """Choose of each column the use that is scarcest on its node."""
    load = np.bincount(rows.row, rows.value, cells)[rows.row]
    order = np.lexsort((-load, rows.column))
    _, first = np.unique(rows.column[order], return_index=True)
    chosen = np.zeros(len(load), dtype=np.bool_)
    chosen[order[first]] = True
    return chosen


def _with_bounds(
    program: program_module.Program,
    rows: program_module.Entries,
    bounds: _Bounds,
) -> tuple[program_module.Program, Bools]:
    """Add levels as columns, and the rows they make.

    :returns: the program, and which columns it still has.
    """
    count, first = len(program.upper), len(program.bound)
    level = count + np.cumsum(bounds.watched) - 1
    upper = np.flatnonzero(bounds.watched[bounds.cell])
    low = np.flatnonzero(
        bounds.watched[bounds.cell] & bounds.low & ~bounds.full[rows.column]
    )
    use = np.concatenate([upper, low])
    sign = np.where(np.arange(len(use)) < len(upper), 1.0, -1.0)
    factor = np.where(sign > 0, bounds.ratio, 1.0)
    row = first + np.arange(len(use))
    wide = dataclasses.replace(
        program,
        upper=np.append(
            program.upper, np.full(int(bounds.watched.sum()), np.inf)
        ),
        limits=program_module.Entries.joined(
            [
                program.limits,
                program_module.Entries(
                    row, rows.column[use], sign * bounds.part[use]
                ),
                program_module.Entries(
                    row,
                    level[bounds.cell[use]],
                    -sign * factor * bounds.unit[use],
                ),
            ]
        ),
        bound=np.append(program.bound, np.zeros(len(use))),
    )
    fixed = np.zeros(len(wide.upper), dtype=np.bool_)
    fixed[:count] = bounds.full
    return program_module.with_fixed(
        wide, fixed, np.ones(len(fixed))
    ), ~bounds.full


def _worth(program: program_module.Program, bounds: _Bounds) -> Floats:
    """What leaves least unused: a column's parts of what is scarce."""
    cells = program.limits.row < len(bounds.watched)
    return np.bincount(
        program.limits.column[cells],
        program.limits.value[cells],
        len(program.upper),
    ).astype(np.float64)


def _next_bounds(
    column: Places, bounds: _Bounds, progress: Floats, level: Floats
) -> _Bounds | None:
    """Bound more cells, or let more columns have all they want.

    :returns: ``None`` when weights can reach it and nothing holds it back.
    """
    beyond = _beyond(column, bounds, progress) & ~bounds.watched
    if beyond.any():
        return dataclasses.replace(bounds, watched=bounds.watched | beyond)
    content = progress[column] >= _FULL
    held_back = level[bounds.cell] * bounds.unit >= bounds.part * (1 - _CLOSE)
    switched = (
        content
        & held_back
        & bounds.low
        & bounds.watched[bounds.cell]
        & ~bounds.full[column]
    )
    if not switched.any():
        return None
    full = bounds.full.copy()
    full[column[switched]] = True
    return dataclasses.replace(bounds, full=full)


def _beyond(column: Places, bounds: _Bounds, progress: Floats) -> Bools:
    """Tell where no level within the ratio gives what was found."""
    cells = len(bounds.watched)
    rate = progress[column] * bounds.part / bounds.unit
    least = np.zeros(cells)
    np.maximum.at(least, bounds.cell, rate / bounds.ratio)
    waits = bounds.low & (progress[column] < _FULL)
    most = np.full(cells, np.inf)
    np.minimum.at(most, bounds.cell[waits], rate[waits])
    return np.asarray(least > most * (1 + _CLOSE))
