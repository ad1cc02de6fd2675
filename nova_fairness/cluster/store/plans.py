# SPDX-License-Identifier: Apache-2.0

"""Stored migration plans.

A plan and its moves are one row, which is changed as a whole, so they are
always consistent. Every write names the version that it was decided on and the
epoch of the leader.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import json
from typing import Any
from typing import NoReturn

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import plans as model

_PLANS = tables.PLANS
_CLOSING = frozenset(
    {model.PlanState.APPROVED, model.PlanState.RUNNING, model.PlanState.DONE}
)
"""States in which servers may not start on hosts that a plan empties."""

_HELD = frozenset(
    {
        model.PlanState.APPROVED,
        model.PlanState.RUNNING,
        model.PlanState.PARTIAL,
    }
)
"""States of plans whose subject, a host, must have no other use."""


class PlanTable(
    led.LeaderTable[[model.MigrationPlan | None, model.MigrationPlan]]
):
    """Table of migration plans.

    Listeners are called with the plan before the change, ``None`` for a new
    plan, and the plan after it.
    """

    def add(self, plan: model.MigrationPlan, epoch: int) -> None:
        """Add a plan; an existing plan is not changed.

        :raises Deposed: if that leader no longer leads.
        """
        if self._tables.insert_if(
            _PLANS, _row_of_plan(plan), tables.newest_epoch() == epoch
        ):
            self._notify_listeners(None, plan)
        else:
            self._check_leads(epoch)

    def write(
        self,
        before: model.MigrationPlan,
        after: model.MigrationPlan,
        epoch: int,
    ) -> model.MigrationPlan:
        """Write a changed plan.

        :param before: the plan as it was when the change was decided.
        :param after: the changed plan.
        :param epoch: epoch of the leader that decided the change.
        :returns: the plan with its new version.
        :raises Outdated: if the stored plan has another version.
        :raises Deposed: if that leader no longer leads.
        """
        written = dataclasses.replace(after, version=before.version + 1)
        changed = self._tables.update(
            sa.update(_PLANS)
            .where(
                _PLANS.c.uuid == before.uuid,
                _PLANS.c.version == before.version,
                tables.newest_epoch() == epoch,
            )
            .values(**_row_of_plan(written))
        )
        if not changed:
            self._raise_outdated(before.uuid, epoch)
        self._notify_listeners(before, written)
        return written

    def check_unchanged(self, plan: model.MigrationPlan, epoch: int) -> None:
        """Check that a plan has not changed since a decision.

        :raises Outdated: if the stored plan has another version.
        :raises Deposed: if that leader no longer leads.
        """
        self._check_leads(epoch)
        found = self.read_plan(plan.uuid)
        if found is None or found.version != plan.version:
            self._raise_outdated(plan.uuid, epoch)

    def read_plan(self, uuid: str) -> model.MigrationPlan | None:
        """Return one plan; ``None`` if it does not exist."""
        query = sa.select(_PLANS).where(_PLANS.c.uuid == uuid)
        rows = self._tables.select(query)
        found = self._tables.build_objects('plans', 'uuid', rows, _plan_of_row)
        return found[0][1] if found else None

    def open_plans(self) -> list[model.MigrationPlan]:
        """Return plans with remaining moves or a remaining measurement, the
        oldest first.
        """
        query = (
            sa.select(_PLANS)
            .where(_PLANS.c.is_open.is_(True))
            .order_by(_PLANS.c.made_at, _PLANS.c.uuid)
        )
        return self._read_plans(query)

    def newest_plans(
        self,
        marker: model.MigrationPlan | None = None,
        limit: int | None = None,
    ) -> list[model.MigrationPlan]:
        """Return all plans, the newest first.

        :param marker: last plan of the previous page.
        :param limit: largest number of plans; ``None`` for all.
        """
        query = sa.select(_PLANS)
        if marker is not None:
            at = _PLANS.c.made_at
            query = query.where(
                sa.or_(
                    at < marker.made_at,
                    sa.and_(at == marker.made_at, _PLANS.c.uuid < marker.uuid),
                )
            )
        query = query.order_by(
            _PLANS.c.made_at.desc(), _PLANS.c.uuid.desc()
        ).limit(limit)
        return self._read_plans(query)

    def open_or_changed_since(
        self, changed_at: float
    ) -> list[model.MigrationPlan]:
        """Return plans that are open, or that entered their state since a
        time.

        :param changed_at: seconds of the epoch.
        """
        query = sa.select(_PLANS).where(
            sa.or_(
                _PLANS.c.is_open.is_(True), _PLANS.c.changed_at >= changed_at
            )
        )
        return self._read_plans(query)

    def hosts_to_empty(self, goals: Collection[model.Goal]) -> frozenset[str]:
        """Return the names of hosts that plans with some goals empty.

        :param goals: goals of plans during which these hosts accept no
            servers.
        """
        states = [each.value for each in _CLOSING]
        # Hosts that other plans empty are free for requests that wait.
        query = sa.select(_PLANS.c.uuid, _PLANS.c.empties).where(
            _PLANS.c.is_open.is_(True),
            _PLANS.c.state.in_(states),
            _PLANS.c.goal.in_([each.value for each in goals]),
        )
        rows = self._tables.select(query)
        found = self._tables.build_objects(
            'plans', 'uuid', rows, _parse_emptied_hosts
        )
        return frozenset(host for _, hosts in found for host in hosts)

    def _read_plans(self, query: sa.Select[Any]) -> list[model.MigrationPlan]:
        """Return the plans of a query; unreadable rows are left out."""
        rows = self._tables.select(query)
        return [
            each
            for _, each in self._tables.build_objects(
                'plans', 'uuid', rows, _plan_of_row
            )
        ]

    def hosts_in_use_by_plans(
        self, goals: Collection[model.Goal]
    ) -> frozenset[str]:
        """Return the names of hosts that are reserved for plans until the
        plans end.

        :param goals: goals of plans whose subject is a host.
        """
        query = sa.select(_PLANS.c.subject).where(
            _PLANS.c.is_open.is_(True),
            _PLANS.c.state.in_([each.value for each in _HELD]),
            _PLANS.c.goal.in_([each.value for each in goals]),
        )
        return frozenset(row['subject'] for row in self._tables.select(query))

    def remove_ended(self, before: float) -> None:
        """Remove plans that ended before a time.

        :param before: seconds of the epoch.
        """
        self._tables.update(
            sa.delete(_PLANS).where(
                _PLANS.c.is_open.is_(False), _PLANS.c.changed_at < before
            )
        )

    def _raise_outdated(self, uuid: str, epoch: int) -> NoReturn:
        """Raise the error for a change that matched no row."""
        self._check_leads(epoch)
        found = self.read_plan(uuid)
        present = f'is now {found.state.value}' if found else 'was removed'
        raise exception.Outdated(
            f'plan {uuid} {present}: it has changed since the decision; read'
            ' it and decide again'
        )


def _row_of_plan(plan: model.MigrationPlan) -> dict[str, Any]:
    """Return the columns of a plan."""
    return {
        'uuid': plan.uuid,
        'goal': plan.goal.value,
        'subject': plan.subject,
        'state': plan.state.value,
        'is_open': plan.is_open,
        'made_at': plan.made_at,
        'changed_at': plan.changed_at,
        'until': plan.until,
        'cause': plan.cause.value,
        'explanation': plan.text,
        'moves': records.compact_json(
            [_columns_of_move(each) for each in plan.moves]
        ),
        'empties': records.compact_json(list(plan.empties)),
        'promised': records.compact_json(dataclasses.asdict(plan.promised)),
        'won': plan.won and records.compact_json(dataclasses.asdict(plan.won)),
        'version': plan.version,
        'stays': records.compact_json(
            [[e.server, e.name, e.cause.value, e.text] for e in plan.stays]
        ),
    }


def _parse_emptied_hosts(row: Mapping[str, Any]) -> list[str]:
    """Return the names of hosts that the plan of a row empties."""
    return [str(each) for each in json.loads(row['empties'])]


def _columns_of_move(move: model.Move) -> list[Any]:
    """Return the stored form of a move."""
    return [
        move.server,
        move.source,
        move.target,
        move.wave,
        move.cost_mb,
        move.state.value,
        move.cause and move.cause.value,
        move.text,
        move.asked_at,
        move.ended_at,
        move.sent_mb,
        move.after,
    ]


def _parse_move(columns: list[Any]) -> model.Move:
    """Return the move of its stored form."""
    server, source, target, wave, cost_mb, state, cause, *rest = columns
    return model.Move(
        server,
        source,
        target,
        wave,
        cost_mb,
        model.MoveState(state),
        None if cause is None else model.PlanCause(cause),
        *rest,
    )


def _plan_of_row(row: Mapping[str, Any]) -> model.MigrationPlan:
    """Return the plan of a row."""
    won = row['won']
    return model.MigrationPlan(
        row['uuid'],
        model.Goal(row['goal']),
        row['subject'],
        row['made_at'],
        row['changed_at'],
        row['until'],
        tuple(map(_parse_move, json.loads(row['moves']))),
        tuple(json.loads(row['empties'])),
        model.PlanOutcome(**json.loads(row['promised'])),
        won and model.PlanOutcome(**json.loads(won)),
        model.PlanState(row['state']),
        model.PlanCause(row['cause']),
        row['explanation'],
        row['version'],
        tuple(
            model.Stay(server, name, model.PlanCause(cause), text)
            for server, name, cause, text in json.loads(row['stays'])
        ),
    )
