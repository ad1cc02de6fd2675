# SPDX-License-Identifier: Apache-2.0

"""Stored use and shares of groups with pledges for batch system and cloud."""

from collections.abc import Callable
import dataclasses
import json

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.planners.border import pledges

_PLEDGES = tables.PLEDGES

Replace = Callable[..., None]
"""Changes the one row of a table as a whole, if its version is as given."""


class PledgeTable:
    """The table of pledges.

    :param rows: tables of the database.
    :param replace: takes table, version, epoch of the leader, and columns by
        name.
    """

    def __init__(self, rows: database.Tables, replace: Replace) -> None:
        self._tables = rows
        self._replace = replace

    def read(self) -> pledges.BatchMemory:
        """Read everything that is remembered."""
        row = self._tables.single_row(_PLEDGES)
        kept = json.loads(row['kept'])
        return pledges.BatchMemory(
            kept['at'],
            kept['use'],
            kept['found'],
            {name: tuple(each) for name, each in kept['given'].items()},
            row['version'],
        )

    def write(self, memory: pledges.BatchMemory, epoch: int) -> None:
        """Remember new values.

        :param memory: new values, with the version that they were computed from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the values changed meanwhile.
        """
        written = dataclasses.asdict(memory)
        version = written.pop('version')
        self._replace(
            _PLEDGES, version, epoch, kept=records.compact_json(written)
        )
