# SPDX-License-Identifier: Apache-2.0

"""Optimal choices: assignments, flows, integer programs and covers.

The caller gives rows and columns their meaning. scipy and its HiGHS solve the
programs. A fractional cover gives a lower bound of the cost.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness import exception

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Marks = npt.NDArray[np.bool_]

_TOLERANCE = 1e-6
"""Largest difference of a number of HiGHS from an integer, and of a cost from
its bound."""


def assign(cost: Floats, allowed: Marks | None = None) -> Indices:
    """A different column for every row, with the least sum of costs.

    :param cost: (n, m) finite, n <= m.
    :param allowed: (n, m) pairs that are allowed; ``None`` for all.
    :returns: (n,) column of each row.
    :raises SolverFailed: if no assignment is allowed.
    """
    # scipy takes long to load, and only some planners need it.
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
    # The capacity of a place is cut to the number of all items.
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

    :ivar row: (e,) row of each entry of A.
    :ivar column: (e,) column of each entry; no pair of both occurs twice.
    :ivar value: (e,) value of each entry.
    :ivar lower: (r,) lower bounds, may be infinite.
    :ivar upper: (r,) upper bounds, may be infinite.
    """

    row: Indices
    column: Indices
    value: Floats
    lower: Floats
    upper: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramSolution:
    """A choice of numbers, and its cost.

    :ivar chosen: (c,) chosen integers.
    :ivar cost: cost of the choice.
    :ivar bound: lower bound of the cost of any choice.
    """

    chosen: npt.NDArray[np.int64]
    cost: float
    bound: float


def solve_integer_program(
    cost: Floats,
    most: Floats,
    rows: ProgramRows,
    longest_s: float | None = None,
    nodes: int | None = None,
) -> ProgramSolution | None:
    """Choose integers with the least cost.

    :param cost: (c,) cost per unit of each column, finite.
    :param most: (c,) largest number of each column, >= 0; the least is 0.
    :param rows: constraints that must hold.
    :param longest_s: seconds after which the search ends with the best choice
        so far, which depends on the speed of the machine; ``None`` for no
        bound.
    :param nodes: nodes of the search tree after which the search ends, with
        the same result on all machines; ``None`` for no bound.
    :returns: ``None`` if the search ended before a choice was found.
    :raises SolverFailed: if no choice is possible.
    """
    from scipy import optimize
    from scipy import sparse

    shape = (len(rows.lower), len(cost))
    # SciPy 1.13 refuses wider indices, with an unclear error.
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
"""Status of scipy's answer if the time or the number of nodes is used up."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sorts:
    """Sorts of sets, with the number and cost of the sets of each sort.

    :ivar most: (q,) number of sets of each sort.
    :ivar cost: (q,) cost of a set of each sort, >= 0.
    """

    most: npt.NDArray[np.int64]
    cost: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Cover:
    """A fractional cover of kinds by sets, as far as possible.

    :ivar parts: (s,) how often each set is used, >= 0, also in part.
    :ivar is_whole: whether the sets cover all.
    :ivar price: (k,) dual price of one item of each kind, >= 0.
    :ivar rent: (q,) cost that one more set of each sort would save, >= 0. The
        price of the items of a set is at most its cost plus its rent.
    """

    parts: Floats
    is_whole: bool
    price: Floats
    rent: Floats


def cover_kinds(
    sets: npt.NDArray[np.int64],
    of: Indices,
    least: npt.NDArray[np.int64],
    sorts: Sorts,
) -> Cover:
    """Cover kinds by sets, used also in part, at the least cost.

    :param sets: (s, k) number of items of each kind in each set, >= 0.
    :param of: (s,) sort of each set.
    :param least: (k,) number of items of each kind to be covered.
    :param sorts: number and cost of the sets of each sort.
    """
    from scipy import optimize

    count, kinds = sets.shape
    limit = np.zeros((len(sorts.most), count + kinds))
    limit[of, np.arange(count)] = 1.0
    # A missing item costs more than all sets together.
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
