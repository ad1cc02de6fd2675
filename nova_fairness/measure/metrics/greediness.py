# SPDX-License-Identifier: Apache-2.0

"""Greediness: use beyond the endowment, minus credit for unused endowment."""

import numpy as np

from nova_fairness.measure import metric
from nova_fairness.model import pairing
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import grouping


class GreedinessMetric(metric.Metric):
    """The metric of the paper's framework (section 5.2).

    A VM is charged for its use beyond its endowment. Its unused endowment
    earns credit, but only as far as other VMs on its node used it. Users are
    weighed by the default stage.
    """

    description = (
        'Charges a VM for what it uses beyond its endowment and credits what '
        'it leaves to the others on its node.'
    )

    suits = frozenset({pairing.PolicyKind.MAPS})
    """It charges a user for the endowment of idle VMs."""

    def instances(self, demands: metric.Demands) -> metric.Heaviness:
        """Return the charge of each VM, minus its credit.

        ``sum_r (beyond_r - unused_r * ratio_r) * norm_r`` with ``unused_r <=
        0`` and the node's :func:`taken_ratio`.
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
    """Return which part of the unused endowment other VMs of the node used.

    :param beyond: (n, r) >= 0, usage beyond the endowment.
    :param unused: (n, r) <= 0, usage minus endowment where it is negative.
    :param node: (n,) index of the VM's node.
    :returns: (nodes, r) in -1..0; -1 if all was used.
    """
    nodes = int(node.max()) + 1 if len(node) else 0
    taken = grouping.sum_by(node, beyond, nodes)
    left = grouping.sum_by(node, unused, nodes)
    return np.maximum(-1.0, taken / np.where(left < 0, left, -1.0))
