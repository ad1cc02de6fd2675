# SPDX-License-Identifier: Apache-2.0

"""CPU weights on nodes on which some VMs are exempt, in arrays.

An exempt VM has weight 1, so it gets less if the weights of the other VMs are
higher. The weights are found in turns. In each turn a weight is multiplied by
the amount that its user should get, divided by the amount that the user's VMs
on the node would get with the weights of the turn before. If the largest
weight exceeds the bound, all weights of the node fall by one factor. Then
users who cannot get their amount, because exempt VMs have it, lack the same
fraction of it.
"""

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

Scalars = usage_model.Scalars
Indices = usage_model.Indices

TURNS = 40
"""Number of turns. After them no test moved a user by more than 0.1 %."""

DAMPED = 0.7
"""Part of a step that is made. With exempt VMs a whole step would pass the
goal."""

_NEXT_TO_NOTHING = 1e-9


def weights_for_amounts(
    node: Indices,
    cell: Indices,
    log: Scalars,
    wanted: Scalars,
    size: Scalars,
    due: Scalars,
    exempt: resources.Mask,
    reach: float,
) -> Scalars:
    """Return the weights with which users on each node get given amounts.

    If no weights within the bounds do, the nearest ones are returned.

    :param node: (p,) index of each VM's node, 0..m-1.
    :param cell: (p,) index of each VM's user on its node, 0..k-1.
    :param log: (p,) logarithms of the weights if no VM was exempt.
    :param wanted: (p,) CPU time that each VM wants, >= 0.
    :param size: (p,) > 0, share of each VM in the kernel at weight 1.
    :param due: (k,) CPU time that each user on the node should get, >= 0.
    :param exempt: (p,) VMs that have weight 1.
    :param reach: largest distance of a weight from neutral, a logarithm.
    :returns: (p,) logarithms of the weights.
    """
    place = np.zeros(len(due), dtype=np.intp)
    place[cell] = node
    supply = np.bincount(place, due).astype(np.float64)
    log = np.where(exempt, 0.0, log)
    for _ in range(TURNS):
        got, _ = filling.fill(supply, node, wanted, size * np.exp(log))
        had = np.bincount(cell, got, len(due))
        push = np.log(due.clip(_NEXT_TO_NOTHING) / had.clip(_NEXT_TO_NOTHING))
        log = np.where(exempt, 0.0, log + DAMPED * push[cell])
        over = np.zeros(len(supply))
        np.maximum.at(over, node, log - reach)
        log = np.where(exempt, 0.0, (log - over[node]).clip(-reach, reach))
    return np.asarray(log)
