# SPDX-License-Identifier: Apache-2.0

"""Stored states of hosts between batch system and cloud.

Each host has one row. Every step names the version that it was decided on and
the epoch of the leader, like steps of requests.
"""

from collections.abc import Mapping
import dataclasses
import json
from typing import Any
from typing import NoReturn

import sqlalchemy as sa

from nova_fairness import exception
from nova_fairness.cluster.store import led
from nova_fairness.cluster.store import records
from nova_fairness.cluster.store import tables
from nova_fairness.model import border

_NODES, _BORDER = tables.NODES, tables.BORDER


@dataclasses.dataclass(frozen=True, slots=True)
class HostTarget:
    """Number of hosts that an operator wants the cloud to have.

    :ivar hosts: number of hosts; ``None`` if calendar and demand decide.
    :ivar version: number of writes.
    """

    hosts: int | None = None
    version: int = 0


class BorderHostTable(led.LeaderTable[[border.BorderHost]]):
    """Table of hosts between batch system and cloud."""

    def read_hosts(
        self,
    ) -> tuple[dict[str, border.BorderHost], dict[str, str]]:
        """Return hosts by name, and errors of rows that cannot be read."""
        query = sa.select(_NODES).order_by(_NODES.c.host)
        found, wrong = {}, {}
        for row in self._tables.select(query):
            try:
                found[row['host']] = _host_of_row(row)
            except exception.UNREADABLE as error:
                wrong[row['host']] = (
                    f'its row cannot be read ({error}): the host is not '
                    'changed; delete the row, then its state is read again'
                )
        return found, wrong

    def read_host(self, host: str) -> border.BorderHost | None:
        """Return a host; ``None`` if it has no readable row.

        :param host: name of the host.
        """
        query = sa.select(_NODES).where(_NODES.c.host == host)
        try:
            rows = self._tables.select(query)
            return _host_of_row(rows[0]) if rows else None
        except exception.UNREADABLE:
            return None

    def hosts_leaving_cloud(self) -> frozenset[str]:
        """Return the names in Nova of hosts that are leaving the cloud."""
        state = border.HostState.LEAVING_CLOUD.value
        query = sa.select(_NODES.c.cloud).where(_NODES.c.state == state)
        return frozenset(row['cloud'] for row in self._tables.select(query))

    def add(self, host: border.SharedHost, epoch: int, now: float) -> None:
        """Add a host; whether batch system or cloud uses it is still unknown.

        :raises Deposed: if that leader no longer leads.
        """
        row = _row_of_host(border.BorderHost(host, since=now))
        if not self._tables.insert_if(
            _NODES, row, tables.newest_epoch() == epoch
        ):
            self._check_leads(epoch)

    def update_description(
        self,
        node: border.BorderHost,
        host: border.SharedHost,
        epoch: int,
    ) -> border.BorderHost:
        """Change names or cores of a host; its state stays.

        :raises Outdated: if another process changed the host.
        :raises Deposed: if that leader no longer leads.
        """
        changed = dataclasses.replace(
            node, host=host, version=node.version + 1
        )
        self._write(node, changed, epoch)
        return changed

    def step(
        self,
        node: border.BorderHost,
        event: border.HostEvent,
        epoch: int,
        now: float,
        cause: border.HostCause,
        text: str = '',
        until: float | None = None,
    ) -> border.BorderHost:
        """Change a host to its next state.

        :param node: host as it was when the step was decided.
        :param epoch: epoch of the leader that decided the step.
        :param now: seconds of the epoch of time.
        :param until: new time to live of the host, seconds of the epoch of
            time.
        :raises IllegalStep: if its state has no step for the event.
        :raises Outdated: if another process changed the host.
        :raises Deposed: if that leader no longer leads.
        """
        changed = node.stepped(event, now, cause, text, until)
        self._write(node, changed, epoch)
        self._notify_listeners(changed)
        return changed

    def check_unchanged(
        self, host: str, version: int, epoch: int
    ) -> border.BorderHost:
        """Check that a host has not changed since a decision, and return it.

        :param version: version that the decision used.
        :raises Outdated: if the host changed, or no longer exists.
        :raises Deposed: if that leader no longer leads.
        """
        self._check_leads(epoch)
        node = self.read_host(host)
        if node is None or node.version != version:
            self._raise_outdated(host, epoch)
        return node

    def remove(self, node: border.BorderHost, epoch: int) -> None:
        """Remove a host, unless another process changed it.

        :raises Deposed: if that leader no longer leads.
        """
        statement = sa.delete(_NODES).where(
            _NODES.c.host == node.host.name,
            _NODES.c.version == node.version,
            tables.newest_epoch() == epoch,
        )
        if not self._tables.update(statement):
            self._check_leads(epoch)

    def read_target(self) -> HostTarget:
        """Return the number of hosts that an operator wants the cloud to
        have.
        """
        row = self._tables.single_row(_BORDER)
        return HostTarget(row['hosts'], row['version'])

    def write_target(self, target: HostTarget, epoch: int) -> None:
        """Write the number of hosts that an operator wants the cloud to have.

        :param target: new target, with the version that the decision used.
        :raises Outdated: if another process changed the target.
        :raises Deposed: if that leader no longer leads.
        """
        changed = self._tables.update(
            sa.update(_BORDER)
            .where(
                _BORDER.c.version == target.version,
                tables.newest_epoch() == epoch,
            )
            .values(hosts=target.hosts, version=target.version + 1)
        )
        if not changed:
            self._check_leads(epoch)
            raise exception.Outdated(
                'the number of hosts of the cloud was not changed: another'
                ' process changed it first; try again'
            )

    def _write(
        self,
        before: border.BorderHost,
        after: border.BorderHost,
        epoch: int,
    ) -> None:
        """Write a changed host if its row is unchanged since the decision."""
        changed = self._tables.update(
            sa.update(_NODES)
            .where(
                _NODES.c.host == before.host.name,
                _NODES.c.version == before.version,
                _NODES.c.state == before.state.value,
                tables.newest_epoch() == epoch,
            )
            .values(**_row_of_host(after))
        )
        if not changed:
            self._raise_outdated(before.host.name, epoch)

    def _raise_outdated(self, host: str, epoch: int) -> NoReturn:
        """Raise the error for a change that matched no row."""
        self._check_leads(epoch)
        found = self.read_host(host)
        present = found.state.value if found else 'unknown'
        raise exception.Outdated(
            f'host {host} has changed to {present} since the decision; the'
            ' next cycle decides again'
        )


def _row_of_host(node: border.BorderHost) -> dict[str, Any]:
    """Return the columns of a host."""
    host = node.host
    return {
        'host': host.name,
        'batch': host.batch,
        'cloud': host.cloud,
        'cores': host.cores,
        'state': node.state.value,
        'since': node.since,
        'until': node.until,
        'version': node.version,
        'history': records.compact_json(
            [
                [
                    each.at,
                    each.event.value,
                    each.state.value,
                    each.cause.value,
                    each.text,
                ]
                for each in node.history
            ]
        ),
    }


def _host_of_row(row: Mapping[str, Any]) -> border.BorderHost:
    """Return the host of a row. It counts as fixed, unless the caller replaces
    its description.
    """
    return border.BorderHost(
        border.SharedHost(
            row['host'], row['batch'], row['cloud'], row['cores'], True
        ),
        border.HostState(row['state']),
        row['since'],
        row['until'],
        tuple(
            border.HostStep(
                at,
                border.HostEvent(event),
                border.HostState(state),
                border.HostCause(cause),
                text,
            )
            for at, event, state, cause, text in json.loads(row['history'])
        ),
        row['version'],
    )
