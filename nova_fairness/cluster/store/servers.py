# SPDX-License-Identifier: Apache-2.0

"""Stored servers whose UUID differs from that of their request.

A build has the UUID of its first server, so most requests have no row here.
Rows are written before their request. If a process dies in between, the rows
stay, and it finds them when it adds the request later.
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

    :param rows: tables of the database.
    """

    def __init__(self, rows: database.Tables) -> None:
        self._tables = rows

    def add(self, request: request_model.Request) -> None:
        """Add the servers of a request; existing rows stay."""
        rows = (
            {'server': server, 'request': request.uuid}
            for server in request.servers
            if server != request.uuid
        )
        while batch := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            self._tables.insert(_SERVERS, *batch)

    def requests_of_server(self, server: str) -> list[str]:
        """UUIDs of requests that may own a server; some may be removed."""
        query = sa.select(_SERVERS.c.request).where(
            _SERVERS.c.server == server
        )
        found = self._tables.select(query)
        return [server, *(row['request'] for row in found)]

    def remove(self, requests: Collection[str]) -> None:
        """Remove the servers of requests, by UUID of the request."""
        if requests:
            self._tables.update(
                sa.delete(_SERVERS).where(_SERVERS.c.request.in_(requests))
            )
