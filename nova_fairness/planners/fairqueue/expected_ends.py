# SPDX-License-Identifier: Apache-2.0

"""Expected ends of servers, from the lifetimes of similar past servers.

Servers of one project with as many CPUs and as much memory are alike. The
expectation is a quantile of the lifetimes of past servers that got older than
the server is now. A kind with fewer than :data:`LEAST` ended servers has no
expectation. Neither has a server that is older than all past servers of its
kind: it never ends in the plan. A server with a known latest end ends no later
than that. Known ends are *firm*; others are expected.
"""

import bisect
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import members as members_module
from nova_fairness.planners.fairqueue import order

_PREEMPTIBLE = request_model.Band.PREEMPTIBLE
_Placed = tuple[cluster.Running, int]
"""A server and the row of its host."""

LEAST = 5
"""Smallest number of lifetimes of a kind for an expectation."""

OVERDUE_S = 3600.0
"""Seconds after its known end from which a server counts as one without
known end.
"""

MEDIAN = 0.5
LATE = 0.9
"""Quantile by which nine of ten servers have ended."""


def expected_lifetime(
    lifetimes: Sequence[float], age_s: float, quantile: float
) -> float | None:
    """Return the expected lifetime of a server of some age, seconds.

    :param lifetimes: lifetimes of past servers like it, seconds, the shortest
        first.
    :param quantile: quantile of the lifetimes above the age, above 0 to 1.
    :returns: ``None`` if it is unknown.
    """
    if len(lifetimes) < LEAST:
        return None
    younger = bisect.bisect_right(lifetimes, age_s)
    older = len(lifetimes) - younger
    if not older:
        return None
    return lifetimes[younger + math.ceil(quantile * older) - 1]


def expected_end(
    each: cluster.Running,
    lifetimes: Mapping[cluster.Kind, Sequence[float]],
    now: float,
    quantile: float,
) -> float | None:
    """Return the firm or expected end of a server, seconds of the epoch.

    A server after its known end ends now.

    :param lifetimes: seconds by kind, the shortest first.
    :param now: seconds of the epoch.
    :param quantile: see :func:`expected_lifetime`.
    :returns: ``None`` if it is unknown.
    """
    kind = cluster.kind_of(each.project, each.amounts)
    lasted = lifetimes.get(kind, ())
    lasts = expected_lifetime(lasted, max(now - each.since, 0.0), quantile)
    at = None if lasts is None else each.since + lasts
    latest = firm_end(each, now)
    if latest is None:
        return at
    return latest if at is None else min(at, latest)


def firm_end(each: cluster.Running, now: float) -> float | None:
    """Return the firm end of a server, seconds of the epoch.

    A server after its known end ends now, for up to :data:`OVERDUE_S`.

    :param now: seconds of the epoch.
    :returns: ``None`` if it is unknown.
    """
    if each.ends_at is None or each.ends_at < now - OVERDUE_S:
        return None
    return max(each.ends_at, now)


def started_server(
    each: request_model.Request, host: str, now: float
) -> cluster.Running:
    """Build the server of a request that starts on a host."""
    return cluster.Running(
        host,
        each.project,
        each.demand.amounts,
        now,
        each.user,
        ends_at=each.ends_at(now),
        band=each.band,
        group=each.group.uuid if each.group else '',
    )


class _EndTable(NamedTuple):
    """Ends of servers, with their hosts and amounts.

    :ivar at: (n,) times, seconds of the epoch.
    :ivar rows: (n,) rows of the hosts.
    :ivar owners: (n,) indices of the projects.
    :ivar amounts: (n, c) amounts of the servers.
    """

    at: npt.NDArray[np.float64]
    rows: hosts_module.Rows
    owners: hosts_module.Rows
    amounts: cluster.Amounts


def _empty_table(classes: int) -> _EndTable:
    none = np.zeros(0, dtype=np.intp)
    return _EndTable(
        np.zeros(0), none, none, np.zeros((0, classes), dtype=np.int64)
    )


def _join_tables(tables: Sequence[_EndTable]) -> _EndTable:
    """Join several tables, sorted by time, the next end first."""
    at = np.concatenate([each.at for each in tables])
    first = np.argsort(at, kind='stable')
    return _EndTable(
        at[first],
        np.concatenate([each.rows for each in tables])[first],
        np.concatenate([each.owners for each in tables])[first],
        np.concatenate([each.amounts for each in tables])[first],
    )


class _LifetimeKey(NamedTuple):
    """Key of servers with the same expected lifetime."""

    project: str
    amounts: tuple[tuple[str, int], ...]
    is_preemptible: bool


