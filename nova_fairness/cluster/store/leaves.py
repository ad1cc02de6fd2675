# SPDX-License-Identifier: Apache-2.0

"""Stored evictions: one row for each eviction of a server.

The newest row of a server has its present state; older rows are history.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import eviction

_LEAVES = tables.LEAVES
_FINAL = sorted(each.value for each in eviction.FINAL)
_LATER = _LEAVES.alias()
_HAS_LATER = sa.exists().where(
    _LATER.c.server == _LEAVES.c.server, _LATER.c.turn > _LEAVES.c.turn
)
"""Built once, because each alias creates many column objects."""
_MAKES_ROOM = _LEAVES.c.cause.in_(
    sorted(each.value for each in eviction.PREEMPTIONS)
)
_NAMED_AT_ONCE = 10_000
"""Largest number of servers in one statement; PostgreSQL accepts 65,535
parameters.
"""

_SAME = (
    *('server', 'turn', 'version', 'at', 'changed_at', 'tried', 'asked_at'),
    *('vcpus', 'began_at', 'chosen_at', 'told_at', 'acted_at', 'gone_at'),
    'returned_at',
)
"""Columns with the name of the field that they store."""


class EvictionTable(led.LeaderTable[[eviction.Eviction]]):
    """Table of evictions."""

    def newest_in_states(
        self, states: Collection[eviction.EvictionState]
    ) -> dict[str, eviction.Eviction]:
        """Return the newest evictions in some states by UUID of the server,
        those due first.
        """
        wanted = _LEAVES.c.state.in_([each.value for each in states])
        return self._newest_by_server(wanted)

    def live_or_changed_since(
        self, moment: float, servers: Collection[str]
    ) -> dict[str, eviction.Eviction]:
        """Return live evictions, and evictions changed since a time, by UUID
        of the server.

        :param moment: seconds of the epoch.
        :param servers: servers whose newest eviction is included in any case.
        """
        live = _LEAVES.c.state.in_([each.value for each in eviction.LIVE])
        found = self._newest_by_server(
            sa.or_(live, _LEAVES.c.changed_at >= moment)
        )
        return found | self.newest_of_servers(set(servers) - found.keys())

    def newest_of_servers(
        self, servers: Collection[str]
    ) -> dict[str, eviction.Eviction]:
        """Return the newest evictions of some servers, by UUID; servers
        without an eviction are missing.
        """
        named = list(servers)
        found: dict[str, eviction.Eviction] = {}
        for first in range(0, len(named), _NAMED_AT_ONCE):
            some = named[first : first + _NAMED_AT_ONCE]
            found |= self._newest_by_server(_LEAVES.c.server.in_(some))
        return found

    def all_of_servers(
        self, servers: Collection[str]
    ) -> list[eviction.Eviction]:
        """Return all evictions of some servers, the oldest first."""
        named = list(servers)[:_NAMED_AT_ONCE]
        query = (
            sa.select(_LEAVES)
            .where(_LEAVES.c.server.in_(named))
            .order_by(_LEAVES.c.chosen_at, _LEAVES.c.uuid)
        )
        rows = self._tables.select(query)
        found = self._tables.build_objects(
            'leaves', 'uuid', rows, _eviction_of_row
        )
        return [leave for _, leave in found]

    def _newest_by_server(
        self, *wanted: sa.ColumnElement[bool]
    ) -> dict[str, eviction.Eviction]:
        """Return the newest evictions of servers that match conditions, by
        UUID of the server.
        """
        query = (
            sa.select(_LEAVES)
            .where(*wanted, ~_HAS_LATER)
            .order_by(_LEAVES.c.at, _LEAVES.c.server)
        )
        rows = self._tables.select(query)
        return dict(
            self._tables.build_objects(
                'leaves', 'server', rows, _eviction_of_row
            )
        )

    def preemptions(
        self, project: str | None, marker: str | None, limit: int
    ) -> Sequence[eviction.Eviction]:
        """Return evictions that made room for requests, the newest first.

        :param project: project of the server or of the request; ``None`` for
            all.
        :param marker: UUID of the last eviction of the previous page; after an
            unknown UUID, the next page is empty.
        :param limit: largest number of evictions.
        """
        query = sa.select(_LEAVES).where(_MAKES_ROOM)
        if project is not None:
            # Subject of these rows is the project of the preemptor.
            query = query.where(
                sa.or_(
                    _LEAVES.c.project == project, _LEAVES.c.subject == project
                )
            )
        if marker is not None:
            last = sa.select(_LEAVES.c.chosen_at).where(
                _LEAVES.c.uuid == marker
            )
            at = last.scalar_subquery()
            query = query.where(
                sa.or_(
                    _LEAVES.c.chosen_at < at,
                    sa.and_(
                        _LEAVES.c.chosen_at == at, _LEAVES.c.uuid > marker
                    ),
                )
            )
        order = _LEAVES.c.chosen_at.desc(), _LEAVES.c.uuid
        rows = self._tables.select(query.order_by(*order).limit(limit))
        return [
            each
            for _, each in self._tables.build_objects(
                'leaves', 'uuid', rows, _eviction_of_row
            )
        ]

    def preemption(self, uuid: str) -> eviction.Eviction | None:
        """Return one eviction that made room for a request; ``None`` if it is
        unknown.
        """
        rows = self._tables.select(
            sa.select(_LEAVES).where(_MAKES_ROOM, _LEAVES.c.uuid == uuid)
        )
        found = self._tables.build_objects(
            'leaves', 'uuid', rows, _eviction_of_row
        )
        return found[0][1] if found else None

    def add(
        self,
        leave: eviction.Eviction,
        before: eviction.Eviction | None,
        epoch: int,
    ) -> eviction.Eviction:
        """Add an eviction.

        :param leave: eviction in its first state.
        :param before: last eviction of the server; ``None`` without one.
        :param epoch: epoch of the leader that decided the eviction.
        :returns: the stored eviction.
        :raises Outdated: if the server has a live eviction.
        :raises Deposed: if that leader no longer leads.
        """
        turn = 0 if before is None else before.turn + 1
        chosen = dataclasses.replace(leave, turn=turn)
        # An ended eviction never changes: what was read of it is still true.
        if (before and before.state not in eviction.FINAL) or (
            not self._tables.insert_if(
                _LEAVES,
                _row_of_eviction(chosen),
                tables.newest_epoch() == epoch,
            )
        ):
            self._raise_outdated(leave.server, epoch)
        self._notify_listeners(chosen)
        return chosen

    def step(
        self,
        leave: eviction.Eviction,
        event: eviction.EvictionEvent,
        epoch: int,
        now: float,
        at: float | None = None,
    ) -> eviction.Eviction:
        """Change an eviction to its next state.

        :param leave: eviction as it was when the step was decided.
        :param event: what happens to the server.
        :param epoch: epoch of the leader that decided the step.
        :param now: seconds of the epoch of time.
        :param at: earliest time of the next action; ``None`` for the old time.
        :returns: the changed eviction.
        :raises IllegalStep: if its state has no step for the event.
        :raises Outdated: if the stored eviction has another version.
        :raises Deposed: if that leader no longer leads.
        """
        changed = leave.stepped(event, now, at)
        if not self._tables.update(
            _update_if_unchanged(leave, epoch).values(
                **_row_of_eviction(changed)
            )
        ):
            self._raise_outdated(leave.server, epoch)
        self._notify_listeners(changed)
        return changed

    def remove_ended(self, before: float) -> None:
        """Remove evictions that ended before a time, seconds of the epoch."""
        self._tables.update(
            sa.delete(_LEAVES).where(
                _LEAVES.c.state.in_(_FINAL), _LEAVES.c.changed_at < before
            )
        )

    def _raise_outdated(self, server: str, epoch: int) -> None:
        """Raise the error for a change that matched no row."""
        self._check_leads(epoch)
        found = self.newest_of_servers([server]).get(server)
        present = f'{found.state.value}' if found else 'unknown'
        raise exception.Outdated(
            f'server {server}: its eviction has changed to {present} since the'
            ' decision; the next cycle decides again'
        )


def _update_if_unchanged(leave: eviction.Eviction, epoch: int) -> sa.Update:
    """Return a statement that changes an eviction only if it is unchanged and
    the leader still leads.
    """
    return sa.update(_LEAVES).where(
        _LEAVES.c.uuid == leave.uuid,
        _LEAVES.c.version == leave.version,
        tables.newest_epoch() == epoch,
    )


def _row_of_eviction(leave: eviction.Eviction) -> dict[str, Any]:
    """Return the columns of an eviction."""
    same = {name: getattr(leave, name) for name in ('uuid', *_SAME)}
    return {
        **same,
        'project': leave.project,
        'owner': leave.user,
        'cause': leave.cause.value,
        'actions': ','.join(each.value for each in leave.actions),
        'state': leave.state.value,
        'request': leave.request or None,
        **records.reason_columns(leave.why),
    }


def _eviction_of_row(row: Mapping[str, Any]) -> eviction.Eviction:
    """Return the eviction of a row."""
    return eviction.Eviction(
        **{name: row[name] for name in _SAME},
        project=row['project'],
        user=row['owner'],
        cause=eviction.EvictionCause(row['cause']),
        why=records.parse_reason(row),
        actions=tuple(map(eviction.EvictionAction, row['actions'].split(','))),
        state=eviction.EvictionState(row['state']),
        request=row['request'] or '',
    )
