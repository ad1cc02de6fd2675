# SPDX-License-Identifier: Apache-2.0

"""Lexicographic max-min by progressive filling, of entities and of users.

The poorest entity is raised as far as possible, then the next poorest, and so
on. One level is found by Newton's method: at a level that is too high the
solver's prices name the entities that compete for scarce resources, and how
much lower the level must be for them. They cannot have more, whatever the
others get, and are done; so are entities that have all they want. Columns with
a price keep their end in every best solution, so that the rest falls into
smaller parts that know nothing of each other.

Users are raised twice: their shares first, then their parts of each resource.
"""

from collections.abc import Callable
import dataclasses
from typing import Protocol
from typing import TypeVar

import numpy as np

from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import highs
from fairness_lab.ideal import program as program_module
from nova_fairness import exception

Floats = program_module.Floats

_SAME = 1e-8
"""Relative distance below which two levels are one."""

_SLACKS = (1e-6, 1e-5, 1e-4, 1e-3)
"""An entity may have less than its floor by this much, because floors come
from solutions that are exact to less than this. A result with many floors can
be out of reach by a little more; then the next value is tried."""

_PRICED = 1e-6
"""Part of the largest price below which something has none."""

_AT_END = 1e-7
"""Progress this near to an end of a column is that end."""

_MOST_STEPS = 200


class SolverModel(Protocol):
    """The needed methods of a solved model; see :class:`.highs.Model`."""

    def change_row(self, row: int, lower: float, upper: float) -> None:
        """Set other bounds of a row."""

    def solve(self) -> highs.Solution:
        """Find a solution of least cost."""


class Solver(Protocol):
    """Creates models of linear programs."""

    def __call__(
        self, cost: Floats, upper: Floats, matrix: highs.Matrix
    ) -> SolverModel:
        """Make the model of a linear program."""


def raise_all(program: program_module.IdealProgram, solver: Solver) -> Floats:
    """Raise all open entities, the poorest first.

    :returns: (e,) what each entity has; where one has a floor, the floor.
    :raises SolverFailed: if the floors are out of reach.
    """
    found = np.where(program.open, program.most(), program.floor)
    waiting = [
        program_module.SubProgram(program, np.arange(len(program.base)))
    ]
    while waiting:
        whole, where = waiting.pop()
        for inner, places in program_module.split_program(whole):
            at = where[places]
            raised = _raise_poorest(inner, solver)
            # Who is open and has no column left stays at what it has.
            found[at] = np.where(raised.open, raised.most(), raised.floor)
            if raised.open.any():
                waiting.append(program_module.SubProgram(raised, at))
    return found


def columns_at_floors(
    program: program_module.IdealProgram, solver: Solver, worth: Floats
) -> Floats:
    """Columns with which all entities reach their floors.

    :param program: without open entities.
    :param worth: (c,) of one unit of each column, for what is left over.
    :returns: (c,).
    :raises SolverFailed: if the floors are out of reach.
    """

    def solved(slack: float) -> Floats:
        rows = _rows_with_floors(program, program.floor, slack)
        model = solver(-worth, program.upper, rows)
        return np.clip(model.solve().value, 0.0, program.upper)

    return _with_growing_slack(solved)


_Found = TypeVar('_Found')


def _with_growing_slack(find: Callable[[float], _Found]) -> _Found:
    """Call a search with more and more slack, until it succeeds.

    :raises SolverFailed: if even the last is not enough.
    """
    for slack in _SLACKS[:-1]:
        try:
            return find(slack)
        except exception.SolverFailed:
            continue
    return find(_SLACKS[-1])


