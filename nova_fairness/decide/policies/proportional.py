# SPDX-License-Identifier: Apache-2.0

"""Policy that computes each weight from the VM's heaviness alone."""

from typing import ClassVar

import numpy as np

from nova_fairness.decide import policy
from nova_fairness.model import allocation
from nova_fairness.model import pairing

_FARTHEST = 20.0
"""Largest natural logarithm of a weight. Every bound is smaller."""


class ProportionalPolicy(policy.Policy):
    """Sets ``weight = exp(-heaviness)``, with the middle of a node at 1.

    Contention and the past have no effect. Kernels divide by weights only
    among VMs that want the resource. The middle between the lightest and the
    heaviest VM is 1, so that weights can use the whole ratio.
    """

    description: ClassVar[str] = (
        'Gives each VM the weight that its heaviness says, at once; made for'
        ' SpendingRate.'
    )
    kind: ClassVar[pairing.PolicyKind | None] = pairing.PolicyKind.MAPS

    def __call__(
        self,
        situation: policy.Situation,
        previous: allocation.Weights,
        memory: policy.Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, policy.Memory]:
        """Return weights by heaviness; the memory is empty."""
        heavy = situation.heaviness
        if not len(heavy):
            return previous.copy(), {}
        middle = heavy.min() / 2 + heavy.max() / 2
        column = np.exp((middle - heavy).clip(-_FARTHEST, _FARTHEST))
        return np.repeat(column[:, np.newaxis], previous.shape[1], 1), {}
