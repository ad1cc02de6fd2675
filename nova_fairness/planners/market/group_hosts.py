# SPDX-License-Identifier: Apache-2.0

"""Phase 3 of the market plan: the host of each group, so that the moves cost
least.

The published search (Rajagopalan 2012, figure 3) is greedy. Here the choice is
optimal, as an assignment problem. Servers of one type are interchangeable, and
the choice is also optimal over the servers of a type that move.
"""

import numpy as np

from nova_fairness.planners.market import arrays
from nova_fairness.planners.market import server_groups
from nova_fairness.shares import programs

Floats = arrays.Floats
Marks = arrays.Marks
Rows = arrays.Rows

_SAME = 1e-9
"""Largest relative difference of levels by rounding."""


def assign_groups(
    field: arrays.MarketArrays, counts: server_groups.Counts, slack: float
) -> Rows:
    """Assign groups to hosts, and return the new host of each server.

    :param counts: (g, t) servers of each type in each group, from
        :func:`.server_groups.group_servers`.
    :param slack: part by which the level of a group may exceed its level at
        home, >= 0.
    :returns: (n,) rows of the new hosts of servers.
    """
    hosts = programs.assign(
        leaving_costs(field, counts).T, permitted_hosts(field, counts, slack)
    )
    there = np.zeros_like(counts)
    there[hosts] = counts
    at = field.at.copy()
    for t, kind in enumerate(field.types):
        at[kind.servers] = _assign_rows(field, kind.servers, there[:, t])
    return at


def leaving_costs(
    field: arrays.MarketArrays, counts: server_groups.Counts
) -> Floats:
    """Return the cost of the servers that leave each host if it gets each
    group, (p, g).

    If the host has more servers of a type than the group, the cheapest leave.

    :param counts: (g, t) servers of each type in each group.
    :returns: (p, g) sums of the costs of moves.
    """
    size = len(field.hosts.names)
    found = np.zeros((size, len(counts)))
    for t, kind in enumerate(field.types):
        groups = np.flatnonzero(counts[:, t])
        for row, servers in _servers_by_host(field, kind.servers):
            # The dearest servers stay: sums of the first 0, 1, 2 ... of them.
            kept = np.concatenate(
                [[0.0], np.cumsum(np.sort(field.cost[servers])[::-1])]
            )
            found[row] += kept[-1]
            stay = np.minimum(counts[groups, t], len(servers))
            found[row, groups] -= kept[stay]
    return found


def permitted_hosts(
    field: arrays.MarketArrays, counts: server_groups.Counts, slack: float
) -> Marks:
    """Return whether each group fits on each host with a low enough level,
    (g, p).
    """
    amounts = np.array([each.amounts for each in field.types], np.int64)
    amounts = amounts.reshape(len(field.types), field.room.shape[0])
    needs = counts @ amounts
    found: Marks = np.ones((len(counts), field.room.shape[1]), dtype=bool)
    for c, room in enumerate(field.room):
        found &= needs[:, [c]] <= room
    paid = np.array([each.rate * each.buys for each in field.types])
    prices = (counts @ paid.reshape(len(field.types), len(field.sold))).T
    levels = arrays.price_level(
        prices[:, :, np.newaxis] + field.staying[:, np.newaxis],
        field.supply[:, np.newaxis],
    )
    home = np.diagonal(levels)[:, np.newaxis]
    found &= np.asarray(levels <= home * (1.0 + slack + _SAME))
    for rows, types in _types_by_hosts(field):
        forbidden = np.ones(len(field.hosts.names), dtype=bool)
        forbidden[rows] = False
        has = counts[:, types].any(axis=1)
        found &= ~np.logical_and.outer(has, forbidden)
    return found


def _types_by_hosts(
    field: arrays.MarketArrays,
) -> list[tuple[Rows, list[int]]]:
    """Return the types, grouped by the hosts that can run them."""
    types_by_hosts: dict[bytes, tuple[Rows, list[int]]] = {}
    for t, kind in enumerate(field.types):
        rows = kind.shape.rows
        types_by_hosts.setdefault(rows.tobytes(), (rows, []))[1].append(t)
    return list(types_by_hosts.values())


def _servers_by_host(
    field: arrays.MarketArrays, servers: Rows
) -> list[tuple[int, Rows]]:
    """Return the hosts, and the given servers on each."""
    at = field.at[servers]
    order = np.argsort(at, kind='stable')
    rows, first = np.unique(at[order], return_index=True)
    parts = np.split(servers[order], first[1:])
    return list(zip(rows.tolist(), parts, strict=True))


def _assign_rows(
    field: arrays.MarketArrays, servers: Rows, there: server_groups.Counts
) -> Rows:
    """Return the new rows of the servers of one type, with as few moves as
    possible.

    :param there: (p,) number of servers of the type that each host gets.
    """
    found = field.at[servers].copy()
    place = {n: index for index, n in enumerate(servers.tolist())}
    leaving, lacks = [], there.copy()
    for row, here in _servers_by_host(field, servers):
        # The servers with the dearest moves stay; of equal ones the first.
        order = np.lexsort((here, -field.cost[here]))
        stay = min(len(here), int(there[row]))
        leaving += here[order[stay:]].tolist()
        lacks[row] -= stay
    targets = np.repeat(np.arange(len(lacks)), lacks)
    for n, row in zip(sorted(leaving), targets.tolist(), strict=True):
        found[place[n]] = row
    return found
