# SPDX-License-Identifier: Apache-2.0

"""The market: servers with spending rates, and the best hosts for them.

A *rate* is the currency that a server's owner spends for a unit of use. The
*price* of a host is the sum of the rates of its servers: each server gets rate
/ price of the host's capacity. The *level* of a host is its price divided by
its capacity; on a host with a high level, a rate buys little.
"""

from collections.abc import Mapping
import dataclasses
import math

from nova_fairness import exception
from nova_fairness.model import cluster
from nova_fairness.model import plans
from nova_fairness.model import request


@dataclasses.dataclass(frozen=True, slots=True)
class Bid:
    """The rate of a server, and its needs.

    :ivar rate: currency for a unit of use, > 0.
    :ivar vcpus: number of VCPUs of the server, >= 1.
    :ivar demand: properties that a host must have for it, in addition to the
        amounts; ``None`` if it may not be moved.
    :ivar cost: cost of a move, > 0, MB of memory that is sent. If it is 1 for
        all servers, the number of moves is minimal. Moves have it in whole MB.
    :ivar moved_at: time of its last move, seconds of the epoch.
    :raises BadSnapshot: if a number is out of its range.
    """

    rate: float
    vcpus: int = 1
    demand: request.Demand | None = None
    cost: float = 1.0
    moved_at: float = -math.inf

    def __post_init__(self) -> None:
        for name in ('rate', 'cost'):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise exception.BadSnapshot(
                    f'{name} of a bid must be above 0 and finite,'
                    f' got {value!r}'
                )
        if self.vcpus < 1:
            raise exception.BadSnapshot(
                f'vcpus of a bid must be at least 1, got {self.vcpus!r}'
            )


@dataclasses.dataclass(frozen=True, eq=False)
class MarketState:
    """A cloud, and the rates of its servers.

    :ivar cloud: the cloud with its running servers.
    :ivar bids: bids by UUID of the server; other servers are not moved, and
        pay ``lowest``.
    :ivar sold: resource classes of the cloud that are shared by rates.
    :ivar cores: number of cores by name of the host; on other hosts no cores
        are assigned.
    :ivar lowest: rate of servers without a bid, > 0.
    :raises BadSnapshot: if a class is unknown or no class is sold.
    """

    cloud: cluster.ClusterSnapshot
    bids: Mapping[str, Bid]
    sold: tuple[str, ...] = ('VCPU',)
    cores: Mapping[str, int] = dataclasses.field(default_factory=dict)
    lowest: float = 1.0

    def __post_init__(self) -> None:
        unknown = sorted({*self.sold} - {*self.cloud.classes})
        if unknown or not self.sold:
            known = ', '.join(self.cloud.classes)
            raise exception.BadSnapshot(
                f'sold must be some of the classes {known},'
                f' got {", ".join(self.sold) or "none"}'
            )
        if not 0.0 < self.lowest < math.inf:
            raise exception.BadSnapshot(
                f'lowest must be above 0 and finite, got {self.lowest!r}'
            )
        for name, cores in self.cores.items():
            if cores < 1:
                raise exception.BadSnapshot(
                    f'cores of {name} must be at least 1, got {cores!r}'
                )


@dataclasses.dataclass(frozen=True, slots=True)
class Stand:
    """Share and cores of a server on its host.

    :ivar host: name of the host.
    :ivar share: amount that the server gets while all servers of the host use
        as much as they can, in units of the class, by sold class.
    :ivar cores: core of each VCPU, from 0 up; empty if the cores of the host
        are unknown.
    """

    host: str
    share: Mapping[str, float]
    cores: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class MarketPlan:
    """Moves of servers, and their results.

    :ivar moves: moves, wave by wave.
    :ivar stands: share and cores of all servers on known hosts after the
        moves, by UUID.
    :ivar prices: prices after the moves, by name of the host and sold class.
    :ivar level: mean level over all rates, before and after the moves; 1 if
        all hosts have the same size and price.
    :ivar blocked: servers that should move, but for which no intermediate host
        has room; other servers still move.
    :ivar homeless: UUID of a server for which the new groups have no room, so
        that no server moves; '' without one.
    """

    moves: tuple[plans.Move, ...]
    stands: Mapping[str, Stand]
    prices: Mapping[str, Mapping[str, float]]
    level: tuple[float, float]
    blocked: tuple[str, ...] = ()
    homeless: str = ''

    @property
    def cost_mb(self) -> int:
        """Memory that all moves send, MB."""
        return sum(each.cost_mb for each in self.moves)


SMALLEST = 0.001
"""Smallest allowed rate."""

LARGEST = 1e6
"""Largest allowed rate."""

MOST_SERVERS = 100_000
"""Largest ``count`` of a group."""

_LONGEST_NAME = 100


@dataclasses.dataclass(frozen=True, slots=True)
class SpendingGroup:
    """Servers of a project with a common spending rate.

    :ivar project: project of the servers.
    :ivar name: name of the group, unique in the project; servers name it.
    :ivar rate: currency for a CPU-hour, for all servers together.
    :ivar count: number of servers for which the rate is; if the group has
        more servers, each has a lower rate.
    :raises BadArgument: if a value is out of its range.
    """

    project: str
    name: str
    rate: float
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= _LONGEST_NAME or '/' in self.name:
            raise exception.BadArgument(
                f'a group has a name of 1 to {_LONGEST_NAME} characters'
                f' without a slash, got {self.name!r:.120}'
            )
        if not SMALLEST <= self.rate <= LARGEST:
            raise exception.BadArgument(
                f'rate of group {self.name} must be a number from'
                f' {SMALLEST:g} to {LARGEST:g}, got {self.rate!r}'
            )
        if not 1 <= self.count <= MOST_SERVERS:
            raise exception.BadArgument(
                f'count of group {self.name} must be from 1 to'
                f' {MOST_SERVERS}, got {self.count!r}'
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """Sum of the spending of all servers of a host for one class.

    :ivar host: name of the host.
    :ivar resource_class: resource class for which servers pay.
    :ivar at: time from which the price holds, seconds of the epoch.
    :ivar price: sum of the rates: currency for an hour, if all use one CPU.
    :ivar capacity: capacity of the host, in units of the class.
    """

    host: str
    resource_class: str
    at: float
    price: float
    capacity: float
