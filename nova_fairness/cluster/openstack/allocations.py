# SPDX-License-Identifier: Apache-2.0

"""Present allocations of preemptible servers in Placement.

After a resize, the amounts of a server differ from those of its request.
Allocations of changed servers are read again at once, a few in each look, and
those of all other servers in turn. Until then the lowest known amount counts:
amounts of preemptible servers are subtracted from the use of their project, so
a too high amount would hide use.

While a server is resized or moves, Placement has room on both hosts, one part
in the name of the migration. That part is not the server's, so it counts as
use of the project until it is freed.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import math

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.openstack import placement as placement_module
from nova_fairness.model import request as request_model

LOG = logging.getLogger(__name__)

AT_ONCE = 100
"""Largest number of changed servers that are read in one look."""

AGAIN_S = 3600.0
"""Seconds after which an unchanged server is read again."""

_IN_TURN = 20
"""Largest number of unchanged servers that are read in one look."""

_MOVES = frozenset({'RESIZE', 'REVERT_RESIZE', 'MIGRATING'})

Amounts = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _CachedAllocation:
    """Allocation of a server when it was last read.

    :ivar server: server as it was then.
    :ivar amounts: amounts by class, sorted.
    :ivar at: time of reading, seconds of the epoch.
    """

    server: nova.Server
    amounts: Amounts
    at: float


class AllocationCache:
    """Reads allocations of servers.

    :param placement: client of Placement.
    """

    def __init__(self, placement: placement_module.Placement) -> None:
        self._placement = placement
        self._known: dict[str, _CachedAllocation] = {}
        self._failed: dict[str, float] = {}

    def allocated_amounts(
        self,
        servers: Mapping[str, nova.Server],
        requests: Mapping[str, request_model.Request],
        now: float,
    ) -> dict[str, Amounts]:
        """Allocated amounts of some servers, by UUID.

        :param servers: preemptible servers on hosts, by UUID.
        :param requests: requests of these servers, by UUID of the server.
        :param now: seconds of the epoch.
        :returns: amounts; for servers that cannot be read, the lowest known
            ones.
        """
        known = self._known.keys() | self._failed.keys()
        for uuid in known - servers.keys():
            self._known.pop(uuid, None)
            self._failed.pop(uuid, None)
        for uuid in self._servers_to_read(servers, now):
            try:
                read = self._placement.allocated_amounts(uuid)
            except exception.CloudError as error:
                # The next look begins with the others.
                self._failed[uuid] = now
                LOG.warning(
                    'the allocation of server %s is unknown: %s',
                    servers[uuid].log_name,
                    error,
                )
                break
            self._failed.pop(uuid, None)
            amounts = tuple(sorted(read.items()))
            self._known[uuid] = _CachedAllocation(servers[uuid], amounts, now)
        return {
            uuid: self._lowest_known_amounts(
                each, requests[uuid].demand.amounts
            )
            for uuid, each in servers.items()
        }

    def _servers_to_read(
        self, servers: Mapping[str, nova.Server], now: float
    ) -> list[str]:
        """UUIDs of servers to read in this look."""
        changed: list[tuple[float, str]] = []
        old: list[tuple[float, str]] = []
        for uuid, each in servers.items():
            known = self._known.get(uuid)
            at = self._failed.get(uuid, known.at if known else -math.inf)
            if (
                known is None
                or known.server is not each
                or _allocation_may_change(each)
            ):
                changed.append((at, uuid))
            elif not 0 <= now - at < AGAIN_S:
                old.append((at, uuid))
        first = [uuid for _, uuid in sorted(changed)[:AT_ONCE]]
        return first + [uuid for _, uuid in sorted(old)[:_IN_TURN]]

    def _lowest_known_amounts(
        self, server: nova.Server, requested: Amounts
    ) -> Amounts:
        known = self._known.get(server.uuid)
        if known is not None and known.server is server:
            return known.amounts
        flavor = dict(server.amounts)
        if 'VCPU' in flavor:
            flavor['PCPU'] = flavor['VCPU']
        return _lowest_amounts(
            [requested, *([known.amounts] if known else [])], flavor
        )


def _lowest_amounts(
    alternatives: Iterable[Amounts], flavor: Mapping[str, int]
) -> Amounts:
    """Lowest amount of each class; a flavor says nothing of other classes."""
    least: dict[str, int] | None = None
    for amounts in alternatives:
        named = dict(amounts)
        names = named if least is None else least
        least = {
            name: min(named.get(name, 0), (least or named)[name])
            for name in names
        }
    return tuple(
        sorted(
            (name, min(amount, flavor.get(name, amount)))
            for name, amount in (least or {}).items()
        )
    )


def _allocation_may_change(server: nova.Server) -> bool:
    """Whether its allocation may change before Nova shows a change."""
    return bool(server.task) or server.status in _MOVES
