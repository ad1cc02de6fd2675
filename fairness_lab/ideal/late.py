# SPDX-License-Identifier: Apache-2.0

"""Late weights: shares that they give after wants have changed.

An agent reads in one round the wants of the last one. Where wants change in
every round, even the true wants of the last round lead to weights of another
cloud. This counts the CPU only; VMs get all else that they want.
"""

import numpy as np

from fairness_lab.ideal import columns as columns_module
from nova_fairness.model import resources
from nova_fairness.shares import filling
from nova_fairness.shares import maxmin

Floats = columns_module.Floats

_CPU = resources.RESOURCES.index('cpu_time')


def best_weights(
    wishes: columns_module.Wishes, wanted: Floats, ratio: float
) -> Floats:
    """Weights that divide fairly if VMs want these amounts.

    Found by the agents' own method (:mod:`nova_fairness.shares.maxmin`), with
    one weight for each user and node.

    :param wanted: (n,) CPU time that each VM is thought to want.
    :param ratio: of the largest to the smallest weight of a node, >= 1.
    :returns: (n,) > 0; 1 for VMs that are not there, and on nodes that have
        all that is wanted.
    """
    rows = _rows_by_node(wishes)
    quota, user = wishes.quota[:, _CPU], wishes.user[rows]
    slope = 1 / np.where(quota > 0, quota, 1.0)

    def weigh(got: Floats) -> tuple[Floats, Floats]:
        return slope * np.bincount(user, got, len(quota)), slope

    division = maxmin.divide(
        maxmin.DemandRows(
            node=wishes.node[rows],
            owner=user,
            user=np.arange(len(quota)),
            wanted=wanted[rows],
            size=wishes.size[rows, _CPU],
            supply=wishes.capacity[:, _CPU],
        ),
        weigh,
        ratio,
    )
    weights = np.ones(len(wishes.node))
    weights[rows] = np.exp(division.log)
    return weights


def shares(wishes: columns_module.Wishes, weights: Floats) -> Floats:
    """Dominant shares that weights give with what VMs want now.

    :param weights: (n,) > 0.
    :returns: (u,) a whole quota being 1.
    """
    rows = _rows_by_node(wishes)
    received = wishes.demand[rows].copy()
    received[:, _CPU], _ = filling.fill(
        wishes.capacity[:, _CPU],
        wishes.node[rows],
        received[:, _CPU],
        wishes.size[rows, _CPU] * weights[rows],
    )
    return dominant_shares(wishes, rows, received)


def dominant_shares(
    wishes: columns_module.Wishes,
    rows: columns_module.Places,
    received: Floats,
) -> Floats:
    """(u,) dominant shares that users have of the received amounts.

    :param rows: (k,) of VMs.
    :param received: (k, r) amounts that each of these got.
    :returns: (u,) a whole quota being 1.
    """
    used = np.zeros(wishes.quota.shape)
    np.add.at(used, wishes.user[rows], received)
    parts = columns_module.fractions_of_quota(wishes.quota, used)
    return np.asarray(parts.max(axis=1))


def _rows_by_node(wishes: columns_module.Wishes) -> columns_module.Places:
    """Rows of the VMs that exist, sorted by node."""
    there = np.flatnonzero(wishes.node >= 0)
    return there[np.argsort(wishes.node[there], kind='stable')]
