# SPDX-License-Identifier: Apache-2.0

"""Groups with spending rates, what was charged, and prices, as stored.

Rates and sums are one row, so that they are never without each other; of
prices there is a row where one changed.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import json

import sqlalchemy as sa

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import market as market_model

_MARKET, _PRICES = tables.MARKET, tables.PRICES

Replace = Callable[..., None]
"""Changes the one row of a table as a whole, if its version is as given."""


class Market:
    """The table of the market.

    :param rows: of the database.
    :param replace: table, version, epoch of the leader, and columns by name.
    :param check_leads: raises ``Deposed`` unless an epoch is the newest.

    :ivar prices: of hosts in the past.
    """

    def __init__(
        self,
        rows: database.Tables,
        replace: Replace,
        check_leads: Callable[[int], None],
    ) -> None:
        self._tables = rows
        self._replace = replace
        self.prices = Prices(rows, check_leads)

    def read(self, known: int) -> records.Traded | None:
        """Groups with rates, and what was charged.

        :param known: version that the caller has.
        :returns: ``None`` if it is still that one.
        """
        rows = self._tables.select(
            sa.select(_MARKET).where(_MARKET.c.version != known)
        )
        if not rows:
            self._tables.only(_MARKET)
            return None
        kept = json.loads(rows[0]['kept'])
        return records.Traded(**kept, version=rows[0]['version'])

    def write(self, traded: records.Traded, epoch: int) -> None:
        """Write groups, and what was charged, together.

        :param traded: with the version that it was worked out from.
        :param epoch: of the leader that did.
        :raises Deposed: if that leader leads no more.
        :raises Outdated: if it was written meanwhile.
        """
        kept = {
            'groups': traded.groups,
            'spent': traded.spent,
            'meters': traded.meters,
        }
        self._replace(_MARKET, traded.version, epoch, kept=records.short(kept))


class Prices(led.Led[[]]):
    """The table of prices."""

    def add(self, prices: Sequence[market_model.Price], epoch: int) -> None:
        """Write prices that are new.

        :param prices: one of each host and class.
        :param epoch: of the leader.
        :raises Deposed: if that leader leads no more.
        """
        self._check_leads(epoch)
        rows = [dataclasses.asdict(each) for each in prices]
        for batch in database.batches(rows, 'host'):
            # They are there already if one clock was set back.
            self._tables.insert(_PRICES, *batch)

    def of(
        self, host: str, before: float | None, limit: int
    ) -> list[market_model.Price]:
        """Prices of a host, the newest first.

        :param before: seconds of the epoch; ``None`` for the newest.
        :param limit: how many at most.
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

    def remove(self, before: float) -> None:
        """Remove old ones.

        :param before: seconds of the epoch.
        """
        self._tables.update(sa.delete(_PRICES).where(_PRICES.c.at < before))
