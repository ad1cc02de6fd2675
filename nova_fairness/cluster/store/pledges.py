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
"""Changes the single row of a table if its version is the given version."""


class PledgeTable:
    """Table of use and shares of groups with pledges.

    :param rows: tables of the database.
    :param replace: changes a single row; its arguments are table, version,
        epoch of the leader, and columns by name.
    """

    def __init__(self, rows: database.Tables, replace: Replace) -> None:
        self._tables = rows
        self._replace = replace

    def read(self) -> pledges.BatchMemory:
        """Return the stored use and shares."""
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
        """Write new use and shares.

        :param memory: new values, with the version that they were computed
            from.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises Outdated: if the stored values have another version.
        """
        written = dataclasses.asdict(memory)
        version = written.pop('version')
        self._replace(
            _PLEDGES, version, epoch, kept=records.compact_json(written)
        )
