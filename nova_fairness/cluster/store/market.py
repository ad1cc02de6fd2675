# SPDX-License-Identifier: Apache-2.0

"""Stored groups with spending rates, spent units, and prices.

Rates and spent units of a project are in one row, so they are always
consistent. Each change of a price has its own row.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import json
from typing import Any

from oslo_log import log as logging
import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import owned
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import market as market_model

LOG = logging.getLogger(__name__)

UNREADABLE = (
    'project %s: its stored groups and spent units cannot be read: %s; it'
    ' has no groups and is charged nothing until its row in the table trades'
    ' is repaired'
)

_MARKET, _PRICES = tables.MARKET, tables.PRICES

Replace = Callable[..., None]
"""Changes the single row of a table if its version is the given version."""


class MarketTables:
    """Tables of the market.

    :param rows: tables of the database.
    :param replace: changes a single row; its arguments are table, version,
        epoch of the leader, and columns by name.
    :param check_leads: raises ``Deposed`` unless an epoch is the newest.
    :ivar prices: past prices of hosts.
    """

    def __init__(
        self,
        rows: database.Tables,
        replace: Replace,
        check_leads: Callable[[int], None],
    ) -> None:
        self._tables = rows
        self._replace = replace
        self._owned = owned.OwnerTable(rows, tables.TRADES, check_leads)
        self._unreadable: set[str] = set()
        self.prices = PriceTable(rows, check_leads)

    def read_if_changed(
        self, known_version: int
    ) -> records.SpendingRecords | None:
        """Return groups with spending rates, and spent units.

        If the row of a project cannot be read, the project has no groups and
        is charged nothing; other projects are not affected.

        :param known_version: version that the caller has.
        :returns: ``None`` if that version is the present one.
        """
        rows = self._tables.select(
            sa.select(_MARKET.c.version).where(
                _MARKET.c.version != known_version
            )
        )
        if not rows:
            self._tables.single_row(_MARKET)
            return None
        self._unreadable.clear()
        parts = []
        for project, kept in self._owned.read().items():
            try:
                parts.append(_parse_project(project, kept))
            except exception.UNREADABLE as error:
                self._unreadable.add(project)
                LOG.error(UNREADABLE, project, error)
        return records.SpendingRecords(
            [group for each in parts for group in each.groups],
            {name: n for each in parts for name, n in each.spent.items()},
            {name: at for each in parts for name, at in each.meters.items()},
            rows[0]['version'],
        )

    def write(self, traded: records.SpendingRecords, epoch: int) -> None:
        """Write groups and spent units, those of each project in one row.

        :param traded: new content, with the version that it was computed from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the tables have another version.
        """
        self._replace(_MARKET, traded.version, epoch)
        before, after = self._owned.read(), _contents_by_project(traded)
        for project in self._unreadable:
            # Keep the row: an operator may still repair it.
            before.pop(project, None)
            after.pop(project, None)
        self._owned.write(before, after, epoch)


def _parse_project(project: str, content: str) -> records.SpendingRecords:
    """Return the groups and spent units in the row of one project."""
    own = json.loads(content)
    return records.SpendingRecords(
        [
            (project, name, float(rate), int(count))
            for name, (rate, count) in own['groups'].items()
        ],
        {account: int(units) for account, units in own['spent'].items()},
        {
            server: records.ServerMeter(
                project, host, process, int(used), float(at)
            )
            for server, (host, process, used, at) in own['meters'].items()
        },
    )


def _contents_by_project(spending: records.SpendingRecords) -> dict[str, str]:
    """Return the contents of rows, by project."""
    parts: dict[str, dict[str, dict[str, Any]]] = {}

    def project_part(project: str) -> dict[str, dict[str, Any]]:
        """Return the part of one project, which is created if it is
        missing.
        """
        empty: dict[str, dict[str, Any]]
        empty = {'groups': {}, 'spent': {}, 'meters': {}}
        return parts.setdefault(project, empty)

    for project, name, rate, count in spending.groups:
        project_part(project)['groups'][name] = [rate, count]
    for account, units in spending.spent.items():
        project_part(account.partition('/')[0])['spent'][account] = units
    for server, meter in spending.meters.items():
        project_part(meter.project)['meters'][server] = list(meter[1:])
    return {
        project: records.compact_json(kept) for project, kept in parts.items()
    }


class PriceTable(led.LeaderTable[[]]):
    """Table of prices."""

    def add(self, prices: Sequence[market_model.Price], epoch: int) -> None:
        """Add new prices.

        :param prices: one price for each host and class.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        """
        self._check_leads(epoch)
        rows = [dataclasses.asdict(each) for each in prices]
        for batch in database.batches(rows, 'host'):
            # Such a row may exist if a clock was set back.
            self._tables.insert(_PRICES, *batch)

    def newest_prices(
        self, host: str, before: float | None, limit: int
    ) -> list[market_model.Price]:
        """Return prices of a host, the newest first.

        :param before: time after the latest price, seconds of the epoch;
            ``None`` for the newest.
        :param limit: largest number of prices.
        """
        query = sa.select(_PRICES).where(_PRICES.c.host == host)
        if before is not None:
            query = query.where(_PRICES.c.at < before)
        query = query.order_by(
            _PRICES.c.at.desc(), _PRICES.c.resource_class
        ).limit(limit)
        return [
            market_model.Price(**row) for row in self._tables.select(query)
        ]

    def remove_older(self, before: float) -> None:
        """Remove old prices.

        :param before: time of the oldest price to retain, seconds of the
            epoch.
        """
        self._tables.update(sa.delete(_PRICES).where(_PRICES.c.at < before))
