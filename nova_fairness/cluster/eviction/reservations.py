# SPDX-License-Identifier: Apache-2.0

"""Validity of reservations, and the servers that must still be evicted for
them.

If several requests have reservations on one host, the first request starts in
the room that is free first, even if another request's victim freed it. Then
the other requests need the victims of the first one.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.model import request as request_model
from nova_fairness.planners import free_amounts
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.preemption import planner as preemption

Rooms = Mapping[str, tuple[records.ReservedRoom, request_model.Request]]
"""Reserved room and its request, by UUID of the request."""

Given = tuple[Collection[str], request_model.Request]
"""Names of hosts, one per server, and the request that has room there."""


def depends_on_preemptor(leave: eviction.Eviction) -> bool:
    """Return whether an eviction continues only while its preemptor needs the
    room.
    """
    return (
        leave.cause is eviction.EvictionCause.ROOM
        and leave.state in eviction.GOING
    )


def orphaned_victims(
    evictions: Mapping[str, eviction.Eviction], waiting_uuids: Collection[str]
) -> dict[str, eviction.Eviction]:
    """Return the evictions whose preemptors no longer wait, by UUID of the
    server.

    :param waiting_uuids: UUIDs of requests that still wait.
    """
    return {
        uuid: each
        for uuid, each in evictions.items()
        if depends_on_preemptor(each) and each.request not in waiting_uuids
    }


def needed_orphans(
    snapshot: cluster.ClusterSnapshot,
    orphans: Mapping[str, eviction.Eviction],
    departing: Collection[str],
    placed_requests: Iterable[Given],
) -> set[str]:
    """Return the orphaned victims that must still leave, because a request
    would otherwise lack room.

    A preemptible request does not get the victims of another request. The next
    plan decides about those victims by shares.

    :param orphans: evictions whose preemptor no longer waits, by UUID of the
        server.
    :param departing: UUIDs of all servers that will leave, with or without the
        orphans.
    :param placed_requests: hosts that are reserved, or were taken since the
        snapshot, with their requests.
    :returns: UUIDs of servers.
    """
    row = {each.name: n for n, each in enumerate(snapshot.providers)}
    left = _free_without(snapshot, set(departing) - orphans.keys())
    for hosts, request in placed_requests:
        if not request.is_preemptible:
            there = [row[host] for host in hosts if host in row]
            rows = np.array(there, dtype=np.intp)
            _subtract_amounts(left, rows, _amounts_of(request, snapshot, rows))
    running = {each.uuid: each for each in snapshot.running}
    found = set[str]()
    for uuid in sorted(orphans, key=lambda each: (orphans[each].at, each)):
        server = running.get(uuid)
        if server is None or server.host not in row:
            continue
        amounts = cluster.amounts_vector(
            dict(server.amounts), snapshot.classes
        )
        lacks = left.free[:, row[server.host]] < 0
        if np.logical_and(lacks, amounts > 0).any():
            left.give_back(row[server.host], amounts)
            found.add(uuid)
    return found


def valid_reservations(
    snapshot: cluster.ClusterSnapshot,
    reservations: Rooms,
    stayed_at: Mapping[str, float],
    closed_hosts: Collection[str],
) -> dict[str, tuple[records.ReservedRoom, request_model.Request]]:
    """Return the reservations that are still possible, the oldest first.

    Lists are read one after the other and may differ for a moment. So room is
    checked only on hosts where a victim was spared since the reservation.

    :param stayed_at: times at which victims were spared, in seconds of the
        epoch, by UUID.
    :param closed_hosts: hosts that must not have reservations.
    """
    if not reservations:
        return {}
    hosts = {each.uuid: each.host for each in snapshot.running}
    since: dict[str, float] = {}
    for uuid, at in stayed_at.items():
        host = hosts.get(uuid, '')
        since[host] = max(at, since.get(host, 0.0))
    row = {each.name: n for n, each in enumerate(snapshot.providers)}
    left = _free_without(snapshot, snapshot.leaving)
    found = {}
    for uuid, (room, request) in sorted(
        reservations.items(), key=lambda pair: (pair[1][0].at, pair[0])
    ):
        failed = any(
            stayed_at.get(each, -1.0) >= room.at
            and hosts.get(each) in room.hosts
            for each in room.leaving
        )
        if failed or any(host in closed_hosts for host in room.hosts):
            continue
        there = [row[host] for host in room.hosts if host in row]
        rows = np.array(there, dtype=np.intp)
        asked = _amounts_of(request, snapshot, rows)
        then = free_amounts.FreeAmounts(left.free)
        _subtract_amounts(then, rows, asked)
        in_doubt = [
            row[host]
            for host in row.keys() & set(room.hosts)
            if since.get(host, -1.0) >= room.at
        ]
        if (then.free[(asked > 0).any(axis=0)][:, in_doubt] >= 0).all():
            left, found[uuid] = then, (room, request)
    return found


def _free_without(
    snapshot: cluster.ClusterSnapshot, gone: Collection[str]
) -> free_amounts.FreeAmounts:
    """Return the free amounts of hosts after some servers have left."""
    return free_amounts.FreeAmounts(preemption.free_without(snapshot, gone).T)


def _subtract_amounts(
    free: free_amounts.FreeAmounts,
    rows: hosts_module.Rows,
    amounts_by_host: cluster.Amounts,
) -> None:
    """Subtract the amounts (h, c) of a request's servers from the free amounts
    of their hosts.
    """
    for row, amounts in zip(rows, amounts_by_host, strict=True):
        free.take(row, amounts)


def _amounts_of(
    request: request_model.Request,
    snapshot: cluster.ClusterSnapshot,
    rows: hosts_module.Rows,
) -> cluster.Amounts:
    """Return the amounts (h, c) that the servers of a request use on their
    hosts.
    """
    found = np.zeros((len(rows), len(snapshot.classes)), dtype=np.int64)
    classes = np.array(snapshot.classes, dtype=object)
    for n, row in enumerate(rows):
        has = classes[snapshot.inventory.capacity[row] > 0]
        way = request.demand.on(frozenset(has))
        found[n] = cluster.amounts_vector(dict(way.amounts), snapshot.classes)
    return found
