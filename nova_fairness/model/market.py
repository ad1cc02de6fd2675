# SPDX-License-Identifier: Apache-2.0

"""Servers whose owners say what they spend, and where these would lie best.

A *rate* is what a server's owner spends for a unit of use. The *price* of a
host is the sum of the rates of its servers: each gets rate / price of what
the host has. The *level* of a host is its price beside what it has; where it
is high, a rate buys little.
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
    """An offer for a server, and its needs.

    :ivar rate: currency for a unit of use, > 0.
    :ivar vcpus: of the server, >= 1.
    :ivar demand: what a host must have to hold it, beside the amounts that it
        has; ``None`` if it may not be moved.
    :ivar cost: of moving it, > 0, MB of memory that is sent; 1 for all makes
        the moves the fewest. Moves tell it in whole MB.
    :ivar moved_at: when it was moved last, seconds of the epoch.
    :raises BadSnapshot: if a number is none of these.
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
    """A cloud, and what is spent for its servers.

    :ivar cloud: with what runs.
    :ivar bids: by UUID of the server; others stay, and pay ``lowest``.
    :ivar sold: resource classes of the cloud that are shared by rates.
    :ivar cores: by name of the host; others get no cores assigned.
    :ivar lowest: rate of servers without a bid, > 0.
    :raises BadSnapshot: if a class is not known or nothing is sold.
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

    :ivar host: name.
    :ivar share: by class that is sold: what it gets of the host while all of
        its servers want all they can, in units of the class.
    :ivar cores: of each of its VCPUs, from 0 up; empty if the cores of the
        host are not known.
    """

    host: str
    share: Mapping[str, float]
    cores: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class MarketPlan:
    """Moves, and their results.

    :ivar moves: wave by wave.
    :ivar stands: of all servers on known hosts afterwards, by UUID.
    :ivar prices: afterwards, by name of the host and class that is sold.
    :ivar level: mean of the levels at which currency is spent, before and
        after; 1 where all hosts are as dear and as large.
    :ivar blocked: servers that would have to move but find no room on the
        way; the others still get what they should.
    :ivar homeless: a server that found no room in thought, for which nothing
        is moved; '' if all did.
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
"""Least rate."""

LARGEST = 1e6
"""Greatest rate."""

MOST_SERVERS = 100_000
"""Largest number of servers that the rate of a group is for."""

_LONGEST_NAME = 100


@dataclasses.dataclass(frozen=True, slots=True)
class SpendingGroup:
    """Servers of a project for which something is spent together.

    :ivar project: to which they belong.
    :ivar name: of the group, unique in the project; its servers say it.
    :ivar rate: currency for a CPU-hour, of all together.
    :ivar count: number of servers that it is for; if there are more, each
        has less.
    :raises BadArgument: if one is out of its range.
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

    :ivar host: name.
    :ivar resource_class: that is paid for.
    :ivar at: from when on, seconds of the epoch.
    :ivar price: sum of the rates: currency for an hour, if all use one CPU.
    :ivar capacity: of the host, in units of the class.
    """

    host: str
    resource_class: str
    at: float
    price: float
    capacity: float
