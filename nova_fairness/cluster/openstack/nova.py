# SPDX-License-Identifier: Apache-2.0

"""Hosts, servers and server groups of Nova."""

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
"""Metadata by which the owner of a server, or its guest, says that it may
leave at once."""

GROUP = 'fairness:group'
"""Metadata by which a server says in which group with a rate it is."""

BUT_BUILDS = (
    '&status=ACTIVE&status=SHUTOFF&status=VERIFY_RESIZE&status=PAUSED'
    '&status=SUSPENDED&status=RESCUE&status=ERROR&status=DELETED'
    '&status=SOFT_DELETED&status=SHELVED&status=SHELVED_OFFLOADED'
)
"""Query by which Nova lists all servers but those that are to be built: each
status names a state, with whatever is done in it (Nova's
``task_and_vm_state_from_status``)."""

TTL = 'TTL'
"""Metadata by which a guest reads how long its host is still there, seconds of
the epoch: that of machine/job features."""

TTL_OURS = 'fairness:ttl'
"""The same again, as this product wrote it: what differs is its owner's."""

MOVES = frozenset({'ACTIVE', 'PAUSED'})
"""Statuses of servers that Nova moves while they run."""

FULL_EVERY_S = 180.0
"""All servers are listed as often, whatever changed: a list of changes lacks
what a cell that was down or a replica that lagged did not tell."""

UNKNOWN = 'UNKNOWN'
"""Status of a server whose cell does not answer; it lies where it lay."""

_LOOKED_AT_ONCE = 20
"""Servers that are looked up in one call because a full list lacked them."""

_SILENT = 3
"""Servers without an answer after which the others are left alone for now."""

_GONE_KEPT = 50_000
_About = TypeVar('_About', str, None)
_MARKERS = 5
_FEW = 3
"""Servers that are asked for one by one; of more a list is asked."""

_FEW_BUILDS = 50
_OVERLAP_S = 60
_LEARNED_S = 30 * 86400
_LATELY_S = 10.0
_LONGEST = 255
_ASKED = {
    eviction.EvictionAction.STOP: 'os-stop',
    eviction.EvictionAction.SUSPEND: 'suspend',
    eviction.EvictionAction.SHELVE: 'shelve',
}
STARTS = {'SHUTOFF': 'os-start', 'SUSPENDED': 'resume'}
"""Actions that let a server run again on its host, by its status."""

_SHELVED = ('SHELVED', 'SHELVED_OFFLOADED')


@dataclasses.dataclass(frozen=True, slots=True)
class NovaHypervisor:
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
class ComputeService:
    """A nova-compute.

    :ivar uuid: of it.
    :ivar host: its name.
    :ivar enabled: whether servers may start there.
    :ivar up: whether it answers.
    :ivar reason: for which it was disabled; '' without.
    """

    uuid: str
    host: str
    enabled: bool
    up: bool
    reason: str = ''

    @property
    def ours(self) -> bool:
        """Whether this product disabled it, as its reason tells."""
        return not self.enabled and self.reason.startswith(border.MARK)


class Lately(NamedTuple):
    """Where Placement may have something else by now.

    :ivar left: names of hosts that servers left.
    :ivar users: whose servers changed, with their projects, first the
        project.
    """

    left: frozenset[str]
    users: frozenset[tuple[str, str]]


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
    :ivar says_done: whether it may leave at once: its metadata say so.
    :ivar pays: name of the group with a spending rate that its metadata say;
        '' without.
    :ivar is_locked: whether its owner or an operator locked it.
    :ivar specs: extra specs of its flavor, sorted by name.
    :ivar ttl: what its metadata say of its time to live; '' without.
    :ivar ttl_ours: the same as this product wrote it.
    :ivar pinned: zone that it is to stay in; '' if it is free to leave any,
        ``None`` if Nova does not tell.
    :ivar has_volumes: whether volumes are attached to it.
    :ivar name: that its owner gave it; to be shown only, never a key.
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
    def named(self) -> str:
        """Its name and UUID, for logs."""
        return f'{self.name} ({self.uuid})' if self.name else self.uuid

    @property
    def is_settled(self) -> bool:
        """Whether Nova knows where it lies, or gave up."""
        rests = self.status in _SHELVED and not self.task
        # One that was not offloaded has its host, whatever became of it.
        lies = bool(self.host) and self.status != 'SHELVED'
        return lies or rests or self.status == 'ERROR'


