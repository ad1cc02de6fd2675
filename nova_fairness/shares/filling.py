# SPDX-License-Identifier: Apache-2.0


"""One resource of many nodes, divided by shares: pure arrays."""

import numpy as np

from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Indices = usage_model.Indices


def fill(
    capacity: Scalars, node: Indices, demand: Scalars, shares: Scalars
) -> tuple[Scalars, Scalars]:
    """Divide one resource of every node.

    A VM that wants less than its proportional part gets all that it wants. The
    rest is divided among the other VMs, until no part is too large any more.

    :param capacity: (m,) >= 0.
    :param node: (n,) index of each VM's node.
    :param demand: (n,) finite, >= 0.
    :param shares: (n,) > 0.
    :returns: (n,) parts, and (m,) levels: the part per share of VMs that want
        more; infinite on nodes where all VMs get all that they want.
    """
    nodes = len(capacity)
    level = np.full(nodes, np.inf)
    short = np.bincount(node, demand, nodes) > capacity
    rows = np.flatnonzero(short[node])
    if not rows.size:
        return demand.copy(), level
    place, wanted, share = node[rows], demand[rows], shares[rows]
    full = wanted <= 0
    while True:
        open_ = ~full
        left = capacity - np.bincount(place[full], wanted[full], nodes)
        over = np.bincount(place[open_], share[open_], nodes)
        parts = np.divide(
            np.maximum(left, 0.0), over, out=level.copy(), where=over > 0
        )
        filled = full | (wanted <= parts[place] * share)
        if (filled == full).all():
            break
        full = filled
    got = demand.copy()
    got[rows] = np.where(full, wanted, parts[place] * share)
    return got, np.where(short, parts, level)
