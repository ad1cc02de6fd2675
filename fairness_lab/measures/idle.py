# SPDX-License-Identifier: Apache-2.0

"""Capacity that was left idle while somebody wanted it."""

import numpy as np

from fairness_lab.simulator import model
from nova_fairness.model import resources

_LITTLE = 1e-6


def idle_while_wanted(
    moment: model.Moment, coupled: resources.Mask
) -> resources.Vector:
    """Give the part of all capacity that was idle though it was wanted.

    A VM that uses resources together wants more of one only where there is
    more of all of them.

    :param coupled: (n, r) as in :class:`.model.Cloud`.
    :returns: (r,) 0..1; zero for space-shared resources.
    """
    there = moment.node >= 0
    node, nodes = moment.node[there], len(moment.capacity)
    received, demand = moment.received[there], moment.demand[there]
    used = _sums(node, received, nodes)
    left = np.maximum(moment.capacity - used, 0.0)
    some = left > _LITTLE * moment.capacity
    usable = np.all(some[node] | ~coupled[there], axis=1, keepdims=True)
    unmet = np.where(
        coupled[there] & ~usable,
        0.0,
        np.maximum(demand - received, 0.0),
    )
    wasted = np.minimum(left, _sums(node, unmet, nodes)).sum(axis=0)
    total = moment.capacity.sum(axis=0)
    part = np.where(total > 0, wasted / np.where(total > 0, total, 1), 0.0)
    return np.where(resources.RESOURCES.time_shared, part, 0.0)


def _sums(
    node: model.Indices, values: resources.Vector, nodes: int
) -> resources.Vector:
    return np.stack(
        [np.bincount(node, column, nodes) for column in values.T], axis=1
    )
