# SPDX-License-Identifier: Apache-2.0

"""A policy that does harm."""

import numpy as np

from nova_fairness.decide import policy


class Inverted(policy.Policy):
    """Gives heavier users more."""

    description = 'A fault.'

    def __call__(self, situation, previous, memory, elapsed_s):
        heavy = situation.heaviness
        weights = np.exp((heavy - heavy.mean()).clip(-1, 1))
        return np.repeat(weights[:, np.newaxis], previous.shape[1], 1), {}
