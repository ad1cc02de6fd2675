# SPDX-License-Identifier: Apache-2.0

"""Stored warnings of servers that are at risk of eviction."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import risk

_RISKS = tables.RISKS


class RiskTable(led.LeaderTable[[risk.EvictionRisk]]):
    """Table of warnings."""

    def all_warnings(self) -> dict[str, risk.EvictionRisk]:
        """Return all warnings by UUID of the server, including withdrawn
        warnings.
        """
        query = sa.select(_RISKS).order_by(_RISKS.c.since, _RISKS.c.server)
        rows = self._tables.select(query)
        return dict(
            self._tables.build_objects(
                'risks', 'server', rows, _warning_of_row
            )
        )

    def add(self, warning: risk.EvictionRisk, epoch: int) -> None:
        """Add a warning for a server without a warning.

        :param epoch: epoch of the leader that decided the warning.
        :raises Deposed: if that leader no longer leads.
        """
        leads = tables.newest_epoch() == epoch
        if self._tables.insert_if(_RISKS, _row_of_warning(warning), leads):
            self._notify_listeners(warning)
        else:
            self._check_leads(epoch)

    def change(self, warning: risk.EvictionRisk, epoch: int) -> None:
        """Change an existing warning.

        :param epoch: see :meth:`add`.
        :raises Deposed: see :meth:`add`.
        """
        here = _RISKS.c.server == warning.server
        leads = tables.newest_epoch() == epoch
        statement = (
            sa.update(_RISKS)
            .where(here, leads)
            .values(**_row_of_warning(warning))
        )
        if not self._tables.update(statement):
            self._check_leads(epoch)
        elif not warning.is_written:
            self._notify_listeners(warning)

    def remove(self, server: str, epoch: int) -> None:
        """Remove the warning of a server.

        :param epoch: see :meth:`add`.
        :raises Deposed: see :meth:`add`.
        """
        here = _RISKS.c.server == server
        leads = tables.newest_epoch() == epoch
        if not self._tables.update(sa.delete(_RISKS).where(here, leads)):
            self._check_leads(epoch)


def _row_of_warning(warning: risk.EvictionRisk) -> dict[str, Any]:
    """Return the columns of a warning."""
    return {
        'server': warning.server,
        'project': warning.project,
        'owner': warning.user,
        'state': warning.state.value,
        'since': warning.since,
        'changed_at': warning.changed_at,
        'is_written': warning.is_written,
        **records.reason_columns(warning.why),
    }


def _warning_of_row(row: Mapping[str, Any]) -> risk.EvictionRisk:
    """Return the warning of a row."""
    return risk.EvictionRisk(
        row['server'],
        row['project'],
        row['owner'],
        risk.RiskState(row['state']),
        records.parse_reason(row),
        row['since'],
        row['changed_at'],
        row['is_written'],
    )