class _Sweep:
    """How far a full list has come.

    :param before: servers that were known when it began.

    :ivar seen: servers that it had.
    :ivar markers: the last of them; one that is there still is gone on from.
    :ivar ends: from which end it is read, and how much at a time.
    """

    def __init__(self, before: frozenset[str]) -> None:
        self.before = before
        self.seen: set[str] = set()
        self.markers: list[str] = ['']
        self.ends = paging.ListPosition()

    def is_over_after_failure(self) -> bool:
        """Whether nothing more can be read, once Nova failed for a page."""
        is_back = self.ends.narrow()
        if is_back:
            self.markers = ['']
        return is_back is None


class Nova:
    """Nova as it is; servers that did not change are read again seldom.

    Lists are the truth, but each may be partial: a cell is down, a replica
    lags, a change is told late. So all are listed in full every
    :data:`FULL_EVERY_S`, a page a time, and who is lacking is asked for.

    :param api: of Nova.

    :ivar unreadable: servers that could not be read last, and why.
    :ivar hosts_unreadable: the same of hosts, by UUID or name.
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
        self._sweep: _Sweep | None = None
        self._swept_at: float | None = None
        self._left: dict[str, float] = {}
        self._changed: dict[tuple[str, str], float] = {}
        self._groups = server_groups.ServerGroups(api)
        self._flavor_access = flavor_access.FlavorAccess(api)
        self._lifetimes = lifetimes.Lifetimes()

    def hosts(self) -> list[NovaHypervisor]:
        """All hypervisors.

        :raises CloudError: if they cannot be read.
        """
        self.hosts_unreadable = {}
        zones: dict[str, str] = {}
        for each in self._all('/os-services?binary=nova-compute'):
            with _Noted(self.hosts_unreadable, each, 'host'):
                zones[_text(each, 'host')] = _text(each, 'zone', '')
        listed = paging.listed(
            self._api, '/os-hypervisors/detail', 'hypervisors'
        )
        services = [_service_host(each) for each in listed]
        count = collections.Counter(services)
        found = []
        for each, service in zip(listed, services, strict=True):
            with _Noted(self.hosts_unreadable, each, 'id'):
                host = _host(each, count[service] > 1, zones)
                # Of one whose service cannot be read the zone is not known.
                takes = host.takes and service not in self.hosts_unreadable
                found.append(dataclasses.replace(host, takes=takes))
        return _unique(found, self.hosts_unreadable)

    def services(self) -> dict[str, ComputeService]:
        """All nova-computes, by name of the host.

        :raises CloudError: if they cannot be read.
        """
        with clients.reading("Nova's list of services"):
            listed = self._all('/os-services?binary=nova-compute')
            found = {}
            for each in listed:
                with _Noted({}, each, 'host'):
                    found[_text(each, 'host')] = _service(each)
            return found

    def disable(self, service: ComputeService, reason: str) -> None:
        """Let no new servers start on a host; those that run go on.

        :param reason: that is to stand there; cut to the length Nova takes.
        :raises CloudError: if it is not known that it was done.
        """
        body = {'status': 'disabled', 'disabled_reason': reason[:_LONGEST]}
        self._api.put(f'/os-services/{service.uuid}', body)

    def enable(self, service: ComputeService) -> None:
        """Let servers start on a host again.

        :raises CloudError: if it is not known that it was done.
        """
        self._api.put(f'/os-services/{service.uuid}', {'status': 'enabled'})

    def migrate(self, uuid: str, target: str | None = None) -> None:
        """Move a server to another host while it runs, if that may take it.

        :param target: name of the host; ``None`` lets Nova say where.
        :raises CloudError: :class:`CloudAway` if it is not known whether it
            will be done, :class:`CloudRefused` if it will not.
        """
        body = {'os-migrateLive': {'host': target, 'block_migration': 'auto'}}
        self._api.post(f'/servers/{uuid}/action', body)

    def servers(
        self, now: float, built: Collection[str] | None = None
    ) -> Mapping[str, Server]:
        """All servers that are not deleted, by UUID.

        :param now: seconds of the epoch; clocks may differ by a minute.
        :param built: UUIDs of those that are being built, to leave out all
            others that are to be: in a queue many wait, and each list has
            them all. ``None`` for all; a server left out stays as it was.
        :raises CloudError: if they cannot be read.
        """
        is_whole = (
            built is None or len(built) > _FEW_BUILDS or not self._since[True]
        )
        path = '/servers/detail?all_tenants=1'
        if not is_whole:
            path += BUT_BUILDS
        if self._since[is_whole]:
            path += f'&changes-since={self._since[is_whole]}'
        try:
            changed = paging.listed(self._api, path, 'servers')
        except exception.CloudFailed as failure:
            changed = paging.around(self._api, path, 'servers', failure)
        else:
            if is_whole:
                self._forget_unlisted({_id(each) for each in changed})
        self._groups.look()
        self.unreadable = {}
        self._note_all(changed, now)
        if not is_whole:
            self._see(built or (), now)
        # The second list has those that were deleted long before the first.
        back_s = _OVERLAP_S if self._since[is_whole] else _LEARNED_S
        # What builds changed between two whole lists only these tell.
        for of_whole in {is_whole, False}:
            self._since[of_whole] = moments.stamp(max(now - back_s, 0))
        self._list_in_full(now)
        self._look_for_missing(now)
        return dict(self._servers)

    def _stand_in(self, uuids: Iterable[str]) -> None:
        """Keep servers that cannot be read as they were, or as unknown ones.

        An unknown server that exists must not look deleted.
        """
        for uuid in uuids:
            self._servers.setdefault(
                uuid, Server(uuid, '', '', status='BUILD', task='', host='')
            )

    def _list_in_full(self, now: float) -> None:
        """Read the next page of all servers, if it is time for a full list.

        A page a time: all of a large cloud at once would take a minute.
        """
        if self._swept_at is None:
            # The first list had all of them.
            self._swept_at = now
        if self._sweep is None:
            if 0 <= now - self._swept_at < FULL_EVERY_S:
                return
            self._sweep = _Sweep(frozenset(self._servers))
            self._swept_at = now
        try:
            page = self._next_page(self._sweep)
        except exception.CloudFailed:
            if not self._sweep.is_over_after_failure():
                return
            page = []
        if page is None:
            # Whatever it could go on from was deleted: from the start.
            self._sweep, self._swept_at = None, now - FULL_EVERY_S
            return
        self._note_all(page, now)
        self._sweep.seen.update(_id(each) for each in page)
        self._sweep.markers = [_id(each) for each in page[-_MARKERS:]]
        if len(page) < self._sweep.ends.limit:
            lacked = sorted(self._sweep.before - self._sweep.seen)
            self._missing |= dict.fromkeys(
                uuid for uuid in lacked if uuid in self._servers
            )
            self._sweep = None

    def _next_page(self, sweep: '_Sweep') -> list[Mapping[str, Any]] | None:
        """A page; ``None`` if the servers that it follows are all deleted."""
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

    def _look_for_missing(self, now: float) -> None:
        """Ask for servers that a full list lacked, some each time.

        A list may be partial: only who is asked for and not there is gone.
        """
        silent = 0
        for uuid in list(self._missing)[:_LOOKED_AT_ONCE]:
            del self._missing[uuid]
            known = self._servers.get(uuid)
            if known is None:
                continue
            try:
                silent += not self._look_at(uuid, known, now)
            except exception.CloudUnreadable as error:
                self.unreadable[uuid] = error
            except exception.CloudError:
                # Later ones may have an answer.
                self._missing[uuid] = None
                silent += 1
            if silent >= _SILENT:
                return

    def _lose(self, known: Server, now: float) -> None:
        """Take note of a server that is gone."""
        self._drop(known.uuid)
        self._remember_gone(known.uuid)
        self._changed[known.project, known.user] = now
        self._left[known.host] = now

    def _remember_gone(self, uuid: str) -> None:
        _remember(self._gone, uuid, None)

    def _drop(self, uuid: str) -> Server | None:
        """Forget a server but for its name; gives what it was."""
        known = self._servers.pop(uuid, None)
        if known is not None:
            _remember(self._departed, uuid, known.named)
        return known

    def named(self, uuid: str) -> str:
        """A server in a log: its name, as far as it is known, and UUID.

        Also one that is gone since a short time.
        """
        known = self._servers.get(uuid)
        return known.named if known else self._departed.get(uuid, uuid)

    def is_gone(self, uuid: str) -> bool:
        """Whether Nova said of a server itself that it is deleted."""
        return uuid in self._gone

    def left_of(self, project: str, uuids: Collection[str]) -> set[str]:
        """Those of some servers that are there still.

        :param project: of all of them.
        :param uuids: of servers that were deleted a moment ago: that a list
            lacks one proves nothing of others.
        :raises CloudError: if it is not known.
        """
        if len(uuids) <= _FEW:
            return {uuid for uuid in uuids if self.server(uuid)}
        path = f'/servers?all_tenants=1&project_id={project}'
        listed = paging.listed(self._api, path, 'servers')
        return {each['id'] for each in listed}.intersection(uuids)

    def _forget_unlisted(self, listed: Collection[str]) -> None:
        # What no cell has yet is in every list, and deleted without a trace.
        for uuid, each in [*self._servers.items()]:
            is_unknown = uuid not in listed and not each.host
            if is_unknown and each.status == 'BUILD':
                self._drop(uuid)

    def _see(self, built: Collection[str], now: float) -> None:
        """Take note of servers that are being built, one by one.

        One that cannot be read stays as it was.
        """
        odd: dict[str, Exception] = {}
        failures = clients.Tolerance()
        for uuid in built:
            known = self._servers.get(uuid)
            if known and known.status != 'BUILD':
                continue
            try:
                self._look_at(uuid, known, now)
            except exception.CloudError as error:
                failures.note(error)
                odd[uuid] = error
        self._stand_in(odd)
        self.unreadable |= odd

    def _look_at(self, uuid: str, known: Server | None, now: float) -> bool:
        """Ask for one server, and take note of it.

        :param known: as it was; ``None`` if it was not.
        :returns: whether its cell answered.
        :raises CloudError: if it cannot be read.
        """
        found = self._api.get(f'/servers/{uuid}')
        if found is None:
            if known:
                self._lose(known, now)
            return True
        with clients.reading(f'what Nova says of server {uuid}'):
            told = found['server']
            self._note(told, now)
            return bool(told['status'] != UNKNOWN)

    def _note_all(
        self, found: Iterable[Mapping[str, Any]], now: float
    ) -> None:
        """Take note of servers; one that cannot be read stays as it was."""
        listed, odd = list(found), dict[str, Exception]()
        for each in listed:
            with _Noted(odd, each, 'id'):
                self._note(each, now)
        self._stand_in(odd.keys() & set(map(_id, listed)) - {''})
        self.unreadable |= odd

    def _note(self, found: Mapping[str, Any], now: float) -> None:
        is_gone = found['status'] in ('DELETED', 'SOFT_DELETED')
        uuid = _text(found, 'id')
        if found['status'] == 'DELETED':
            self._remember_gone(uuid)
        else:
            self._gone.pop(uuid, None)
        if found['status'] == UNKNOWN and uuid in self._servers:
            # It lies where it lay: Nova tells a part of what it is.
            return
        server = None if is_gone else _server(found)
        before = self._servers.get(uuid)
        if server is None:
            self._drop(uuid)
            # What it was like only helps to guess how long others last.
            with (
                contextlib.suppress(exception.CloudUnreadable),
                clients.reading('a server that is gone'),
            ):
                self._learn(found)
        else:
            self._servers[server.uuid] = server
            if before is None:
                self._groups.renew()
        if before != server:
            self._changed[found['tenant_id'], found['user_id']] = now
        if before and before.host != (server.host if server else ''):
            self._left[before.host] = now

    def lately(self, now: float) -> Lately:
        """Where servers were seen to change a moment ago.

        Placement learns of it a little before or after.

        :param now: seconds of the epoch.
        """
        every: list[dict[Any, float]] = [self._left, self._changed]
        for seen in every:
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
            self._drop(uuid)
            self._remember_gone(uuid)
            return None
        with clients.reading(f'what Nova says of server {uuid}'):
            told = _server(found['server'])
        if told.status != UNKNOWN:
            return told
        # Its cell does not answer: it lies where it lay.
        return self._servers.get(uuid, told)

    def members(self, groups: Collection[str]) -> dict[str, list[str]]:
        """UUIDs of the servers of groups; of one that is gone there are none.

        :raises CloudError: if they cannot be read.
        """
        return self._groups.members(groups)

    def hidden(self, uuids: Collection[str], now: float) -> set[str]:
        """Those of some servers that may lie on a host that is not known.

        Lists lack what is in a cell that does not answer: who is not known is
        asked for, some each time.

        :param uuids: of servers that are there, as something else says.
        """
        unknown = sorted(set(uuids) - self._servers.keys() - self._gone.keys())
        silent, hidden = 0, set(unknown)
        for uuid in unknown[:_LOOKED_AT_ONCE]:
            try:
                silent += not self._look_at(uuid, None, now)
            except exception.CloudError:
                silent += 1
            else:
                if uuid not in self._servers:
                    self._remember_gone(uuid)
                    hidden.discard(uuid)
            if silent >= _SILENT:
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
        """Groups whose members could not be read last, and why."""
        return self._groups.unreadable

    def flavors(self, project: str | None = None) -> dict[str, dict[str, int]]:
        """Amounts that one server of each flavor needs, by its name.

        Changes by extra specs are not seen.

        :param project: that may use them; '' for those that all may use,
            ``None`` for all flavors.
        :raises CloudError: if they cannot be read.
        """
        with clients.reading("Nova's list of flavors"):
            listed = paging.listed(
                self._api, '/flavors/detail?is_public=none', 'flavors'
            )
            if project is not None:
                listed = self._flavor_access.of(listed, project)
            return {each['name']: _needs(each) for each in listed}

    def delete(self, uuid: str) -> None:
        """Delete a server; nothing happens if it is gone.

        :raises CloudError: if it is not known whether it was deleted.
        """
        if not self._api.delete(f'/servers/{uuid}'):
            self._remember_gone(uuid)

    def act(self, uuid: str, action: eviction.EvictionAction) -> None:
        """Ask for what lets a server leave.

        :raises CloudAway: if it is not known whether it will be done.
        :raises CloudRefused: if it will not.
        """
        if action is eviction.EvictionAction.DELETE:
            self.delete(uuid)
        else:
            self._api.post(f'/servers/{uuid}/action', {_ASKED[action]: None})

    def let_run(self, uuid: str, status: str) -> None:
        """Let a server run again that was stopped or suspended.

        :param status: of :data:`STARTS`.
        :raises CloudAway: if it is not known whether it will be done.
        :raises CloudRefused: if it will not.
        """
        self._api.post(f'/servers/{uuid}/action', {STARTS[status]: None})

    def keep_image(
        self, uuid: str, name: str, properties: Mapping[str, str]
    ) -> None:
        """Ask for an image of a server.

        :raises CloudAway: if it is not known whether it will be made.
        :raises CloudRefused: if it will not.
        """
        wanted = {'name': name, 'metadata': dict(properties)}
        self._api.post(f'/servers/{uuid}/action', {'createImage': wanted})

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


class _Noted:
    """Takes note of an entry of a list that cannot be read.

    No generator, as each server of a cloud passes one.

    :param found: gets the error, by the name of the entry.
    :param name: field of the entry's name.
    """

    __slots__ = '_entry', '_found', '_name'

    def __init__(
        self, found: dict[str, Exception], entry: Any, name: str
    ) -> None:
        self._found, self._entry, self._name = found, entry, name

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, _: object, error: object, __: object) -> bool:
        """Keep an error that tells of the entry; another one goes on."""
        if isinstance(error, clients.UNREADABLE):
            error = clients.unreadable('an entry of a list of Nova', error)
        if not isinstance(error, exception.CloudUnreadable):
            return False
        entry = self._entry
        named = entry.get(self._name) if isinstance(entry, dict) else None
        self._found[str(named)] = error
        return True


def _remember(known: dict[str, _About], uuid: str, about: _About) -> None:
    """Add a server, and forget the oldest where there are too many."""
    known[uuid] = about
    while len(known) > _GONE_KEPT:
        del known[next(iter(known))]


def _text(
    entry: Mapping[str, Any], name: str, without: str | None = None
) -> str:
    """A field that is text.

    :param without: what it is if it is missing or nothing; ``None`` if it must
        not be.
    :raises TypeError: if it is something else.
    """
    value = entry.get(name)
    if not value and without is not None:
        return without
    if not isinstance(value, str):
        raise TypeError(f'{name} must be text')
    return value


def _id(entry: Any) -> str:
    """The UUID in an entry of a list; '' without."""
    found = entry.get('id') if isinstance(entry, dict) else None
    return found if isinstance(found, str) else ''


def _service_host(entry: Any) -> str:
    """Host of a hypervisor's service; '' if it cannot be read."""
    try:
        return _text(entry['service'], 'host')
    except (AttributeError, LookupError, TypeError):
        return ''


