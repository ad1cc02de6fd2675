# SPDX-License-Identifier: Apache-2.0

"""Planner that moves servers so that a spending rate buys the same amount on
every host.

This is the proportional-share market of Rajagopalan (2012), for hosts of
different size and several resources. A plan depends on the market alone.
Groups do not depend on the present hosts of servers, so the next plan for the
state after a plan has no moves. Not all wanted moves may be possible. Each
plan must lower the mean level, which is the price of a resource, by at least
the margin, with the moves that are possible. So the sequence of plans ends.
"""

import dataclasses

import numpy as np

from nova_fairness.model import market
from nova_fairness.model import plans
from nova_fairness.planners.market import arrays
from nova_fairness.planners.market import cores
from nova_fairness.planners.market import group_hosts
from nova_fairness.planners.market import move_order
from nova_fairness.planners.market import server_groups


@dataclasses.dataclass(frozen=True, slots=True)
class MarketRules:
    """Limits of a market plan, chosen by operators.

    :ivar margin: part by which a plan must lower the mean level, 0 to 1;
        otherwise no server moves. Each plan makes new groups: with a small
        margin many servers move for a small gain.
    :ivar slack: part by which a rate may buy less on the new host of a group
        than on its home, >= 0; the larger, the fewer moves.
    :ivar hold_s: seconds for which a server stays after a move, >= 0.
    """

    margin: float = 0.02
    slack: float = 0.0
    hold_s: float = 0.0


USUAL = MarketRules()

_PARTS = 20
"""Largest number of times that a plan starts again from a state that moves
reached.
"""


def plan(
    given: market.MarketState, now: float, rules: MarketRules = USUAL
) -> market.MarketPlan:
    """Plan moves, and compute what each server gets after them.

    :param given: state of the market.
    :param now: seconds of the epoch.
    :param rules: bounds of operators.
    """
    field = part = arrays.MarketArrays(given, now, rules.hold_s)
    waves: list[move_order.Wave] = []
    at, wanted, homeless = field.at, field.at, ''
    for _ in range(_PARTS):
        wanted, homeless = _wanted_hosts(part, rules)
        found = move_order.order_moves(part, wanted)
        reached = move_order.hosts_after_waves(part, found)
        if not _is_better(part, reached, rules.margin):
            # The wanted state cannot be reached, and the reachable state is
            # not better enough.
            break
        waves, at = (
            move_order.without_double_moves(field, [*waves, *found]),
            reached,
        )
        if (reached == wanted).all():
            break
        # More may find room from there on.
        after = _market_after(given, field, reached)
        part = arrays.MarketArrays(after, now, rules.hold_s)
    blocked = tuple(
        field.running[n].uuid for n in np.flatnonzero(at != wanted)
    )
    moves = move_order.moves_of_waves(field, waves)
    return _market_plan(field, given, at, moves, blocked, homeless)


def _wanted_hosts(
    field: arrays.MarketArrays, rules: MarketRules
) -> tuple[arrays.Rows, str]:
    """Return the new hosts of servers, and the UUID of a server without room,
    or ''.

    :returns: (n,) rows of hosts; the present ones if a change is not worth it.
    """
    counts, homeless = server_groups.group_servers(field)
    if homeless >= 0:
        first = field.types[homeless].servers[0]
        return field.at, field.running[int(first)].uuid
    after = group_hosts.assign_groups(field, counts, rules.slack)
    is_better = _is_better(field, after, rules.margin)
    return (after if is_better else field.at), ''


def _market_after(
    given: market.MarketState, field: arrays.MarketArrays, at: arrays.Rows
) -> market.MarketState:
    """Return the market after servers have moved.

    :param at: (n,) rows of the new hosts of servers.
    """
    cloud, names = given.cloud, field.hosts.names
    row = {each.name: n for n, each in enumerate(cloud.providers)}
    used = cloud.inventory.used.copy()
    there = {}
    for n in np.flatnonzero(at != field.at):
        each = field.running[n]
        used[row[each.host]] -= field.amounts[n]
        used[row[names[at[n]]]] += field.amounts[n]
        there[each.uuid] = names[at[n]]
    running = tuple(
        dataclasses.replace(each, host=there.get(each.uuid, each.host))
        for each in cloud.running
    )
    inventory = dataclasses.replace(cloud.inventory, used=used)
    cloud = dataclasses.replace(cloud, inventory=inventory, running=running)
    return dataclasses.replace(given, cloud=cloud)


def _is_better(
    field: arrays.MarketArrays, after: arrays.Rows, margin: float
) -> bool:
    before = field.mean_level(field.at)
    # Sums in another order differ in their last digits.
    return field.mean_level(after) < before * (1.0 - max(margin, 1e-9))


def _market_plan(
    field: arrays.MarketArrays,
    given: market.MarketState,
    at: arrays.Rows,
    moves: tuple[plans.Move, ...],
    blocked: tuple[str, ...] = (),
    homeless: str = '',
) -> market.MarketPlan:
    prices = field.prices(at)
    return market.MarketPlan(
        moves,
        _stands_by_uuid(field, given, at, prices),
        {
            host: dict(zip(given.sold, prices[:, row].tolist(), strict=True))
            for row, host in enumerate(field.hosts.names)
        },
        (field.mean_level(field.at), field.mean_level(at)),
        blocked,
        homeless,
    )


def _stands_by_uuid(
    field: arrays.MarketArrays,
    given: market.MarketState,
    at: arrays.Rows,
    prices: arrays.Floats,
) -> dict[str, market.Stand]:
    """Return the host, the amounts and the cores of each server, by UUID."""
    paid = field.buys * field.rate[:, np.newaxis]
    part = paid / np.where(paid > 0, prices[:, at].T, 1.0)
    shares = part * field.hosts.capacity[field.sold][:, at].T
    pinned = _assigned_cores(field, given, at)
    return {
        each.uuid: market.Stand(
            field.hosts.names[at[n]],
            dict(zip(given.sold, shares[n].tolist(), strict=True)),
            pinned.get(each.uuid, ()),
        )
        for n, each in enumerate(field.running)
    }


def _assigned_cores(
    field: arrays.MarketArrays, given: market.MarketState, at: arrays.Rows
) -> dict[str, tuple[int, ...]]:
    """Return the cores of VCPUs, by UUID, on hosts whose cores are known."""
    by_host: dict[str, list[tuple[str, float, int]]] = {}
    for n, each in enumerate(field.running):
        bid = field.bids[n]
        by_host.setdefault(field.hosts.names[at[n]], []).append(
            (each.uuid, bid.rate, bid.vcpus)
        )
    found: dict[str, tuple[int, ...]] = {}
    for host, servers in by_host.items():
        if host in given.cores:
            found.update(cores.assign_cores(servers, given.cores[host]))
    return found
