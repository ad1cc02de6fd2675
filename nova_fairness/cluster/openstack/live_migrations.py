# SPDX-License-Identifier: Apache-2.0

"""Live migrations of Nova, and the server groups and zones that restrict
them.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime as dt
from typing import Any

from nova_fairness.cluster.messages import fields
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import paging
from nova_fairness.cluster.openstack import server_groups
from nova_fairness.model import request as request_model

_LATELY_S = 6 * 3600
"""Seconds; Nova updates the progress of running migrations, so they are listed
as changed within this time.
"""

_ENDED = frozenset(
    {'completed', 'done', 'error', 'failed', 'cancelled', 'finished'}
)
_WELL = frozenset({'completed', 'done', 'finished'})
_PINNED = 'pinned_availability_zone'
_MB = 2**20


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    """A live migration.

    :ivar number: number of the migration; later migrations of a server have
        larger numbers.
    :ivar server: UUID of the server.
    :ivar status: status of Nova.
    :ivar source: name of the host that the server leaves.
    :ivar target: name of its new host; '' until Nova chooses one.
    """

    number: int
    server: str
    status: str
    source: str
    target: str

    @property
    def is_running(self) -> bool:
        """Return whether the migration has not ended."""
        return self.status not in _ENDED

    @property
    def is_done(self) -> bool:
        """Return whether the server arrived on its new host."""
        return self.status in _WELL

    @property
    def is_cancelled(self) -> bool:
        """Return whether the migration was cancelled."""
        return self.status == 'cancelled'


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a live migration.

    :ivar number: number of the migration.
    :ivar sent_mb: memory that was sent, MB; pages that change during the
        migration are sent again.
    """

    number: int
    sent_mb: int


class LiveMigrations:
    """Client for live migrations, server groups and pinned zones.

    :param api: API of Nova.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api

    def migrations_of_server(self, server: str) -> list[Migration]:
        """Return the live migrations of a server, the newest first.

        :raises CloudError: if they cannot be read.
        """
        path = f'/os-migrations?instance_uuid={server}'
        found = self._list_migrations(path)
        return sorted(found, key=lambda each: -each.number)

    def running_migrations(self, now: float) -> list[Migration]:
        """Return all live migrations that have not ended, of all users.

        :param now: seconds of the epoch.
        :raises CloudError: if they cannot be read.
        """
        since = dt.datetime.fromtimestamp(max(now - _LATELY_S, 0), dt.UTC)
        path = f'/os-migrations?changes-since={since:%Y-%m-%dT%H:%M:%SZ}'
        return [
            each for each in self._list_migrations(path) if each.is_running
        ]

    def progress(self, server: str) -> Progress | None:
        """Return the progress of a server's live migration; ``None`` without a
        migration.

        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{server}/migrations')
        with clients.parsing(f'live migrations of server {server}'):
            for each in (found or {}).get('migrations', ()):
                sent = (each.get('memory_processed_bytes') or 0) / _MB
                return Progress(int(each['id']), int(sent))
        return None

    def pinned_zone(self, server: str) -> str | None:
        """Return the zone that a server is pinned to; see
        :func:`parse_pinned_zone`.

        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{server}')
        with clients.parsing(f'what Nova says of server {server}'):
            return parse_pinned_zone((found or {}).get('server', {}))

    def pinned_zones(self) -> dict[str, str | None]:
        """Return the zones that servers are pinned to, by UUID of the server.

        :raises CloudError: if they cannot be read.
        """
        with clients.parsing("Nova's list of servers"):
            path = '/servers/detail?all_tenants=1'
            listed = paging.list_all_pages(self._api, path, 'servers')
            return {each['id']: parse_pinned_zone(each) for each in listed}

    def strict_group_by_member(self) -> dict[str, request_model.Group]:
        """Return the server groups with a strict rule, by UUID of each member.

        :raises CloudError: if they cannot be read.
        """
        with clients.parsing("Nova's list of server groups"):
            return {
                member: group
                for each in server_groups.list_groups(self._api)
                for group in _parse_strict_group(each)
                for member in each['members']
            }

    def _list_migrations(self, path: str) -> list[Migration]:
        """Return the live migrations of a list of Nova."""
        path += '&migration_type=live-migration'
        with clients.parsing("Nova's list of migrations"):
            found = paging.list_all_pages(
                self._api, path, 'migrations', paging.query_after_uuid
            )
            return list(_parse_migrations(found))


def parse_pinned_zone(server: Mapping[str, Any]) -> str | None:
    """Return the zone that a server must stay in; '' for any zone.

    :param server: description of the server by Nova.
    :returns: ``None`` if Nova does not show the zone.
    """
    return (server[_PINNED] or '') if _PINNED in server else None


def _parse_migrations(
    listed: Iterable[Mapping[str, Any]],
) -> Iterator[Migration]:
    """Yield the live migrations of a list of Nova."""
    for each in listed:
        # Releases of Nova support different filters.
        if each.get('migration_type', 'live-migration') == 'live-migration':
            yield Migration(
                int(each['id']),
                each['instance_uuid'],
                each['status'],
                each.get('source_compute') or '',
                each.get('dest_compute') or '',
            )


def _parse_strict_group(group: Mapping[str, Any]) -> list[request_model.Group]:
    """Return a server group in a list; an empty list if its rule is not
    strict.
    """
    rules = {rule.value: rule for rule in request_model.Rule}
    rule = rules.get(group.get('policy') or '')
    if rule is None:
        return []
    # Nova accepts any number; planners compute with amounts of Placement.
    rules_of = group.get('rules') or {}
    most = fields.parse_decimal(rules_of.get('max_server_per_host')) or 1
    return [
        request_model.Group(
            group['id'], rule, min(most, request_model.LARGEST)
        )
    ]
