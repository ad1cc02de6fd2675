# SPDX-License-Identifier: Apache-2.0

"""Policy: each VM has the weight that its heaviness says, at once."""

from typing import ClassVar

import numpy as np

from nova_fairness.decide import policy
from nova_fairness.model import allocation
from nova_fairness.model import pairing

_FARTHEST = 20.0
"""Weights further than e to this from 1 are cut by every bound anyway."""


class ProportionalPolicy(policy.Policy):
    """``weight = exp(-heaviness)``, with the middle of a node at 1.

    It knows neither contention nor the past: kernels divide by weights only
    among VMs that want something, so weights may stand while no VM wants more.
    The middle between the lightest and the heaviest is 1, so that all of the
    ratio that is allowed can be used.
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
        """Decide from the heaviness alone; nothing is remembered."""
        heavy = situation.heaviness
        if not len(heavy):
            return previous.copy(), {}
        middle = heavy.min() / 2 + heavy.max() / 2
        column = np.exp((middle - heavy).clip(-_FARTHEST, _FARTHEST))
        return np.repeat(column[:, np.newaxis], previous.shape[1], 1), {}
