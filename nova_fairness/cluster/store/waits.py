# SPDX-License-Identifier: Apache-2.0

"""Percentiles of waits, computed by the database."""

from collections.abc import Collection
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import request as request_model
from nova_fairness.model import waits

_EVENTS, _REQUESTS, _WAITS = tables.EVENTS, tables.REQUESTS, tables.WAITS
_KEYS = {
    waits.WaitKey.PROJECT: _REQUESTS.c.project,
    waits.WaitKey.FLAVOR: _REQUESTS.c.flavor,
}


class SentRequest(NamedTuple):
    """A request that was sent to Nova.

    :ivar record: the stored request.
    :ivar sent_at: seconds of the epoch.
    """

    record: records.RequestRecord
    sent_at: float


class WaitTable:
    """Waits of requests that were sent to Nova and whose flavor is known.

    :param rows: tables of the database.
    """

    def __init__(self, rows: database.Tables) -> None:
        self._tables = rows

    def store_wait_by_reason(
        self, uuid: str, now: float, condition: sa.ColumnElement[bool]
    ) -> None:
        """Store for how long a request waited for each reason, before it is
        sent.

        A process that dies before the change leaves rows. The next process
        replaces them.

        :param now: when the request is sent, seconds of the epoch.
        :param condition: condition on its row, and on the leader.
        """
        is_so = sa.exists().where(_REQUESTS.c.uuid == uuid, condition)
        self._tables.update(
            sa.delete(_WAITS).where(_WAITS.c.request == uuid, is_so)
        )
        columns = {
            'request': _REQUESTS.c.uuid,
            'reason': _EVENTS.c.reason,
            'project': _REQUESTS.c.project,
            'sent_at': sa.literal(now, sa.Double),
            'wait_s': sa.func.sum(_EVENTS.c.until - _EVENTS.c.at),
        }
        found = (
            sa.select(*columns.values())
            .join(_EVENTS, _REQUESTS.c.uuid == _EVENTS.c.request)
            .where(
                _REQUESTS.c.uuid == uuid,
                condition,
                _REQUESTS.c.flavor.is_not(None),
                _EVENTS.c.state == request_model.State.WAITING.value,
                # A copy of the current event is not a past wait.
                _EVENTS.c.stage < _REQUESTS.c.stage,
            )
            .group_by(_REQUESTS.c.uuid, _REQUESTS.c.project, _EVENTS.c.reason)
        )
        self._tables.insert_from_query(_WAITS, list(columns), found)

    def remove(self, uuids: Collection[str]) -> None:
        """Remove the waits by reason of some requests."""
        self._tables.update(
            sa.delete(_WAITS).where(_WAITS.c.request.in_(uuids))
        )

    def percentiles(
        self, wanted: waits.WaitFilter, after: str, limit: int
    ) -> list[waits.WaitStatistics]:
        """Return percentiles of groups of requests, sorted by name.

        :param wanted: conditions on requests, and how they are grouped.
        :param after: name of the last group of the previous page; '' for the
            first page.
        :param limit: largest number of groups.
        """
        if wanted.key is waits.WaitKey.REASON:
            rows = self._percentiles_by_reason(wanted, after, limit)
        else:
            query = _percentile_query(_wait_query(wanted, after)).limit(limit)
            rows = self._tables.select(query)
        return [
            waits.WaitStatistics(
                row['name'],
                row['count'],
                {each: row[f'p{each}'] for each in waits.PERCENTILES},
            )
            for row in rows
        ]

    def sent_requests(self, since: float, limit: int) -> list[SentRequest]:
        """Return requests that were sent to Nova, the newest first.

        :param since: earliest time of sending, seconds of the epoch.
        :param limit: largest number of requests.
        """
        known = _REQUESTS.c
        query = (
            sa.select(_REQUESTS)
            .where(
                known.flavor.is_not(None),
                known.waited_s.is_not(None),
                known.sent_at >= since,
            )
            .order_by(known.sent_at.desc(), known.uuid)
            .limit(limit)
        )
        found = (
            SentRequest(records.read_row(row), row['sent_at'])
            for row in self._tables.select(query)
        )
        return [each for each in found if not each.record.fault]

    def _percentiles_by_reason(
        self, wanted: waits.WaitFilter, after: str, most: int
    ) -> list[dict[str, Any]]:
        """Count the waits of each reason, and then read the waits at the ranks
        of the percentiles.

        The index has the waits in their order, so MariaDB needs a tenth of the
        time of a sort.
        """
        name, counts = _WAITS.c.reason, _filter_conditions(_WAITS, wanted)
        all_sizes = self._tables.select(
            sa.select(name.label('name'), sa.func.count().label('count'))
            .where(*counts)
            .group_by(name)
        )
        # There are few reasons, and each database sorts characters
        # differently.
        sizes = sorted(
            (row for row in all_sizes if row['name'] > after),
            key=lambda row: str(row['name']),
        )[:most]
        if not sizes:
            return []
        query = sa.select(
            *(
                _wait_at_rank(row['name'], row['count'], part, counts).label(
                    f'p{part}_{n}'
                )
                for n, row in enumerate(sizes)
                for part in waits.PERCENTILES
            )
        )
        [found] = self._tables.select(query)
        rows = [
            row
            | {f'p{part}': found[f'p{part}_{n}'] for part in waits.PERCENTILES}
            for n, row in enumerate(sizes)
        ]
        # Requests may be removed in between.
        return [row for row in rows if None not in row.values()]


