# SPDX-License-Identifier: Apache-2.0

"""Random clouds for division: rows of VMs, one owner for each user."""

import numpy as np

from nova_fairness.shares import maxmin

RATIO = 20.0


def rows(node, user, wanted, supply, size=None):
    """Each argument is a list; users own their rows themselves."""
    user = np.array(user)
    return maxmin.DemandRows(
        node=np.array(node),
        owner=user,
        user=np.arange(int(user.max()) + 1),
        wanted=np.array(wanted, dtype=float),
        size=np.ones(len(node)) if size is None else np.array(size, float),
        supply=np.array(supply, dtype=float),
    )


def share(of, quota=1.0):
    """Weigh users by the part of the quota that they get."""
    slope = np.ones(len(of.user)) / quota

    def weigh(got):
        return slope * np.bincount(of.owner, got, len(of.user)), slope

    return weigh


def cloud(seed, most_nodes=5, most_users=6, most_vms=24):
    """Draw VMs of 1 to 4 vCPUs on nodes of 1 to 8 CPUs, all of it wanted or
    less."""
    chance = np.random.default_rng(seed)
    nodes = int(chance.integers(1, most_nodes + 1))
    users = int(chance.integers(2, most_users + 1))
    count = int(chance.integers(users, most_vms + 1))
    node = np.sort(chance.integers(0, nodes, count))
    user = np.append(
        np.arange(users), chance.integers(0, users, count - users)
    )
    size = chance.choice([1.0, 2.0, 4.0], count)
    part = chance.choice([1.0, 1.0, 0.5, 0.1], count)
    return rows(
        node,
        chance.permutation(user),
        size * part * chance.uniform(0.7, 1.0, count),
        chance.choice([1.0, 2.0, 4.0, 8.0], nodes),
        size,
    )
