# SPDX-License-Identifier: Apache-2.0

"""Policy of the original system: a priority from the newest heaviness."""

import numpy as np

from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.model import allocation
from nova_fairness.model import pairing

BEST = -50
WORST = 50


def priority(heaviness: float) -> int:
    """Map heaviness to a priority, -50 (best) .. 50 (worst).

    ``min(50, 50 h)`` for a user above their quota, ``max(-50, 125 h)`` below,
    fractions cut towards zero (paper, section 5.3.4).

    :param heaviness: finite, norm units.
    """
    if heaviness >= 0:
        return int(min(float(WORST), 50 * heaviness))
    return int(max(float(BEST), 125 * heaviness))


class ThesisPolicy(policy.Policy):
    """Maps the heaviness of a VM to a value in each control's range.

    Contention and the past have no effect. The original had code that
    smooths, but never ran it.
    """

    description = (
        "The original's mapping: heaviness -0.4 or less gets the top of"
        " each range, 1 or more the bottom, at once."
    )
    kind = pairing.PolicyKind.MAPS
    preset = policy.Preset.THESIS

    def __call__(
        self,
        situation: policy.Situation,
        previous: allocation.Weights,
        memory: policy.Memory,
        elapsed_s: float,
    ) -> tuple[allocation.Weights, policy.Memory]:
        """Return weights by heaviness; the memory is empty."""
        column = np.array(
            [
                legacy_priority.weight_of(WORST - priority(float(heaviness)))
                for heaviness in situation.heaviness
            ],
            dtype=np.float64,
        )
        return np.repeat(column[:, np.newaxis], previous.shape[1], 1), {}
