# SPDX-License-Identifier: Apache-2.0

"""Amounts that Placement has allocated to preemptible servers now.

After a resize, a server has other amounts than its request asked for. The
allocations of servers that changed are read again at once, some in each look,
and those of all others in turn. Until then the least possible amount counts:
the amounts of preemptible servers are left out of the use of their project, so
a higher amount than the true one would hide use.

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
"""Servers that are read in one look."""

AGAIN_S = 3600.0
"""After which it is read again of servers that seem unchanged."""

_IN_TURN = 20
"""As many of these in one look."""

_MOVES = frozenset({'RESIZE', 'REVERT_RESIZE', 'MIGRATING'})

Amounts = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Claim:
    """Allocation of a server as it was read.

    :ivar server: as it was then.
    :ivar amounts: by class, sorted.
    :ivar at: when, seconds of the epoch.
    """

    server: nova.Server
    amounts: Amounts
    at: float


class Claims:
    """Reads what is allocated.

    :param placement: what Placement knows.
    """

    def __init__(self, placement: placement_module.Placement) -> None:
        self._placement = placement
        self._known: dict[str, _Claim] = {}
        self._failed: dict[str, float] = {}

    def of(
        self,
        servers: Mapping[str, nova.Server],
        asked: Mapping[str, request_model.Request],
        now: float,
    ) -> dict[str, Amounts]:
        """Amounts of some servers, by UUID.

        :param servers: preemptible ones that have a host, by UUID.
        :param asked: by which they came.
        :param now: seconds of the epoch.
        :returns: of those that cannot be read the least that it may be.
        """
        known = self._known.keys() | self._failed.keys()
        for uuid in known - servers.keys():
            self._known.pop(uuid, None)
            self._failed.pop(uuid, None)
        for uuid in self._due(servers, now):
            try:
                read = self._placement.allocated(uuid)
            except exception.CloudError as error:
                # The others come first in the next look.
                self._failed[uuid] = now
                LOG.warning(
                    'what server %s has is not known: %s',
                    servers[uuid].named,
                    error,
                )
                break
            self._failed.pop(uuid, None)
            amounts = tuple(sorted(read.items()))
            self._known[uuid] = _Claim(servers[uuid], amounts, now)
        return {
            uuid: self._amounts(each, asked[uuid].demand.amounts)
            for uuid, each in servers.items()
        }

    def _due(
        self, servers: Mapping[str, nova.Server], now: float
    ) -> list[str]:
        """UUIDs of those that are read now."""
        changed: list[tuple[float, str]] = []
        old: list[tuple[float, str]] = []
        for uuid, each in servers.items():
            known = self._known.get(uuid)
            at = self._failed.get(uuid, known.at if known else -math.inf)
            if known is None or known.server is not each or _changes(each):
                changed.append((at, uuid))
            elif not 0 <= now - at < AGAIN_S:
                old.append((at, uuid))
        first = [uuid for _, uuid in sorted(changed)[:AT_ONCE]]
        return first + [uuid for _, uuid in sorted(old)[:_IN_TURN]]

    def _amounts(self, server: nova.Server, asked: Amounts) -> Amounts:
        known = self._known.get(server.uuid)
        if known is not None and known.server is server:
            return known.amounts
        flavor = dict(server.amounts)
        if 'VCPU' in flavor:
            flavor['PCPU'] = flavor['VCPU']
        return _least([asked, *([known.amounts] if known else [])], flavor)


def _least(several: Iterable[Amounts], flavor: Mapping[str, int]) -> Amounts:
    """The least that each says; a flavor says nothing of other classes."""
    least: dict[str, int] | None = None
    for amounts in several:
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


def _changes(server: nova.Server) -> bool:
    """Whether what it has may change with no word of Nova's."""
    return bool(server.task) or server.status in _MOVES
