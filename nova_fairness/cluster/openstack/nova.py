# SPDX-License-Identifier: Apache-2.0

"""Hypervisors, servers and server groups of Nova."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import datetime as dt
from typing import Any
from typing import NamedTuple
from typing import TypeVar

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.messages import fields
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import flavor_access
from nova_fairness.cluster.openstack import live_migrations
from nova_fairness.cluster.openstack import paging
from nova_fairness.cluster.openstack import server_groups
from nova_fairness.model import border
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import lifetimes
from nova_fairness.model import moments
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

DONE = 'fairness:done'
"""Metadata of a server by which its owner or guest allows an immediate
eviction.
"""

GROUP = 'fairness:group'
"""Metadata of a server that names its group with a spending rate."""

BUT_BUILDS = (
    '&status=ACTIVE&status=SHUTOFF&status=VERIFY_RESIZE&status=PAUSED'
    '&status=SUSPENDED&status=RESCUE&status=ERROR&status=DELETED'
    '&status=SOFT_DELETED&status=SHELVED&status=SHELVED_OFFLOADED'
)
"""Query for all servers except those in the states of builds: each status
stands for a state of Nova and all tasks in it
(``task_and_vm_state_from_status`` in Nova).
"""

TTL = 'TTL'
"""Metadata key with the end of life of the server's host, for its guest;
seconds of the epoch, as in machine/job features.
"""

TTL_OURS = 'fairness:ttl'
"""Copy of ``TTL`` as this product wrote it: if they differ, the owner changed
it.
"""

MOVES = frozenset({'ACTIVE', 'PAUSED'})
"""Statuses of servers that Nova can live-migrate."""

FULL_EVERY_S = 180.0
"""Interval of full lists of servers: a list of changes lacks changes from a
cell that was down, or from a replica that lagged.
"""

UNKNOWN = 'UNKNOWN'
"""Status of a server whose cell does not answer; its last host counts."""

_LOOKED_AT_ONCE = 20
"""Largest number of servers missing from a full list that one call reads."""

_MOST_SILENT = 3
"""Number of servers without an answer after which a call reads no further
server.
"""

_GONE_KEPT = 50_000
_About = TypeVar('_About', str, None)
_MARKERS = 5
_MOST_SINGLE = 3
"""Up to so many servers are read one by one; more are read by a list."""

_FEW_BUILDS = 50
_OVERLAP_S = 60
_LEARNED_S = 30 * 86400
_LATELY_S = 10.0
_LONGEST = 255
_SERVER_ACTIONS = {
    eviction.EvictionAction.STOP: 'os-stop',
    eviction.EvictionAction.SUSPEND: 'suspend',
    eviction.EvictionAction.SHELVE: 'shelve',
}
STARTS = {'SHUTOFF': 'os-start', 'SUSPENDED': 'resume'}
"""Actions that start a server again on its host, by its status."""

_SHELVED = ('SHELVED', 'SHELVED_OFFLOADED')


@dataclasses.dataclass(frozen=True, slots=True)
class NovaHypervisor:
    """A hypervisor.

    :ivar uuid: UUID of the hypervisor, and of its root provider.
    :ivar name: name of the host of its service; its own name if the service
        has several hypervisors.
    :ivar zone: availability zone.
    :ivar takes: whether it accepts servers; ``False`` if it is down or
        disabled.
    """

    uuid: str
    name: str
    zone: str
    takes: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ComputeService:
    """A nova-compute service.

    :ivar uuid: UUID of the service.
    :ivar host: name of its host.
    :ivar enabled: whether servers may start there.
    :ivar up: whether it answers.
    :ivar reason: why it was disabled; '' if it was not.
    """

    uuid: str
    host: str
    enabled: bool
    up: bool
    reason: str = ''

    @property
    def is_disabled_by_product(self) -> bool:
        """Return whether this product disabled the service; the stored reason
        shows that.
        """
        return not self.enabled and self.reason.startswith(border.MARK)


class RecentChanges(NamedTuple):
    """Recent changes after which data read from Placement may be out of date.

    :ivar left: names of hosts that servers left.
    :ivar users: pairs of project and user whose servers changed.
    """

    left: frozenset[str]
    users: frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server, with the fields that administrators can read.

    :ivar uuid: UUID of the server.
    :ivar project: project that owns it.
    :ivar user: user who created it.
    :ivar status: status of Nova, such as ``BUILD`` or ``ACTIVE``.
    :ivar task: task of Nova on the server; '' without a task.
    :ivar host: name of its host, also during the build; '' without a host.
    :ivar amounts: amounts of its flavor, by resource class.
    :ivar launched_at: when it began to run, seconds of the epoch; ``None`` if
        it never ran.
    :ivar says_done: whether its metadata allow an immediate eviction.
    :ivar pays: name of the group with a spending rate in its metadata; ''
        without a group.
    :ivar is_locked: whether its owner or an operator locked it.
    :ivar specs: extra specs of its flavor, sorted by name.
    :ivar ttl: time to live in its metadata; '' without one.
    :ivar ttl_ours: time to live that this product wrote; '' without one.
    :ivar pinned: zone that it must stay in; '' for any zone, ``None`` if Nova
        does not show it.
    :ivar has_volumes: whether volumes are attached to it.
    :ivar name: name that its owner chose; only for display, never a key.
    """

    uuid: str
    project: str
    user: str
    status: str
    task: str
    host: str
    amounts: tuple[tuple[str, int], ...] = ()
    launched_at: float | None = None
    says_done: bool = False
    pays: str = ''
    is_locked: bool = False
    specs: tuple[tuple[str, str], ...] = ()
    ttl: str = ''
    ttl_ours: str = ''
    pinned: str | None = None
    has_volumes: bool = False
    name: str = ''

    @property
    def log_name(self) -> str:
        """Return name and UUID of the server, for logs."""
        return f'{self.name} ({self.uuid})' if self.name else self.uuid

    @property
    def is_settled(self) -> bool:
        """Return whether Nova has placed the server, offloaded it, or set it
        to ``ERROR``.
        """
        rests = self.status in _SHELVED and not self.task
        # A shelved server keeps its host until it is offloaded.
        lies = bool(self.host) and self.status != 'SHELVED'
        return lies or rests or self.status == 'ERROR'


