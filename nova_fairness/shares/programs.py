# SPDX-License-Identifier: Apache-2.0

"""Choices that are the best there are: assignments and integer programs.

They stand for whatever the caller says; scipy and its HiGHS solve them. A
cover in parts says what they could cost at least.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness import exception

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Marks = npt.NDArray[np.bool_]

_TOLERANCE = 1e-6
"""How far a whole number of HiGHS may be from one, and a cost from its
bound."""


def assign(cost: Floats, allowed: Marks | None = None) -> Indices:
    """A column of its own for every row, so that the sum is the least.

    :param cost: (n, m) finite, n <= m.
    :param allowed: (n, m) pairs that may be; all without it.
    :returns: (n,) column of each row.
    :raises SolverFailed: if no assignment is allowed.
    """
    # It takes a while to load, and only some planners need it.
    from scipy import optimize

    if allowed is not None:
        cost = np.where(allowed, cost, np.inf)
    try:
        _, columns = optimize.linear_sum_assignment(cost)
    except ValueError as error:
        raise exception.SolverFailed(
            f'{cost.shape[0]} rows and {cost.shape[1]} columns have no'
            f' assignment that is allowed: {error}'
        ) from error
    found: Indices = columns
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a program: ``lower <= A x <= upper``.

    :ivar row: (e,) of each entry of A.
    :ivar column: (e,) of each entry; no pair of both stands twice.
    :ivar value: (e,) of each entry.
    :ivar lower: (r,), may be infinite.
    :ivar upper: (r,), may be infinite.
    """

    row: Indices
    column: Indices
    value: Floats
    lower: Floats
    upper: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen.

    :ivar chosen: (c,) whole numbers.
    :ivar cost: of it.
    :ivar bound: no choice costs less.
    """

    chosen: npt.NDArray[np.int64]
    cost: float
    bound: float

    @property
    def is_best(self) -> bool:
        """Whether nothing costs less."""
        return self.cost <= self.bound + _TOLERANCE * max(1.0, abs(self.bound))


def choose(
    cost: Floats, most: Floats, rows: Rows, longest_s: float | None = None
) -> Choice | None:
    """Choose whole numbers of the least cost.

    :param cost: (c,) of one of each column, finite.
    :param most: (c,) of each column, >= 0; the least is 0.
    :param rows: that must hold.
    :param longest_s: after which the best that was found by then is given;
        which one that is depends on the machine. Without it the search goes
        on to the end.
    :returns: ``None`` if the time was over before anything was found.
    :raises SolverFailed: if nothing can be chosen.
    """
    from scipy import optimize
    from scipy import sparse

    shape = (len(rows.lower), len(cost))
    matrix = sparse.csr_array((rows.value, (rows.row, rows.column)), shape)
    options = {} if longest_s is None else {'time_limit': longest_s}
    found = optimize.milp(
        cost,
        integrality=np.ones(len(cost)),
        bounds=optimize.Bounds(0, most),
        constraints=optimize.LinearConstraint(matrix, rows.lower, rows.upper),
        options=options,
    )
    if found.x is None:
        if found.status == _OUT_OF_TIME:
            return None
        raise exception.SolverFailed(
            f'HiGHS ends with {found.message!r}, expected a choice'
        )
    chosen = np.rint(found.x).astype(np.int64)
    return Choice(chosen, float(cost @ chosen), float(found.mip_dual_bound))


_OUT_OF_TIME = 1
"""Status of scipy's answer."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cover:
    """Parts of sets that cover all.

    :ivar parts: (s,) of each set, >= 0.
    :ivar size: their sum, the least there is.
    :ivar price: (k,) of one of each kind, >= 0: no set costs more than 1, and
        all that is to be covered costs as much as the size.
    """

    parts: Floats
    size: float
    price: Floats


def cover(sets: npt.NDArray[np.int64], least: npt.NDArray[np.int64]) -> Cover:
    """Cover kinds by parts of sets, by as few as can be.

    :param sets: (s, k) how many of each kind are in each set, >= 0.
    :param least: (k,) how many of each kind are to be covered.
    :raises SolverFailed: if these sets do not cover all.
    """
    from scipy import optimize

    found = optimize.linprog(
        np.ones(len(sets)), A_ub=-sets.T, b_ub=-least, method='highs'
    )
    if found.x is None:
        raise exception.SolverFailed(
            f'HiGHS ends with {found.message!r}, expected a cover'
        )
    price = -np.asarray(found.ineqlin.marginals, dtype=np.float64)
    return Cover(found.x, float(found.fun), price)
