# SPDX-License-Identifier: Apache-2.0

"""Hosts on which one request fits now, regardless of its position in the
queue.

Room that is promised to other requests, or reserved for them, is not used.
Limits, shares and the order do not count: an operator has decided.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import capacity
from nova_fairness.planners.fairqueue import order


@dataclasses.dataclass(frozen=True)
class Fit:
    """Hosts for a request, or the resources that it lacks.

    :ivar hosts: names, one per server; empty if there is no room for all.
    :ivar why: why it lacks room; ``None`` if it lacks nothing, or only room
        that is reserved for others.
    """

    hosts: tuple[str, ...] = ()
    why: reason.Why | None = None


def find_fit(
    snapshot: cluster.ClusterSnapshot,
    request: request_model.Request,
    kept: Mapping[str, Iterable[str]],
) -> Fit:
    """Find hosts for one request in room that is free and not reserved.

    :param snapshot: state of the cloud, with the request.
    :param request: the waiting request.
    :param kept: names of reserved hosts, by UUID of their request.
    """
    unit = order.Unit((request,))
    free = capacity.FreeRoom(snapshot)
    never = free.never(unit)
    if never is not None:
        return Fit(why=never)
    if (lack := free.lacking(unit)) is not None:
        return Fit(why=lack())
    beside = capacity.FreeRoom(
        _with_closed_hosts(snapshot, _hosts_of_others(kept, request))
    )
    _take_reserved_room(beside, snapshot, request)
    found = None if beside.never(unit) else beside.find(unit)
    if found is None:
        return Fit()
    return Fit(tuple(n for rows in found for n in beside.names(rows)))


def _hosts_of_others(
    kept: Mapping[str, Iterable[str]], request: request_model.Request
) -> frozenset[str]:
    """Return the hosts that are reserved for other requests, and not for
    this one.
    """
    own = frozenset(kept.get(request.uuid, ()))
    return frozenset(h for hosts in kept.values() for h in hosts) - own


def _with_closed_hosts(
    snapshot: cluster.ClusterSnapshot, names: frozenset[str]
) -> cluster.ClusterSnapshot:
    """Return a snapshot in which no servers start on some hosts."""
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                each, takes=each.takes and each.name not in names
            )
            for each in snapshot.providers
        ),
    )


def _take_reserved_room(
    room: capacity.FreeRoom,
    snapshot: cluster.ClusterSnapshot,
    request: request_model.Request,
) -> None:
    """Use the room that is reserved for other requests, if all their hosts
    exist.
    """
    for each in snapshot.requests:
        rows = room.hosts.rows(snapshot.promised.get(each.uuid, ()))
        if each.uuid != request.uuid and len(rows) == len(each.servers):
            room.take(order.Unit((each,)), (rows,))
