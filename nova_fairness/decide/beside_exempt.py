# SPDX-License-Identifier: Apache-2.0

"""CPU weights on nodes on which some VMs are exempt: pure arrays.

An exempt VM has weight 1, so that other weights have a meaning of their own:
the higher they are, the less it gets. They are found by turns. Each weight
moves by what its user is due to what all of the user's VMs on the node would
get with the weights before. Where the largest would pass the bound, all that
can be steered go down together: users who cannot have what they are due, since
exempt VMs have it, lack the same part of it.
"""

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

Scalars = usage_model.Scalars
Indices = usage_model.Indices

TURNS = 40
"""Turns after which no test moved a user by more than 0.1 %."""

DAMPED = 0.7
"""Part of the step to the weight that would be right: exempt VMs make steps
too long, and the whole step goes past the end."""

_NEXT_TO_NOTHING = 1e-9


def aimed(
    node: Indices,
    cell: Indices,
    log: Scalars,
    wanted: Scalars,
    size: Scalars,
    due: Scalars,
    exempt: resources.Mask,
    reach: float,
) -> Scalars:
    """Weights that give users on each node what they are due, if any do.

    :param node: (p,) index of each VM's node, 0..m-1.
    :param cell: (p,) index of each VM's user on its node, 0..k-1.
    :param log: (p,) logarithms of the weights if no VM was exempt.
    :param wanted: (p,) CPU time that each wants, >= 0.
    :param size: (p,) > 0: what the kernel weighs each by at weight 1.
    :param due: (k,) CPU time of each user on the node, >= 0.
    :param exempt: (p,) VMs that have weight 1.
    :param reach: how far from neutral a weight can be, a logarithm.
    :returns: (p,) logarithms.
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
