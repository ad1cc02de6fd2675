# SPDX-License-Identifier: Apache-2.0

"""Stored events of requests.

The row of a request is its current event. It is copied here before it changes,
so no change lacks its event. If a process dies in between, the copy is of an
event that still lasts, and the next process replaces it. One transaction for
both would hold locks if a process stops within it.
"""

from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import history
from nova_fairness.model import request as request_model

FIRST_KEPT = 20
LAST_KEPT = 60
"""Number of first and of last events of a request that are kept."""

_EVENTS, _REQUESTS = tables.EVENTS, tables.REQUESTS
_LONGEST = 255
_READ_AT_ONCE = 10_000
"""Requests in one statement; PostgreSQL takes 65,535 parameters."""

_SAME = ('stage', 'state', 'reason', 'subject', 'numbers')


class EventTable:
    """The table of past events of requests.

    :param rows: tables of the database.
    """

    def __init__(self, rows: database.Tables) -> None:
        self._tables = rows

    def copy_current_events(
        self,
        uuids: Collection[str],
        now: float,
        condition: sa.ColumnElement[bool],
    ) -> None:
        """Copy the current events of some requests, before they end.

        :param uuids: UUIDs of the requests.
        :param now: end of these events, seconds of the epoch.
        :param condition: condition on rows of requests, and on the leader.
        """
        if not uuids:
            return
        self._delete_surplus(uuids)
        is_short = sa.func.length(_REQUESTS.c.hosts) <= _LONGEST
        hosts = sa.case((is_short, _REQUESTS.c.hosts), else_=sa.null())
        columns = {
            'request': _REQUESTS.c.uuid,
            **{name: _REQUESTS.c[name] for name in _SAME},
            'at': _REQUESTS.c.stage_at,
            'until': sa.literal(now, sa.Double),
            'hosts': hosts,
        }
        found = sa.select(*columns.values()).where(
            _REQUESTS.c.uuid.in_(uuids), condition
        )
        self._tables.insert_from_query(_EVENTS, list(columns), found)

    def _delete_surplus(self, uuids: Collection[str]) -> None:
        """Remove surplus events, and copies whose change was not made."""
        newest = (
            sa.select(_REQUESTS.c.stage)
            .where(_REQUESTS.c.uuid == _EVENTS.c.request)
            .scalar_subquery()
        )
        stage = _EVENTS.c.stage
        is_too_much = sa.and_(stage >= FIRST_KEPT, stage <= newest - LAST_KEPT)
        self._tables.update(
            sa.delete(_EVENTS).where(
                _EVENTS.c.request.in_(uuids),
                sa.or_(is_too_much, stage == newest),
            )
        )

    def events_by_request(
        self, uuids: Collection[str]
    ) -> dict[str, list[history.HistoryEvent]]:
        """Events of some requests, the oldest first, by UUID."""
        named = list(uuids)
        found: dict[str, list[history.HistoryEvent]] = {
            uuid: [] for uuid in named
        }
        for first in range(0, len(named), _READ_AT_ONCE):
            some = named[first : first + _READ_AT_ONCE]
            for uuid, event in [
                *self._past_events(some),
                *self._current_events(some),
            ]:
                found[uuid].append(event)
        return found

    def _past_events(
        self, uuids: list[str]
    ) -> list[tuple[str, history.HistoryEvent]]:
        query = (
            sa.select(_EVENTS)
            .join(_REQUESTS, _REQUESTS.c.uuid == _EVENTS.c.request)
            .where(
                _EVENTS.c.request.in_(uuids),
                _EVENTS.c.stage < _REQUESTS.c.stage,
            )
            .order_by(_EVENTS.c.request, _EVENTS.c.stage)
        )
        rows = self._tables.select(query)
        return self._tables.build_objects(
            'events', 'request', rows, _event_of_row
        )

    def _current_events(
        self, uuids: list[str]
    ) -> list[tuple[str, history.HistoryEvent]]:
        columns = (_REQUESTS.c[name] for name in (*_SAME, 'uuid', 'hosts'))
        query = sa.select(
            *columns,
            _REQUESTS.c.stage_at.label('at'),
            sa.null().label('until'),
        ).where(_REQUESTS.c.uuid.in_(uuids))
        rows = self._tables.select(query)
        return self._tables.build_objects(
            'requests', 'uuid', rows, _event_of_row
        )

    def remove(self, uuids: Collection[str]) -> None:
        """Remove the events of some requests."""
        self._tables.update(
            sa.delete(_EVENTS).where(_EVENTS.c.request.in_(uuids))
        )


def _event_of_row(row: Mapping[str, Any]) -> history.HistoryEvent:
    return history.stage(
        request_model.State(row['state']),
        records.parse_reason(row),
        row['at'],
        row['until'],
        records.parse_hosts(row['hosts']),
    )
