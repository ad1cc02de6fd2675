# SPDX-License-Identifier: Apache-2.0

"""Servers of requests that have another UUID than these.

A build has the UUID of its first server, so most requests have no row here.
Rows are written before their request: a process that dies in between leaves
rows of a request that is not there yet, and finds them when it adds it.
"""

from collections.abc import Collection
import itertools

import sqlalchemy as sa

from nova_fairness.cluster.store import database
from nova_fairness.cluster.store import tables
from nova_fairness.model import request as request_model

_SERVERS = tables.SERVERS
_ROWS_AT_ONCE = 500


class ServerTable:
    """The table of servers.

    :param rows: of the database.
    """

    def __init__(self, rows: database.Tables) -> None:
        self._tables = rows

    def add(self, request: request_model.Request) -> None:
        """Add the servers of a request; those that are known stay."""
        rows = (
            {'server': server, 'request': request.uuid}
            for server in request.servers
            if server != request.uuid
        )
        while batch := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            self._tables.insert(_SERVERS, *batch)

    def requests(self, server: str) -> list[str]:
        """UUIDs of all requests that a server may have; some may be gone."""
        query = sa.select(_SERVERS.c.request).where(
            _SERVERS.c.server == server
        )
        found = self._tables.select(query)
        return [server, *(row['request'] for row in found)]

    def remove(self, requests: Collection[str]) -> None:
        """Forget the servers of requests, by UUID."""
        if requests:
            self._tables.update(
                sa.delete(_SERVERS).where(_SERVERS.c.request.in_(requests))
            )
