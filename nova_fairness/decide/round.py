# SPDX-License-Identifier: Apache-2.0

"""A round of the decide room in arrays, of one node or of many.

It judges which VMs compete, asks a policy for weights, and bounds them. The
agent asks about its node, a simulator about all nodes at once.
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
        [contention.ContentionLoad, usage_model.Scalars], contention.Judged
    ],
] = types.MappingProxyType(
    {
        resources.ResourceControl.MEMORY: memory.judged,
        resources.ResourceControl.DISK: disk.judged,
        resources.ResourceControl.NETWORK: network.judged,
    }
)


def judged(
    load: contention.ContentionLoad,
    controls: tuple[resources.ResourceControl, ...],
    weights: allocation.Weights,
) -> tuple[resources.Mask, resources.Mask]:
    """Judge which VMs want more on nodes with only the load known.

    An agent, which sees devices and classes, asks each control's scale
    instead.

    :param controls: that are judged; of the others no VM wants more.
    :param weights: (n, c) in force.
    :returns: (m, c) whether a node's VMs compete, (n, c) whether each VM
        wants more.
    """
    contended, wanting = contention.judged(load, controls)
    for control, rule in _RULES.items():
        if control in controls:
            column = resources.CONTROLS.index(control)
            contended[:, column], wanting[:, column] = rule(
                load, weights[:, column]
            )
    return contended, wanting


def decided(
    policy: policy_base.Policy,
    situation: policy_base.Situation,
    previous: allocation.Weights,
    memory: policy_base.Memory,
    elapsed_s: float,
) -> tuple[allocation.Weights, policy_base.Memory]:
    """Run a policy on one node and judge what it returns.

    One weight per VM counts for all controls.

    :raises PluginMisbehaved: if the weights have the wrong shape or are not
        finite and positive, or the memory is no mapping.
    """
    return _checked(
        policy(situation, _frozen(previous), memory, elapsed_s), previous
    )


def decided_at_once(
    policy: array_policy.ArrayPolicy,
    crowd: array_policy.Crowd,
    previous: allocation.Weights,
    memory: array_policy.Memories,
    elapsed_s: float,
) -> tuple[allocation.Weights, array_policy.Memories]:
    """Run a policy on many nodes and judge its result as :func:`decided`.

    :raises PluginMisbehaved: as :func:`decided` does.
    """
    return _checked(
        policy.decide(crowd, _frozen(previous), memory, elapsed_s), previous
    )


def _frozen(weights: allocation.Weights) -> allocation.Weights:
    frozen = weights.copy()
    frozen.setflags(write=False)
    return frozen


def _checked(
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


def bounded(
    weights: allocation.Weights,
    previous: allocation.Weights,
    max_weight_ratio: float | usage_model.Scalars,
    largest_step: float | usage_model.Scalars,
) -> allocation.Weights:
    """Bound the weights of nodes, each control for itself.

    First a weight moves from its previous value by a factor of at most
    ``largest_step``. Then it is cut to ``1 / sqrt(ratio) .. sqrt(ratio)``.
    All weights of a node lie in that one interval, those a policy holds
    included, so no two can be further apart than the ratio, whichever moved
    and whatever the step allowed. It lies around 1 because a VM that was not
    judged yet has 1.

    The bound holds for weights; kernel units also carry the number of vCPUs
    and the flavor's base. Not meant for :attr:`.policy.Preset.THESIS`, whose
    weights are places in a range.

    :param weights: (n, c) finite, > 0.
    :param previous: (n, c) finite, > 0: the weights really applied last.
    :param max_weight_ratio: largest / smallest weight, >= 1, of all controls
        or (c,) of each.
    :param largest_step: factor per round, >= 1, of all controls or (c,) of
        each.
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
