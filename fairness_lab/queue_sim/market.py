# SPDX-License-Identifier: Apache-2.0

"""A published market of spending rates, with our planner beside.

Rajagopalan (2012) tells of 20 requests of four classes that came in two rounds
to 10 nodes of 8 cores, and of 4 and 8 migrations, but not in what order they
came. With the classes in turn the numbers are exactly these; other orders are
drawn.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from nova_fairness.model import cluster
from nova_fairness.model import market
from nova_fairness.planners.market import planner
from nova_fairness.shares import programs

Row = dict[str, Any]
Groups = Sequence[Sequence[int]]
Floats = npt.NDArray[np.float64]

_RATIO = 16
"""Allocation ratio: VCPUs for a core."""

_MEMORY_MIB = 1024
"""Of every server; hosts have much more than all together."""

CLASSES = (30.0, 60.0, 90.0, 120.0)
"""Rates of the classes, one server of 8 VCPUs each."""

_ORDER, _WHICH, _RATE = range(3)
_DRAWN = 200
_CHANGES = 100
_RULES = planner.MarketRules(margin=0.0)
"""Every better plan is carried out, as in the publication."""

_NEW = 1e-6
"""Cost of moving what has no node yet: it starts where the plan says."""


@dataclasses.dataclass(frozen=True, slots=True)
class MarketServer:
    """A server of a market.

    :ivar rate: of it.
    :ivar vcpus: of it.
    :ivar at: number of its node.
    :ivar is_new: whether it starts only now, and ``at`` says nothing.
    """

    rate: float
    vcpus: int
    at: int
    is_new: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class EqualNodes:
    """Equal nodes.

    :ivar count: of them.
    :ivar cores: of each.
    """

    count: int
    cores: int


EXAMPLE = EqualNodes(3, 4)
TESTBED = EqualNodes(10, 8)


def group_servers(
    servers: Sequence[MarketServer], nodes: int
) -> list[list[int]]:
    """Group servers by the published phase 1; return the servers of each
    group.
    """
    groups: list[list[int]] = [[] for _ in range(nodes)]
    prices = [0.0] * nodes
    for n in sorted(range(len(servers)), key=lambda n: -servers[n].rate):
        least = prices.index(min(prices))
        groups[least].append(n)
        prices[least] += servers[n].rate
    return groups


def leaving_servers(servers: Sequence[MarketServer], groups: Groups) -> Floats:
    """Count the servers that leave each node for each group, (p, g)."""
    found = np.zeros((len(groups), len(groups)))
    for g, group in enumerate(groups):
        for n, each in enumerate(servers):
            if not each.is_new and n not in group:
                found[each.at, g] += 1
    return found


def assign_in_order(migrations: Floats) -> list[int]:
    """Assign the first group to the first node, and so on."""
    return list(range(len(migrations)))


def assign_greedily(migrations: Floats) -> list[int]:
    """Return the group of each node by the published phase 3 (figure 3).

    Where the pseudo code runs out of groups, a node takes any that is left.
    """
    size = len(migrations)
    ranked = [np.argsort(row, kind='stable').tolist() for row in migrations]
    rank = [0] * size
    holder: dict[int, int] = {}
    for first in range(size):
        node: int | None = first
        while node is not None and rank[node] < size:
            group = ranked[node][rank[node]]
            other = holder.get(group)
            if other is None or _takes_next_best(
                migrations, ranked, rank, node, other
            ):
                holder[group] = node
                node = other
            if node is not None and other is not None:
                rank[node] += 1
    chosen = {node: group for group, node in holder.items()}
    left = iter(sorted(set(range(size)) - set(holder)))
    return [
        chosen[node] if node in chosen else next(left) for node in range(size)
    ]


def _takes_next_best(
    migrations: Floats,
    ranked: Sequence[Sequence[int]],
    rank: Sequence[int],
    node: int,
    other: int,
) -> bool:
    """Check whether the node of a group takes its next best group instead."""

    def cost(row: int, step: int) -> float:
        place = min(rank[row] + step, len(ranked) - 1)
        return float(migrations[row, ranked[row][place]])

    return cost(node, 0) + cost(other, 1) < cost(other, 0) + cost(node, 1)


def assign_optimally(migrations: Floats) -> list[int]:
    """Return the assignment of these groups with the fewest migrations."""
    found: list[int] = programs.assign(migrations).tolist()
    return found


MAPPINGS: Mapping[str, Callable[[Floats], list[int]]] = {
    'groups in their order': assign_in_order,
    'published search': assign_greedily,
    'best for these groups': assign_optimally,
}
"""Rules that choose the group of each node, by name."""

OURS = 'this planner'


def market_state(
    servers: Sequence[MarketServer], nodes: EqualNodes
) -> market.MarketState:
    """Build the market of servers; server ``n`` has the UUID ``server-n``."""
    names = [f'node-{n:02}' for n in range(nodes.count)]
    capacity = np.array([_MEMORY_MIB * 1000, nodes.cores * _RATIO])
    capacity = np.tile(capacity, (nodes.count, 1))
    used = np.zeros_like(capacity)
    running, bids = [], {}
    for n, each in enumerate(servers):
        one = workload.Size(each.vcpus, _MEMORY_MIB)
        used[each.at] += one.amounts
        uuid = f'server-{n:04}'
        amounts = one.demand.amounts
        running.append(
            cluster.Running(names[each.at], 'p', amounts, 0.0, uuid=uuid)
        )
        cost = _NEW if each.is_new else 1.0
        bids[uuid] = market.Bid(each.rate, each.vcpus, one.demand, cost)
    return market.MarketState(
        cluster.ClusterSnapshot(
            workload.CLASSES,
            tuple(cluster.Provider(each, each) for each in names),
            cluster.Inventory(capacity, used, capacity, used * 0 + 1),
            running=tuple(running),
        ),
        bids,
        cores=dict.fromkeys(names, nodes.cores),
    )


def example() -> list[Row]:
    """Three applications of two servers on three nodes of four cores.

    They were put on nodes in turn, which is how the first round does it.
    """
    applications = ((70.0, 2, 3), (60.0, 2, 3), (40.0, 2, 3))
    rates = [
        (rate / count, vcpus)
        for rate, count, vcpus in applications
        for _ in range(count)
    ]
    servers = [
        MarketServer(rate, vcpus, n % EXAMPLE.count)
        for n, (rate, vcpus) in enumerate(rates)
    ]
    plan = planner.plan(market_state(servers, EXAMPLE), 0.0, _RULES)
    return [
        {
            'server': f'A{n // 2 + 1}.{n % 2 + 1}',
            'rate': servers[n].rate,
            'before': f'node-{servers[n].at:02}',
            'node': stand.host,
            'price': plan.prices[stand.host]['VCPU'],
            'share': round(100 * stand.share['VCPU'] / _RATIO, 1),
            'cores': ' '.join(map(str, stand.cores)),
        }
        for n, (_, stand) in enumerate(sorted(plan.stands.items()))
    ]


def two_rounds(order: Sequence[int]) -> list[MarketServer]:
    """Build servers of the four classes; the first ten have one node each.

    :param order: class of each, 0 to 3.
    """
    return [
        MarketServer(CLASSES[kind], 8, n % TESTBED.count, n >= TESTBED.count)
        for n, kind in enumerate(order)
    ]


IN_TURN = (0, 1, 2, 3) * 5
"""Classes of the twenty in the order that is stated."""


def migrations(seed: int) -> list[Row]:
    """Count the migrations when ten servers join ten others.

    :param seed: of the orders that are drawn, >= 0.
    """
    orders = [IN_TURN, *(_shuffled_classes(seed, n) for n in range(_DRAWN))]
    rows = []
    for name in (*MAPPINGS, OURS):
        stated, *drawn = (
            _migrate_servers(two_rounds(order), TESTBED, name)[1]
            for order in orders
        )
        rows.append(
            {
                'groups go to nodes by': name,
                'in turn': stated,
                'mean of drawn': round(sum(drawn) / len(drawn), 2),
                'most of drawn': max(drawn),
            }
        )
    return rows


def changes(seed: int) -> list[Row]:
    """Count the migrations while rates change, one server after the other.

    Twenty servers run on ten nodes; a hundred times one of them gets a rate
    that is drawn of the four.

    :param seed: of who changes, and to what, >= 0.
    """
    turns = np.arange(_CHANGES)
    which = chance.uniform(seed, _WHICH, turns) * len(IN_TURN)
    drawn = chance.uniform(seed, _RATE, turns) * len(CLASSES)
    rows = []
    for name in (*MAPPINGS, OURS):
        servers = [
            dataclasses.replace(each, is_new=False)
            for each in two_rounds(IN_TURN)
        ]
        total, levels = 0, []
        for n, kind in zip(which.astype(int), drawn.astype(int), strict=True):
            servers[n] = dataclasses.replace(servers[n], rate=CLASSES[kind])
            servers, count = _migrate_servers(servers, TESTBED, name)
            total += count
            levels.append(_price_level(servers, TESTBED))
        rows.append(
            {
                'groups go to nodes by': name,
                'moves': total,
                'mean level': round(float(np.mean(levels)), 4),
            }
        )
    return rows


def _price_level(servers: Sequence[MarketServer], nodes: EqualNodes) -> float:
    """Return the mean price at which currency is spent; 1 if all nodes have
    one price.
    """
    prices = np.zeros(nodes.count)
    rates = np.array([each.rate for each in servers])
    np.add.at(prices, [each.at for each in servers], rates)
    total = rates.sum()
    return float((prices**2).sum() * nodes.count / total**2)


def _migrate_servers(
    servers: Sequence[MarketServer], nodes: EqualNodes, name: str
) -> tuple[list[MarketServer], int]:
    """Move the servers to the nodes that a rule chooses.

    :param name: rule: a key of :data:`MAPPINGS`, or :data:`OURS`.
    :returns: the servers on their new nodes, and the number of servers that
        moved from one node to another.
    """
    if name == OURS:
        plan = planner.plan(market_state(servers, nodes), 0.0, _RULES)
        stands = [plan.stands[each] for each in sorted(plan.stands)]
        at = [int(each.host.removeprefix('node-')) for each in stands]
    else:
        groups = group_servers(servers, nodes.count)
        at = [0] * len(servers)
        for node, group in enumerate(
            MAPPINGS[name](leaving_servers(servers, groups))
        ):
            for n in groups[group]:
                at[n] = node
    count = sum(
        each.at != row and not each.is_new
        for each, row in zip(servers, at, strict=True)
    )
    after = [
        dataclasses.replace(each, at=row, is_new=False)
        for each, row in zip(servers, at, strict=True)
    ]
    return after, count


def _shuffled_classes(seed: int, n: int) -> list[int]:
    """Return the classes of twenty servers, five of each, in random order."""
    size = len(IN_TURN)
    keys = chance.uniform(seed, _ORDER, n * size + np.arange(size))
    found: list[int] = (np.argsort(keys, kind='stable') % 4).tolist()
    return found


def tables(seed: int) -> dict[str, list[Row]]:
    """Return all tables of the market by name."""
    return {
        'example': example(),
        'migrations': migrations(seed),
        'changes': changes(seed),
    }
