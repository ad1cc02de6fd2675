# SPDX-License-Identifier: Apache-2.0

"""Base of tables that have one row for each owner and are written by the
leader.
"""

from collections.abc import Callable
from collections.abc import Mapping
import hashlib

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import tables


class OwnerTable:
    """A table with the columns ``key``, name of the owner, and content.

    :param rows: tables of the database.
    :param table: table with these columns.
    :param check_leads: raises ``Deposed`` unless an epoch is the newest.
    """

    def __init__(
        self,
        rows: database.Tables,
        table: sa.Table,
        check_leads: Callable[[int], None],
    ) -> None:
        self._tables = rows
        self._table = table
        self._check_leads = check_leads
        self._key, self._name, self._content = table.c

    def read(self) -> dict[str, str]:
        """Return the contents by name of the owner."""
        query = sa.select(self._name, self._content).order_by(self._key)
        return dict(self._tables.select_tuples(query)[1])

    def write(
        self,
        before: Mapping[str, str],
        after: Mapping[str, str],
        epoch: int,
    ) -> None:
        """Write the rows that changed, each as a whole.

        :param before: contents by owner, as they were read.
        :param after: new contents by owner.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if another process added one of the rows.
        """
        leads = tables.newest_epoch() == epoch
        changed = [
            {'its_key': _owner_digest(owner), 'its_content': content}
            for owner, content in after.items()
            if owner in before and before[owner] != content
        ]
        if changed:
            self._tables.update_each(
                sa.update(self._table)
                .where(self._key == sa.bindparam('its_key'), leads)
                .values({self._content.name: sa.bindparam('its_content')}),
                changed,
            )
        for owner in sorted(after.keys() - before.keys()):
            row = {
                'key': _owner_digest(owner),
                self._name.name: owner,
                self._content.name: after[owner],
            }
            if not self._tables.insert_if(self._table, row, leads):
                self._check_leads(epoch)
                raise exception.Outdated(
                    f'table {self._table.name}: no row of {owner} is added:'
                    ' another process added one first'
                )
        for owner in sorted(before.keys() - after.keys()):
            gone = sa.delete(self._table)
            self._tables.update(
                gone.where(self._key == _owner_digest(owner), leads)
            )
        self._check_leads(epoch)


def _owner_digest(owner: str) -> str:
    """Return the key of an owner: a digest of the name."""
    return hashlib.sha256(owner.encode()).hexdigest()
