# SPDX-License-Identifier: Apache-2.0

"""Builds what VMs want, for tests."""

import numpy as np

from fairness_lab.ideal import columns
from nova_fairness.model import resources

R = resources.RESOURCES
HUNGRY = 1e6


def cpu_only(capacity, vms, *, weights=None):
    """Build wishes for CPU time.

    :param capacity: of each node.
    :param vms: (node, user, demand[, size]) of each VM.
    :param weights: of the users, equal unless given.
    """
    rows = [(*vm, 1.0)[:4] for vm in vms]
    return wishes_for_resources(
        [{'cpu_time': each} for each in capacity],
        [
            (node, user, {'cpu_time': min(demand, capacity[node])}, size)
            for node, user, demand, size in rows
        ],
        weights=weights,
    )


def wishes_for_resources(capacity, vms, *, weights=None, coupled=False):
    """Build wishes for several resources.

    :param capacity: amounts by resource, of each node.
    :param vms: (node, user, amounts by resource[, size]) of each VM.
    :param coupled: whether VMs use resources in proportion.
    """
    rows = [(*vm, 1.0)[:4] for vm in vms]
    user = np.array([row[1] for row in rows], dtype=np.intp)
    total = np.array([R.vector(**each) for each in capacity])
    part = np.ones(int(user.max()) + 1) if weights is None else weights
    demand = np.array([R.vector(**row[2]) for row in rows])
    return columns.Wishes(
        capacity=total,
        demand=demand,
        node=np.array([row[0] for row in rows], dtype=np.intp),
        user=user,
        coupled=(demand > 0) & coupled,
        size=np.repeat([[row[3]] for row in rows], len(R), axis=1).astype(
            float
        ),
        quota=np.outer(np.array(part) / np.sum(part), total.sum(axis=0)),
        exempt=np.zeros(len(rows), dtype=bool),
    )


def amounts(wishes, found, resource='cpu_time'):
    """What each user gets of a resource."""
    place = R.index(resource)
    return found.parts[:, place] * wishes.quota[:, place]
