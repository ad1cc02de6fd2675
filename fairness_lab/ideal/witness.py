# SPDX-License-Identifier: Apache-2.0

"""Weights that give what is ideal, where some can be found quickly.

If weights within the ratio give every user what he has in the free ideal,
that is the bounded one too, and no large linear program is needed to say so.
Such weights are sought as an all-knowing policy would: each moves with the
ratio of what its user should have to what he has. Not to find any says
nothing.
"""

import numpy as np

from fairness_lab.ideal import columns
from fairness_lab.ideal import program as program_module
from nova_fairness.model import resources
from nova_fairness.shares import filling

Floats = program_module.Floats

CLOSE = 1e-3
"""Relative difference below which a user has what he should have."""

_MOST_TURNS = 150
_MOMENTUM = 0.9
_SMALL = 1e-9


def is_reached(
    wishes: columns.Wishes, parts: Floats, max_weight_ratio: float
) -> bool:
    """Tell whether weights are found that give these parts.

    :param parts: (u, r) of the quotas.
    :param max_weight_ratio: >= 1.
    :returns: ``False`` also where VMs use resources together.
    """
    if (wishes.coupled & (wishes.demand > 0)).any():
        return False
    reach = float(np.log(max_weight_ratio)) / 2
    return all(
        _is_reached(_One(wishes, place), parts[:, place], reach)
        for place in range(len(resources.RESOURCES))
    )


class _One:
    """One resource of the VMs that are there."""

    def __init__(self, wishes: columns.Wishes, place: int) -> None:
        there = wishes.node >= 0
        self.capacity = wishes.capacity[:, place]
        self.node = wishes.node[there]
        self.user = wishes.user[there]
        self.demand = wishes.demand[there, place]
        self.size = wishes.size[there, place]
        self.quota = wishes.quota[:, place]

    def parts(self, log: Floats) -> Floats:
        """What users have of their quotas with these weights."""
        got, _ = filling.fill(
            self.capacity, self.node, self.demand, self.size * np.exp(log)
        )
        total = np.bincount(self.user, got, len(self.quota))
        entitled = self.quota > 0
        return np.where(entitled, total / np.where(entitled, self.quota, 1), 0)


def _is_reached(one: _One, wanted: Floats, reach: float) -> bool:
    log = np.zeros(len(one.node))
    step = np.zeros(len(one.node))
    some = wanted > _SMALL
    for _ in range(_MOST_TURNS):
        had = one.parts(log)
        short = (wanted - had) / np.where(some, wanted, 1.0)
        if (np.abs(short)[some] <= CLOSE).all():
            return True
        push = np.where(
            some, np.log(wanted.clip(_SMALL) / had.clip(_SMALL)), 0.0
        )[one.user]
        kept = np.where(step * push > 0, _MOMENTUM, 0.0)
        step = push.clip(-1.0, 1.0) + kept * step
        log = _centred(one, log + step).clip(-reach, reach)
    return False


def _centred(one: _One, log: Floats) -> Floats:
    """Shift each node's weights so that as many as can are in reach."""
    nodes = len(one.capacity)
    high, low = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    np.maximum.at(high, one.node, log)
    np.minimum.at(low, one.node, log)
    return np.asarray(log - (high[one.node] + low[one.node]) / 2)
