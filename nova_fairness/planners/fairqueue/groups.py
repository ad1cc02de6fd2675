# SPDX-License-Identifier: Apache-2.0

"""Hosts for servers that start together: for all of them, or for none.

Servers that are alike are one *job*. One job alone is simple. With several
jobs, each takes room that another one could need:

* First the rule of placement is followed, the largest job first. Most units
  find room in this way.
* Otherwise, if each host may take at most one server of the unit, a network
  flow from servers to hosts gives the exact answer: each host takes one
  server.
* If hosts may take several servers, an integer program gives the answer. It is
  exact if there are at most :data:`PAIRS` pairs of a job and a host; of hosts
  that are alike it has only as many as there are servers. With more pairs,
  only the hosts that could take most servers are included. The search ends
  after :data:`NODES`. A placement that it finds is right; if it finds none,
  the answer is not known.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.shares import programs

PAIRS = 600
"""Largest number of pairs of a job and a host in the integer program."""

NODES = 100
"""Largest number of nodes in the search tree of the integer program."""

Rows = hosts_module.Rows


@dataclasses.dataclass(frozen=True, eq=False)
class AlikeServers:
    """Interchangeable servers, called a job.

    :ivar shape: shape of one server, or of all servers that must be on one
        host.
    :ivar count: how often the shape is placed, >= 1.
    """

    shape: hosts_module.Shape
    count: int


Preference = Callable[[AlikeServers, Rows], hosts_module.Fractions]
"""Scores hosts for a job; the hosts are indices in the rows of its shape.
The host with the lowest score is used first.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class FoundHosts:
    """Hosts that a search found.

    :ivar rows: rows of hosts for every job; ``None`` if not all servers have a
        host.
    :ivar fit: number of servers that have a host.
    :ivar is_known: whether ``fit`` is proved to be the largest possible
        number.
    """

    rows: tuple[Rows, ...] | None
    fit: int
    is_known: bool = True


def fill_hosts(
    free: cluster.Amounts,
    job: AlikeServers,
    limit: cluster.Amounts,
    prefer: Preference,
) -> Rows:
    """Return rows of hosts for as many servers of one job as fit.

    :param free: (c, p) free amounts of hosts.
    :param limit: (p,) most servers that each host may take.
    :param prefer: scores hosts; the lowest score comes first.
    """
    shape = job.shape
    limit = np.minimum(limit[shape.rows], job.count)
    chosen = np.flatnonzero(limit > 0)
    have = free[shape.columns][:, shape.rows[chosen]]
    if job.count == 1:
        found = np.flatnonzero((have >= shape.amounts).all(axis=0))
        fit = np.ones_like(found)
    else:
        whole = hosts_module.smallest_by_column(
            have // shape.amounts, len(chosen)
        )
        found = np.flatnonzero(whole > 0)
        fit = np.minimum(whole, limit[chosen])[found]
    chosen = chosen[found]
    after = prefer(job, chosen)
    if job.count == 1 and len(chosen):
        best = int(after.argmin())
        return shape.rows[chosen[best : best + 1]]
    # Hosts are filled one after the other, each as far as possible.
    first = np.argsort(after, kind='stable')
    fit = fit[first]
    # A host may hold so many servers that their rows would need too much
    # memory, so the number is cut to that of the job.
    fit = np.clip(job.count - (np.cumsum(fit) - fit), 0, fit)
    rows: Rows = np.repeat(shape.rows[chosen[first]], fit)
    return rows


def place_in_turn(
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
    prefer: Preference,
) -> FoundHosts:
    """Place one job after another, until one lacks room.

    :param free: see :func:`fill_hosts`.
    :param jobs: the largest first.
    :param limit: (p,) most servers of all jobs that each host may take.
    :param prefer: see :func:`fill_hosts`.
    """
    free = free if len(jobs) == 1 else free.copy()
    found: list[Rows] = []
    fit = 0
    for job in jobs:
        rows = fill_hosts(free, job, limit, prefer)
        found.append(rows)
        fit += len(rows)
        if len(rows) < job.count:
            return FoundHosts(None, fit, len(jobs) == 1)
        if len(jobs) > 1:
            subtract_amounts(free, job.shape, rows)
            limit = limit - np.bincount(rows, minlength=len(limit))
    return FoundHosts(tuple(found), fit)


