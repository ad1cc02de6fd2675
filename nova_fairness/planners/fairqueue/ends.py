# SPDX-License-Identifier: Apache-2.0

"""When servers are expected to end, by how long others like them lasted.

Servers of one project with as many CPUs and as much memory are alike. What is
expected is a quantile of the lifetimes of those that got older than this one
is now. Of a kind of which fewer than :data:`LEAST` ended nothing is expected,
nor of one that is older than all before it: it never ends in the plan. Where
it is known when a server is ended, it ends by then.
"""

import bisect
from collections.abc import Mapping
from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import order

LEAST = 5
"""Lifetimes of a kind that must be known."""

MEDIAN = 0.5
LATE = 0.9
"""Nine of ten ended by then."""


def expected(
    lifetimes: Sequence[float], age_s: float, quantile: float
) -> float | None:
    """Seconds that a server of some age lasts in all; ``None``: not known.

    :param lifetimes: of servers like it, seconds, the shortest first.
    :param quantile: of those that got older, above 0 to 1.
    """
    if len(lifetimes) < LEAST:
        return None
    younger = bisect.bisect_right(lifetimes, age_s)
    older = len(lifetimes) - younger
    if not older:
        return None
    return lifetimes[younger + math.ceil(quantile * older) - 1]


def end(
    each: cluster.Running,
    lifetimes: Mapping[cluster.Kind, Sequence[float]],
    now: float,
    quantile: float,
) -> float | None:
    """When a server ends, seconds of the epoch; ``None``: not known.

    One that should have ended ends now.

    :param lifetimes: seconds by kind, the shortest first.
    :param now: seconds of the epoch.
    :param quantile: as of :func:`expected`.
    """
    kind = cluster.kind_of(each.project, each.amounts)
    return _end(each, lifetimes.get(kind, ()), now, quantile)


def _end(
    each: cluster.Running,
    lasted: Sequence[float],
    now: float,
    quantile: float,
) -> float | None:
    """The same with the lifetimes of its kind."""
    lasts = expected(lasted, max(now - each.since, 0.0), quantile)
    at = None if lasts is None else each.since + lasts
    if each.ends_at is None:
        return at
    latest = max(each.ends_at, now)
    return latest if at is None else min(at, latest)


def started(
    each: request_model.Request, host: str, now: float
) -> cluster.Running:
    """A server of a request that starts on a host."""
    return cluster.Running(
        host,
        each.project,
        each.demand.amounts,
        now,
        each.user,
        ends_at=each.ends_at(now),
        band=each.band,
    )


class _Table(NamedTuple):
    """Ends, the next one first: when, where, whose and what."""

    at: npt.NDArray[np.float64]
    rows: hosts_module.Rows
    owners: hosts_module.Rows
    amounts: cluster.Amounts


class Ends:
    """Ends of servers, those that a plan starts with them.

    :param snapshot: of the cloud.
    :param now: seconds of the epoch.
    :param hosts: of the cloud.
    """

    def __init__(
        self,
        snapshot: cluster.ClusterSnapshot,
        now: float,
        hosts: hosts_module.Hosts,
    ) -> None:
        self._lifetimes = snapshot.lifetimes
        self._classes = snapshot.classes
        self._now = now
        self._names = hosts.names
        self._owners: dict[str, int] = {}
        self._kinds: dict[
            tuple[str, tuple[tuple[str, int], ...]],
            tuple[Sequence[float], tuple[int, ...]],
        ] = {}
        self._sorted: _Table | None = None
        self._ends: list[tuple[float, int, int, tuple[int, ...]]] = []
        # Their ends are worked out when somebody asks: most plans do not.
        self._running = snapshot.running

    def last(self, unit: order.Unit) -> float | None:
        """Latest end of a unit that starts now, nine of ten.

        :returns: seconds of the epoch; ``None`` if it is not known.
        """
        latest = self._now
        for each in unit.requests:
            at = end(
                started(each, '', self._now),
                self._lifetimes,
                self._now,
                LATE,
            )
            if at is None:
                return None
            latest = max(latest, at)
        return latest

    def start(
        self, unit: order.Unit, placement: Sequence[hosts_module.Rows]
    ) -> None:
        """Servers of a unit run from now on."""
        for each, rows in zip(unit.requests, placement, strict=True):
            for row in rows.tolist():
                self._add(started(each, '', self._now), row)

    def times(self) -> npt.NDArray[np.float64]:
        """Moments of ends, seconds of the epoch, the next one first."""
        return np.unique(self._table().at)

    def until(
        self, at: float
    ) -> tuple[cluster.Amounts, dict[str, cluster.Amounts]]:
        """Amounts that are given back until then.

        :param at: seconds of the epoch.
        :returns: (c, p) of hosts, and (c,) by project.
        """
        table = self._table()
        ended = int(np.searchsorted(table.at, at, side='right'))
        amounts = table.amounts[:ended]
        hosts = np.zeros(
            (len(self._names), len(self._classes)), dtype=np.int64
        )
        np.add.at(hosts, table.rows[:ended], amounts)
        size = (len(self._owners), len(self._classes))
        projects = np.zeros(size, dtype=np.int64)
        np.add.at(projects, table.owners[:ended], amounts)
        return hosts.T, dict(zip(self._owners, projects, strict=True))

    def _table(self) -> _Table:
        self._add_running()
        if self._sorted is None:
            ends = sorted(self._ends)
            amounts = np.array([each for *_, each in ends], dtype=np.int64)
            self._sorted = _Table(
                np.array([at for at, *_ in ends]),
                np.array([row for _, row, _, _ in ends], dtype=np.intp),
                np.array([owner for _, _, owner, _ in ends], dtype=np.intp),
                amounts.reshape(-1, len(self._classes)),
            )
        return self._sorted

    def _add_running(self) -> None:
        if not self._running:
            return
        rows = {name: row for row, name in enumerate(self._names)}
        for each in self._running:
            if each.host in rows:
                self._add(each, rows[each.host])
        self._running = ()

    def _add(self, each: cluster.Running, row: int) -> None:
        lasted, amounts = self._alike(each.project, each.amounts)
        at = _end(each, lasted, self._now, MEDIAN)
        if at is None:
            return
        # What is preemptible comes back to no project's part.
        project = each.project
        if each.band is request_model.Band.PREEMPTIBLE:
            project = ''
        owner = self._owners.setdefault(project, len(self._owners))
        self._ends.append((at, row, owner, amounts))
        self._sorted = None

    def _alike(
        self, project: str, amounts: tuple[tuple[str, int], ...]
    ) -> tuple[Sequence[float], tuple[int, ...]]:
        """Lifetimes of servers like one, and what each has, (c,)."""
        key = project, amounts
        if key not in self._kinds:
            named = dict(amounts)
            self._kinds[key] = (
                self._lifetimes.get(cluster.kind_of(project, amounts), ()),
                tuple(named.get(name, 0) for name in self._classes),
            )
        return self._kinds[key]
