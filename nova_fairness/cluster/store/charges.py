# SPDX-License-Identifier: Apache-2.0

"""Stored charges of the ledger, from which the ledger can be computed again.

A row is written before the ledger changes, with the new version of the ledger.
If a process dies between both writes, its row is ignored, and the next process
replaces it.
"""

from collections.abc import Iterator
import json

import sqlalchemy as sa

from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables

_CHARGES = tables.CHARGES
_READ_AT_ONCE = 1000


class ChargeTable(led.LeaderTable[[]]):
    """Table of charges of the ledger."""

    def add(self, charge: records.ChargeRecord, epoch: int) -> None:
        """Store a charge before the ledger changes.

        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        """
        leads = tables.newest_epoch() == epoch
        self._tables.update(
            sa.delete(_CHARGES).where(
                _CHARGES.c.version >= charge.version, leads
            )
        )
        row = {
            'version': charge.version,
            'begins': charge.begins,
            'ends': charge.ends,
            'capacity': records.compact_json(charge.capacity),
            'changed': records.compact_json(charge.changed),
            'opening': None
            if charge.opening is None
            else records.compact_json(charge.opening),
        }
        if not self._tables.insert_if(_CHARGES, row, leads):
            self._check_leads(epoch)

    def charges_up_to(self, version: int) -> Iterator[records.ChargeRecord]:
        """Yield the charges that the ledger contains, the oldest first.

        :param version: version of the ledger.
        """
        last = -1
        while True:
            query = (
                sa.select(_CHARGES)
                .where(
                    _CHARGES.c.version > last, _CHARGES.c.version <= version
                )
                .order_by(_CHARGES.c.version)
                .limit(_READ_AT_ONCE)
            )
            rows = self._tables.select(query)
            for row in rows:
                opening = row['opening']
                yield records.ChargeRecord(
                    row['version'],
                    row['begins'],
                    row['ends'],
                    json.loads(row['capacity']),
                    json.loads(row['changed']),
                    None if opening is None else json.loads(opening),
                )
            if len(rows) < _READ_AT_ONCE:
                return
            last = rows[-1]['version']

    def remove_older(self, before: float) -> None:
        """Remove old charges, except those that newer charges build on.

        :param before: time of the oldest charge to retain, seconds of the
            epoch.
        """
        [row] = self._tables.select(
            sa.select(sa.func.max(_CHARGES.c.version).label('first')).where(
                _CHARGES.c.opening.is_not(None), _CHARGES.c.begins < before
            )
        )
        if row['first'] is not None:
            self._tables.update(
                sa.delete(_CHARGES).where(_CHARGES.c.version < row['first'])
            )