class ExpectedEnds:
    """Ends of running servers, and of servers that a plan starts.

    :param snapshot: state of the cloud.
    :param now: seconds of the epoch.
    :param hosts: hosts of the cloud.
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
        self._sorted: dict[bool, _EndTable] = {}
        none = _empty_table(len(snapshot.classes))
        self._tables = {True: [none], False: [none]}
        # Ends are computed when a plan needs them: most plans need few.
        self._new: dict[bool, list[_Placed]] = {True: [], False: []}
        self._left = {True, False}
        self._running = snapshot.running
        self._members = members_module.GroupMembers(snapshot, hosts)

    def last(self, unit: order.Unit, *, is_firm: bool) -> float | None:
        """Return the latest end of a unit that starts now.

        An expected end is the time by which nine of ten such servers end.

        :param is_firm: count only firm ends: known times, no expectations.
        :returns: seconds of the epoch; ``None`` if it is not known.
        """
        latest = self._now
        for each in unit.requests:
            one = started_server(each, '', self._now)
            if is_firm:
                at = firm_end(one, self._now)
            else:
                at = expected_end(one, self._lifetimes, self._now, LATE)
            if at is None:
                return None
            latest = max(latest, at)
        return latest

    def start(
        self, unit: order.Unit, placement: Sequence[hosts_module.Rows]
    ) -> None:
        """Add the servers of a unit that starts now."""
        self._sorted = {}
        for each, rows in zip(unit.requests, placement, strict=True):
            new = [
                (started_server(each, '', self._now), row)
                for row in rows.tolist()
            ]
            self._new[True] += new
            self._new[False] += new
            self._members.add(new)

    def times(self, *, is_firm: bool) -> npt.NDArray[np.float64]:
        """Return the times of ends, seconds of the epoch, the next one first.

        :param is_firm: count only firm ends: known times, no expectations.
        """
        return np.unique(self._sorted_table(is_firm).at)

    def until(
        self, at: float, *, is_firm: bool
    ) -> tuple[cluster.Amounts, dict[str, cluster.Amounts]]:
        """Return the amounts of servers that end until a time.

        :param at: the time, seconds of the epoch.
        :param is_firm: see :meth:`times`.
        :returns: (c, p) amounts by host, and (c,) amounts by project.
        """
        table = self._sorted_table(is_firm)
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

    def gone(
        self, unit: order.Unit, at: float, *, is_firm: bool
    ) -> cluster.Amounts | None:
        """Return the number of members of a unit's server group that end until
        a time, (p,).

        :param at: the time, seconds of the epoch.
        :param is_firm: see :meth:`times`.
        :returns: ``None`` if there are no members.
        """
        if unit.group is None:
            return None
        return self._members.gone(
            unit.group.uuid,
            unit.project,
            lambda each: self._has_ended(each, at, is_firm),
        )

    def _has_ended(
        self, each: cluster.Running, at: float, is_firm: bool
    ) -> bool:
        if is_firm:
            ends = firm_end(each, self._now)
        else:
            ends = expected_end(each, self._lifetimes, self._now, MEDIAN)
        return ends is not None and ends <= at

    def _sorted_table(self, is_firm: bool) -> _EndTable:
        if is_firm not in self._sorted:
            if is_firm in self._left:
                self._left.remove(is_firm)
                self._add_ends(self._running_with_rows(is_firm), is_firm)
            self._add_ends(self._new[is_firm], is_firm)
            self._new[is_firm] = []
            self._sorted[is_firm] = _join_tables(self._tables[is_firm])
        return self._sorted[is_firm]

    def _running_with_rows(self, is_firm: bool) -> Iterator[_Placed]:
        """Yield running servers with the rows of their hosts; if firm, only
        those with a known end.
        """
        rows = {name: row for row, name in enumerate(self._names)}
        for each in self._running:
            if each.host in rows and not (is_firm and each.ends_at is None):
                yield each, rows[each.host]

    def _add_ends(self, servers: Iterable[_Placed], is_firm: bool) -> None:
        """Add the ends of servers to a table, one kind after another."""
        found: dict[_LifetimeKey, list[tuple[float, float, int]]] = {}
        # Most servers share few amounts objects; comparing ids is fast.
        known: dict[tuple[str, int, bool], list[tuple[float, float, int]]] = {}
        for each, row in servers:
            is_preemptible = each.band is _PREEMPTIBLE
            key = each.project, id(each.amounts), is_preemptible
            listed = known.get(key)
            if listed is None:
                alike = _LifetimeKey(
                    each.project, each.amounts, is_preemptible
                )
                listed = known[key] = found.setdefault(alike, [])
            latest = math.inf if each.ends_at is None else each.ends_at
            listed.append((each.since, latest, row))
        for alike, listed in found.items():
            since, latest, rows = np.array(listed).T
            at = np.maximum(latest, self._now)
            at[latest < self._now - OVERDUE_S] = math.inf
            if not is_firm:
                kind = cluster.kind_of(alike.project, alike.amounts)
                lasted = self._lifetimes.get(kind, ())
                at = np.minimum(at, _median_ends(lasted, since, self._now))
            self._tables[is_firm].append(self._ends_of_kind(alike, at, rows))

    def _ends_of_kind(
        self,
        alike: _LifetimeKey,
        at: npt.NDArray[np.float64],
        rows: npt.NDArray[np.float64],
    ) -> _EndTable:
        """Return the ends of servers of one kind; infinite ends are left
        out.
        """
        ends = np.isfinite(at)
        # Amounts of preemptible servers belong to no project's part.
        project = '' if alike.is_preemptible else alike.project
        owner = self._owners.setdefault(project, len(self._owners))
        one = cluster.amounts_vector(dict(alike.amounts), self._classes)
        count = int(ends.sum())
        return _EndTable(
            at[ends],
            rows[ends].astype(np.intp),
            np.full(count, owner),
            np.tile(one, (count, 1)),
        )


def _median_ends(
    lifetimes: Sequence[float], since: npt.NDArray[np.float64], now: float
) -> npt.NDArray[np.float64]:
    """Return ends by the median of :func:`expected_lifetime`, (n,); infinite
    if unknown.
    """
    if len(lifetimes) < LEAST:
        return np.full(len(since), math.inf)
    lasted = np.array([*lifetimes, math.inf])
    age = np.maximum(now - since, 0.0)
    younger = np.searchsorted(lasted[:-1], age, side='right')
    older = len(lifetimes) - younger
    place = younger + np.ceil(MEDIAN * older).astype(np.intp) - 1
    at: npt.NDArray[np.float64] = (
        since + lasted[np.where(older > 0, place, -1)]
    )
    return at
