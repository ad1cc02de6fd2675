# SPDX-License-Identifier: Apache-2.0

"""One round of deciding, in arrays, of one node or of many.

A round finds the VMs that compete, runs a policy, and bounds its weights. The
agent does so for its node, a simulator for all nodes at once.
"""

from collections.abc import Callable
from collections.abc import Mapping
import types
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness.decide import array_policy
from nova_fairness.decide import contention
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.controls import disk
from nova_fairness.decide.controls import memory
from nova_fairness.decide.controls import network
from nova_fairness.model import allocation
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_RULES: Mapping[
    resources.ResourceControl,
    Callable[
        [contention.ContentionLoad, usage_model.Scalars],
        contention.ContentionMasks,
    ],
] = types.MappingProxyType(
    {
        resources.ResourceControl.MEMORY: memory.judge_load,
        resources.ResourceControl.DISK: disk.judge_load,
        resources.ResourceControl.NETWORK: network.judge_load,
    }
)


def judge_load(
    load: contention.ContentionLoad,
    controls: tuple[resources.ResourceControl, ...],
    weights: allocation.Weights,
) -> tuple[resources.Mask, resources.Mask]:
    """Return which VMs want more, and on which nodes VMs compete, by load.

    An agent knows more, such as disk devices, and uses the scale of each
    control instead.

    :param controls: controls that are judged; no VM wants more of the others.
    :param weights: (n, c) weights in force.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    contended, wanting = contention.judge_load(load, controls)
    for control, rule in _RULES.items():
        if control in controls:
            column = resources.CONTROLS.index(control)
            contended[:, column], wanting[:, column] = rule(
                load, weights[:, column]
            )
    return contended, wanting


def run_policy(
    policy: policy_base.Policy,
    situation: policy_base.Situation,
    previous: allocation.Weights,
    memory: policy_base.Memory,
    elapsed_s: float,
) -> tuple[allocation.Weights, policy_base.Memory]:
    """Run a policy on one node, and check its result.

    If it returns one weight per VM, the weight counts for all controls.

    :raises PluginMisbehaved: if the weights have the wrong shape or are not
        finite and positive, or the memory is no mapping.
    """
    return _checked_result(
        policy(situation, _read_only_copy(previous), memory, elapsed_s),
        previous,
    )


def run_array_policy(
    policy: array_policy.ArrayPolicy,
    crowd: array_policy.SituationArrays,
    previous: allocation.Weights,
    memory: array_policy.Memories,
    elapsed_s: float,
) -> tuple[allocation.Weights, array_policy.Memories]:
    """Run a policy on many nodes, and check its result.

    :raises PluginMisbehaved: see :func:`run_policy`.
    """
    return _checked_result(
        policy.decide(crowd, _read_only_copy(previous), memory, elapsed_s),
        previous,
    )


def _read_only_copy(weights: allocation.Weights) -> allocation.Weights:
    frozen = weights.copy()
    frozen.setflags(write=False)
    return frozen


def _checked_result(
    result: Any, previous: allocation.Weights
) -> tuple[allocation.Weights, Mapping[str, Any]]:
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


def bound_weights(
    weights: allocation.Weights,
    previous: allocation.Weights,
    max_weight_ratio: float | usage_model.Scalars,
    largest_step: float | usage_model.Scalars,
) -> allocation.Weights:
    """Bound the weights of nodes, separately for each control.

    First the change from the previous weight is bounded to a factor of
    ``largest_step``. Then the weight is bounded to the range from
    ``1 / sqrt(ratio)`` to ``sqrt(ratio)``. All weights of a node are in this
    range, also those that a policy did not change, so no two weights differ
    by more than the ratio. The middle of the range is 1, the weight of a VM
    that was never decided.

    The bound is for weights; kernel units also depend on the number of vCPUs
    and on the flavor. It must not be used with
    :attr:`.policy.Preset.THESIS`, whose weights are places in a range.

    :param weights: (n, c) finite, > 0.
    :param previous: (n, c) weights that were applied last, finite, > 0.
    :param max_weight_ratio: largest weight divided by the smallest, >= 1, for
        all controls or (c,) for each.
    :param largest_step: largest factor of a change in a round, >= 1, for all
        controls or (c,) for each.
    :returns: (n, c), a new array.
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
