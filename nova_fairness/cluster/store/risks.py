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


class Risks(led.LeaderTable[[risk.Risk]]):
    """The table of warnings."""

    def all(self) -> dict[str, risk.Risk]:
        """All warnings by UUID of the server, including withdrawn warnings."""
        query = sa.select(_RISKS).order_by(_RISKS.c.since, _RISKS.c.server)
        rows = self._tables.select(query)
        return dict(self._tables.made('risks', 'server', rows, _risk))

    def add(self, new: risk.Risk, epoch: int) -> None:
        """Add a warning of a server that has none.

        :param epoch: epoch of the leader that decided it.
        :raises Deposed: if that leader no longer leads.
        """
        leads = tables.newest_epoch() == epoch
        if self._tables.insert_if(_RISKS, _row(new), leads):
            self._changed(new)
        else:
            self._check_leads(epoch)

    def change(self, known: risk.Risk, epoch: int) -> None:
        """Change an existing warning.

        :param epoch: see :meth:`add`.
        :raises Deposed: see :meth:`add`.
        """
        here = _RISKS.c.server == known.server
        leads = tables.newest_epoch() == epoch
        statement = sa.update(_RISKS).where(here, leads).values(**_row(known))
        if not self._tables.update(statement):
            self._check_leads(epoch)
        elif not known.is_written:
            self._changed(known)

    def remove(self, server: str, epoch: int) -> None:
        """Remove the warning of a server.

        :param epoch: see :meth:`add`.
        :raises Deposed: see :meth:`add`.
        """
        here = _RISKS.c.server == server
        leads = tables.newest_epoch() == epoch
        if not self._tables.update(sa.delete(_RISKS).where(here, leads)):
            self._check_leads(epoch)


def _row(known: risk.Risk) -> dict[str, Any]:
    return {
        'server': known.server,
        'project': known.project,
        'owner': known.user,
        'state': known.state.value,
        'since': known.since,
        'changed_at': known.changed_at,
        'is_written': known.is_written,
        **records.columns_of(known.why),
    }


def _risk(row: Mapping[str, Any]) -> risk.Risk:
    return risk.Risk(
        row['server'],
        row['project'],
        row['owner'],
        risk.RiskState(row['state']),
        records.why_of(row),
        row['since'],
        row['changed_at'],
        row['is_written'],
    )
