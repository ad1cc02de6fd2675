# SPDX-License-Identifier: Apache-2.0

"""Exchange of a few servers, so that a request fits on one host.

The cheapest sets of servers of a host that leave enough room are tried first,
on the hosts with the least lack. So little memory is sent where a search that
moves the largest servers first would send much.
"""

from collections.abc import Iterator
import itertools

import numpy as np

from nova_fairness.planners.consolidation import displacement
from nova_fairness.planners.consolidation import layout as layout_module

Marks = layout_module.Marks

_HOSTS, _SETS, _LEAVE = 8, 16, 3
"""Most hosts that are tried, sets of servers per host, servers per set."""

_MOST = 16
"""Largest number of servers of a host from which sets are made, the
cheapest ones.
"""


def place_by_swap(
    layout: layout_module.HostLayout,
    new: int,
    allowed: Marks,
    depth: displacement.Depth,
) -> Iterator[int]:
    """Put an item that is on no host on one host after another.

    When a value is yielded, the item is on a host, and the servers that left
    this host are on other hosts. Before the next value the layout is restored.

    :param new: the item.
    :param allowed: (p,) hosts on which it may be put.
    :returns: memory that the servers which leave the host send, MB.
    """
    mark = layout.mark()
    for row in _hosts_by_lack(layout, new, allowed):
        for items, cost in _swap_sets(layout, new, row):
            for n in items:
                layout.put(n, layout_module.NOWHERE)
            layout.put(new, row)
            others = layout.hosts.takes.copy()
            others[row] = False
            if displacement.place_with_displacement(
                layout, items, others, depth
            ):
                yield cost
                layout.back(mark)
                break
            layout.back(mark)


def _hosts_by_lack(
    layout: layout_module.HostLayout, new: int, allowed: Marks
) -> list[int]:
    """Return rows of hosts that can run an item when empty, the host with
    the smallest lack first.
    """
    shape = layout.items[new].shape
    if shape is None:
        return []
    rows = shape.rows[layout.permitted(new, allowed)[shape.rows]]
    lacks = shape.amounts - layout.free[shape.columns][:, rows]
    part = np.maximum(lacks, 0) * layout.inverse[shape.columns][:, rows]
    order = np.argsort(part.max(axis=0, initial=0.0), kind='stable')
    return [int(row) for row in rows[order][:_HOSTS]]


def _swap_sets(
    layout: layout_module.HostLayout, new: int, row: int
) -> list[tuple[tuple[int, ...], int]]:
    """Return sets of servers whose moves make enough room, and their cost in
    MB.

    The cheapest set is the first.
    """
    on = [int(n) for n in layout.on(row) if layout.may_move[n]]
    # Of many servers only the cheapest are tried.
    on.sort(key=lambda n: (layout.cost[n], n))
    lack = layout.amounts[new] - layout.free[:, row]
    asked = lack[layout.amounts[new] > 0]
    found = []
    for count in range(1, _LEAVE + 1):
        for items in itertools.combinations(on[:_MOST], count):
            given = layout.amounts[list(items)].sum(axis=0)
            if (given[layout.amounts[new] > 0] >= asked).all():
                cost = int(layout.cost[list(items)].sum())
                found.append((items, cost))
    found.sort(key=lambda each: (each[1], len(each[0]), each[0]))
    return found[:_SETS]
