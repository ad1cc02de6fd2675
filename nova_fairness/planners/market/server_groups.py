# SPDX-License-Identifier: Apache-2.0

"""Phase 1 of the market plan: groups of servers in which a rate buys the same
amount.

The server with the highest rate goes first, to the host with the lowest level
(Rajagopalan 2012, figure 1; Nisan et al. 2007, theorem 20.6). Here hosts may
differ: levels are prices per supply, and a server goes only to a host with
room.
"""

import numpy as np
import numpy.typing as npt

from nova_fairness.planners import free_amounts
from nova_fairness.planners.market import arrays

Counts = npt.NDArray[np.int64]

_TRIES = 16


def group_servers(field: arrays.MarketArrays) -> tuple[Counts, int]:
    """Assign servers to groups, one group for each host.

    A type that finds no room because other types went first is put before
    them, and all groups are made again, a few times.

    :returns: (p, t) servers of each type in the group of each host, and the
        type that found no room in the end, or -1.
    """
    order = list(range(len(field.types)))
    for _ in range(_TRIES):
        counts, homeless = _distribute(field, order)
        if homeless < 0:
            return counts, -1
        if order[0] == homeless:
            break
        order.remove(homeless)
        order.insert(0, homeless)
    return counts, homeless


def _distribute(
    field: arrays.MarketArrays, order: list[int]
) -> tuple[Counts, int]:
    """Distribute servers to groups, type by type.

    :returns: (p, t) counts, and the type that did not fit, or -1.
    """
    room = free_amounts.FreeAmounts(field.room)
    prices = field.staying.copy()
    counts = np.zeros((field.room.shape[1], len(field.types)), dtype=np.int64)
    for t in order:
        kind = field.types[t]
        rows, paid = kind.shape.rows, kind.rate * kind.buys
        spent = paid[:, np.newaxis]
        # Only one host changes with every server.
        fits = room.having(rows, kind.amounts[:, np.newaxis])
        levels = arrays.price_level(
            prices[:, rows] + spent, field.supply[:, rows]
        )
        levels[~fits] = np.inf
        for _ in kind.servers:
            index = int(levels.argmin()) if len(rows) else 0
            if not len(rows) or not np.isfinite(levels[index]):
                return counts, t
            row = rows[index]
            counts[row, t] += 1
            room.take(row, kind.amounts)
            prices[:, row] += paid
            if room.has(row, kind.amounts):
                levels[index] = arrays.price_level(
                    prices[:, row] + paid, field.supply[:, row]
                )
            else:
                levels[index] = np.inf
    return counts, -1
