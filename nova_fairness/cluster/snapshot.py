# SPDX-License-Identifier: Apache-2.0

"""Reader of the cloud: it builds the snapshot for planners.

The data comes from lists of Placement and Nova, which are read one after
another. A change in between may be visible in one list only, so each decision
is checked again before it is executed.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import types
from typing import NamedTuple

import numpy as np
from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster import quarantine
from nova_fairness.cluster.openstack import allocations
from nova_fairness.cluster.openstack import clients
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.model import cluster
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

_AHEAD_S = 60.0
"""Largest difference between clocks without a warning, seconds."""

_REMEMBERED_S = 3600.0
"""Seconds for which a resource class stays known after the last host lost
it. Inventories disappear for some time while a host is installed or
cleaned.
"""

_UNREAD_S = 600.0
"""Seconds for which a host of Nova without a resource provider may still
get a provider.
"""

_ABSENT = (0, 0, 0, 1)
_SENT = (request_model.State.SENDING, request_model.State.STARTING)
_UNKNOWN: Mapping[str, float] = types.MappingProxyType({})
_K = quarantine.InputKind
Named = tuple[quarantine.InputKind, str]
"""Kind and name of an input that could not be read."""


@dataclasses.dataclass(frozen=True)
class CloudView:
    """The cloud as it was read in one cycle.

    :ivar snapshot: snapshot for planners.
    :ivar trees: provider trees of Placement, by name of the host.
    :ivar servers: servers by UUID.
    """

    snapshot: cluster.ClusterSnapshot
    trees: Mapping[str, placement_module.ProviderTree]
    servers: Mapping[str, nova_module.Server]


def with_closed_hosts(view: CloudView, hosts: Collection[str]) -> CloudView:
    """Return a view in which no server starts on the given hosts."""
    if not hosts:
        return view
    providers = tuple(
        dataclasses.replace(each, takes=False) if each.name in hosts else each
        for each in view.snapshot.providers
    )
    snapshot = dataclasses.replace(view.snapshot, providers=providers)
    return dataclasses.replace(view, snapshot=snapshot)


class CloudReader:
    """Reads the state of the cloud from Placement and Nova.

    :param placement: client of Placement.
    :param nova: client of Nova.
    :param limits: limits of projects.
    :param accounts: returns the present share tree.
    :param closing: returns names of hosts on which no server may start,
        although Nova would allow it.
    :ivar unreadable: inputs that could not be read last, with their errors.
        The snapshot does not contain an unreadable host. An unreadable server
        keeps its last known state. Requests whose project or server group has
        unknown use do not start.
    :ivar falls_back: whether Nova asks for shared CPUs if it finds no
        dedicated CPUs.
    """

    def __init__(
        self,
        placement: placement_module.Placement,
        nova: nova_module.Nova,
        limits: Mapping[str, cluster.Limits],
        accounts: Callable[[], tuple[cluster.Account, ...]] = tuple,
        closing: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._placement = placement
        self._claims = allocations.AllocationCache(placement)
        self._nova = nova
        self._limits = limits
        self._accounts = accounts
        self._closing = closing
        self.falls_back = True
        self._seen: dict[str, _CachedServer] = {}
        self.unreadable: dict[Named, Exception] = {}
        self._offered: dict[str, float] = {}
        self._unread: dict[str, float] = {}

    def read(
        self,
        requests: Collection[request_model.Request],
        given: Mapping[str, tuple[str, ...]],
        now: float,
        ends: Mapping[str, float] = _UNKNOWN,
        is_whole: bool = True,
    ) -> CloudView:
        """Read the cloud once.

        :param requests: requests that have not ended, the oldest first.
        :param given: hosts of the servers of sent requests, in the order of
            the servers, by UUID of the request.
        :param now: seconds of the epoch.
        :param ends: time limits of servers, seconds of the epoch, by UUID;
            those of other servers are unknown.
        :param is_whole: whether waiting servers are listed again; otherwise
            the last list of them is used, without newer servers.
        :raises CloudError: if a part of the cloud cannot be read.
        """
        self.unreadable = {}
        with clients.parsing('an answer of Nova or Placement'):
            built = None if is_whole else _building_servers(requests)
            return self._read_cloud(requests, given, now, ends, built)

    def used_by_users(
        self, view: CloudView
    ) -> dict[tuple[str, str], cluster.Amounts]:
        """Return the amounts that users have allocated, (c,), by project and
        user.

        Allocations of preemptible servers are left out.

        :param view: recent view of the cloud.
        :raises CloudError: if the allocations cannot be read.
        """
        users: dict[str, set[str]] = {}
        for each in view.servers.values():
            users.setdefault(each.project, set()).add(each.user)
        found = {}
        failures = clients.FailureTolerance()
        for project, names in sorted(users.items()):
            if not project or (_K.ACCOUNT, project) in self.unreadable:
                continue
            try:
                with clients.parsing(f'what users of {project} have'):
                    found.update(self._allocated_by_user(view, project, names))
            except exception.CloudError as error:
                failures.record(error)
                # The whole use is charged to the project alone.
                self.unreadable[_K.ACCOUNT, project] = error
        failures.check_failure_rate(len(users))
        return found

    def _allocated_by_user(
        self, view: CloudView, project: str, names: Collection[str]
    ) -> dict[tuple[str, str], cluster.Amounts]:
        found = {}
        for user, amounts in self._placement.allocated_by_users(
            project, sorted(names)
        ).items():
            snapshot = view.snapshot
            most = _largest_credible_use(snapshot.inventory)
            used = _used_amounts(amounts, snapshot.classes, most)
            lent = view.snapshot.preemptible.get((project, user), 0)
            found[project, user] = np.maximum(used - lent, 0)
        return found

    def _read_cloud(
        self,
        requests: Collection[request_model.Request],
        given: Mapping[str, tuple[str, ...]],
        now: float,
        ends: Mapping[str, float],
        built: Collection[str] | None,
    ) -> CloudView:
        # Before Placement: a server that is on a host now has claimed its
        # room.
        servers = self._nova.servers(now, built)
        self._record_unreadable(_K.SERVER, self._nova.unreadable)
        hosts, trees, others = self._read_hosts(now)
        own, shared = _without_shared_providers(trees.values(), others)
        requests = _with_held_demand(requests, servers, trees, shared)
        classes = self._resource_classes(own, now)
        inventory = _build_inventory(trees, classes)
        by_project = self._used_by_project(
            requests, servers, classes, inventory
        )
        rows = {each.name: row for row, each in enumerate(hosts)}
        running = self._running_servers(servers, requests, now, ends)
        for sent, uuid, host in _sent_without_allocation(
            requests, given, servers
        ):
            tree = trees.get(host)
            each = _sent_server(sent, uuid, host, tree, now, ends.get(uuid))
            running.append(each)
            one = cluster.amounts_vector(dict(each.amounts), classes)
            if each.host in rows:
                inventory.used[rows[each.host]] += one
            by_project[each.project] = by_project[each.project] + one
        _subtract_preemptible(running, by_project, classes)
        found = self._group_members(requests, servers, given, now)
        snapshot = cluster.ClusterSnapshot(
            classes,
            tuple(_build_provider(each, trees[each.name]) for each in hosts),
            inventory,
            tuple(requests),
            self._limits,
            by_project,
            found.hosts,
            self._accounts(),
            running=tuple(running),
            lifetimes=self._nova.lifetimes(),
            belongs=found.belongs,
            falls_back=self.falls_back,
            knows_classes=bool(hosts) and self._has_all_inventories,
        )
        return CloudView(snapshot, trees, servers)

    def _read_hosts(
        self, now: float
    ) -> tuple[
        list[nova_module.NovaHypervisor],
        dict[str, placement_module.ProviderTree],
        list[placement_module.ProviderTree],
    ]:
        """Return the hosts that Placement lists, their provider trees by
        name, and all other trees.
        """
        recent = self._nova.recent_changes(now)
        listed = self._nova.hosts()
        self._record_unreadable(_K.HOST, self._nova.hosts_unreadable)
        left = {each.uuid for each in listed if each.name in recent.left}
        found = self._placement.provider_trees(left, recent.users)
        names = {each.uuid: each.name for each in listed}
        self._record_unreadable(
            _K.HOST,
            {
                names.get(uuid, uuid): error
                for uuid, error in self._placement.unreadable.items()
            },
        )
        self._unread = {
            each.uuid: since
            for each in listed
            if each.uuid not in found
            and now - (since := self._unread.get(each.uuid, now)) < _UNREAD_S
        }
        closing = self._closing()
        hosts = [
            dataclasses.replace(each, takes=False)
            if each.name in closing
            else each
            for each in listed
            if each.uuid in found
        ]
        trees = {each.name: found.pop(each.uuid) for each in hosts}
        return hosts, trees, list(found.values())

    def _resource_classes(
        self, trees: Iterable[placement_module.ProviderTree], now: float
    ) -> tuple[str, ...]:
        """Return the resource classes that a host has, or had recently.

        Placement lists the classes of a host that is down, even while Nova
        does not list the host. A host that is installed again may have no
        classes for some time.

        :param trees: all provider trees except shared ones.
        """
        offered = {name for each in trees for name in each.amounts}
        self._offered.update(dict.fromkeys(offered, now))
        self._offered = {
            name: at
            for name, at in self._offered.items()
            if now - at < _REMEMBERED_S
        }
        return tuple(sorted(self._offered))

    @property
    def _has_all_inventories(self) -> bool:
        """Whether all inventories that hosts may have were read."""
        return self._placement.is_whole and not self._unread

    def _project_names(
        self,
        requests: Iterable[request_model.Request],
        servers: Mapping[str, nova_module.Server],
    ) -> list[str]:
        """Return the names of projects that may use resources."""
        projects = {
            *self._limits,
            *(each.project for each in requests),
            *(each.project for each in servers.values()),
        }
        return sorted(projects - {''})

    def _record_unreadable(
        self,
        kind: quarantine.InputKind,
        unreadable: Mapping[str, Exception],
    ) -> None:
        self.unreadable |= {
            (kind, name): error for name, error in unreadable.items()
        }

    def _running_servers(
        self,
        servers: Mapping[str, nova_module.Server],
        requests: Iterable[request_model.Request],
        now: float,
        ends: Mapping[str, float],
    ) -> list[cluster.Running]:
        """Return the servers on hosts. Unchanged servers are the same objects
        as in the last cycle.

        :param requests: requests, the oldest first.
        """
        preemptible = {
            uuid: each
            for uuid, each in request_model.newest_by_server(requests).items()
            if each.is_preemptible
        }
        there = {
            uuid: servers[uuid]
            for uuid in preemptible
            if uuid in servers and servers[uuid].host
        }
        claimed = self._claims.allocated_amounts(there, preemptible, now)
        before, self._seen = self._seen, {}
        for uuid, server in servers.items():
            if not server.host:
                continue
            request, end = preemptible.get(uuid), ends.get(uuid)
            amounts = claimed.get(uuid, server.amounts)
            seen = before.get(uuid)
            if (
                seen is None
                or seen.server is not server
                or seen.request is not request
                or seen.end != end
                or seen.running.amounts != amounts
                # Its start lay in the future, or was unknown.
                or seen.running.since != server.launched_at
            ):
                made = _running_server(server, request, amounts, end, now)
                seen = _CachedServer(server, request, end, made)
            self._seen[uuid] = seen
        return [each.running for each in self._seen.values()]

    def _used_by_project(
        self,
        requests: Collection[request_model.Request],
        servers: Mapping[str, nova_module.Server],
        classes: tuple[str, ...],
        inventory: cluster.Inventory,
    ) -> dict[str, cluster.Amounts]:
        most = _largest_credible_use(inventory)
        used = {}
        failures = clients.FailureTolerance()
        projects = self._project_names(requests, servers)
        for project in projects:
            try:
                with clients.parsing(f'what Placement says {project} uses'):
                    told = self._placement.allocated_by_project(project)
                    used[project] = _used_amounts(told, classes, most)
            except exception.CloudError as error:
                failures.record(error)
                self.unreadable[_K.ACCOUNT, project] = error
                used[project] = cluster.amounts_vector({}, classes)
        failures.check_failure_rate(len(projects))
        # The project of an unreadable message may be unknown.
        used[''] = cluster.amounts_vector({}, classes)
        return used

    def _group_members(
        self,
        requests: Collection[request_model.Request],
        servers: Mapping[str, nova_module.Server],
        given: Mapping[str, tuple[str, ...]],
        now: float,
    ) -> '_GroupMembers':
        """Return the running servers of server groups.

        A server that was sent also counts on its planned host. If the host of
        a member is unknown, no server of the group starts.
        """
        of_groups: dict[str, set[str]] = {}
        hosts = {uuid: each.host for uuid, each in servers.items()}
        for each in requests:
            if each.group:
                own = of_groups.setdefault(each.group.uuid, set())
                own.update(each.servers)
        for sent, uuid, host in _sent_without_allocation(
            requests, given, servers
        ):
            if sent.group:
                hosts[uuid] = hosts[uuid] or host
        listed = self._nova.group_members(of_groups)
        unread = dict(self._nova.groups_unreadable)
        unplaced = {
            group: {u for u in listed[group] if not hosts.get(u)} - own
            for group, own in of_groups.items()
        }
        hidden = self._nova.servers_on_unknown_hosts(
            set().union(*unplaced.values()), now
        )
        for group in unplaced:
            if lost := sorted(unplaced[group] & hidden):
                unread[group] = exception.CloudUnreadable(
                    f'where server {lost[0]} of server group {group} lies is'
                    ' not known: its cell may not answer'
                )
        for each in requests:
            if each.group and each.group.uuid in unread:
                why = unread[each.group.uuid]
                self.unreadable[_K.REQUEST, each.uuid] = why
        members, belongs = {}, {}
        for group, own in sorted(of_groups.items()):
            there = [u for u in own.union(listed[group]) if hosts.get(u)]
            members[group] = tuple(sorted(hosts[uuid] for uuid in there))
            belongs.update(dict.fromkeys(there, group))
        return _GroupMembers(members, belongs)


class _GroupMembers(NamedTuple):
    """Running servers of server groups, with their hosts.

    :ivar hosts: names of the hosts of members, by group.
    :ivar belongs: group of each server, by UUID of the server.
    """

    hosts: dict[str, tuple[str, ...]]
    belongs: dict[str, str]


class _CachedServer(NamedTuple):
    """A server in the form for planners, and the data from which it was
    built.
    """

    server: nova_module.Server
    request: request_model.Request | None
    end: float | None
    running: cluster.Running


def _running_server(
    server: nova_module.Server,
    request: request_model.Request | None,
    amounts: tuple[tuple[str, int], ...],
    end: float | None,
    now: float,
) -> cluster.Running:
    """Build the form of a running server that planners use.

    :param request: request of the server, if it is preemptible; otherwise
        ``None``.
    :param amounts: amounts of resource classes that the server uses.
    :param end: time limit of the server, seconds of the epoch.
    """
    return cluster.Running(
        server.host,
        server.project,
        amounts,
        _start_time(server, now),
        server.user,
        server.uuid,
        end,
        request.band if request else request_model.Band.NORMAL,
        request.group.uuid if request and request.group else '',
        pays=server.pays,
    )


def _largest_credible_use(inventory: cluster.Inventory) -> cluster.Amounts:
    """Return the largest credible use, (c,): twice the cloud, because hosts
    may be added or removed.
    """
    total = np.maximum(inventory.capacity, inventory.used).sum(axis=0)
    most: cluster.Amounts = 2 * total + request_model.LARGEST
    return most


def _used_amounts(
    told: Mapping[str, int], classes: tuple[str, ...], most: cluster.Amounts
) -> cluster.Amounts:
    """Return the used amounts that Placement lists, (c,).

    :raises ValueError: if an amount is below 0, or above the largest credible
        use.
    """
    found = cluster.amounts_vector(told, classes)
    if (found < 0).any() or (found > most).any():
        raise ValueError('less than nothing is used, or more than there is')
    return found


def _without_shared_providers(
    trees: Iterable[placement_module.ProviderTree],
    others: Iterable[placement_module.ProviderTree],
) -> tuple[list[placement_module.ProviderTree], set[str]]:
    """Return the provider trees that are not shared, and the resource classes
    that only shared providers have.

    :param trees: trees of hosts.
    :param others: all other trees of Placement.
    """
    listed = list(others)
    own = [*trees, *(each for each in listed if not each.is_shared)]
    shared = {n for e in listed if e.is_shared for n in e.amounts}
    return own, shared.difference(*(each.amounts for each in own))


def _with_held_demand(
    requests: Collection[request_model.Request],
    servers: Mapping[str, nova_module.Server],
    trees: Mapping[str, placement_module.ProviderTree],
    shared: Collection[str],
) -> Collection[request_model.Request]:
    """Return requests with the demand that is allocated for them on their
    hosts.

    :param shared: resource classes that only shared providers have; planners
        ignore them, because Nova checks them.
    """
    if not shared and not any(each.demand.is_open for each in requests):
        return requests
    return [
        dataclasses.replace(
            each, demand=_held_demand(each, servers, trees, shared)
        )
        if shared or each.demand.is_open
        else each
        for each in requests
    ]


def _held_demand(
    request: request_model.Request,
    servers: Mapping[str, nova_module.Server],
    trees: Mapping[str, placement_module.ProviderTree],
    shared: Collection[str],
) -> request_model.Demand:
    demand = request.demand.beside(shared)
    server = servers.get(request.servers[0])
    tree = trees.get(server.host) if server else None
    return demand.on(tree.offered_classes) if tree else demand


def _building_servers(requests: Iterable[request_model.Request]) -> list[str]:
    """Return the UUIDs of servers that Nova may be building."""
    return [
        uuid
        for each in requests
        if each.state in _SENT
        for uuid in each.servers
    ]


def _subtract_preemptible(
    running: Iterable[cluster.Running],
    by_project: dict[str, cluster.Amounts],
    classes: tuple[str, ...],
) -> None:
    """Subtract the amounts of preemptible servers from the use of projects."""
    for each in running:
        if each.band is request_model.Band.PREEMPTIBLE:
            one = cluster.amounts_vector(dict(each.amounts), classes)
            # Lists are read one after the other: they may differ.
            by_project[each.project] = np.maximum(
                by_project[each.project] - one, 0
            )


def _sent_without_allocation(
    requests: Iterable[request_model.Request],
    given: Mapping[str, tuple[str, ...]],
    servers: Mapping[str, nova_module.Server],
) -> Iterator[tuple[request_model.Request, str, str]]:
    """Yield servers that were sent and have no allocation yet, with their
    requests and hosts.
    """
    for each in requests:
        # Requests that need nothing have no hosts.
        hosts = given.get(each.uuid, ())
        for uuid, host in zip(each.servers, hosts, strict=False):
            if uuid in servers and not servers[uuid].is_settled:
                yield each, uuid, host


def _sent_server(
    request: request_model.Request,
    uuid: str,
    host: str,
    tree: placement_module.ProviderTree | None,
    now: float,
    ends: float | None,
) -> cluster.Running:
    """Build the form of a sent server that planners use, with the amounts that
    its host provides.

    :param ends: time limit of the server, seconds of the epoch; ``None`` if
        unknown.
    """
    way = request.demand.on(tree.offered_classes) if tree else request.demand
    return cluster.Running(
        host,
        request.project,
        way.amounts,
        now,
        request.user,
        uuid,
        ends,
        request.band,
    )


def _build_provider(
    host: nova_module.NovaHypervisor, tree: placement_module.ProviderTree
) -> cluster.Provider:
    return cluster.Provider(
        uuid=host.uuid,
        name=host.name,
        zone=host.zone,
        traits=tree.traits,
        aggregates=tree.aggregates,
        takes=host.takes and 'COMPUTE_STATUS_DISABLED' not in tree.traits,
    )


def _build_inventory(
    trees: Mapping[str, placement_module.ProviderTree],
    classes: tuple[str, ...],
) -> cluster.Inventory:
    """Return the inventory, with one row for each provider tree, in their
    order.
    """
    parts = [
        [tree.amounts.get(name, _ABSENT) for name in classes]
        for tree in trees.values()
    ]
    shape = (len(trees), len(classes), len(_ABSENT))
    amounts = np.array(parts, dtype=np.int64).reshape(shape)
    return cluster.Inventory(*(amounts[:, :, n].copy() for n in range(4)))


def _start_time(server: nova_module.Server, now: float) -> float:
    """Return the time since which a server runs; the present time if the
    clock of its host is ahead.
    """
    if server.launched_at is None:
        return now
    if server.launched_at - now > _AHEAD_S:
        LOG.warning(
            'server %s begins to run %.0f s from now by the clock of host %s:'
            ' it counts as new, and makes no room until then',
            server.log_name,
            server.launched_at - now,
            server.host,
        )
    return min(server.launched_at, now)
