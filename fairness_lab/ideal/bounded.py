# SPDX-License-Identifier: Apache-2.0

"""Best allocation of weights with a bounded ratio, by a linear program.

A kernel gives a VM that wants more ``level x size x weight``, with one level
for all VMs of a node. With weights from ``1`` to ``ratio`` times the least
one, an allocation x can be reached if and only if there is a level L with
``min(demand, L size) <= x <= ratio L size`` for every VM of the node. The
level becomes a column of its own. The lower side is not convex: a VM either
has all it wants or at least ``L size``. Which of the two is found by turns:
at first VMs have all they want only if that follows from the node's least
possible level; then also those for which it turned out so.

A VM that is exempt always has weight 1, in the middle: ``sqrt(ratio)`` times
the least. Both sides of its bound are ``min(demand, sqrt(ratio) L size)``.

Turns end where no single VM wants to change sides, which need not be the best
end. So they are made a second time, from the sides that the agents' own
method finds (:mod:`nova_fairness.shares.maxmin`,
:mod:`nova_fairness.shares.exempt_levels`). Of the two ends and of what
that method finds the best counts: the one that gives clearly more to the first
of the sorted users who differ.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import filling
from fairness_lab.ideal import program as program_module
from nova_fairness import exception
from nova_fairness.model import resources
from nova_fairness.shares import exempt_levels
from nova_fairness.shares import filling as shares_filling
from nova_fairness.shares import maxmin
from nova_fairness.shares import weighted

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


CLEAR = 0.005
"""Part of a share by which an end must raise the poorest users to be better.
Weights cannot divide that finely: users who compete differ by up to 1 % in the
best division of an agent. The case is a random cloud where 0.26 % more for
seven users cost two others 22 and 36 %."""

_NEAR = 1e-3
"""Relative difference below which a user has what they should have."""

_MOST_MOVES = 150
_MOMENTUM = 0.9
_NO_SHARE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class _Bounds:
    """Bounds that weights set on the uses of scarce resources.

    :ivar cell: (k,) number of each use's node and resource.
    :ivar part: (k,) of what there is, at full progress.
    :ivar least: (k,) what a use gets at level 1 with the least weight.
    :ivar most: (k,) the same with the largest.
    :ivar low: (k,) uses that must have at least ``L x least`` if the column
        has not all it wants: one of each column.
    :ivar watched: (cells,) where weights are bounded.
    :ivar full: (c,) columns that must have all they want.
    """

    cell: Places
    part: Floats
    least: Floats
    most: Floats
    low: Bools
    watched: Bools
    full: Bools


@dataclasses.dataclass(frozen=True, eq=False)
class BoundedDivision:
    """A division that weights with a bounded ratio can reach.

    :ivar parts: (u, r) of the quotas.
    :ivar is_strict: ``False`` if another division was found that gives the
        poorest users more, but less than :data:`CLEAR` more.
    """

    parts: Floats
    is_strict: bool = True


def divide_within_ratio(
    wishes: columns_module.Wishes,
    found: Columns,
    ratio: float,
    solver: filling.Solver,
    counts: Floats,
    clear: float = CLEAR,
) -> BoundedDivision:
    """Find the best division that weights within a ratio can reach.

    :param ratio: largest weight of a node divided by the smallest, >= 1.
    :param counts: as in :func:`.filling.raise_users`.
    :param clear: relative difference of two shares; shares that differ by
        less count as equal.
    :returns: the best division; for more than :data:`_MOST` columns the free
        ideal, which weights may not reach.
    :raises SolverFailed: if the iteration does not converge, and the division
        of the default policy is not known either.
    """
    rows, cells = columns_module.capacity_limits(found, wishes.capacity)
    program = filling.program_of(
        found, wishes.quota, rows, np.ones(len(cells))
    )
    unbounded, _ = filling.raise_users(program, counts, solver)
    if len(found.node) > _MOST or _weights_reach(wishes, unbounded, ratio):
        return BoundedDivision(unbounded)
    first = _first_bounds(found, rows, len(cells), ratio)
    guess = _guess_satisfied_columns(wishes, found, ratio, counts)
    begins = [first.full] if guess is None else [first.full, guess[0]]
    ends, failed = [], None
    for full in begins:
        bounds = dataclasses.replace(first, full=full)
        try:
            ends.append(_settle_sides(program, rows, bounds, counts, solver))
        except exception.SolverFailed as error:
            failed = error
    if failed is not None and not ends:
        if guess is None:
            raise failed
        # Of numbers too far apart for the solver, the guess is known.
        return BoundedDivision(guess[1])
    if guess is not None:
        # Weights reach it as it is.
        ends.append(guess[1])
    return _choose_best_end(ends, counts, clear)


def _choose_best_end(
    ends: Sequence[Floats], counts: Floats, clear: float
) -> BoundedDivision:
    """Choose the result in which the poorest users have most."""
    strict = max(ends, key=lambda parts: filling.rank(parts, counts))
    best = strict
    for parts in ends:
        one, other = (
            np.array(filling.rank(each, counts)) for each in (parts, best)
        )
        differ = np.abs(one - other) > clear * np.maximum(one, other)
        first = int(np.argmax(differ))
        if differ[first] and one[first] > other[first]:
            best = parts
    return BoundedDivision(best, best is strict)


def program_around(
    wishes: columns_module.Wishes,
    found: Columns,
    progress: Floats,
    ratio: float,
) -> program_module.IdealProgram:
    """Return the program in which no VM changes its bounds.

    :param progress: (c,) of the columns now, which weights gave them.
    :param ratio: of the largest to the smallest weight, >= 1.
    """
    rows, cells = columns_module.capacity_limits(found, wishes.capacity)
    first = _first_bounds(found, rows, len(cells), ratio)
    level = np.zeros(len(cells))
    np.maximum.at(
        level, rows.row, progress[rows.column] * rows.value / first.most
    )
    held_back = level[rows.row] * first.least >= rows.value * (1 - _CLOSE)
    full = first.full.copy()
    full[rows.column[held_back & (progress[rows.column] >= _FULL)]] = True
    program = filling.program_of(
        found, wishes.quota, rows, np.ones(len(cells))
    )
    bounds = dataclasses.replace(
        first, full=full, watched=np.ones(len(cells), dtype=np.bool_)
    )
    return _with_bounds(program, rows, bounds)[0]


def _settle_sides(
    program: program_module.IdealProgram,
    rows: program_module.SparseEntries,
    bounds: _Bounds,
    counts: Floats,
    solver: filling.Solver,
) -> Floats:
    """Solve again until no VM changes its bounds.

    :returns: (u, r) parts of the quotas.
    :raises SolverFailed: if the iteration does not converge.
    """
    cells = len(bounds.watched)
    for _ in range(_MOST_TURNS):
        inner, free = _with_bounds(program, rows, bounds)
        parts, held = filling.raise_users(inner, counts, solver)
        value = filling.columns_at_floors(
            held, solver, _column_costs(inner, bounds)
        )
        progress, level = np.ones(len(bounds.full)), np.zeros(cells)
        count = int(free.sum())
        progress[free] = value[:count]
        level[bounds.watched] = value[count:]
        new = _next_bounds(rows.column, bounds, progress, level)
        if new is None:
            return parts
        bounds = new
    raise exception.SolverFailed(
        'the bounded ideal was not found: which VMs have all they want still '
        f'changes after {_MOST_TURNS} turns'
    )


def _first_bounds(
    found: Columns,
    rows: program_module.SparseEntries,
    cells: int,
    ratio: float,
) -> _Bounds:
    size = found.size[found.scarce]
    unit = size / np.bincount(rows.row, size, cells)[rows.row]
    steered = found.steered[rows.column]
    most = np.where(steered, ratio, np.sqrt(ratio)) * unit
    low = np.where(steered, 1.0, np.sqrt(ratio)) * unit
    uses = np.bincount(rows.column, minlength=len(found.node))
    # Only where no use depends on another resource is the least level known.
    free = np.bincount(rows.row, uses[rows.column] > 1, cells)[rows.row] == 0
    level = _least_levels(rows, most, cells)[rows.row]
    content = free & (rows.value <= level * low * (1 + 1e-9))
    full = np.zeros(len(found.node), dtype=np.bool_)
    full[rows.column[content]] = True
    few = len(found.node) <= _FEW
    return _Bounds(
        cell=rows.row,
        part=rows.value,
        least=low,
        most=most,
        low=_is_scarcest_use(rows, cells),
        watched=np.full(cells, few),
        full=full,
    )


def _least_levels(
    rows: program_module.SparseEntries, steep: Floats, cells: int
) -> Floats:
    """Level at which VMs, all with the largest weight, use all capacity.

    The root of ``sum(min(part, level x steep)) = 1`` for each cell.
    """
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


def _is_scarcest_use(rows: program_module.SparseEntries, cells: int) -> Bools:
    """Whether a use is the scarcest one of its column."""
    load = np.bincount(rows.row, rows.value, cells)[rows.row]
    order = np.lexsort((-load, rows.column))
    _, first = np.unique(rows.column[order], return_index=True)
    chosen = np.zeros(len(load), dtype=np.bool_)
    chosen[order[first]] = True
    return chosen


def _with_bounds(
    program: program_module.IdealProgram,
    rows: program_module.SparseEntries,
    bounds: _Bounds,
) -> tuple[program_module.IdealProgram, Bools]:
    """Add levels of cells as columns, and rows that bound uses by them.

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
    rate = np.where(sign > 0, bounds.most[use], bounds.least[use])
    row = first + np.arange(len(use))
    wide = dataclasses.replace(
        program,
        upper=np.append(
            program.upper, np.full(int(bounds.watched.sum()), np.inf)
        ),
        limits=program_module.SparseEntries.joined(
            [
                program.limits,
                program_module.SparseEntries(
                    row, rows.column[use], sign * bounds.part[use]
                ),
                program_module.SparseEntries(
                    row,
                    level[bounds.cell[use]],
                    -sign * rate,
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


def _column_costs(
    program: program_module.IdealProgram, bounds: _Bounds
) -> Floats:
    """Cost of each column: the fractions of scarce resources it uses."""
    cells = program.limits.row < len(bounds.watched)
    return np.bincount(
        program.limits.column[cells],
        program.limits.value[cells],
        len(program.upper),
    ).astype(np.float64)


def _next_bounds(
    column: Places, bounds: _Bounds, progress: Floats, level: Floats
) -> _Bounds | None:
    """Bounds for more cells, or with more columns that are satisfied.

    :returns: ``None`` when weights can reach it and nothing holds it back.
    """
    beyond = _is_beyond_ratio(column, bounds, progress) & ~bounds.watched
    if beyond.any():
        return dataclasses.replace(bounds, watched=bounds.watched | beyond)
    content = progress[column] >= _FULL
    given = level[bounds.cell] * bounds.least
    held_back = given >= bounds.part * (1 - _CLOSE)
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


def _is_beyond_ratio(
    column: Places, bounds: _Bounds, progress: Floats
) -> Bools:
    """Whether no level within the ratio gives the found progress."""
    cells = len(bounds.watched)
    had = progress[column] * bounds.part
    least = np.zeros(cells)
    np.maximum.at(least, bounds.cell, had / bounds.most)
    waits = bounds.low & (progress[column] < _FULL)
    most = np.full(cells, np.inf)
    np.minimum.at(most, bounds.cell[waits], (had / bounds.least)[waits])
    return np.asarray(least > most * (1 + _CLOSE))


def _guess_satisfied_columns(
    wishes: columns_module.Wishes,
    found: Columns,
    ratio: float,
    counts: Floats,
) -> tuple[Bools, Floats] | None:
    """Guess which columns are satisfied, and the parts of users then.

    The agents' own method makes it. Weights reach it, so that the bounded
    ideal is at least as good.

    :param ratio: of the largest to the smallest weight, >= 1.
    :param counts: (u, r) how much each part counts in its user's share.
    :returns: (c,) and (u, r) parts of the quotas; ``None`` where more than
        one resource is scarce, or VMs use several together: of these the
        agents' method knows nothing.
    """
    scarce = np.unique(found.resource[found.scarce])
    alone = np.bincount(found.column, minlength=len(found.node)) == 1
    if len(scarce) != 1 or not alone.all():
        return None
    (resource,) = scarce
    use = np.flatnonzero(found.resource == resource)
    use = use[np.argsort(found.place[use], kind='stable')]
    user, quota = found.user[found.column[use]], wishes.quota[:, resource]
    slope = counts[:, resource] / np.where(quota > 0, quota, 1.0)

    def weigh(got: Floats) -> tuple[Floats, Floats]:
        return slope * np.bincount(user, got, len(quota)), slope

    rows = maxmin.DemandRows(
        node=found.place[use],
        owner=user,
        user=np.arange(len(quota)),
        wanted=found.amount[use],
        size=found.size[use],
        supply=wishes.capacity[:, resource],
    )
    got = _amounts_by_agents(
        rows, ~found.steered[found.column[use]], weigh, ratio
    )
    progress = np.ones(len(found.node))
    progress[found.column[use]] = got / found.amount[use]
    shares = columns_module.quota_entries(found, wishes.quota)
    parts = shares.times(progress, wishes.quota.size)
    return progress >= 1.0, parts.reshape(wishes.quota.shape)


def _amounts_by_agents(
    rows: maxmin.DemandRows,
    exempt: Bools,
    weigh: weighted.Weigh,
    ratio: float,
) -> Floats:
    """Return what the rows get in the division, (n,).

    :param exempt: (n,) rows whose weight is always 1.
    """
    width = len(rows.user)
    _, cell = np.unique(rows.node * width + rows.owner, return_inverse=True)
    mixed = exempt_levels.MixedRows.of(
        rows, cell.reshape(-1), rows.short(), exempt, ratio
    )
    if mixed is None:
        return maxmin.divide(rows, weigh, ratio).got
    search, at = exempt_levels.LevelSearch(), None
    while True:
        search, tried = search.continued(mixed, weigh, at, maxmin.MOST_STEPS)
        if tried.at is None or search.is_over:
            return tried.got if search.best is None else search.best.got
        at = search.begin_of_turn(tried.at)


def _weights_reach(
    wishes: columns_module.Wishes, parts: Floats, max_weight_ratio: float
) -> bool:
    """Whether some weights within the ratio give users these parts.

    If weights within the ratio give every user what they have in the free
    ideal, that is the bounded one too, and no large program is needed to say
    so. Such weights are sought as an all-knowing policy would: each moves
    with the ratio of what its user should have to what they have. Not to
    find any says nothing.

    :param parts: (u, r) of the quotas.
    :param max_weight_ratio: >= 1.
    :returns: ``False`` also where VMs use resources together, or are exempt.
    """
    coupled = wishes.coupled & (wishes.demand > 0)
    if coupled.any() or wishes.exempt.any():
        return False
    reach = float(np.log(max_weight_ratio)) / 2
    return all(
        _weights_reach_parts_of_resource(
            _ResourceDivision(wishes, place), parts[:, place], reach
        )
        for place in range(len(resources.RESOURCES))
    )


class _ResourceDivision:
    """Division of one resource among the VMs that exist."""

    def __init__(self, wishes: columns_module.Wishes, place: int) -> None:
        there = wishes.node >= 0
        self.capacity = wishes.capacity[:, place]
        self.node = wishes.node[there]
        self.user = wishes.user[there]
        self.demand = wishes.demand[there, place]
        self.size = wishes.size[there, place]
        self.quota = wishes.quota[:, place]

    def parts(self, log: Floats) -> Floats:
        """(u,) fractions of their quotas that users get with these weights."""
        got, _ = shares_filling.fill(
            self.capacity, self.node, self.demand, self.size * np.exp(log)
        )
        total = np.bincount(self.user, got, len(self.quota))
        return columns_module.fractions_of_quota(self.quota, total)


def _weights_reach_parts_of_resource(
    one: _ResourceDivision, wanted: Floats, reach: float
) -> bool:
    log = np.zeros(len(one.node))
    step = np.zeros(len(one.node))
    some = wanted > _NO_SHARE
    for _ in range(_MOST_MOVES):
        had = one.parts(log)
        short = (wanted - had) / np.where(some, wanted, 1.0)
        if (np.abs(short)[some] <= _NEAR).all():
            return True
        push = np.where(
            some, np.log(wanted.clip(_NO_SHARE) / had.clip(_NO_SHARE)), 0.0
        )[one.user]
        kept = np.where(step * push > 0, _MOMENTUM, 0.0)
        step = push.clip(-1.0, 1.0) + kept * step
        log = _centred_weights(one, log + step).clip(-reach, reach)
    return False


def _centred_weights(one: _ResourceDivision, log: Floats) -> Floats:
    """Shift the weights of each node so that most are within the bounds."""
    nodes = len(one.capacity)
    high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(high, one.node, log)
    np.minimum.at(low, one.node, log)
    return np.asarray(log - (high[one.node] + low[one.node]) / 2)
