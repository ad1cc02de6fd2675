# SPDX-License-Identifier: Apache-2.0

"""The last word on weights: how far apart, and how fast."""

import numpy as np

from nova_fairness.model import allocation
from nova_fairness.model import usage as usage_model


def bounded(
    weights: allocation.Weights,
    previous: allocation.Weights,
    max_weight_ratio: float | usage_model.Scalars,
    largest_step: float | usage_model.Scalars,
) -> allocation.Weights:
    """Bound the weights of a node, each control for itself.

    First a weight moves from its previous value by a factor of at most
    ``largest_step``. Then it is cut to ``1 / sqrt(ratio) .. sqrt(ratio)``.
    All weights of a node lie in that one interval, those a policy holds
    included, so no two can be further apart than the ratio, whoever moved
    and whatever the step allowed. It lies around 1 because a VM that nobody
    judged yet has 1.

    The bound holds for weights; kernel units also carry the number of vCPUs
    and the flavor's base. Not meant for :attr:`.policy.Preset.THESIS`, whose
    weights are places in a range.

    :param weights: (n, c) finite, > 0.
    :param previous: (n, c) finite, > 0: what was really applied last.
    :param max_weight_ratio: largest / smallest weight, >= 1, of all controls
        or (c,) of each.
    :param largest_step: factor per round, >= 1, likewise.
    :returns: (n, c), new.
    :raises ValueError: if a limit is below 1.
    """
    if np.any(np.less(max_weight_ratio, 1) | np.less(largest_step, 1)):
        raise ValueError(
            'max_weight_ratio and largest_step must be at least 1, got'
            f' {max_weight_ratio} and {largest_step}'
        )
    stepped = np.clip(
        weights, previous / largest_step, previous * largest_step
    )
    reach = np.sqrt(max_weight_ratio)
    return np.clip(stepped, 1 / reach, reach)