def subtract_amounts(
    free: cluster.Amounts,
    shape: hosts_module.Shape,
    rows: Rows,
    times: int = 1,
) -> None:
    """Subtract ``times`` the amounts of servers from the free amounts."""
    for column, amount in zip(shape.columns, shape.amounts[:, 0], strict=True):
        np.subtract.at(free[column], rows, amount * times)


def solve_exactly(
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
    prefer: Preference,
    may_solve: Callable[[int], bool],
) -> FoundHosts:
    """Find hosts for all jobs by a network flow or an integer program.

    :param free: see :func:`fill_hosts`.
    :param jobs: several jobs.
    :param limit: see :func:`place_in_turn`.
    :param prefer: see :func:`fill_hosts`.
    :param may_solve: returns whether an integer program with this number of
        pairs may be solved.
    """
    total = sum(job.count for job in jobs)
    limit = np.minimum(np.maximum(limit, 0), total)
    whole = np.array([_fit_per_host(free, job, limit) for job in jobs])
    counts = np.array([job.count for job in jobs])
    each = whole.sum(axis=1)
    upper = int(np.minimum(limit, whole.sum(axis=0)).sum())
    if (each < counts).any() or upper < total:
        most = int(min(np.minimum(each, counts).sum(), upper))
        return FoundHosts(None, min(most, total - 1))
    found = _assign_different_hosts(whole > 0, jobs, prefer)
    if found.rows is not None or (limit[whole.any(axis=0)] <= 1).all():
        return found
    return _solve_program(free, jobs, limit, whole, may_solve) or FoundHosts(
        None, found.fit, False
    )


def _fit_per_host(
    free: cluster.Amounts, job: AlikeServers, limit: cluster.Amounts
) -> cluster.Amounts:
    """Return the number of servers of one job that fit on each host alone,
    (p,).
    """
    shape, found = job.shape, np.zeros_like(limit)
    have = np.maximum(free[shape.columns][:, shape.rows], 0)
    most = hosts_module.smallest_by_column(
        have // shape.amounts, len(shape.rows)
    )
    found[shape.rows] = np.minimum(
        np.minimum(most, limit[shape.rows]), job.count
    )
    return found


