# SPDX-License-Identifier: Apache-2.0

"""What Nova says of hosts, servers and server groups."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime as dt
from typing import Any
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.cluster import clients
from nova_fairness.model import cluster
from nova_fairness.model import leaving
from nova_fairness.model import request as request_model

_PAGE = 1000
_OVERLAP_S = 60
_LEARNED_S = 30 * 86400
_LATELY_S = 10.0
_LOOKS = 2
_FEW_GROUPS = 3
_LONGEST = 255
_ASKED = {
    leaving.Action.STOP: 'os-stop',
    leaving.Action.SUSPEND: 'suspend',
    leaving.Action.SHELVE: 'shelve',
}
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


class Lately(NamedTuple):
    """Where Placement may have something else by now.

    :ivar left: names of hosts that servers left.
    :ivar projects: whose servers changed.
    """

    left: frozenset[str]
    projects: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server, as its owner's administrator sees it.

    :ivar uuid: of it.
    :ivar project: that it belongs to.
    :ivar user: who asked for it.
    :ivar status: of Nova, such as ``BUILD`` or ``ACTIVE``.
    :ivar task: what is done with it; '' for nothing.
    :ivar host: where it lies or is being built; '' for nowhere.
    :ivar amounts: what its flavor needs, by class of Placement.
    :ivar launched_at: when it began to run, seconds of the epoch; ``None``
        if it did not.
    """

    uuid: str
    project: str
    user: str
    status: str
    task: str
    host: str
    amounts: tuple[tuple[str, int], ...] = ()
    launched_at: float | None = None

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
        self._left: dict[str, float] = {}
        self._changed: dict[str, float] = {}
        self._members: dict[str, list[str]] = {}
        self._anew = _LOOKS
        self._lifetimes = cluster.Lifetimes()

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
        self._anew = max(self._anew - 1, 0)
        for each in changed:
            self._note(each, now)
        # The second list has those that were deleted long before the first.
        back_s = _OVERLAP_S if self._since else _LEARNED_S
        begun = dt.datetime.fromtimestamp(max(now - back_s, 0), dt.UTC)
        self._since = begun.strftime('%Y-%m-%dT%H:%M:%SZ')
        return dict(self._servers)

    def _note(self, found: Mapping[str, Any], now: float) -> None:
        is_gone = found['status'] in ('DELETED', 'SOFT_DELETED')
        server = None if is_gone else _server(found)
        before = self._servers.pop(found['id'], None)
        if server is None:
            self._learn(found)
        else:
            self._servers[server.uuid] = server
            if before is None:
                # Nova lists it a moment before it is a member of its group.
                self._anew = _LOOKS
        if before != server:
            self._changed[found['tenant_id']] = now
        if before and before.host != (server.host if server else ''):
            self._left[before.host] = now

    def lately(self, now: float) -> Lately:
        """Where servers were seen to change a moment ago.

        Placement learns of it a little before or after.

        :param now: seconds of the epoch.
        """
        for seen in (self._left, self._changed):
            for name, at in list(seen.items()):
                if abs(now - at) > _LATELY_S:
                    del seen[name]
        return Lately(frozenset(self._left), frozenset(self._changed))

    def lifetimes(self) -> dict[cluster.Kind, tuple[float, ...]]:
        """Seconds that the last servers of each kind lasted, sorted."""
        return self._lifetimes.by_kind()

    def _learn(self, found: Mapping[str, Any]) -> None:
        server, end = _server(found), _time(found, 'terminated_at')
        if end is None or server.launched_at is None:
            return
        kind = cluster.kind_of(server.project, server.amounts)
        self._lifetimes.learn(kind, server.uuid, end - server.launched_at)

    def server(self, uuid: str) -> Server | None:
        """One server as it is now; ``None`` if it is gone.

        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{uuid}')
        if found is None:
            self._servers.pop(uuid, None)
            return None
        with clients.reading(f'what Nova says of server {uuid}'):
            return _server(found['server'])

    def members(self, groups: Collection[str]) -> dict[str, list[str]]:
        """UUIDs of the servers of groups; of one that is gone there are none.

        They are asked for again only after a server has come.

        :raises CloudError: if they cannot be read.
        """
        if self._anew:
            self._members.clear()
        missing = sorted(set(groups) - self._members.keys())
        if len(missing) > _FEW_GROUPS:
            listed = self._all_members()
            self._members |= {each: listed.get(each, []) for each in missing}
        else:
            for group in missing:
                self._members[group] = self._members_of(group)
        return {group: self._members[group] for group in groups}

    def _members_of(self, group: str) -> list[str]:
        found = self._api.get(f'/os-server-groups/{group}')
        return list(found['server_group']['members']) if found else []

    def _all_members(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        path = f'/os-server-groups?all_projects=true&limit={_PAGE}'
        while True:
            page = self._api.get(f'{path}&offset={len(found)}')
            if page is None:
                raise exception.CloudAway(f'Nova does not know {path}')
            groups, before = page['server_groups'], len(found)
            found |= {each['id']: list(each['members']) for each in groups}
            if len(groups) < _PAGE:
                return found
            if len(found) == before:
                raise exception.CloudAway(f'{path} comes to no end')

    def flavors(self) -> dict[str, dict[str, int]]:
        """What one server of each flavor needs, by its name.

        What extra specs change is not seen.

        :raises CloudError: if they cannot be read.
        """
        with clients.reading("Nova's list of flavors"):
            listed = self._pages('/flavors/detail?is_public=none', 'flavors')
            return {each['name']: _needs(each) for each in listed}

    def delete(self, uuid: str) -> None:
        """Delete a server; nothing happens if it is gone.

        :raises CloudError: if it is not known whether it was deleted.
        """
        self._api.delete(f'/servers/{uuid}')

    def act(self, uuid: str, action: leaving.Action) -> None:
        """Ask for what lets a server leave.

        :raises CloudAway: if it is not known whether it will be done.
        :raises CloudRefused: if it will not.
        """
        if action is leaving.Action.DELETE:
            self.delete(uuid)
        else:
            self._api.post(f'/servers/{uuid}/action', {_ASKED[action]: None})

    def unshelve(self, uuid: str) -> None:
        """Let a shelved server start again; in a queue it waits before.

        :raises CloudError: if it is not known that it will be done.
        """
        self._api.post(f'/servers/{uuid}/action', {'unshelve': None})

    def offload(self, uuid: str) -> None:
        """Take a shelved server off its host.

        :raises CloudError: if it is not known that it will be done.
        """
        self._api.post(f'/servers/{uuid}/action', {'shelveOffload': None})

    def mark(self, uuid: str, metadata: Mapping[str, str]) -> None:
        """Write metadata of a server, beside what it has.

        :param metadata: values are cut to what Nova takes.
        :raises CloudError: if it is not known that it was written.
        """
        short = {key: value[:_LONGEST] for key, value in metadata.items()}
        self._api.post(f'/servers/{uuid}/metadata', {'metadata': short})

    def unmark(self, uuid: str, key: str) -> None:
        """Take metadata of a server away; there may be none.

        :raises CloudError: if it is not known that it is gone.
        """
        self._api.delete(f'/servers/{uuid}/metadata/{key}')

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
        path += f'{joined}limit={_PAGE}'
        marker = ''
        while True:
            page = self._api.get(path + marker)
            if page is None:
                raise exception.CloudAway(f'Nova does not know {path}')
            found += page[key]
            if len(page[key]) < _PAGE:
                return found
            before, marker = marker, f'&marker={page[key][-1]["id"]}'
            if marker == before:
                raise exception.CloudAway(f'{path} comes to no end')


def _needs(flavor: Mapping[str, Any]) -> dict[str, int]:
    # In a list of servers it is called otherwise.
    more_gb = flavor.get('OS-FLV-EXT-DATA:ephemeral', flavor.get('ephemeral'))
    disk_gb = flavor['disk'] + (more_gb or 0)
    swap_gb = -(-int(flavor.get('swap') or 0) // 1024)
    needs = {
        'VCPU': flavor['vcpus'],
        'MEMORY_MB': flavor['ram'],
        'DISK_GB': disk_gb + swap_gb,
    }
    if not all(
        0 <= amount <= request_model.LARGEST for amount in needs.values()
    ):
        raise ValueError(f'a flavor asks for {needs}')
    return needs


def _time(found: Mapping[str, Any], name: str) -> float | None:
    told = found.get(f'OS-SRV-USG:{name}')
    if not told:
        return None
    return dt.datetime.fromisoformat(told).replace(tzinfo=dt.UTC).timestamp()


def _server(found: Mapping[str, Any]) -> Server:
    flavor = found.get('flavor') or {}
    needs = _needs(flavor) if 'vcpus' in flavor else {}
    return Server(
        uuid=found['id'],
        project=found['tenant_id'],
        user=found['user_id'],
        status=found['status'],
        task=found.get('OS-EXT-STS:task_state') or '',
        host=found.get('OS-EXT-SRV-ATTR:host') or '',
        amounts=tuple(sorted((k, n) for k, n in needs.items() if n > 0)),
        launched_at=_time(found, 'launched_at'),
    )
