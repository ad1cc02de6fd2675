# SPDX-License-Identifier: Apache-2.0

"""Stored events of requests.

The row of a request is its current event. The row is copied here before it
changes, so each past event is stored. If a process dies between both writes,
the copy is of an event that has not ended, and the next process replaces it.
One transaction for both would leave locks if a process stops within it.
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
"""Number of first and of last events of a request that are stored."""

_EVENTS, _REQUESTS = tables.EVENTS, tables.REQUESTS
_LONGEST = 255
_READ_AT_ONCE = 10_000
"""Largest number of requests in one statement; PostgreSQL accepts 65,535
parameters.
"""

_SAME = ('stage', 'state', 'reason', 'subject', 'numbers')


class EventTable:
    """Table of past events of requests.

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
        """Copy the current events of some requests into the history, because
        the events are about to end.

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
        """Delete events beyond the largest number, and copies whose change was
        not made.
        """
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
        """Return the events of some requests, the oldest first, by UUID."""
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
        """Return UUID and past event pairs of some requests, the oldest
        first.
        """
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
        """Return UUID and current event pairs of some requests."""
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
        """Remove the past events of some requests."""
        self._tables.update(
            sa.delete(_EVENTS).where(_EVENTS.c.request.in_(uuids))
        )


def _event_of_row(row: Mapping[str, Any]) -> history.HistoryEvent:
    """Return the event of a row."""
    return history.request_event(
        request_model.State(row['state']),
        records.parse_reason(row),
        row['at'],
        row['until'],
        records.parse_hosts(row['hosts']),
    )
