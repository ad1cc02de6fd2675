# SPDX-License-Identifier: Apache-2.0

"""Servers and hosts of a market, as arrays.

Servers with the same needs and the same rate are one *type*: they are
interchangeable. A *group* has the servers that are to be together on one host,
as a count of each type. There are as many groups as hosts, and each is made
for one host, its *home*.
"""

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.planners import hosts as hosts_module

Floats = npt.NDArray[np.float64]
Rows = hosts_module.Rows
Marks = hosts_module.Marks


@dataclasses.dataclass(frozen=True, eq=False)
class ServerType:
    """Interchangeable servers: they have the same needs and the same rate.

    :ivar rate: rate of each server.
    :ivar shape: amounts that each server needs, and its possible hosts.
    :ivar amounts: (c,) amounts of each server.
    :ivar buys: (k,) whether a server has an amount of each class that is sold.
    :ivar servers: indices of the servers in :attr:`MarketArrays.running`.
    """

    rate: float
    shape: hosts_module.Shape
    amounts: cluster.Amounts
    buys: Marks
    servers: Rows


class MarketArrays:
    """Input of a market plan, as arrays.

    :param given: state of the market.
    :param now: seconds of the epoch.
    :param hold_s: seconds for which a server stays after a move.

    :ivar hosts: the hosts.
    :ivar sold: (k,) columns of the resource classes that are sold.
    :ivar running: (n,) servers on known hosts, sorted by UUID.
    :ivar rate: (n,) rates of servers.
    :ivar cost: (n,) cost of a move of each server.
    :ivar amounts: (n, c) amounts of servers.
    :ivar at: (n,) rows of the hosts of servers.
    :ivar types: types of servers that may be moved, sorted by rate and size,
        the largest first.
    :ivar room: (c, p) room of hosts for these servers.
    :ivar staying: (k, p) sum of the rates of all other servers.
    """

    def __init__(
        self, given: market.MarketState, now: float, hold_s: float
    ) -> None:
        cloud = given.cloud
        self.hosts = hosts_module.Hosts(cloud)
        row = {name: n for n, name in enumerate(self.hosts.names)}
        self.running = sorted(
            (each for each in cloud.running if each.host in row),
            key=lambda each: each.uuid,
        )
        usual = market.Bid(given.lowest)
        self.bids = [given.bids.get(each.uuid, usual) for each in self.running]
        self.rate = np.array([each.rate for each in self.bids])
        self.cost = np.array([each.cost for each in self.bids])
        self.at = np.array([row[e.host] for e in self.running], dtype=np.intp)
        amounts = [
            cluster.amounts_vector(dict(each.amounts), cloud.classes)
            for each in self.running
        ]
        shape = (len(self.running), len(cloud.classes))
        self.amounts = np.array(amounts, np.int64).reshape(shape)
        self.sold = np.array(
            [cloud.classes.index(name) for name in given.sold], dtype=np.intp
        )
        self.buys = self.amounts[:, self.sold] > 0
        shapes = [
            self._shape(n, now, hold_s, {*cloud.classes})
            for n in range(len(self.running))
        ]
        self.types = self._build_types(shapes)
        moving = np.array([each is not None for each in shapes], dtype=bool)
        self.room = self.hosts.free.copy()
        for n in np.flatnonzero(moving):
            self.room[:, self.at[n]] += self.amounts[n]
        self.staying = self.prices(self.at, ~moving)

    @functools.cached_property
    def supply(self) -> Floats:
        """Return the capacity of each host in sold classes, (k, p); 1 is
        the mean host.
        """
        capacity = self.hosts.capacity[self.sold].astype(np.float64)
        mean = capacity.mean(axis=1, keepdims=True)
        found: Floats = capacity / np.where(mean > 0, mean, 1.0)
        return found

    @functools.cached_property
    def index(self) -> Rows:
        """Return the type of each server, (n,); -1 for servers that stay."""
        found = np.full(len(self.running), -1, dtype=np.intp)
        for t, each in enumerate(self.types):
            found[each.servers] = t
        return found

    def prices(self, at: Rows, which: Marks | None = None) -> Floats:
        """Return the sum of the rates on each host, for each sold class, (k,
        p).

        :param at: (n,) rows of the hosts of servers.
        :param which: (n,) servers that are counted; ``None`` for all.
        """
        rate = self.rate if which is None else self.rate * which
        found = [
            np.bincount(at, rate * buys, len(self.hosts.names))
            for buys in self.buys.T
        ]
        return np.array(found)

    def levels(self, prices: Floats) -> Floats:
        """Return the price per supply of each host, in its most expensive
        class, (p,).

        :param prices: (k, p).
        """
        return price_level(prices, self.supply)

    def mean_level(self, at: Rows) -> float:
        """Return the mean level, weighted by rates, times number of hosts /
        sum of rates.

        :param at: (n,) rows of the hosts of servers.
        """
        total = float(self.rate.sum())
        if not total:
            return 0.0
        spent = self.levels(self.prices(at))[at] @ self.rate
        return float(spent) * len(self.hosts.names) / total**2

    def _shape(
        self, n: int, now: float, hold_s: float, known: set[str]
    ) -> hosts_module.Shape | None:
        """Return the shape of a server; ``None`` if the server must stay on
        its host.
        """
        each, bid = self.running[n], self.bids[n]
        if (
            bid.demand is None
            # The rule of its server group is not known here.
            or each.group
            or now - bid.moved_at < hold_s
            or not known >= {name for name, _ in each.amounts}
        ):
            return None
        shape = self.hosts.shape(
            dataclasses.replace(bid.demand, amounts=each.amounts)
        )
        return shape if self.at[n] in shape.rows else None

    def _build_types(
        self, shapes: list[hosts_module.Shape | None]
    ) -> list[ServerType]:
        found: dict[tuple[float, int], list[int]] = {}
        known: dict[int, hosts_module.Shape] = {}
        for n, shape in enumerate(shapes):
            if shape is not None:
                # Shapes are kept, so that equal ones are one object.
                known[id(shape)] = shape
                key = (float(self.rate[n]), id(shape))
                found.setdefault(key, []).append(n)
        types = [
            ServerType(
                rate,
                known[which],
                self.amounts[servers[0]],
                self.buys[servers[0]],
                np.array(servers, dtype=np.intp),
            )
            for (rate, which), servers in found.items()
        ]
        part = np.maximum(self.hosts.capacity.sum(axis=1), 1)
        return sorted(
            types,
            key=lambda each: (
                -each.rate,
                -float((each.amounts / part).sum()),
                int(each.servers[0]),
            ),
        )


def price_level(prices: Floats, supply: Floats) -> Floats:
    """Return the price per supply, in the most expensive class.

    Classes without supply do not count, because no server that needs them can
    be placed there.

    :param prices: (k, ...).
    :param supply: (k, ...).
    """
    has = supply > 0
    found = np.where(has, prices / np.where(has, supply, 1.0), 0.0)
    dearest: Floats = found.max(axis=0)
    return dearest
