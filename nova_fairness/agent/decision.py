# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""From heaviness to kernel units: the decide room in order."""

from collections.abc import Mapping
from collections.abc import Sequence
import types

import numpy as np

from nova_fairness import exception
from nova_fairness.agent import guard as guard_module
from nova_fairness.agent import settings as settings_module
from nova_fairness.decide import bounds
from nova_fairness.decide import contention
from nova_fairness.decide import kernel_units
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import node as node_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model

_NOTHING: policy_base.Memory = types.MappingProxyType({})


class Decision:
    """Runs a policy and turns its weights into kernel units.

    :param node: what the node has.
    :param guard: runs the policy.
    :param version: the node's cgroup version.
    :param memory: what a policy of that name remembered, by policy name.
    """

    def __init__(
        self,
        node: node_model.NodeResources,
        guard: guard_module.Guard,
        version: kernel_units.CgroupVersion,
        memory: Mapping[str, policy_base.Memory] = _NOTHING,
    ) -> None:
        self._node = node
        self._guard = guard
        self._version = version
        self._memory = dict(memory)
        self._weights: dict[str, allocation.Weights] = {}
        self._preset = policy_base.Preset.DEFAULT

    @property
    def allowed(self) -> Mapping[resources.Control, tuple[int, int]]:
        """Range of kernel units by control."""
        return kernel_units.allowed(self._version)

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Name the flavors' extra specs that cannot be followed."""
        return kernel_units.unusable_specs(vms, self._version)

    @property
    def memory(self) -> Mapping[str, policy_base.Memory]:
        """What the policies remember, by policy name."""
        return dict(self._memory)

    def forget(self) -> None:
        """Forget weights and what policies remember: all begin neutral."""
        self._memory = {}
        self._weights = {}

    def decide(
        self,
        measured: round_model.Measured,
        policy: policy_base.Policy,
        held: allocation.Allocation,
        settings: settings_module.Settings,
        exempt: frozenset[str],
        elapsed_s: float,
    ) -> round_model.Decided:
        """Decide the weights of one round.

        :param held: what this agent, or one before it, applied last; VMs
            that were never steered are absent and begin neutral.
        :param exempt: keys of incarnations that are not steered.
        :param elapsed_s: since the last decision, seconds, > 0.
        :raises PluginMisbehaved: if the policy fails.
        """
        vms = measured.usage.incarnations
        situation = contention.situation(
            measured.usage,
            measured.heaviness,
            measured.ownership.user_index,
            self._node,
        )
        previous = self._previous(vms, held, policy.preset)
        remembered = self._memory.get(settings.policy, _NOTHING)
        wished, memory = self._guard.call(
            settings.policy,
            lambda: checked(
                policy, situation, previous, remembered, elapsed_s
            ),
        )
        weights = wished
        if policy.preset is policy_base.Preset.DEFAULT:
            weights = bounds.bounded(
                wished,
                previous,
                settings.max_weight_ratio,
                settings.largest_step,
            )
        self._memory = {settings.policy: memory}
        self._remember(vms, weights, policy.preset)
        return round_model.Decided(
            contended=situation.contended,
            wanting=situation.wanting,
            weights=weights,
            wanted=kernel_units.allocate(
                weights, vms, policy.preset, self._version, exempt
            ),
        )

    def _remember(
        self,
        vms: Sequence[instance.Incarnation],
        weights: allocation.Weights,
        preset: policy_base.Preset,
    ) -> None:
        self._preset = preset
        self._weights = {
            item.key: weights[row] for row, item in enumerate(vms)
        }

    def _previous(
        self,
        vms: Sequence[instance.Incarnation],
        held: allocation.Allocation,
        preset: policy_base.Preset,
    ) -> allocation.Weights:
        """Give the weights in force.

        The kernel has whole units. Where it got what the last weights came
        to, those are more exact; where it did not, because a write failed
        or was too small a change, what the kernel has is right.
        """
        in_kernel = kernel_units.weights_from(held, vms, preset, self._version)
        if preset is not self._preset:
            return in_kernel
        exact = np.array(
            [
                self._weights.get(item.key, in_kernel[row])
                for row, item in enumerate(vms)
            ]
        ).reshape(in_kernel.shape)
        units = kernel_units.allocate(exact, vms, preset, self._version)
        previous = in_kernel.copy()
        for row, item in enumerate(vms):
            for column, control in enumerate(resources.CONTROLS):
                knob = allocation.Knob(item.key, control)
                if knob not in units or units[knob] == held.get(knob):
                    previous[row, column] = exact[row, column]
        return previous


def checked(
    policy: policy_base.Policy,
    situation: policy_base.Situation,
    previous: allocation.Weights,
    memory: policy_base.Memory,
    elapsed_s: float,
) -> tuple[allocation.Weights, policy_base.Memory]:
    """Run a policy and judge what it returns.

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