def _host(
    entry: Mapping[str, Any], is_of_many: bool, zones: Mapping[str, str]
) -> NovaHypervisor:
    service = _text(entry['service'], 'host')
    own = _text(entry, 'hypervisor_hostname')
    return NovaHypervisor(
        uuid=_text(entry, 'id'),
        name=own if is_of_many else service,
        zone=zones.get(service, ''),
        takes=entry['state'] == 'up' and entry['status'] == 'enabled',
    )


def _unique(
    hosts: Iterable[NovaHypervisor], unreadable: dict[str, Exception]
) -> list[NovaHypervisor]:
    """Hosts whose names are theirs alone."""
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


def _service(found: Mapping[str, Any]) -> ComputeService:
    return ComputeService(
        uuid=_text(found, 'id'),
        host=_text(found, 'host'),
        enabled=found['status'] == 'enabled',
        up=found['state'] == 'up',
        reason=found.get('disabled_reason') or '',
    )


def _server(found: Mapping[str, Any]) -> Server:
    flavor = found.get('flavor') or {}
    needs = _needs(flavor) if 'vcpus' in flavor else {}
    metadata = found.get('metadata') or {}
    return Server(
        uuid=_text(found, 'id'),
        project=_text(found, 'tenant_id'),
        user=_text(found, 'user_id', ''),
        status=_text(found, 'status'),
        task=_text(found, 'OS-EXT-STS:task_state', ''),
        host=_text(found, 'OS-EXT-SRV-ATTR:host', ''),
        amounts=tuple(sorted((k, n) for k, n in needs.items() if n > 0)),
        launched_at=_time(found, 'launched_at'),
        is_locked=bool(found.get('locked')),
        specs=tuple(sorted((flavor.get('extra_specs') or {}).items())),
        says_done=fields.says_yes(metadata.get(DONE)),
        pays=str(metadata.get(GROUP) or ''),
        ttl=str(metadata.get(TTL) or ''),
        ttl_ours=str(metadata.get(TTL_OURS) or ''),
        pinned=live_migrations.pinned(found),
        name=str(found.get('name') or ''),
        has_volumes=bool(found.get('os-extended-volumes:volumes_attached')),
    )