def _rows_with_floors(
    program: program_module.IdealProgram, floor: Floats, slack: float
) -> highs.Matrix:
    count = len(program.bound)
    # Exact at first: what a node has is known.
    more = highs.TOLERANCE if slack <= _SLACKS[0] else slack / 10
    lower = floor - slack * np.maximum(1.0, np.abs(floor))
    return highs.Matrix(
        entries=program_module.SparseEntries.joined(
            [
                program.limits,
                dataclasses.replace(
                    program.entities, row=program.entities.row + count
                ),
            ]
        ),
        lower=np.concatenate([np.full(count, -np.inf), lower - program.base]),
        upper=np.concatenate(
            [
                program.bound + more,
                np.full(len(program.base), np.inf),
            ]
        ),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Cut:
    """Why a level is too high: ``price @ entities`` is at most ``most``.

    :ivar value: (c,) of columns in the best solution at that level.
    """

    price: Floats
    most: float
    column_price: Floats
    value: Floats


def _raise_poorest(
    program: program_module.IdealProgram, solver: Solver
) -> program_module.IdealProgram:
    """Raise all entities to the level of the poorest, and fix the latter.

    :returns: with floors for those, and without their columns.
    """
    return _with_growing_slack(
        lambda slack: _raise_with_slack(program, solver, slack)
    )


def _raise_with_slack(
    program: program_module.IdealProgram, solver: Solver, slack: float
) -> program_module.IdealProgram:
    wants, open_ = program.most(), program.open
    model = _elastic_model(program, solver, slack)
    level, cut = float(wants[open_].max()), None
    for _ in range(_MOST_STEPS):
        goal = np.minimum(level, wants)
        found = _find_cut(program, model, goal)
        if found is None:
            return _with_new_floors(program, level, cut)
        cut = found
        lower = _level_of(cut, np.where(open_, wants, -np.inf), program.floor)
        if lower >= level * (1 - 1e-12):
            return _with_new_floors(program, lower, cut)
        level = lower
    raise exception.SolverFailed(
        f'the ideal was not found: no common level after {_MOST_STEPS} steps'
    )


def _elastic_model(
    program: program_module.IdealProgram, solver: Solver, slack: float
) -> SolverModel:
    """Create the model that finds by how much a goal is out of reach."""
    floor = np.where(program.open, -np.inf, program.floor)
    rows = _rows_with_floors(program, floor, slack)
    count, last = len(program.bound), len(program.upper)
    open_rows = count + np.flatnonzero(program.open)
    missing = program_module.SparseEntries(
        open_rows, np.full(len(open_rows), last), np.ones(len(open_rows))
    )
    return solver(
        # As many as there are entities, so that prices are about one.
        np.append(np.zeros(last), float(len(open_rows))),
        np.append(program.upper, np.inf),
        highs.Matrix(
            program_module.SparseEntries.joined([rows.entries, missing]),
            rows.lower,
            rows.upper,
        ),
    )


def _find_cut(
    program: program_module.IdealProgram, model: SolverModel, goal: Floats
) -> _Cut | None:
    """Find the cut of a goal that is out of reach; ``None`` if it is not."""
    count = len(program.bound)
    for row in np.flatnonzero(program.open):
        model.change_row(
            int(count + row), float(goal[row] - program.base[row]), np.inf
        )
    found = model.solve()
    missing = float(found.value[-1])
    if missing <= _SAME * max(1e-3, float(np.abs(goal).max(initial=0.0))):
        return None
    price = found.row_price[count:].clip(min=0.0)
    asked = np.where(program.open, goal, program.floor)
    return _Cut(
        price,
        float(price @ asked) - found.cost,
        found.column_price[:-1],
        found.value[:-1],
    )


def _level_of(cut: _Cut, wants: Floats, floor: Floats) -> float:
    """Solve ``price @ min(level, wants) = most`` for the level."""
    open_ = np.isnan(floor) & (cut.price > 0)
    rest = cut.most - float(
        cut.price[~np.isnan(floor)] @ floor[~np.isnan(floor)]
    )
    order = np.argsort(wants[open_])
    price, ends = cut.price[open_][order], wants[open_][order]
    left = price.sum() - np.cumsum(price) + price
    before = np.cumsum(price * ends) - price * ends
    fitting = (rest - before) / left
    place = int(np.argmax(fitting <= ends))
    return (
        float(fitting[place]) if (fitting <= ends).any() else float(ends[-1])
    )


def _with_new_floors(
    program: program_module.IdealProgram, level: float, cut: _Cut | None
) -> program_module.IdealProgram:
    """Set floors of entities at the level or with all they want."""
    wants, open_ = program.most(), program.open
    margin = _SAME * max(1.0, abs(level))
    content = open_ & (wants <= level + margin)
    fixed = np.zeros(len(program.upper), dtype=np.bool_)
    value = np.zeros(len(program.upper))
    bound = np.zeros(len(open_), dtype=np.bool_)
    if cut is not None:
        bound = open_ & (cut.price > _PRICED * cut.price.max()) & ~content
        price = cut.column_price
        priced = np.abs(price) > _PRICED * np.abs(price).max(initial=0.0)
        # Small prices can be rounding: then the column is not at that end.
        end = np.where(price > 0, 0.0, program.upper)
        priced &= np.abs(cut.value - end) <= _AT_END
        fixed |= priced
        value[priced & (price < 0)] = program.upper[priced & (price < 0)]
    of_content = program.entities.column[content[program.entities.row]]
    fixed[of_content], value[of_content] = True, program.upper[of_content]
    floor = np.where(content, wants, np.where(bound, level, program.floor))
    return program_module.with_fixed(
        dataclasses.replace(program, floor=floor), fixed, value
    )


def program_of(
    found: columns_module.Columns,
    quota: Floats,
    rows: program_module.SparseEntries,
    bound: Floats,
) -> program_module.IdealProgram:
    """Create the program of (u x r) entities from columns and limits."""
    return program_module.IdealProgram(
        upper=np.ones(len(found.node)),
        limits=rows,
        bound=bound,
        entities=columns_module.quota_entries(found, quota),
        base=np.zeros(quota.size),
        floor=np.full(quota.size, np.nan),
    )


def program_of_shares(
    program: program_module.IdealProgram, counts: Floats
) -> program_module.IdealProgram:
    """The program whose entities are the users' shares, all open.

    :param program: whose entities are parts, user x resources + resource.
    :param counts: (u, r) how much each part counts in its user's share.
    """
    users, kinds = counts.shape
    entries, part = program.entities, program.entities.row
    factor = counts.ravel()[part]
    chosen = factor > 0
    return dataclasses.replace(
        program,
        entities=program_module.SparseEntries(
            part[chosen] // kinds,
            entries.column[chosen],
            (entries.value * factor)[chosen],
        ),
        base=(program.base.reshape(users, kinds) * counts).sum(axis=1),
        floor=np.full(users, np.nan),
    )


def reach_test(
    program: program_module.IdealProgram, solver: Solver
) -> Callable[[Floats], bool]:
    """Create a test whether all open entities can have a goal at once."""
    model = _elastic_model(program, solver, _SLACKS[0])
    return lambda goal: _find_cut(program, model, goal) is None


def raise_users(
    program: program_module.IdealProgram, counts: Floats, solver: Solver
) -> tuple[Floats, program_module.IdealProgram]:
    """Raise the users' shares, then their parts of each resource.

    :param program: whose entities are parts, user x resources + resource.
    :param counts: (u, r) how much each part counts in its user's share.
    :returns: the parts (u, r); and the program with floors at which those
        are held.
    """
    users, kinds = counts.shape
    first = program_of_shares(program, counts)
    share = raise_all(first, solver)
    both = _program_of_other_parts(program, first, share, counts)
    try:
        parts = raise_all(both, solver)
    except exception.SolverFailed:
        parts = _feasible_parts(first, share, both, solver)
    held = dataclasses.replace(both, floor=parts)
    return parts[users:].reshape(users, kinds), held


def _feasible_parts(
    first: program_module.IdealProgram,
    share: Floats,
    both: program_module.IdealProgram,
    solver: Solver,
) -> Floats:
    """Parts that reach the shares, if no best parts are found.

    Levels that many others depend on can be out of reach by rounding; then
    all floors are lowered a little.

    :raises SolverFailed: if that is not enough.
    """
    worth = np.ones(len(first.upper))
    worth[~np.isfinite(first.upper)] = 0.0
    for part in (1.0, 0.999, 0.99, 0.97):
        held = dataclasses.replace(first, floor=share * part)
        try:
            value = columns_at_floors(held, solver, worth)
        except exception.SolverFailed:
            continue
        return both.base + both.entities.times(value, len(both.base))
    raise exception.SolverFailed(
        'the ideal was not found: no allocation gives users even 97 % of the '
        'shares that were worked out'
    )


def _program_of_other_parts(
    program: program_module.IdealProgram,
    first: program_module.IdealProgram,
    share: Floats,
    counts: Floats,
) -> program_module.IdealProgram:
    """Keep the shares, and open the parts that are not a share."""
    users = len(share)
    is_share = (counts == 1.0) & ((counts > 0).sum(axis=1) == 1)[:, np.newaxis]
    known = np.where(is_share, share[:, np.newaxis], np.nan).ravel()
    parts = dataclasses.replace(
        program.entities, row=program.entities.row + users
    )
    return dataclasses.replace(
        program,
        entities=program_module.SparseEntries.joined([first.entities, parts]),
        base=np.concatenate([first.base, program.base]),
        floor=np.concatenate([share, known]),
    )


def rank(parts: Floats, counts: Floats) -> list[float]:
    """Sort shares for comparison, the poorest first; rounding aside."""
    shares = np.sort((parts * counts).sum(axis=1))
    return [float(f'{share:.4g}') for share in shares]
