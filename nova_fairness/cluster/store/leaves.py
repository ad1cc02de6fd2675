# SPDX-License-Identifier: Apache-2.0

"""Servers that leave, as they are stored: a row for each time that one did.

The newest row of a server says how far it has left; those before are history.
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
"""Made once: the columns of an alias are much garbage."""
_MAKES_ROOM = _LEAVES.c.cause.in_(
    sorted(each.value for each in eviction.PREEMPTIONS)
)
_NAMED_AT_ONCE = 10_000
"""Servers in one statement; PostgreSQL takes 65,535 parameters."""

_SAME = (
    *('server', 'turn', 'version', 'at', 'changed_at', 'tried', 'asked_at'),
    *('vcpus', 'began_at', 'chosen_at', 'told_at', 'acted_at', 'gone_at'),
    'returned_at',
)
"""Columns that are fields of the same name."""


class Leaves(led.LeaderTable[[eviction.Eviction]]):
    """The table of servers that leave."""

    def found(
        self, states: Collection[eviction.EvictionState]
    ) -> dict[str, eviction.Eviction]:
        """Servers in some states, those that are due first, by UUID."""
        wanted = _LEAVES.c.state.in_([each.value for each in states])
        return self._newest(wanted)

    def since(
        self, moment: float, servers: Collection[str]
    ) -> dict[str, eviction.Eviction]:
        """Servers that leave, and those that left of late, by UUID.

        :param moment: seconds of the epoch.
        :param servers: that are told, too, however long ago they left.
        """
        live = _LEAVES.c.state.in_([each.value for each in eviction.LIVE])
        found = self._newest(sa.or_(live, _LEAVES.c.changed_at >= moment))
        return found | self.of(set(servers) - found.keys())

    def of(self, servers: Collection[str]) -> dict[str, eviction.Eviction]:
        """How far some servers have left, by UUID; others never did."""
        named = list(servers)
        found: dict[str, eviction.Eviction] = {}
        for first in range(0, len(named), _NAMED_AT_ONCE):
            some = named[first : first + _NAMED_AT_ONCE]
            found |= self._newest(_LEAVES.c.server.in_(some))
        return found

    def turns(self, servers: Collection[str]) -> list[eviction.Eviction]:
        """Each time that some servers were to leave, the oldest first."""
        named = list(servers)[:_NAMED_AT_ONCE]
        query = (
            sa.select(_LEAVES)
            .where(_LEAVES.c.server.in_(named))
            .order_by(_LEAVES.c.chosen_at, _LEAVES.c.uuid)
        )
        rows = self._tables.select(query)
        found = self._tables.made('leaves', 'uuid', rows, _leave)
        return [leave for _, leave in found]

    def _newest(
        self, *wanted: sa.ColumnElement[bool]
    ) -> dict[str, eviction.Eviction]:
        query = (
            sa.select(_LEAVES)
            .where(*wanted, ~_HAS_LATER)
            .order_by(_LEAVES.c.at, _LEAVES.c.server)
        )
        rows = self._tables.select(query)
        return dict(self._tables.made('leaves', 'server', rows, _leave))

    def preemptions(
        self, project: str | None, marker: str | None, most: int
    ) -> Sequence[eviction.Eviction]:
        """Times that servers were to make room, the newest first.

        :param project: to which the server or the request belongs; ``None``
            for all.
        :param marker: UUID of the last one of the page before; nothing follows
            one that is unknown.
        :param most: how many at most.
        """
        query = sa.select(_LEAVES).where(_MAKES_ROOM)
        if project is not None:
            # The reason of these is about whom room is made for.
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
        rows = self._tables.select(query.order_by(*order).limit(most))
        return [
            each
            for _, each in self._tables.made('leaves', 'uuid', rows, _leave)
        ]

    def preemption(self, uuid: str) -> eviction.Eviction | None:
        """One time that a server was to make room; ``None`` if unknown."""
        rows = self._tables.select(
            sa.select(_LEAVES).where(_MAKES_ROOM, _LEAVES.c.uuid == uuid)
        )
        found = self._tables.made('leaves', 'uuid', rows, _leave)
        return found[0][1] if found else None

    def choose(
        self,
        leave: eviction.Eviction,
        before: eviction.Eviction | None,
        epoch: int,
    ) -> eviction.Eviction:
        """Let a server leave from now on.

        :param leave: in its first state.
        :param before: how it left last; ``None`` if it never did.
        :param epoch: of the leader that decided it.
        :returns: it as it is stored.
        :raises Outdated: if it leaves already.
        :raises Deposed: if that leader no longer leads.
        """
        turn = 0 if before is None else before.turn + 1
        chosen = dataclasses.replace(leave, turn=turn)
        # What has ended never begins again: it may be decided on as read.
        if (before and before.state not in eviction.FINAL) or (
            not self._tables.insert_if(
                _LEAVES, _row(chosen), tables.newest_epoch() == epoch
            )
        ):
            self._explain(leave.server, epoch)
        self._changed(chosen)
        return chosen

    def step(
        self,
        leave: eviction.Eviction,
        event: eviction.EvictionEvent,
        epoch: int,
        now: float,
        at: float | None = None,
    ) -> eviction.Eviction:
        """Lead a server into its next state.

        :param leave: as it was when this was decided.
        :param event: what happens to it.
        :param epoch: of the leader that decided it.
        :param now: seconds of the epoch of time.
        :param at: before that nothing is done to it; ``None`` leaves it.
        :returns: it as it is now.
        :raises IllegalStep: if the event leads nowhere from its state.
        :raises Outdated: if it is no longer of that version.
        :raises Deposed: if that leader no longer leads.
        """
        changed = leave.stepped(event, now, at)
        if not self._tables.update(
            _guarded(leave, epoch).values(**_row(changed))
        ):
            self._explain(leave.server, epoch)
        self._changed(changed)
        return changed

    def remove_ended(self, before: float) -> None:
        """Forget those that left before a moment, seconds of the epoch."""
        self._tables.update(
            sa.delete(_LEAVES).where(
                _LEAVES.c.state.in_(_FINAL), _LEAVES.c.changed_at < before
            )
        )

    def _explain(self, server: str, epoch: int) -> None:
        self._check_leads(epoch)
        found = self.of([server]).get(server)
        present = f'{found.state.value}' if found else 'unknown'
        raise exception.Outdated(
            f'server {server} is {present} by now: it was decided on what is'
            ' no longer so'
        )


def _guarded(leave: eviction.Eviction, epoch: int) -> sa.Update:
    """Change a row only if it is as it was and the leader leads."""
    return sa.update(_LEAVES).where(
        _LEAVES.c.uuid == leave.uuid,
        _LEAVES.c.version == leave.version,
        tables.newest_epoch() == epoch,
    )


def _row(leave: eviction.Eviction) -> dict[str, Any]:
    same = {name: getattr(leave, name) for name in ('uuid', *_SAME)}
    return {
        **same,
        'project': leave.project,
        'owner': leave.user,
        'cause': leave.cause.value,
        'actions': ','.join(each.value for each in leave.actions),
        'state': leave.state.value,
        'request': leave.request or None,
        **records.columns_of(leave.why),
    }


def _leave(row: Mapping[str, Any]) -> eviction.Eviction:
    return eviction.Eviction(
        **{name: row[name] for name in _SAME},
        project=row['project'],
        user=row['owner'],
        cause=eviction.EvictionCause(row['cause']),
        why=records.why_of(row),
        actions=tuple(map(eviction.EvictionAction, row['actions'].split(','))),
        state=eviction.EvictionState(row['state']),
        request=row['request'] or '',
    )