class _FullListing:
    """Progress of reading a full list of servers, page by page.

    :param before: UUIDs of servers that were cached when the reading began.
    :ivar seen: UUIDs of servers that were read.
    :ivar markers: UUIDs of the last servers read; the next page begins after
        the last one that still exists.
    :ivar ends: direction and page size.
    """

    def __init__(self, before: frozenset[str]) -> None:
        self.before = before
        self.seen: set[str] = set()
        self.markers: list[str] = ['']
        self.ends = paging.ListPosition()

    def is_over_after_failure(self) -> bool:
        """Change page size or direction after a failed page; return whether no
        page remains.
        """
        is_back = self.ends.narrow_after_failure()
        if is_back:
            self.markers = ['']
        return is_back is None


class Nova:
    """Client of Nova for servers, hosts and server groups, with a cache of
    servers.

    Lists may be partial: a cell is down, a replica lags, or a change is listed
    late. So all servers are listed again every :data:`FULL_EVERY_S`, one page
    in each call, and servers missing from that list are read one by one.

    :param api: API of Nova.
    :ivar unreadable: errors of servers in the last read, by UUID.
    :ivar hosts_unreadable: errors of hosts in the last read, by UUID or name.
    """

    def __init__(self, api: clients.Api) -> None:
        self._api = api
        self.unreadable: dict[str, Exception] = {}
        self.hosts_unreadable: dict[str, Exception] = {}
        self._servers: dict[str, Server] = {}
        self._since = {True: '', False: ''}
        self._gone: dict[str, None] = {}
        self._departed: dict[str, str] = {}
        self._missing: dict[str, None] = {}
        self._sweep: _FullListing | None = None
        self._swept_at: float | None = None
        self._left: dict[str, float] = {}
        self._changed: dict[tuple[str, str], float] = {}
        self._groups = server_groups.ServerGroups(api)
        self._flavor_access = flavor_access.FlavorAccess(api)
        self._lifetimes = lifetimes.Lifetimes()

    def hosts(self) -> list[NovaHypervisor]:
        """Return all hypervisors.

        :raises CloudError: if they cannot be read.
        """
        self.hosts_unreadable = {}
        zones: dict[str, str] = {}
        for each in self._list_services('/os-services?binary=nova-compute'):
            with _ErrorCollector(self.hosts_unreadable, each, 'host'):
                zones[_text_field(each, 'host')] = _text_field(
                    each, 'zone', ''
                )
        listed = paging.list_all_pages(
            self._api, '/os-hypervisors/detail', 'hypervisors'
        )
        services = [_service_host(each) for each in listed]
        count = collections.Counter(services)
        found = []
        for each, service in zip(listed, services, strict=True):
            with _ErrorCollector(self.hosts_unreadable, each, 'id'):
                host = _parse_hypervisor(each, count[service] > 1, zones)
                # The zone is unknown if the service cannot be read.
                takes = host.takes and service not in self.hosts_unreadable
                found.append(dataclasses.replace(host, takes=takes))
        return _without_duplicates(found, self.hosts_unreadable)

    def services(self) -> dict[str, ComputeService]:
        """Return all nova-compute services, by name of the host.

        :raises CloudError: if they cannot be read.
        """
        with clients.parsing("Nova's list of services"):
            listed = self._list_services('/os-services?binary=nova-compute')
            found = {}
            for each in listed:
                with _ErrorCollector({}, each, 'host'):
                    found[_text_field(each, 'host')] = _parse_service(each)
            return found

    def disable(self, service: ComputeService, reason: str) -> None:
        """Disable a host: running servers stay, and no new server starts
        there.

        :param reason: reason that Nova shows; cut to the length that Nova
            accepts.
        :raises CloudError: if it is unknown whether the host was disabled.
        """
        body = {'status': 'disabled', 'disabled_reason': reason[:_LONGEST]}
        self._api.put(f'/os-services/{service.uuid}', body)

    def enable(self, service: ComputeService) -> None:
        """Enable a host: servers may start there again.

        :raises CloudError: if it is unknown whether the host was enabled.
        """
        self._api.put(f'/os-services/{service.uuid}', {'status': 'enabled'})

    def live_migrate(self, uuid: str, target: str | None = None) -> None:
        """Ask Nova to live-migrate a server.

        :param target: name of the new host; ``None`` lets Nova choose.
        :raises CloudAway: if it is unknown whether Nova accepted the call.
        :raises CloudRefused: if Nova refused the call.
        """
        body = {'os-migrateLive': {'host': target, 'block_migration': 'auto'}}
        self._api.post(f'/servers/{uuid}/action', body)

    def servers(
        self, now: float, building: Collection[str] | None = None
    ) -> Mapping[str, Server]:
        """Return all servers that are not deleted, by UUID.

        :param now: seconds of the epoch; clocks may differ by a minute.
        :param building: UUIDs of servers that are being built. Other servers
            with the status of a build are then not read again, because a queue
            has many and each list would contain them all. ``None``: all
            servers are read. A server that is not read stays as it was.
        :raises CloudError: if the servers cannot be read.
        """
        is_whole = (
            building is None
            or len(building) > _FEW_BUILDS
            or not self._since[True]
        )
        path = '/servers/detail?all_tenants=1'
        if not is_whole:
            path += BUT_BUILDS
        if self._since[is_whole]:
            path += f'&changes-since={self._since[is_whole]}'
        try:
            changed = paging.list_all_pages(self._api, path, 'servers')
        except exception.CloudFailed as failure:
            changed = paging.list_around_failures(
                self._api, path, 'servers', failure
            )
        else:
            if is_whole:
                self._uncache_unlisted_builds(
                    {_entry_uuid(each) for each in changed}
                )
        self._groups.note_server_list()
        self.unreadable = {}
        self._cache_entries(changed, now)
        if not is_whole:
            self._read_builds(building or (), now)
        # The second list has servers that were deleted long before the first.
        back_s = _OVERLAP_S if self._since[is_whole] else _LEARNED_S
        # Lists without builds lack changes of builds since the last whole
        # list.
        for of_whole in {is_whole, False}:
            self._since[of_whole] = moments.stamp(max(now - back_s, 0))
        self._read_full_list_page(now)
        self._read_missing_servers(now)
        return dict(self._servers)

    def _cache_placeholders(self, uuids: Iterable[str]) -> None:
        """Cache a server without fields for each unreadable server that is not
        in the cache.

        Otherwise a server that exists would count as deleted.
        """
        for uuid in uuids:
            self._servers.setdefault(
                uuid, Server(uuid, '', '', status='BUILD', task='', host='')
            )

    def _read_full_list_page(self, now: float) -> None:
        """Read the next page of the full list of servers, if such a list is
        due.

        One page in each call: the whole list of a large cloud takes a minute.
        """
        if self._swept_at is None:
            # The first list is a full one.
            self._swept_at = now
        if self._sweep is None:
            if 0 <= now - self._swept_at < FULL_EVERY_S:
                return
            self._sweep = _FullListing(frozenset(self._servers))
            self._swept_at = now
        try:
            page = self._next_full_list_page(self._sweep)
        except exception.CloudFailed:
            if not self._sweep.is_over_after_failure():
                return
            page = []
        if page is None:
            # All servers that it could continue from are deleted: begin again.
            self._sweep, self._swept_at = None, now - FULL_EVERY_S
            return
        self._cache_entries(page, now)
        self._sweep.seen.update(_entry_uuid(each) for each in page)
        self._sweep.markers = [_entry_uuid(each) for each in page[-_MARKERS:]]
        if len(page) < self._sweep.ends.limit:
            lacked = sorted(self._sweep.before - self._sweep.seen)
            self._missing |= dict.fromkeys(
                uuid for uuid in lacked if uuid in self._servers
            )
            self._sweep = None

    def _next_full_list_page(
        self, sweep: '_FullListing'
    ) -> list[Mapping[str, Any]] | None:
        """Return the next page of a full list; ``None`` if all servers that it
        could continue from are deleted.
        """
        path = f'/servers/detail?all_tenants=1{sweep.ends.query}'
        for marker in reversed(sweep.markers):
            after = f'&marker={marker}' if marker else ''
            try:
                found = self._api.get(path + after)
            except exception.CloudRefused:
                continue
            if found is None:
                raise exception.CloudAway(f'Nova does not know {path}')
            return list(found['servers'])
        return None

    def _read_missing_servers(self, now: float) -> None:
        """Read servers that are missing from a full list, some in each call.

        A list may be partial: a server counts as deleted only if Nova does not
        find it.
        """
        silent = 0
        for uuid in list(self._missing)[:_LOOKED_AT_ONCE]:
            del self._missing[uuid]
            known = self._servers.get(uuid)
            if known is None:
                continue
            try:
                silent += not self._read_server(uuid, known, now)
            except exception.CloudUnreadable as error:
                self.unreadable[uuid] = error
            except exception.CloudError:
                # Nova may answer for the next servers.
                self._missing[uuid] = None
                silent += 1
            if silent >= _MOST_SILENT:
                return

    def _record_deletion(self, known: Server, now: float) -> None:
        """Record that a cached server was deleted."""
        self._uncache_server(known.uuid)
        self._remember_deleted(known.uuid)
        self._changed[known.project, known.user] = now
        self._left[known.host] = now

    def _remember_deleted(self, uuid: str) -> None:
        """Remember the UUID of a server that Nova reported as deleted."""
        _add_with_limit(self._gone, uuid, None)

    def _uncache_server(self, uuid: str) -> Server | None:
        """Remove a server from the cache except its name, and return its last
        state.
        """
        known = self._servers.pop(uuid, None)
        if known is not None:
            _add_with_limit(self._departed, uuid, known.log_name)
        return known

    def log_name(self, uuid: str) -> str:
        """Return name and UUID of a server for logs; only the UUID if the name
        is unknown.

        Recently deleted servers retain their names.
        """
        known = self._servers.get(uuid)
        return known.log_name if known else self._departed.get(uuid, uuid)

    def is_deleted(self, uuid: str) -> bool:
        """Return whether Nova itself reported that a server is deleted."""
        return uuid in self._gone

    def existing_servers(
        self, project: str, uuids: Collection[str]
    ) -> set[str]:
        """Return the UUIDs of the given servers that still exist.

        :param project: project of all these servers.
        :param uuids: UUIDs of servers whose deletion was just requested.
        :raises CloudError: if Nova does not answer.
        """
        if len(uuids) <= _MOST_SINGLE:
            return {uuid for uuid in uuids if self.server(uuid)}
        path = f'/servers?all_tenants=1&project_id={project}'
        listed = paging.list_all_pages(self._api, path, 'servers')
        return {each['id'] for each in listed}.intersection(uuids)

    def _uncache_unlisted_builds(self, listed: Collection[str]) -> None:
        """Remove from the cache the builds without a host that are not in a
        complete list of servers.

        :param listed: UUIDs of the list.
        """
        # A build without a cell is in every list; its deletion leaves no
        # trace.
        for uuid, each in [*self._servers.items()]:
            is_unknown = uuid not in listed and not each.host
            if is_unknown and each.status == 'BUILD':
                self._uncache_server(uuid)

    def _read_builds(self, built: Collection[str], now: float) -> None:
        """Read servers that are being built, one by one.

        A server that cannot be read stays as it was.
        """
        odd: dict[str, Exception] = {}
        failures = clients.FailureTolerance()
        for uuid in built:
            known = self._servers.get(uuid)
            if known and known.status != 'BUILD':
                continue
            try:
                self._read_server(uuid, known, now)
            except exception.CloudError as error:
                failures.record(error)
                odd[uuid] = error
        self._cache_placeholders(odd)
        self.unreadable |= odd

    def _read_server(
        self, uuid: str, known: Server | None, now: float
    ) -> bool:
        """Read one server, and update the cache.

        :param known: cached server; ``None`` if it is not cached.
        :returns: whether the cell of the server answered.
        :raises CloudError: if the server cannot be read.
        """
        found = self._api.get(f'/servers/{uuid}')
        if found is None:
            if known:
                self._record_deletion(known, now)
            return True
        with clients.parsing(f'what Nova says of server {uuid}'):
            told = found['server']
            self._cache_entry(told, now)
            return bool(told['status'] != UNKNOWN)

    def _cache_entries(
        self, found: Iterable[Mapping[str, Any]], now: float
    ) -> None:
        """Update the cache from a list; a server that cannot be read stays as
        it was.
        """
        listed, odd = list(found), dict[str, Exception]()
        for each in listed:
            with _ErrorCollector(odd, each, 'id'):
                self._cache_entry(each, now)
        self._cache_placeholders(
            odd.keys() & set(map(_entry_uuid, listed)) - {''}
        )
        self.unreadable |= odd

    def _cache_entry(self, found: Mapping[str, Any], now: float) -> None:
        """Update the cache from one entry of a list."""
        is_gone = found['status'] in ('DELETED', 'SOFT_DELETED')
        uuid = _text_field(found, 'id')
        if found['status'] == 'DELETED':
            self._remember_deleted(uuid)
        else:
            self._gone.pop(uuid, None)
        if found['status'] == UNKNOWN and uuid in self._servers:
            # Nova shows only a part of it: its last known state counts.
            return
        server = None if is_gone else _parse_server(found)
        before = self._servers.get(uuid)
        if server is None:
            self._uncache_server(uuid)
            # The rest of it only serves to estimate lifetimes.
            with (
                contextlib.suppress(exception.CloudUnreadable),
                clients.parsing('a server that is gone'),
            ):
                self._record_lifetime(found)
        else:
            self._servers[server.uuid] = server
            if before is None:
                self._groups.note_new_server()
        if before != server:
            self._changed[found['tenant_id'], found['user_id']] = now
        if before and before.host != (server.host if server else ''):
            self._left[before.host] = now

    def recent_changes(self, now: float) -> RecentChanges:
        """Return the hosts and users whose servers changed recently.

        Placement shows such changes a little earlier or later than Nova.

        :param now: seconds of the epoch.
        """
        every: list[dict[Any, float]] = [self._left, self._changed]
        for seen in every:
            for name, at in list(seen.items()):
                if abs(now - at) > _LATELY_S:
                    del seen[name]
        return RecentChanges(frozenset(self._left), frozenset(self._changed))

    def lifetimes(self) -> dict[cluster.Kind, tuple[float, ...]]:
        """Return the lifetimes of the latest deleted servers of each kind,
        seconds, sorted.
        """
        return self._lifetimes.by_kind()

    def _record_lifetime(self, found: Mapping[str, Any]) -> None:
        """Record the lifetime of a deleted server, if its start and end are
        known.
        """
        server, end = _parse_server(found), _parse_time(found, 'terminated_at')
        if end is None or server.launched_at is None:
            return
        kind = cluster.kind_of(server.project, server.amounts)
        self._lifetimes.learn(kind, server.uuid, end - server.launched_at)

    def server(self, uuid: str) -> Server | None:
        """Read one server; return ``None`` if it does not exist.

        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{uuid}')
        if found is None:
            self._uncache_server(uuid)
            self._remember_deleted(uuid)
            return None
        with clients.parsing(f'what Nova says of server {uuid}'):
            told = _parse_server(found['server'])
        if told.status != UNKNOWN:
            return told
        # Its cell does not answer: its last known state counts.
        return self._servers.get(uuid, told)

    def group_members(self, groups: Collection[str]) -> dict[str, list[str]]:
        """Return the UUIDs of the servers of groups; a deleted group has no
        servers.

        :raises CloudError: if they cannot be read.
        """
        return self._groups.members(groups)

    def servers_on_unknown_hosts(
        self, uuids: Collection[str], now: float
    ) -> set[str]:
        """Return the given servers that may run on an unknown host.

        Lists lack servers in a cell that does not answer. So servers that are
        not in the cache are read one by one, some in each call.

        :param uuids: UUIDs of servers that exist according to another source.
        :param now: seconds of the epoch.
        """
        unknown = sorted(set(uuids) - self._servers.keys() - self._gone.keys())
        silent, hidden = 0, set(unknown)
        for uuid in unknown[:_LOOKED_AT_ONCE]:
            try:
                silent += not self._read_server(uuid, None, now)
            except exception.CloudError:
                silent += 1
            else:
                if uuid not in self._servers:
                    self._remember_deleted(uuid)
                    hidden.discard(uuid)
            if silent >= _MOST_SILENT:
                break
        known = self._servers.keys() & set(uuids)
        return hidden | {
            uuid
            for uuid in known
            if not self._servers[uuid].host
            and (
                self._servers[uuid].status == UNKNOWN
                or uuid in self.unreadable
            )
        }

    @property
    def groups_unreadable(self) -> Mapping[str, Exception]:
        """Return the errors of groups whose members could not be read last, by
        UUID of the group.
        """
        return self._groups.unreadable

    def flavor_amounts(
        self, project: str | None = None
    ) -> dict[str, dict[str, int]]:
        """Return the amounts of one server of each flavor, by name of the
        flavor.

        Extra specs do not count.

        :param project: ID of a project that may use the flavors; '' for public
            flavors, ``None`` for all flavors.
        :raises CloudError: if flavors cannot be read.
        """
        with clients.parsing("Nova's list of flavors"):
            listed = paging.list_all_pages(
                self._api, '/flavors/detail?is_public=none', 'flavors'
            )
            if project is not None:
                listed = self._flavor_access.usable_flavors(listed, project)
            return {each['name']: _flavor_amounts(each) for each in listed}

    def delete(self, uuid: str) -> None:
        """Delete a server, if it exists.

        :raises CloudError: if it is unknown whether the server was deleted.
        """
        if not self._api.delete(f'/servers/{uuid}'):
            self._remember_deleted(uuid)

    def request_action(
        self, uuid: str, action: eviction.EvictionAction
    ) -> None:
        """Ask Nova for an action that evicts a server.

        :raises CloudAway: if it is unknown whether Nova accepted the call.
        :raises CloudRefused: if Nova refused the call.
        """
        if action is eviction.EvictionAction.DELETE:
            self.delete(uuid)
        else:
            self._api.post(
                f'/servers/{uuid}/action', {_SERVER_ACTIONS[action]: None}
            )

    def start_or_resume(self, uuid: str, status: str) -> None:
        """Start a stopped server, or resume a suspended one.

        :param status: status of the server, a key of :data:`STARTS`.
        :raises CloudAway: if it is unknown whether Nova accepted the call.
        :raises CloudRefused: if Nova refused the call.
        """
        self._api.post(f'/servers/{uuid}/action', {STARTS[status]: None})

    def create_image(
        self, uuid: str, name: str, properties: Mapping[str, str]
    ) -> None:
        """Ask Nova to create an image of a server.

        :param name: name of the image.
        :param properties: properties of the image.
        :raises CloudAway: if it is unknown whether Nova accepted the call.
        :raises CloudRefused: if Nova refused the call.
        """
        wanted = {'name': name, 'metadata': dict(properties)}
        self._api.post(f'/servers/{uuid}/action', {'createImage': wanted})

    def unshelve(self, uuid: str) -> None:
        """Ask Nova to unshelve a server; with a queue, its request waits
        first.

        :raises CloudError: if it is unknown whether Nova accepted the call.
        """
        self._api.post(f'/servers/{uuid}/action', {'unshelve': None})

    def offload_shelved(self, uuid: str) -> None:
        """Ask Nova to remove a shelved server from its host.

        :raises CloudError: if it is unknown whether Nova accepted the call.
        """
        self._api.post(f'/servers/{uuid}/action', {'shelveOffload': None})

    def write_metadata(self, uuid: str, metadata: Mapping[str, str]) -> None:
        """Write some metadata of a server; its other metadata stay.

        :param metadata: values by key; values are cut to the length that Nova
            accepts.
        :raises CloudError: if it is unknown whether the metadata were written.
        """
        short = {key: value[:_LONGEST] for key, value in metadata.items()}
        self._api.post(f'/servers/{uuid}/metadata', {'metadata': short})

    def delete_metadata(self, uuid: str, key: str) -> None:
        """Delete one key of the metadata of a server, if it exists.

        :raises CloudError: if it is unknown whether the key was deleted.
        """
        self._api.delete(f'/servers/{uuid}/metadata/{key}')

    def _list_services(self, path: str) -> Iterable[Mapping[str, Any]]:
        """Return the entries of a list of services."""
        found = self._api.get(path)
        if found is None:
            raise exception.CloudAway(f'Nova does not know {path}')
        services: Iterable[Mapping[str, Any]] = found['services']
        return services


class _ErrorCollector:
    """Context manager that records the error of a list entry that cannot be
    read.

    It is no generator, for speed: each server of a cloud uses one.

    :param errors: receives the error, by the name of the entry.
    :param entry: entry of a list of Nova.
    :param name_field: field with the name of the entry.
    """

    __slots__ = '_entry', '_found', '_name'

    def __init__(
        self, errors: dict[str, Exception], entry: Any, name_field: str
    ) -> None:
        self._found, self._entry, self._name = errors, entry, name_field

    def __enter__(self) -> None:
        """Begin to read the entry."""

    def __exit__(self, _: object, error: object, __: object) -> bool:
        """Record an error of the entry; other errors propagate."""
        if isinstance(error, clients.UNREADABLE):
            error = clients.unreadable_error(
                'an entry of a list of Nova', error
            )
        if not isinstance(error, exception.CloudUnreadable):
            return False
        entry = self._entry
        named = entry.get(self._name) if isinstance(entry, dict) else None
        self._found[str(named)] = error
        return True


def _add_with_limit(
    cache: dict[str, _About], uuid: str, value: _About
) -> None:
    """Add a server to a dictionary, and remove the oldest servers beyond its
    largest size.
    """
    cache[uuid] = value
    while len(cache) > _GONE_KEPT:
        del cache[next(iter(cache))]


def _text_field(
    entry: Mapping[str, Any], name: str, default: str | None = None
) -> str:
    """Return the value of a text field.

    :param default: value of a missing or empty field; ``None`` if the field
        must have a value.
    :raises TypeError: if the value is not text.
    """
    value = entry.get(name)
    if not value and default is not None:
        return default
    if not isinstance(value, str):
        raise TypeError(f'{name} must be text')
    return value


def _entry_uuid(entry: Any) -> str:
    """Return the UUID of a list entry; '' without a UUID."""
    found = entry.get('id') if isinstance(entry, dict) else None
    return found if isinstance(found, str) else ''


def _service_host(entry: Any) -> str:
    """Return the host of a hypervisor's service; '' if it cannot be read."""
    try:
        return _text_field(entry['service'], 'host')
    except (AttributeError, LookupError, TypeError):
        return ''


