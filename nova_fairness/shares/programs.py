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


def transport(
    supply: npt.NDArray[np.int64],
    room: npt.NDArray[np.int64],
    allowed: Marks,
) -> npt.NDArray[np.int64]:
    """Assign as many items as possible to places with room.

    :param supply: (n,) items of each kind, >= 0.
    :param room: (m,) items that each place takes, >= 0.
    :param allowed: (n, m) kinds that may go to a place.
    :returns: (n, m) items of a kind that go to a place.
    """
    from scipy import sparse
    from scipy.sparse import csgraph

    n, m = allowed.shape
    first, last = 0, n + m + 1
    kind, place = np.nonzero(allowed)
    # More than there are of a kind need not go anywhere.
    total = int(supply.sum())
    tail = np.concatenate([np.full(n, first), 1 + kind, 1 + n + np.arange(m)])
    head = np.concatenate([1 + np.arange(n), 1 + n + place, np.full(m, last)])
    most = np.concatenate([supply, supply[kind], np.minimum(room, total)])
    # Older versions of scipy take no other integers.
    most, tail, head = (each.astype(np.int32) for each in (most, tail, head))
    graph = sparse.csr_array((most, (tail, head)), (last + 1, last + 1))
    flow = csgraph.maximum_flow(graph, first, last).flow
    sent = np.zeros((n, m), dtype=np.int64)
    sent[kind, place] = flow.toarray()[1 + kind, 1 + n + place]
    return sent


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramRows:
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
class ProgramSolution:
    """A choice of numbers, and its cost.

    :ivar chosen: (c,) whole numbers.
    :ivar cost: of it.
    :ivar bound: no choice costs less.
    """

    chosen: npt.NDArray[np.int64]
    cost: float
    bound: float


def choose(
    cost: Floats,
    most: Floats,
    rows: ProgramRows,
    longest_s: float | None = None,
    nodes: int | None = None,
) -> ProgramSolution | None:
    """Choose whole numbers of the least cost.

    :param cost: (c,) of one of each column, finite.
    :param most: (c,) of each column, >= 0; the least is 0.
    :param rows: that must hold.
    :param longest_s: after which the best that was found by then is given;
        which one that is depends on the machine. Without it the search goes
        on to the end.
    :param nodes: of the tree of choices, after which the search ends, too,
        on all machines alike.
    :returns: ``None`` if it ended before anything was found.
    :raises SolverFailed: if nothing can be chosen.
    """
    from scipy import optimize
    from scipy import sparse

    shape = (len(rows.lower), len(cost))
    # SciPy 1.13 solves nothing whose places are wider, and says why in C.
    places = np.asarray(rows.row, np.int32), np.asarray(rows.column, np.int32)
    matrix = sparse.csr_array((rows.value, places), shape)
    limits = {'time_limit': longest_s, 'node_limit': nodes}
    found = optimize.milp(
        cost,
        integrality=np.ones(len(cost)),
        bounds=optimize.Bounds(0, most),
        constraints=optimize.LinearConstraint(matrix, rows.lower, rows.upper),
        options={k: v for k, v in limits.items() if v is not None},
    )
    if found.x is None:
        if found.status == _OUT_OF_TIME:
            return None
        raise exception.SolverFailed(
            f'HiGHS ends with {found.message!r}, expected a choice'
        )
    chosen = np.rint(found.x).astype(np.int64)
    return ProgramSolution(
        chosen, float(cost @ chosen), float(found.mip_dual_bound)
    )


_OUT_OF_TIME = 1
"""Status of scipy's answer, also when all nodes are used up."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sorts:
    """Sorts of sets, and how many sets there are of each.

    :ivar most: (q,) sets of each sort.
    :ivar cost: (q,) of a set of each sort, >= 0.
    """

    most: npt.NDArray[np.int64]
    cost: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Cover:
    """Parts of sets that cover all, as far as they can.

    :ivar parts: (s,) of each set, >= 0.
    :ivar is_whole: whether they cover all.
    :ivar price: (k,) of one of each kind, >= 0.
    :ivar rent: (q,) what one more of each sort would save, >= 0: no set
        has a higher price than its cost and its rent.
    """

    parts: Floats
    is_whole: bool
    price: Floats
    rent: Floats


def cover(
    sets: npt.NDArray[np.int64],
    of: Indices,
    least: npt.NDArray[np.int64],
    sorts: Sorts,
) -> Cover:
    """Cover kinds by parts of sets, by those that cost least.

    :param sets: (s, k) how many of each kind are in each set, >= 0.
    :param of: (s,) sort of each.
    :param least: (k,) how many of each kind are to be covered.
    """
    from scipy import optimize

    count, kinds = sets.shape
    limit = np.zeros((len(sorts.most), count + kinds))
    limit[of, np.arange(count)] = 1.0
    # What is missing costs more than all that there is.
    missing = np.full(kinds, 1.0 + float(sorts.cost @ sorts.most))
    found = optimize.linprog(
        np.concatenate([sorts.cost[of], missing]),
        A_ub=np.vstack([np.hstack([-sets.T, -np.eye(kinds)]), limit]),
        b_ub=np.concatenate([-least, sorts.most]),
        method='highs',
    )
    if found.x is None:
        raise exception.SolverFailed(
            f'HiGHS ends with {found.message!r}, expected a cover'
        )
    dual = -np.asarray(found.ineqlin.marginals, dtype=np.float64)
    is_whole = bool((found.x[count:] <= _TOLERANCE).all())
    return Cover(found.x[:count], is_whole, dual[:kinds], dual[kinds:])