def _filter_conditions(
    table: sa.Table, wanted: waits.WaitFilter
) -> list[sa.ColumnElement[bool]]:
    """Return the SQL conditions of a filter of waits."""
    counts: list[sa.ColumnElement[bool]] = []
    if wanted.since is not None:
        counts.append(table.c.sent_at >= wanted.since)
    if wanted.project is not None:
        counts.append(table.c.project == wanted.project)
    return counts


def _wait_query(wanted: waits.WaitFilter, after: str) -> sa.Select[Any]:
    """Return a query with one row of group name and wait per request."""
    known, name = _REQUESTS.c, _KEYS[wanted.key]
    return sa.select(name.label('name'), known.waited_s.label('wait_s')).where(
        known.flavor.is_not(None),
        known.waited_s.is_not(None),
        *_filter_conditions(_REQUESTS, wanted),
        name > after,
    )


def _wait_at_rank(
    reason: str,
    size: int,
    percent: int,
    conditions: list[sa.ColumnElement[bool]],
) -> sa.ScalarSelect[Any]:
    """Return a query for the percentile of one reason by nearest rank; see
    :func:`_percentile_query`.

    :param size: number of waits with this reason, >= 1.
    :param percent: percentile, 1 to 100.
    """
    wait_s = _WAITS.c.wait_s
    before = -(-size * percent // 100) - 1
    behind = size - 1 - before
    is_near = before <= behind
    return (
        sa.select(wait_s)
        .where(_WAITS.c.reason == reason, *conditions)
        .order_by(wait_s if is_near else wait_s.desc())
        .offset(before if is_near else behind)
        .limit(1)
        .scalar_subquery()
    )


def _percentile_query(wait_query: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for percentiles: the least wait that at least ``part``
    percent of the waits do not exceed.
    """
    each = wait_query.subquery('spans')
    ranked = sa.select(
        each.c.name,
        each.c.wait_s,
        sa.func.row_number()
        .over(partition_by=each.c.name, order_by=each.c.wait_s)
        .label('place'),
        sa.func.count().over(partition_by=each.c.name).label('size'),
    ).subquery('ranked')
    found = ranked.c
    chosen = (
        sa.func.min(
            sa.case((found.place * 100 >= found.size * part, found.wait_s))
        ).label(f'p{part}')
        for part in waits.PERCENTILES
    )
    return (
        sa.select(found.name, sa.func.max(found.size).label('count'), *chosen)
        .group_by(found.name)
        .order_by(found.name)
    )
