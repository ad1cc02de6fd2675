# SPDX-License-Identifier: Apache-2.0

"""Greediness: taking more than one's endowment, net of what one leaves."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping


class GreedinessMetric(metric.Metric):
    """The metric of the paper's framework (section 5.2).

    A VM pays for its use beyond its endowment. Its unused endowment earns it
    credit, but only to the extent that others on its node took it: generosity
    that no other VM needs is none. Users follow by the default stage.
    """

    description = (
        'Charges a VM for what it uses beyond its endowment and credits what '
        'it leaves to the others on its node.'
    )

    suits = frozenset({pairing.PolicyKind.MAPS})
    """It charges a user for what idle VMs are endowed with."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Charge what is taken beyond, credit what others took.

        ``sum_r (beyond_r - unused_r * ratio_r) * norm_r`` with ``unused_r
        <= 0`` and the node's :func:`taken_ratio`.
        """
        excess = demands.usage - demands.endowment
        beyond = np.maximum(excess, 0.0)
        unused = np.minimum(excess, 0.0)
        ratio = taken_ratio(beyond, unused, demands.node)[demands.node]
        charge = beyond - unused * ratio
        factors = metric.norm(demands.supply, demands.user_count)
        return np.asarray(charge @ factors)


def taken_ratio(
    beyond: resources.Vector,
    unused: resources.Vector,
    node: usage_model.Indices,
) -> resources.Vector:
    """Say how much of what VMs left unused others on their node took.

    :param beyond: (n, r) >= 0, usage beyond the endowment.
    :param unused: (n, r) <= 0, usage minus endowment where that is less.
    :param node: (n,) index of the VM's node.
    :returns: (nodes, r) in -1..0; -1 when all was taken.
    """
    nodes = int(node.max()) + 1 if len(node) else 0
    taken = grouping.sum_by(node, beyond, nodes)
    left = grouping.sum_by(node, unused, nodes)
    return np.maximum(-1.0, taken / np.where(left < 0, left, -1.0))
