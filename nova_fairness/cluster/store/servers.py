# SPDX-License-Identifier: Apache-2.0

"""Stored servers whose UUID differs from the UUID of their request.

A build has the UUID of its first server, so most requests have no row here.
Rows are written before their request. If a process dies between both writes,
the rows stay, and are used when the request is added later.
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
    """Table of servers and their requests.

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
        """Return the UUIDs of requests that may have a server; some may no
        longer exist.
        """
        query = sa.select(_SERVERS.c.request).where(
            _SERVERS.c.server == server
        )
        found = self._tables.select(query)
        return [server, *(row['request'] for row in found)]

    def remove(self, requests: Collection[str]) -> None:
        """Remove the rows of some requests.

        :param requests: UUIDs of the requests.
        """
        if requests:
            self._tables.update(
                sa.delete(_SERVERS).where(_SERVERS.c.request.in_(requests))
            )
