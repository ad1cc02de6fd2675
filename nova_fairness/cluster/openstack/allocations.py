# SPDX-License-Identifier: Apache-2.0

"""Cache of the allocations of preemptible servers in Placement.

After a resize, the amounts of a server differ from those of its request. In
each cycle, allocations of some changed servers and of some unchanged servers
are read again. Until then the lowest known amount counts: amounts of
preemptible servers are subtracted from the use of their project, so a too high
amount would hide use.

While a server is resized or moves, Placement has room on both hosts, one part
under the UUID of the migration. That part does not belong to the server, so it
counts as use of the project until it is freed.
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
"""Largest number of changed servers that one call reads."""

AGAIN_S = 3600.0
"""Seconds after which an unchanged server is read again."""

_IN_TURN = 20
"""Largest number of unchanged servers that one call reads."""

_MOVES = frozenset({'RESIZE', 'REVERT_RESIZE', 'MIGRATING'})

Amounts = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _CachedAllocation:
    """Allocation of a server when it was last read.

    :ivar server: the server at that time.
    :ivar amounts: amounts by class, sorted.
    :ivar at: time of reading, seconds of the epoch.
    """

    server: nova.Server
    amounts: Amounts
    at: float


class AllocationCache:
    """Reads allocations of servers, and caches them.

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
        """Return the allocated amounts of preemptible servers, by UUID.

        :param servers: preemptible servers on hosts, by UUID.
        :param requests: requests of these servers, by UUID of the server.
        :param now: seconds of the epoch.
        :returns: amounts by class; for a server that cannot be read, the
            lowest known amounts.
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
                    'server %s: its allocation in Placement cannot be read:'
                    ' %s',
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
        """Return the UUIDs of servers whose allocations this call reads."""
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
        """Return the cached amounts of a server; if they may be old, the
        lowest known amounts.
        """
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
    """Return the lowest amount of each class; classes that the flavor does not
    have are unchanged.
    """
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
    """Return whether the allocation of a server may change before Nova shows a
    change.
    """
    return bool(server.task) or server.status in _MOVES