def _parse_hypervisor(
    entry: Mapping[str, Any], shares_service: bool, zones: Mapping[str, str]
) -> NovaHypervisor:
    """Return the hypervisor of a list entry.

    :param shares_service: whether its service has several hypervisors.
    :param zones: availability zones by host of the service.
    """
    service = _text_field(entry['service'], 'host')
    own = _text_field(entry, 'hypervisor_hostname')
    return NovaHypervisor(
        uuid=_text_field(entry, 'id'),
        name=own if shares_service else service,
        zone=zones.get(service, ''),
        takes=entry['state'] == 'up' and entry['status'] == 'enabled',
    )


def _without_duplicates(
    hosts: Iterable[NovaHypervisor], unreadable: dict[str, Exception]
) -> list[NovaHypervisor]:
    """Return the hosts whose name and UUID are unique; record errors of the
    others.
    """
    listed = list(hosts)
    names = collections.Counter(each.name for each in listed)
    uuids = collections.Counter(each.uuid for each in listed)
    for each in listed:
        if names[each.name] > 1 or uuids[each.uuid] > 1:
            unreadable[each.name] = ValueError('several hosts are one')
    return [
        each
        for each in listed
        if names[each.name] == 1 and uuids[each.uuid] == 1
    ]


def _flavor_amounts(flavor: Mapping[str, Any]) -> dict[str, int]:
    """Return the amounts of one server of a flavor, by resource class."""
    # In a list of servers this key has another name.
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
        raise ValueError(f'amounts of a flavor are out of range: {needs}')
    return needs


