# SPDX-License-Identifier: Apache-2.0

"""Spending rates: a VM gets the part of its node that its owner pays for."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.shares import grouping

_CPU = resources.RESOURCES.index('cpu_time')


class SpendingRate(metric.Metric):
    """How much less a VM's rate buys on its node than its size entitles it to.

    The rate of a VM divided by the price of its node, which is the sum of the
    rates there, is the part of the node that it gets (Rajagopalan 2012,
    section 3.2). Heaviness is the logarithm of its endowment beside that part:
    0 if both are the same, -1 if the part is e times as large. With the
    policy ``proportional`` it gets just this part while all of the node want
    all that they can get. The use of VMs does not count: unused amounts of one
    go to the others anyway.
    """

    description = (
        'Gives each VM the part of its node that its spending rate is of the'
        ' sum of the rates there.'
    )

    suits = frozenset({pairing.PolicyKind.MAPS})
    """Weights do not change it, so it cannot be made equal."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """``ln(endowment part / rate part)`` of CPU time, within each node."""
        owned = demands.endowment[:, _CPU]
        rate = demands.rates
        if rate is None:
            rate = np.ones(len(owned))
        parts = _parts(owned, demands.node), _parts(rate, demands.node)
        has = (parts[0] > 0) & (parts[1] > 0)
        entitled, bought = (np.where(has, part, 1.0) for part in parts)
        return np.asarray(np.log(entitled / bought))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Sums over the user's VMs: they decide nothing."""
        return totals.instance_heaviness.copy()

    def combine(
        self,
        user_heaviness: metric.Heaviness,
        instance_heaviness: metric.Heaviness,
    ) -> metric.Heaviness:
        """Treat each VM by its own rate; its owner does not matter."""
        return instance_heaviness.copy()


def _parts(
    amounts: metric.Heaviness, node: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> metric.Heaviness:
    """Of the sum of each node; 0 where that is 0."""
    nodes = int(node.max(initial=-1)) + 1
    total = grouping.sum_by(node, amounts, nodes)[node]
    return np.asarray(amounts / np.where(total > 0, total, 1.0))