def _assign_different_hosts(
    fits: hosts_module.Marks, jobs: Sequence[AlikeServers], prefer: Preference
) -> FoundHosts:
    """Find a different host for each server, by a network flow.

    :param fits: (j, p) whether each host has room for a server of each job.
    """
    patterns, kind = np.unique(fits.T, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    sent = programs.transport(
        np.array([job.count for job in jobs]),
        np.bincount(kind, minlength=len(patterns)),
        patterns.T,
    )
    fit, is_left = int(sent.sum()), np.ones(len(kind), dtype=bool)
    if fit < sum(job.count for job in jobs):
        return FoundHosts(None, fit)
    found = []
    for job, counts in zip(jobs, sent, strict=True):
        shape = job.shape
        order = np.argsort(
            prefer(job, np.arange(len(shape.rows))), kind='stable'
        )
        rows = shape.rows[order]
        rows = rows[is_left[rows]]
        chosen = [
            rows[kind[rows] == k][: counts[k]] for k in np.flatnonzero(counts)
        ]
        found.append(np.concatenate(chosen))
        is_left[found[-1]] = False
    return FoundHosts(tuple(found), fit)


def _solve_program(
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
    whole: cluster.Amounts,
    may_solve: Callable[[int], bool],
) -> FoundHosts | None:
    """Find hosts by the integer program.

    :param whole: (j, p) number of servers of each job that each host takes
        alone.
    :param may_solve: see :func:`solve_exactly`.
    :returns: ``None`` if the program may not be solved, or gives no answer.
    """
    counts = np.array([job.count for job in jobs])
    hosts = _hosts_per_kind(free, jobs, limit, whole)
    is_all = len(hosts) * len(jobs) <= PAIRS
    if len(jobs) > PAIRS:
        return None
    if not is_all:
        # Take the hosts that hold most servers; of equal ones the first.
        most = -np.minimum(whole, counts[:, np.newaxis]).sum(axis=0)[hosts]
        hosts = np.sort(
            hosts[np.argsort(most, kind='stable')[: PAIRS // len(jobs)]]
        )
    job, at = np.nonzero(whole[:, hosts] > 0)
    row = hosts[at]
    if not may_solve(len(row)):
        return None
    lines = _constraints(free, jobs, limit, job, row)
    try:
        choice = programs.solve_integer_program(
            np.zeros(len(job)),
            whole[job, row].astype(np.float64),
            lines,
            nodes=NODES,
        )
    except exception.SolverFailed:
        fit = int(counts.sum()) - 1
        return FoundHosts(None, fit) if is_all else None
    if choice is None:
        return None
    found = tuple(
        np.repeat(row[job == n], choice.chosen[job == n])
        for n in range(len(jobs))
    )
    return _check_solution(found, free, jobs, limit)


def _constraints(
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
    job: Rows,
    row: Rows,
) -> programs.ProgramRows:
    """Build the constraints of the integer program.

    A variable is the number of servers of a job on a host: a pair.

    :param job: (e,) index of the job of each pair.
    :param row: (e,) row of the host of each pair.
    """
    counts = np.array([each.count for each in jobs])
    lines = _ConstraintRows()
    lines.add(job, np.arange(len(job)), np.ones(len(job)), counts, counts)
    lines.add(row, np.arange(len(job)), np.ones(len(job)), None, limit)
    needs = np.zeros((len(jobs), len(free)), dtype=np.int64)
    for number, each in enumerate(jobs):
        needs[number, each.shape.columns] = each.shape.amounts[:, 0]
    for c in range(len(free)):
        asks = np.flatnonzero(needs[job, c] > 0)
        # Amounts are parts of hosts: the solver is not exact for large ones.
        part = needs[job[asks], c] / free[c, row[asks]]
        lines.add(row[asks], asks, part, None, np.ones(len(limit)))
    return lines.rows()


def _check_solution(
    found: tuple[Rows, ...],
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
) -> FoundHosts | None:
    """Check the choice of the solver with integers; ``None`` if it is
    wrong.
    """
    left = free.copy()
    taken = np.zeros_like(left)
    for job, rows in zip(jobs, found, strict=True):
        if len(rows) != job.count:
            return None
        subtract_amounts(left, job.shape, rows)
        subtract_amounts(taken, job.shape, rows, -1)
    on = np.bincount(np.concatenate(found), minlength=len(limit))
    if (on > limit).any() or ((left < 0) & (taken > 0)).any():
        return None
    return FoundHosts(found, int(on.sum()))


def _hosts_per_kind(
    free: cluster.Amounts,
    jobs: Sequence[AlikeServers],
    limit: cluster.Amounts,
    whole: cluster.Amounts,
) -> Rows:
    """Return rows of hosts, of each kind at most as many as there are
    servers.
    """
    columns = np.unique(np.concatenate([job.shape.columns for job in jobs]))
    hosts = np.flatnonzero(whole.any(axis=0))
    seen = np.vstack([free[columns], limit[np.newaxis], whole])[:, hosts]
    _, kind = np.unique(seen, axis=1, return_inverse=True)
    kind, total = kind.reshape(-1), sum(job.count for job in jobs)
    chosen = [np.flatnonzero(kind == k)[:total] for k in np.unique(kind)]
    few: Rows = hosts[np.sort(np.concatenate(chosen))]
    return few


class _ConstraintRows:
    """Rows of an integer program, which are added in blocks."""

    def __init__(self) -> None:
        self._row: list[Rows] = []
        self._column: list[Rows] = []
        self._value: list[hosts_module.Fractions] = []
        self._lower: list[hosts_module.Fractions] = []
        self._upper: list[hosts_module.Fractions] = []
        self._count = 0

    def add(
        self,
        row: Rows,
        column: Rows,
        value: hosts_module.Fractions,
        lower: cluster.Amounts | None,
        upper: cluster.Amounts | hosts_module.Fractions,
    ) -> None:
        """Add a block of entries, and the bounds of their rows.

        :param row: (e,) rows of entries, numbered in the block.
        :param column: (e,) columns of entries.
        :param value: (e,) values of entries.
        :param lower: lower bounds of all rows of the block; ``None`` for no
            bound.
        :param upper: upper bounds of all rows of the block.
        """
        which, place = np.unique(row, return_inverse=True)
        self._row.append(self._count + place.reshape(-1))
        self._column.append(column)
        self._value.append(value)
        self._upper.append(upper[which].astype(np.float64))
        if lower is None:
            self._lower.append(np.full(len(which), -np.inf))
        else:
            self._lower.append(lower[which].astype(np.float64))
        self._count += len(which)

    def rows(self) -> programs.ProgramRows:
        """Return all rows that were added."""
        return programs.ProgramRows(
            np.concatenate(self._row),
            np.concatenate(self._column),
            np.concatenate(self._value),
            np.concatenate(self._lower),
            np.concatenate(self._upper),
        )
