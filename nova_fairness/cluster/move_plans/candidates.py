# SPDX-License-Identifier: Apache-2.0

"""Servers that may be live-migrated, and the requirements on their new hosts.

If Nova does not report a property of a running server, the strictest value is
assumed. Nova checks each migration again.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import plans
from nova_fairness.model import request as request_model

_BOUND = (
    'resources',
    'pci_passthrough:',
    'accel:',
    'hw:numa_',
    'hw:cpu_policy',
    'hw:cpu_thread_policy',
    'hw:cpu_dedicated_mask',
    'hw:cpu_realtime',
    'hw:mem_page_size',
    'hw:pmem',
    'hw:mem_encryption',
    'hw:vif_',
)
"""Prefixes of extra specs of flavors that bind servers to the hardware of
their host, or give them more resources than the flavor lists.
"""

_TRAIT = 'trait:'
_C = plans.PlanCause


@dataclasses.dataclass(frozen=True)
class ServerFacts:
    """Facts about servers that are not in the snapshot.

    :ivar servers: servers as Nova lists them, by UUID.
    :ivar groups: server groups with a policy that binds, by UUID of their
        members.
    :ivar stays: UUIDs of servers that must not be moved now.
    :ivar excluded_hosts: names of hosts that plans must not change.
    :ivar sends: memory that the last migration of a server sent, as a multiple
        of the server's memory, by UUID; >= 0.
    :ivar own: names of hosts that only this plan may use.
    """

    servers: Mapping[str, nova.Server]
    groups: Mapping[str, request_model.Group] = dataclasses.field(
        default_factory=dict
    )
    stays: Collection[str] = ()
    excluded_hosts: Collection[str] = ()
    sends: Mapping[str, float] = dataclasses.field(default_factory=dict)
    own: Collection[str] = ()

    def but(self, host: str) -> 'ServerFacts':
        """Return these facts, in which all servers of a host may be moved."""
        left = frozenset(self.excluded_hosts) - {host}
        return dataclasses.replace(self, excluded_hosts=left, stays=())


def with_movable_demands(
    snapshot: cluster.ClusterSnapshot, known: ServerFacts
) -> cluster.ClusterSnapshot:
    """Return a snapshot that contains the demand of each server that may be
    moved.
    """
    zones = {each.name: each.zone for each in snapshot.providers}
    running = tuple(
        dataclasses.replace(
            each,
            demand=_movable_demand(each, zones, snapshot, known),
            bound=known.groups.get(each.uuid),
            sends=known.sends.get(each.uuid, 1.0),
        )
        for each in snapshot.running
    )
    providers = tuple(
        dataclasses.replace(each, takes=each.name not in known.excluded_hosts)
        if each.name in {*known.excluded_hosts, *known.own}
        else each
        for each in snapshot.providers
    )
    return dataclasses.replace(snapshot, running=running, providers=providers)


def needs_host_hardware(server: nova.Server) -> bool:
    """Whether a server needs hardware of its host that the lists of
    Placement do not contain.
    """
    return any(name.startswith(_BOUND) for name, _ in server.specs)


Why = tuple[plans.PlanCause, str]
"""Cause for programs, and text for people, why a server stays on its host."""


def reason_to_stay(
    running: cluster.Running,
    snapshot: cluster.ClusterSnapshot,
    known: ServerFacts,
) -> Why | None:
    """Return the reason why a server may not be moved now; ``None`` if it
    may.
    """
    server = known.servers.get(running.uuid)
    if server is None:
        return _C.SERVER_GONE, ''
    if server.host != running.host:
        return _C.ELSEWHERE, f'it is on {server.host or "no host"}'
    if server.status not in nova.MOVES:
        return _C.BUSY, f'it is {server.status}'
    if server.task:
        return _C.BUSY, server.task
    if server.is_locked:
        return _C.LOCKED, 'it is locked'
    if needs_host_hardware(server):
        return _C.LOCKED, 'its flavor binds it to the hardware of its host'
    if running.uuid in snapshot.leaving:
        return _C.BUSY, 'it was told to leave'
    if running.uuid in known.stays:
        return _C.BUSY, 'it was moved, or could not be, a short while ago'
    if running.host in known.excluded_hosts:
        return _C.HOST_CLOSED, f'host {running.host} is left alone'
    return None


def _movable_demand(
    running: cluster.Running,
    zones: Mapping[str, str],
    snapshot: cluster.ClusterSnapshot,
    known: ServerFacts,
) -> request_model.Demand | None:
    if running.host not in zones or reason_to_stay(running, snapshot, known):
        return None
    server = known.servers[running.uuid]
    traits: dict[str, set[str]] = {'required': set(), 'forbidden': set()}
    for name, value in server.specs:
        if name.startswith(_TRAIT) and value in traits:
            traits[value].add(name.removeprefix(_TRAIT))
    return request_model.Demand(
        running.amounts,
        required=frozenset(traits['required']),
        forbidden=frozenset(traits['forbidden']),
        zone=_required_zone(server, zones[running.host]),
    )


def _required_zone(server: nova.Server, here: str) -> str:
    """Return the availability zone in which a server must stay; '' for any
    zone.

    Nova reports the zone of a server from microversion 2.96 on. Nothing
    reports whether volumes can be reached from another zone.
    """
    if server.pinned:
        return server.pinned
    is_free = server.pinned is not None and not server.has_volumes
    return '' if is_free else here
