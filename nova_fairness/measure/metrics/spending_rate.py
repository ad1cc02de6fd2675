# SPDX-License-Identifier: Apache-2.0

"""Spending rates: a VM gets the part of its node that its owner pays for."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.shares import grouping

_CPU = resources.RESOURCES.index('cpu_time')


class SpendingRate(metric.Metric):
    """Compares the part of its node that a VM's rate buys with its endowment.

    The rate of a VM divided by the sum of the rates on its node is the part of
    the node that it gets (Rajagopalan 2012, section 3.2). Heaviness is the
    logarithm of its endowment divided by that part: 0 if both are equal, -1 if
    the part is e times as large. With the policy ``proportional`` the VM gets
    exactly this part while all VMs of the node want more. The use of VMs does
    not count.
    """

    description = (
        'Gives each VM the part of its node that its spending rate is of the'
        ' sum of the rates there.'
    )

    suits = frozenset({pairing.PolicyKind.MAPS})
    """Weights do not change this heaviness, so policies cannot make it
    equal."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Return ``ln(endowment part / rate part)`` of CPU time on its
        node.
        """
        owned = demands.endowment[:, _CPU]
        rate = demands.rates
        if rate is None:
            rate = np.ones(len(owned))
        parts = (
            _parts_of_node(owned, demands.node),
            _parts_of_node(rate, demands.node),
        )
        has = (parts[0] > 0) & (parts[1] > 0)
        entitled, bought = (np.where(has, part, 1.0) for part in parts)
        return np.asarray(np.log(entitled / bought))

    def users(self, totals: metric.Totals) -> metric.Heaviness:
        """Return the sums over each user's VMs; they have no effect."""
        return totals.instance_heaviness.copy()

    def combine(
        self,
        user_heaviness: metric.Heaviness,
        instance_heaviness: metric.Heaviness,
    ) -> metric.Heaviness:
        """Return the heaviness of each VM itself, without its owner's."""
        return instance_heaviness.copy()


def _parts_of_node(
    amounts: metric.Heaviness, node: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> metric.Heaviness:
    """Return each amount's part of the sum of its node; 0 where that is 0."""
    nodes = int(node.max(initial=-1)) + 1
    total = grouping.sum_by(node, amounts, nodes)[node]
    return np.asarray(amounts / np.where(total > 0, total, 1.0))