def _parse_time(found: Mapping[str, Any], name: str) -> float | None:
    """Return a time of a server, seconds of the epoch; ``None`` if Nova shows
    none.
    """
    told = found.get(f'OS-SRV-USG:{name}')
    if not told:
        return None
    return dt.datetime.fromisoformat(told).replace(tzinfo=dt.UTC).timestamp()


def _parse_service(found: Mapping[str, Any]) -> ComputeService:
    """Return the service of a list entry."""
    return ComputeService(
        uuid=_text_field(found, 'id'),
        host=_text_field(found, 'host'),
        enabled=found['status'] == 'enabled',
        up=found['state'] == 'up',
        reason=found.get('disabled_reason') or '',
    )


def _parse_server(found: Mapping[str, Any]) -> Server:
    """Return the server of Nova's description."""
    flavor = found.get('flavor') or {}
    needs = _flavor_amounts(flavor) if 'vcpus' in flavor else {}
    metadata = found.get('metadata') or {}
    return Server(
        uuid=_text_field(found, 'id'),
        project=_text_field(found, 'tenant_id'),
        user=_text_field(found, 'user_id', ''),
        status=_text_field(found, 'status'),
        task=_text_field(found, 'OS-EXT-STS:task_state', ''),
        host=_text_field(found, 'OS-EXT-SRV-ATTR:host', ''),
        amounts=tuple(sorted((k, n) for k, n in needs.items() if n > 0)),
        launched_at=_parse_time(found, 'launched_at'),
        is_locked=bool(found.get('locked')),
        specs=tuple(sorted((flavor.get('extra_specs') or {}).items())),
        says_done=fields.means_yes(metadata.get(DONE)),
        pays=str(metadata.get(GROUP) or ''),
        ttl=str(metadata.get(TTL) or ''),
        ttl_ours=str(metadata.get(TTL_OURS) or ''),
        pinned=live_migrations.parse_pinned_zone(found),
        name=str(found.get('name') or ''),
        has_volumes=bool(found.get('os-extended-volumes:volumes_attached')),
    )
