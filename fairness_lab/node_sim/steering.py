# SPDX-License-Identifier: Apache-2.0


"""From heaviness to kernel units on all nodes, as agents decide."""

import dataclasses
import types

import numpy as np
import numpy.typing as npt

from fairness_lab.node_sim import kernel
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import exception
from nova_fairness.decide import array_policy
from nova_fairness.decide import changes
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide import round as decide_round
from nova_fairness.model import allocation
from nova_fairness.model import resources

_CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)

_NOTHING: policy_base.Memory = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, eq=False)
class DecidingVms:
    """The VMs of the nodes whose agents decide now.

    :ivar acting: (k,) indices of those nodes, ascending.
    :ivar rows: (p,) indices of their VMs.
    :ivar crowd: the same VMs as a policy sees them.
    :ivar neutral: (p,) whether a VM's CPU weight is to be neutral.
    """

    acting: model.Indices
    rows: model.Indices
    crowd: array_policy.SituationArrays
    neutral: resources.Mask


class Steering:
    """Decisions of all agents, and the values in their kernels.

    :param cloud: the nodes and VMs.
    :param setup: of the agents.
    """

    def __init__(self, cloud: cloud_module.Cloud, setup: model.Setup) -> None:
        count, nodes = len(cloud.vms), len(cloud.nodes)
        self._cloud = cloud
        self._setup = setup
        self._starts = np.zeros(count, dtype=np.int64)
        self._memory: dict[int, policy_base.Memory] = {}
        self._arrays: dict[str, npt.NDArray[np.float64]] = {}
        plugin = setup.policy_plugin
        if isinstance(plugin, array_policy.ArrayPolicy):
            self._arrays = dict(plugin.initial_memory(count, nodes))
        self._steered = np.array(
            [control in setup.controls for control in resources.CONTROLS]
        )
        sizes = np.ones_like(cloud.vcpus) if setup.equal_vms else cloud.vcpus
        self.neutral = kernel.neutral_units(sizes)
        self._found = kernel.initial_units(sizes)
        self.held = self._found.copy()
        self.weights = np.ones(self.held.shape)
        self._wanted = self.held.copy()
        self._factor = np.ones(count)

    def begin(self, rows: model.Indices) -> None:
        """Assign neutral weights and an empty memory to VMs that start."""
        self._starts[rows] += 1
        self.held[rows] = self._wanted[rows] = self._found[rows]
        self.weights[rows] = self._factor[rows] = 1.0
        plugin = self._setup.policy_plugin
        if isinstance(plugin, array_policy.ArrayPolicy):
            for name, field in plugin.FIELDS.items():
                if field.per is not array_policy.MemoryScope.NODE_CONTROL:
                    self._arrays[name][rows] = field.unknown

    def steer(self, scene: DecidingVms) -> None:
        """Decide and write the weights of some nodes.

        :raises PluginMisbehaved: if the policy returns something unusable.
        """
        plugin, rows = self._setup.policy_plugin, scene.rows
        if plugin is None or not rows.size:
            return
        previous = self._weights_in_force(rows, plugin.preset)
        try:
            wished = self._wished_weights(plugin, scene, previous)
        except exception.PluginMisbehaved as error:
            raise exception.PluginMisbehaved(
                f'policy {self._setup.policy} {error}'
            ) from error
        if plugin.preset is policy_base.Preset.DEFAULT:
            wished = decide_round.bound_weights(
                wished,
                previous,
                self._setup.max_weight_ratio,
                self._setup.largest_step,
            )
        self.weights[rows] = wished
        self.weights[rows[scene.neutral], _CPU] = 1.0
        self.weights[rows[self._cloud.exempt_vms[rows]]] = 1.0
        self._write_weights(scene, plugin.preset)

    def _weights_in_force(
        self, rows: model.Indices, preset: policy_base.Preset
    ) -> allocation.Weights:
        """Weights in force, exact where the kernel has them."""
        exact = self.weights[rows].copy()
        if preset is policy_base.Preset.THESIS:
            return exact
        held = self.held[rows]
        told = kernel.weights_of(
            held, self._cloud.vcpus[rows], self._factor[rows]
        )
        told = np.where(self._steered, told, 1.0)
        return np.where(self._wanted[rows] == held, exact, told)

    def _write_weights(
        self, scene: DecidingVms, preset: policy_base.Preset
    ) -> None:
        """Write the units that changed enough, for steered controls."""
        rows = scene.rows
        present, weights = self.held[rows], self.weights[rows]
        vcpus = self._cloud.vcpus[rows]
        factor = kernel.factors(weights, vcpus, scene.crowd.node)
        wanted = kernel.units(weights, vcpus, preset, factor)
        self._wanted[rows], self._factor[rows] = wanted, factor
        differs = changes.differ(wanted, present, self._setup.weight_tolerance)
        self.held[rows] = np.where(differs & self._steered, wanted, present)

    def _wished_weights(
        self,
        plugin: policy_base.Policy,
        scene: DecidingVms,
        previous: allocation.Weights,
    ) -> allocation.Weights:
        if isinstance(plugin, array_policy.ArrayPolicy):
            return self._weights_of_array_policy(plugin, scene, previous)
        return self._weights_of_node_policy(plugin, scene, previous)

    def _weights_of_array_policy(
        self,
        plugin: array_policy.ArrayPolicy,
        scene: DecidingVms,
        previous: allocation.Weights,
    ) -> allocation.Weights:
        places = {
            name: scene.acting
            if field.per is array_policy.MemoryScope.NODE_CONTROL
            else scene.rows
            for name, field in plugin.FIELDS.items()
        }
        memory = {n: self._arrays[n][place] for n, place in places.items()}
        wished, kept = decide_round.run_array_policy(
            plugin, scene.crowd, previous, memory, self._cloud.interval_s
        )
        for name, place in places.items():
            self._arrays[name][place] = kept[name]
        return wished

    def _weights_of_node_policy(
        self,
        plugin: policy_base.Policy,
        scene: DecidingVms,
        previous: allocation.Weights,
    ) -> allocation.Weights:
        """Call a policy of the plain contract once for each node."""
        wished = np.empty_like(previous)
        order = np.argsort(scene.crowd.node, kind='stable')
        sizes = np.bincount(scene.crowd.node, minlength=len(scene.acting))
        groups = np.split(order, np.cumsum(sizes)[:-1])
        for local, places in enumerate(groups):
            if not places.size:
                continue
            node = int(scene.acting[local])
            wished[places], self._memory[node] = decide_round.run_policy(
                plugin,
                self._node_situation(scene, local, places),
                previous[places],
                self._memory.get(node, _NOTHING),
                self._cloud.interval_s,
            )
        return wished

    def _node_situation(
        self, scene: DecidingVms, local: int, places: model.Indices
    ) -> policy_base.Situation:
        rows, crowd = scene.rows[places], scene.crowd
        return policy_base.Situation(
            keys=tuple(f'{row:09d}/{self._starts[row]}' for row in rows),
            heaviness=crowd.heaviness[places],
            user=crowd.user[places],
            vcpus=np.asarray(crowd.vcpus[places], dtype=np.int64),
            contended=crowd.contended[local],
            wanting=crowd.wanting[places],
        )
