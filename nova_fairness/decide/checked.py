# SPDX-License-Identifier: Apache-2.0

"""Runs a policy and judges what it returns."""

from collections.abc import Mapping

import numpy as np

from nova_fairness import exception
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import allocation


def checked(
    policy: policy_base.Policy,
    situation: policy_base.Situation,
    previous: allocation.Weights,
    memory: policy_base.Memory,
    elapsed_s: float,
) -> tuple[allocation.Weights, policy_base.Memory]:
    """Run a policy and judge what it returns.

    One weight per VM counts for all controls.

    :raises PluginMisbehaved: if the weights have the wrong shape or are not
        finite and positive, or the memory is no mapping.
    """
    frozen = previous.copy()
    frozen.setflags(write=False)
    result = policy(situation, frozen, memory, elapsed_s)
    try:
        returned, remembered = result
        weights = np.array(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise exception.PluginMisbehaved(
            f'returned {type(result).__name__}, expected weights and memory'
        ) from error
    if weights.shape in ((len(previous),), (len(previous), 1)):
        weights = np.repeat(weights.reshape(-1, 1), previous.shape[1], axis=1)
    if weights.shape != previous.shape:
        raise exception.PluginMisbehaved(
            f'returned weights of shape {weights.shape}, '
            f'expected {previous.shape}'
        )
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise exception.PluginMisbehaved(
            'returned weights that are not finite numbers above zero'
        )
    if not isinstance(remembered, Mapping):
        raise exception.PluginMisbehaved(
            f'returned {type(remembered).__name__} as memory, '
            'expected a mapping'
        )
    return weights, remembered
