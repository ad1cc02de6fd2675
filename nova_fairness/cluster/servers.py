# SPDX-License-Identifier: Apache-2.0

"""What Nova says of hosts, servers and server groups."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
from typing import Any

from nova_fairness import exception
from nova_fairness.cluster import clients

_PAGE = 1000
_OVERLAP_S = 60
_SHELVED = ('SHELVED', 'SHELVED_OFFLOADED')


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A hypervisor.

    :ivar uuid: of it, and of its root provider.
    :ivar name: of its service; of itself where a service has several.
    :ivar zone: availability zone.
    :ivar takes: ``False`` if it is down or disabled.
    """

    uuid: str
    name: str
    zone: str
    takes: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server, as its owner's administrator sees it.

    :ivar uuid: of it.
    :ivar project: that it belongs to.
    :ivar user: who asked for it.
    :ivar status: of Nova, such as ``BUILD`` or ``ACTIVE``.
    :ivar task: what is done with it; '' for nothing.
    :ivar host: where it lies or is being built; '' for nowhere.
    """

    uuid: str
    project: str
    user: str
    status: str
    task: str
    host: str

    @property
    def is_settled(self) -> bool:
        """Whether Nova knows where it lies, or gave up."""
        rests = self.status in _SHELVED and not self.task
        # One that was not offloaded has its host, whatever became of it.
        lies = bool(self.host) and self.status != 'SHELVED'
        return lies or rests or self.status == 'ERROR'


class Nova:
    """Nova as it is; servers that did not change are not read again.

    :param api: of Nova.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api
        self._servers: dict[str, Server] = {}
        self._since = ''

    def hosts(self) -> list[Host]:
        """All hypervisors.

        :raises CloudError: if they cannot be read.
        """
        zones = {
            each['host']: each.get('zone') or ''
            for each in self._all('/os-services?binary=nova-compute')
        }
        listed = self._pages('/os-hypervisors/detail', 'hypervisors')
        services = [each['service']['host'] for each in listed]
        return [
            Host(
                uuid=each['id'],
                name=(
                    service
                    if services.count(service) == 1
                    else each['hypervisor_hostname']
                ),
                zone=zones.get(service, ''),
                takes=each['state'] == 'up' and each['status'] == 'enabled',
            )
            for each, service in zip(listed, services, strict=True)
        ]

    def servers(self, now: float) -> Mapping[str, Server]:
        """All servers that are not deleted, by UUID.

        :param now: seconds of the epoch; clocks may differ by a minute.
        :raises CloudError: if they cannot be read.
        """
        path = '/servers/detail?all_tenants=1'
        if self._since:
            path += f'&changes-since={self._since}'
        changed = self._pages(path, 'servers')
        listed = {each['id'] for each in changed}
        # What no cell has yet is in every list, and deleted without a trace.
        self._servers = {
            uuid: each
            for uuid, each in self._servers.items()
            if uuid in listed or each.host or each.status != 'BUILD'
        }
        for each in changed:
            if each['status'] in ('DELETED', 'SOFT_DELETED'):
                self._servers.pop(each['id'], None)
            else:
                self._servers[each['id']] = _server(each)
        begun = dt.datetime.fromtimestamp(now - _OVERLAP_S, dt.UTC)
        self._since = begun.strftime('%Y-%m-%dT%H:%M:%SZ')
        return dict(self._servers)

    def server(self, uuid: str) -> Server | None:
        """One server as it is now; ``None`` if it is gone.

        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{uuid}')
        if found is None:
            self._servers.pop(uuid, None)
            return None
        return _server(found['server'])

    def members(self, group: str) -> list[str]:
        """UUIDs of the servers of a group; none if it is gone.

        :raises CloudError: if they cannot be read.
        """
        found = self._api.get(f'/os-server-groups/{group}')
        return list(found['server_group']['members']) if found else []

    def flavors(self) -> dict[str, dict[str, int]]:
        """What one server of each flavor needs, by its name.

        What extra specs change is not seen.

        :raises CloudError: if they cannot be read.
        """
        listed = self._pages('/flavors/detail?is_public=none', 'flavors')
        return {each['name']: _needs(each) for each in listed}

    def delete(self, uuid: str) -> None:
        """Delete a server; nothing happens if it is gone.

        :raises CloudError: if it is not known whether it was deleted.
        """
        self._api.delete(f'/servers/{uuid}')

    def _all(self, path: str) -> Iterable[Mapping[str, Any]]:
        found = self._api.get(path)
        if found is None:
            raise exception.CloudAway(f'Nova does not know {path}')
        services: Iterable[Mapping[str, Any]] = found['services']
        return services

    def _pages(self, path: str, key: str) -> list[Mapping[str, Any]]:
        """All pages of a list."""
        found: list[Mapping[str, Any]] = []
        joined = '&' if '?' in path else '?'
        marker = ''
        while True:
            page = self._api.get(f'{path}{joined}limit={_PAGE}{marker}')
            if page is None:
                raise exception.CloudAway(f'Nova does not know {path}')
            found += page[key]
            if len(page[key]) < _PAGE:
                return found
            marker = f'&marker={page[key][-1]["id"]}'


def _needs(flavor: Mapping[str, Any]) -> dict[str, int]:
    disk_gb = flavor['disk'] + flavor.get('OS-FLV-EXT-DATA:ephemeral', 0)
    swap_gb = -(-int(flavor.get('swap') or 0) // 1024)
    return {
        'VCPU': flavor['vcpus'],
        'MEMORY_MB': flavor['ram'],
        'DISK_GB': disk_gb + swap_gb,
    }


def _server(found: Mapping[str, Any]) -> Server:
    return Server(
        uuid=found['id'],
        project=found['tenant_id'],
        user=found['user_id'],
        status=found['status'],
        task=found.get('OS-EXT-STS:task_state') or '',
        host=found.get('OS-EXT-SRV-ATTR:host') or '',
    )
