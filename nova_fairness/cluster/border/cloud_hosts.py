# SPDX-License-Identifier: Apache-2.0

"""The cloud's side of hosts that the batch system also uses."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

import numpy as np

from nova_fairness import exception
from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.openstack import nova as nova_module
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.cluster.store import leaves as leaves_module
from nova_fairness.model import border
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module

_W = border.WorkEnd

STALE_S = 120.0
"""Seconds after which the state of the queue's last cycle is too old to be
used.
"""

_MIGRATES_S = 600.0
"""Assumed duration of a live migration, in seconds, when the cost of
emptying a host is estimated; it may take longer.
"""


class CloudSide:
    """Reads hosts of the cloud from Nova, and opens and closes them for new
    servers.

    :param nova: lists services and servers; no other object uses it.
    :param placement: lists the servers that have resources on a host.
    :param leaves: store of the evictions of servers.
    :param patience: times that the steps of an eviction may take.
    :param moves: whether servers are live-migrated off hosts.
    :param settles_s: seconds after a host was closed during which a new server
        can still arrive there, because Nova chose the host before.
    """

    def __init__(
        self,
        nova: nova_module.Nova,
        placement: placement_module.Placement,
        leaves: leaves_module.EvictionTable,
        patience: evictor.EvictionTimeouts,
        moves: bool = False,
        settles_s: float = 30.0,
    ) -> None:
        self._nova = nova
        self._placement = placement
        self._leaves = leaves
        self._patience = patience
        self._moves = moves
        self._settles_s = settles_s
        self._closed: dict[str, float] = {}

    def look(
        self,
        nodes: Collection[border.BorderHost],
        last: start_estimates.LastCycle,
        now: float,
    ) -> border.SideSnapshot:
        """Read servers on hosts from Nova, and requests that could run there.

        :param nodes: hosts to read.
        :param last: state and plan of the queue's last cycle.
        :param now: seconds of the epoch.
        :raises CloudError: if the state of the cloud cannot be read.
        """
        if now - last.at > STALE_S:
            raise exception.CloudAway(
                f'the queue saw the cloud {now - last.at:.0f} s ago'
            )
        # Before servers: no server starts on a host that is closed here.
        services = self._nova.services()
        by_host: dict[str, list[nova_module.Server]] = {}
        for each in self._nova.servers(now).values():
            by_host.setdefault(each.host, []).append(each)
        mapped = _map_hosts(last.snapshot, {node.host.cloud for node in nodes})
        running = {each.uuid: each for each in last.snapshot.running}
        leaves = self._leaves.newest_in_states(eviction.GOING)
        places = {}
        for node in nodes:
            service = services.get(node.host.cloud)
            provider = mapped.providers.get(node.host.cloud)
            if service is None or provider is None:
                continue
            there = by_host.get(service.host, [])
            amounts = [_server_amounts(each, running) for each in there]
            work = [
                self._server_work(each, cores, running, leaves, now)
                for each, cores in zip(
                    there, mapped.cores(node.host, amounts), strict=True
                )
            ]
            work += self._unlisted_work(node, service, provider, there, now)
            places[service.host] = border.SideStatus(
                service.enabled,
                service.up,
                service.is_disabled_by_product,
                service.reason,
                tuple(work),
            )
        hosts = {node.host.cloud: node.host for node in nodes}
        wants = tuple(_requests_fitting_hosts(last, mapped, hosts))
        return border.SideSnapshot(places, wants)

    def close(self, host: str, text: str) -> None:
        """Close a host for new servers, unless it is closed.

        :param host: name of the host in Nova.
        :param text: reason that operators see in Nova.
        :raises CloudRefused: if Nova does not have the host, or if another
            service or an operator closed it.
        :raises CloudAway: if it is unknown whether the host was closed.
        """
        service = self._require_service(host)
        if service.enabled:
            self._nova.disable(service, f'{border.MARK}: {text}')
        elif not service.is_disabled_by_product:
            raise _foreign_close_error(service)

    def open(self, host: str) -> None:
        """Open a host that :meth:`close` closed for new servers.

        :param host: name of the host in Nova.
        :raises CloudRefused: see :meth:`close`.
        :raises CloudAway: see :meth:`close`.
        """
        service = self._require_service(host)
        if service.is_disabled_by_product:
            self._nova.enable(service)
        elif not service.enabled:
            raise _foreign_close_error(service)

    def _require_service(self, host: str) -> nova_module.ComputeService:
        service = self._nova.services().get(host)
        if service is None:
            raise exception.CloudRefused(f'Nova has no host {host}')
        return service

    def _server_work(
        self,
        server: nova_module.Server,
        cores: float,
        running: Mapping[str, cluster.Running],
        leaves: Mapping[str, eviction.Eviction],
        now: float,
    ) -> border.RunningWork:
        """Return a server as work on its host, with the latest time of its
        end and the method by which it leaves.
        """
        leave, seen = leaves.get(server.uuid), running.get(server.uuid)
        gone_at, way = None, _W.ENDS
        if leave and any(each.frees for each in leave.actions):
            lasts_s = self._patience.action_s * len(leave.actions)
            gone_at = leave.at + lasts_s
        elif seen and seen.ends_at is not None:
            gone_at = seen.ends_at
        elif seen and seen.band is request_model.Band.PREEMPTIBLE:
            lasts_s = self._patience.notice_s + self._patience.action_s
            gone_at, way = now + lasts_s, _W.YIELDS
        elif (
            self._moves
            and server.status in nova_module.MOVES
            and not server.task
        ):
            gone_at, way = now + _MIGRATES_S, _W.MOVES
        return border.RunningWork(server.uuid, cores, gone_at, way)

    def _unlisted_work(
        self,
        node: border.BorderHost,
        service: nova_module.ComputeService,
        provider: str,
        there: Iterable[nova_module.Server],
        now: float,
    ) -> Iterator[border.RunningWork]:
        """Yield work that Nova does not list, but that may exist on a host
        that is leaving the cloud.

        :param provider: UUID of the host's resource provider.
        """
        leaves = node.state is border.HostState.LEAVING_CLOUD
        if not leaves or service.enabled:
            self._closed.pop(service.host, None)
            return
        listed = {each.uuid for each in there}
        for consumer in sorted(
            self._placement.consumers_on_host(provider) - listed
        ):
            yield border.RunningWork(consumer, 0.0)
        since = self._closed.setdefault(service.host, now)
        if not 0 <= now - since < self._settles_s:
            return
        yield border.RunningWork(
            'what Nova may have begun', 0.0, since + self._settles_s
        )


def _foreign_close_error(
    service: nova_module.ComputeService,
) -> exception.CloudRefused:
    return exception.CloudRefused(
        f'host {service.host} was closed by another hand: {service.reason}'
    )


def _server_amounts(
    server: nova_module.Server, running: Mapping[str, cluster.Running]
) -> Mapping[str, int]:
    seen = running.get(server.uuid)
    return dict(seen.amounts if seen else server.amounts)


@dataclasses.dataclass(frozen=True)
class _PlacementHosts:
    """Hosts between batch system and cloud, as Placement lists them.

    :ivar hosts: these hosts, as if all of them were open for new servers.
    :ivar providers: UUIDs of resource providers, by name of the host.
    :ivar capacity: (c,) capacity of each resource class, by name of the host.
    :ivar classes: resource classes of Placement.
    """

    hosts: hosts_module.Hosts
    providers: Mapping[str, str]
    capacity: Mapping[str, cluster.Amounts]
    classes: tuple[str, ...]

    def cores(
        self, host: border.SharedHost, amounts: list[Mapping[str, int]]
    ) -> list[float]:
        """Return the cores of a host that each of its servers uses.

        A server uses the part of the cores that it uses of its scarcest
        resource class. The sum over all servers is the used part of the
        scarcest class of the host.
        """
        if not amounts:
            return []
        have = np.maximum(self.capacity[host.cloud], 1)
        parts = [
            cluster.amounts_vector(each, self.classes) / have
            for each in amounts
        ]
        own = np.max(parts, axis=1)
        total = float(np.sum(parts, axis=0).max())
        scale = host.cores * total / max(float(own.sum()), 1e-9)
        return [float(each) * scale for each in own]

    def least(
        self,
        demand: request_model.Demand,
        hosts: Mapping[str, border.SharedHost],
    ) -> float | None:
        """Return the smallest number of cores that a server would use on one
        of the hosts.

        :returns: ``None`` if the server fits on no host, even an empty one.
        """
        shape = self.hosts.shape(demand)
        if not len(shape.rows) or not len(shape.columns):
            return None
        parts = (shape.amounts * shape.inverse).max(axis=0)
        return min(
            float(part) * hosts[self.hosts.names[row]].cores
            for row, part in zip(shape.rows, parts, strict=True)
        )


def _map_hosts(
    snapshot: cluster.ClusterSnapshot, names: Collection[str]
) -> _PlacementHosts:
    rows = [
        row
        for row, each in enumerate(snapshot.providers)
        if each.name in names
    ]
    known = [snapshot.providers[row] for row in rows]
    have = snapshot.inventory
    inventory = cluster.Inventory(
        have.capacity[rows], have.used[rows], have.unit[rows], have.step[rows]
    )
    opened = tuple(dataclasses.replace(each, takes=True) for each in known)
    return _PlacementHosts(
        hosts_module.Hosts(
            cluster.ClusterSnapshot(snapshot.classes, opened, inventory)
        ),
        {each.name: each.uuid for each in known},
        {each.name: inventory.capacity[row] for row, each in enumerate(known)},
        snapshot.classes,
    )


def _requests_fitting_hosts(
    last: start_estimates.LastCycle,
    mapped: _PlacementHosts,
    hosts: Mapping[str, border.SharedHost],
) -> Iterator[border.PendingWork]:
    """Yield waiting requests that one of these hosts could serve.

    Preemptible requests are left out: no host moves for them.
    """
    for record in last.records:
        request = record.request
        waits = last.plan.waiting.get(request.uuid)
        if (
            waits is None
            or waits.why.reason not in reason.ROOM_HELPS
            or request.is_preemptible
        ):
            continue
        least = mapped.least(request.demand, hosts)
        if least is not None:
            cores = least * len(request.servers)
            yield border.PendingWork(
                request.uuid, cores, request.asked_at, least or None
            )
