# SPDX-License-Identifier: Apache-2.0

"""How the kernels of many nodes divide what their VMs want: pure arrays.

Time-shared resources go out in proportion to shares, to nobody more than it
wants, and nothing stays idle that somebody wants (weighted max-min, the
fluid limit of CFS, BFQ, iocost and HTB). Memory is held under protection.
"""

import dataclasses

import numpy as np

from fairness_lab.simulator import coupling
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

Scalars = usage_model.Scalars
Indices = usage_model.Indices


@dataclasses.dataclass(frozen=True, eq=False)
class Divided:
    """Shares of VMs.

    :ivar received: (n, r) rates, and bytes of memory.
    :ivar wished: (n, r) what each VM would use of a resource if there were
        plenty of that one only; a VM waits for what it wished and did not
        receive.
    """

    received: resources.Vector
    wished: resources.Vector


def hold(
    capacity: Scalars,
    node: Indices,
    wanted: Scalars,
    shares: Scalars,
    protected: bool,
) -> Scalars:
    """Divide the memory of every node.

    Where it does not suffice, what is not protected is reclaimed, everywhere
    in the same proportion (``memory.low`` of cgroup v2). Agents protect all
    of a node's memory, in proportion to the shares; without them nothing is.

    :param capacity: (m,) bytes.
    :param wanted: (n,) bytes, finite, >= 0.
    :param shares: (n,) > 0.
    :param protected: whether anything is.
    :returns: (n,) bytes held.
    """
    nodes = len(capacity)
    total = np.bincount(node, wanted, nodes)
    short = total > capacity
    if not short.any():
        return wanted.copy()
    safe = np.zeros(len(node))
    if protected:
        safe, _ = filling.fill(capacity, node, wanted, shares)
    beyond = wanted - safe
    excess = np.bincount(node, beyond, nodes)
    left = capacity - np.bincount(node, safe, nodes)
    part = np.divide(left, excess, out=np.ones(nodes), where=excess > 0)
    held = safe + beyond * np.clip(part, 0.0, 1.0)[node]
    return np.where(short[node], held, wanted)


def divide(
    capacity: resources.Vector,
    node: Indices,
    demand: resources.Vector,
    coupled: resources.Mask,
    shares: resources.Vector,
    protected: bool = True,
) -> Divided:
    """Divide all resources of every node.

    A VM that uses resources together (Leontief) is as fast as the scarcest
    of them lets it be, and leaves of the others what it cannot use. Then
    every VM that wants more has a resource of which all is used and of which
    nobody gets more per share. The levels where this holds are found by
    turns, one resource after the other.

    :param capacity: (m, r).
    :param node: (n,) index of each VM's node.
    :param demand: (n, r) finite, >= 0.
    :param coupled: (n, r) which are used together.
    :param shares: (n, r) > 0.
    :param protected: whether memory is, in proportion to its shares.
    """
    timed = np.flatnonzero(resources.RESOURCES.time_shared)
    received = demand.copy()
    for column in np.flatnonzero(~resources.RESOURCES.time_shared):
        received[:, column] = hold(
            capacity[:, column],
            node,
            demand[:, column],
            shares[:, column],
            protected,
        )
    mixed = np.zeros(len(capacity), dtype=np.bool_)
    mixed[node[coupled.any(axis=1)]] = True
    alone = ~mixed[node]
    for column in timed:
        received[alone, column], _ = filling.fill(
            capacity[:, column],
            node[alone],
            demand[alone, column],
            shares[alone, column],
        )
    if alone.all():
        return Divided(received, demand.copy())
    rows = np.flatnonzero(~alone)
    together = coupling.Coupled(
        capacity, node[rows], demand[rows], coupled[rows], shares[rows]
    )
    return _joined(received, demand, rows, timed, together)


def _joined(
    received: resources.Vector,
    demand: resources.Vector,
    rows: Indices,
    timed: Indices,
    together: coupling.Coupled,
) -> Divided:
    """Put what is used together beside what is used alone."""
    wished = demand.copy()
    places = np.ix_(rows, timed)
    got, wish = together.divide(received[rows])
    received[places], wished[places] = got[:, timed], wish[:, timed]
    return Divided(received, wished)
