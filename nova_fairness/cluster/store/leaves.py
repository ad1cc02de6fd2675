# SPDX-License-Identifier: Apache-2.0

"""Servers that leave, as they are stored: one row for each that ever did."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import leaving

_LEAVES = tables.LEAVES
_FINAL = sorted(each.value for each in leaving.FINAL)

Changed = Callable[[leaving.Leave], None]
"""Told of a server that came into a state."""


class Leaves:
    """The table of servers that leave.

    :param rows: of the database.
    :param check_leads: raises ``Deposed`` unless an epoch is the newest.
    """

    def __init__(
        self, rows: database.Tables, check_leads: Callable[[int], None]
    ) -> None:
        self._tables = rows
        self._check_leads = check_leads
        self._changed: Changed = lambda _: None

    def listen(self, changed: Changed) -> None:
        """Tell somebody of all that is done through this object."""
        self._changed = changed

    def found(
        self, states: Collection[leaving.State]
    ) -> dict[str, leaving.Leave]:
        """Servers in some states, those that are due first, by UUID."""
        query = (
            sa.select(_LEAVES)
            .where(_LEAVES.c.state.in_([each.value for each in states]))
            .order_by(_LEAVES.c.at, _LEAVES.c.server)
        )
        rows = self._tables.select(query)
        return {row['server']: _leave(row) for row in rows}

    def lately(
        self, cause: leaving.Cause, since: float
    ) -> dict[str, leaving.Leave]:
        """Servers that came into their state of late, by UUID.

        :param cause: for which they leave or left.
        :param since: seconds of the epoch.
        """
        query = sa.select(_LEAVES).where(
            _LEAVES.c.cause == cause.value, _LEAVES.c.changed_at >= since
        )
        rows = self._tables.select(query)
        return {row['server']: _leave(row) for row in rows}

    def of(self, servers: Collection[str]) -> dict[str, leaving.Leave]:
        """How far some servers have left, by UUID; others never did."""
        query = sa.select(_LEAVES).where(_LEAVES.c.server.in_(list(servers)))
        rows = self._tables.select(query)
        return {row['server']: _leave(row) for row in rows}

    def choose(
        self, leave: leaving.Leave, before: leaving.Leave | None, epoch: int
    ) -> leaving.Leave:
        """Let a server leave from now on.

        :param leave: in its first state.
        :param before: how it left last; ``None`` if it never did.
        :param epoch: of the leader that decided it.
        :returns: it as it is stored.
        :raises Outdated: if it leaves already.
        :raises Deposed: if that leader leads no more.
        """
        version = 0 if before is None else before.version + 1
        chosen = dataclasses.replace(leave, version=version)
        values = _row(chosen)
        if before is None:
            done = self._tables.insert_if(
                _LEAVES, values, tables.newest_epoch() == epoch
            )
        else:
            again = _guarded(before, epoch).where(_LEAVES.c.state.in_(_FINAL))
            done = self._tables.update(again.values(**values))
        if not done:
            self._explain(leave.server, epoch)
        self._changed(chosen)
        return chosen

    def step(
        self,
        leave: leaving.Leave,
        event: leaving.Event,
        epoch: int,
        now: float,
        at: float | None = None,
    ) -> leaving.Leave:
        """Lead a server into its next state.

        :param leave: as it was when this was decided.
        :param event: what happens to it.
        :param epoch: of the leader that decided it.
        :param now: seconds of the epoch of time.
        :param at: before that nothing is done to it; ``None`` leaves it.
        :returns: it as it is now.
        :raises IllegalStep: if the event leads nowhere from its state.
        :raises Outdated: if it is no longer of that version.
        :raises Deposed: if that leader leads no more.
        """
        state = leaving.after(leave.state, event)
        changed = dataclasses.replace(
            leave,
            state=state,
            version=leave.version + 1,
            changed_at=now,
            tried=leave.tried + (event is leaving.Event.ACT),
            at=leave.at if at is None else at,
        )
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


def _guarded(leave: leaving.Leave, epoch: int) -> sa.Update:
    """Change a row only if it is as it was and the leader leads."""
    return sa.update(_LEAVES).where(
        _LEAVES.c.server == leave.server,
        _LEAVES.c.version == leave.version,
        tables.newest_epoch() == epoch,
    )


def _row(leave: leaving.Leave) -> dict[str, Any]:
    return {
        'server': leave.server,
        'project': leave.project,
        'owner': leave.user,
        'cause': leave.cause.value,
        'actions': ','.join(each.value for each in leave.actions),
        'at': leave.at,
        'changed_at': leave.changed_at,
        'tried': leave.tried,
        'state': leave.state.value,
        'version': leave.version,
        'request': leave.request or None,
        'asked_at': leave.asked_at,
        **records.columns_of(leave.why),
    }


def _leave(row: Mapping[str, Any]) -> leaving.Leave:
    return leaving.Leave(
        server=row['server'],
        project=row['project'],
        user=row['owner'],
        cause=leaving.Cause(row['cause']),
        why=records.why_of(row),
        actions=tuple(map(leaving.Action, row['actions'].split(','))),
        at=row['at'],
        changed_at=row['changed_at'],
        tried=row['tried'],
        state=leaving.State(row['state']),
        version=row['version'],
        request=row['request'] or '',
        asked_at=row['asked_at'],
    )
