# SPDX-License-Identifier: Apache-2.0


"""All agents of a simulated cloud: measure, exchange and decide in order."""

import numpy as np

from fairness_lab.node_sim import knowledge
from fairness_lab.node_sim import links
from fairness_lab.node_sim import meters
from fairness_lab.node_sim import model
from fairness_lab.node_sim import safety
from fairness_lab.node_sim import steering
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import array_policy
from nova_fairness.decide import contention
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide import round as decide_round
from nova_fairness.measure import endowment
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources

_CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)


class AgentFleet:
    """All agents of a simulated cloud: their memory and their rounds.

    :param cloud: the nodes and VMs.
    :param setup: of the agents.
    """

    def __init__(self, cloud: cloud_module.Cloud, setup: model.Setup) -> None:
        count, nodes = len(cloud.vms), len(cloud.nodes)
        controls = len(resources.CONTROLS)
        self._cloud = cloud
        self._setup = setup
        self._controls = setup.controls
        self._knowledge = _create_knowledge(cloud, setup)
        self._meters = meters.Meters(cloud, setup.decay_factor)
        self.net = safety.SimulatedSafetyNet(cloud, setup, self._knowledge)
        self.steering = steering.Steering(cloud, setup)
        self.heaviness = np.full(count, np.nan)
        self.contended = np.zeros((nodes, controls), dtype=np.bool_)
        self.wanting = np.zeros((count, controls), dtype=np.bool_)

    def user_heaviness(self) -> model.Scalars:
        """Heaviness of all users by their real use, (u,)."""
        return self._knowledge.of_users()

    def begin(self, rows: model.Indices, at_s: float | None) -> None:
        """Start to measure VMs that start or move to another node.

        :param at_s: time of the first reading of their counters, seconds;
            ``None``: not yet.
        """
        self._meters.begin(rows, at_s)
        self.steering.begin(rows)
        self.end(rows)

    def end(self, rows: model.Indices) -> None:
        """Forget the heaviness and wants of VMs."""
        self.heaviness[rows] = np.nan
        self.wanting[rows] = False

    def run_rounds(
        self, acting: model.Indices, tick: int, readings: meters.Readings
    ) -> None:
        """Run a round of some agents.

        :param acting: (k,) indices of their nodes, ascending.
        :param tick: ascending number of the moment.
        :raises PluginMisbehaved: if the metric or the policy fails.
        """
        if not acting.size:
            self._knowledge.skip(tick)
            return
        chosen = np.zeros(len(self._cloud.nodes) + 1, dtype=np.bool_)
        chosen[acting] = True
        rows = np.flatnonzero(chosen[readings.node])
        node = readings.node[rows]
        local = np.searchsorted(acting, node)
        usage = self._meters.usage(rows, node, readings)
        load = self._meters.load(acting, rows, local, usage, readings)
        wanted, load = self._meters.judge(rows, node, usage, load)
        batch = knowledge.ActingNodes(
            acting=acting,
            rows=rows,
            node=node,
            user=self._cloud.user_of_vm[rows],
            usage=usage.amounts,
            endowment=endowment.endowments(
                self._cloud.vcpus[rows],
                self._cloud.memory_bytes[rows],
                local,
                self._meters.supply_of_nodes(acting),
            ),
            newest=usage.newest,
            wanted=wanted,
        )
        self.heaviness[rows] = self._knowledge.weigh(batch, tick)
        self._meters.store_readings(batch, readings)
        self._steer(batch, load, tick)

    def _steer(
        self,
        batch: knowledge.ActingNodes,
        load: contention.ContentionLoad,
        tick: int,
    ) -> None:
        contended, wanting = decide_round.judge_load(
            load, self._controls, self.steering.weights[batch.rows]
        )
        self.contended[batch.acting] = contended
        self.wanting[batch.rows] = wanting
        neutral = self._neutral_nodes(batch, load)
        # A node at rest does not divide its CPUs by weights.
        contended = contended.copy()
        contended[neutral, _CPU] = False
        crowd = array_policy.SituationArrays(
            node=load.node,
            nodes=len(batch.acting),
            heaviness=self.heaviness[batch.rows],
            user=batch.user,
            vcpus=load.vcpus,
            contended=contended,
            wanting=wanting,
            foresight=self._foresight_input(batch, tick),
        )
        self.steering.steer(
            steering.DecidingVms(
                batch.acting, batch.rows, crowd, neutral[load.node]
            )
        )

    def _neutral_nodes(
        self, batch: knowledge.ActingNodes, load: contention.ContentionLoad
    ) -> resources.Mask:
        """Whether each acting node must have neutral weights, (k,)."""
        plugin = self._setup.policy_plugin
        if (
            plugin is None
            or not self._setup.safety_net
            or plugin.preset is not policy_base.Preset.DEFAULT
            or resources.ResourceControl.CPU not in self._controls
        ):
            return np.zeros(len(batch.acting), dtype=np.bool_)
        held, neutral = self.steering.held, self.steering.neutral
        return self.net.judge(
            batch,
            load.ready,
            held[batch.rows, _CPU].astype(np.float64),
            neutral[batch.rows, _CPU].astype(np.float64),
        )

    def _foresight_input(
        self, batch: knowledge.ActingNodes, tick: int
    ) -> foresight_model.Foresight | None:
        """Input of policies that use foresight; ``None`` for other ones."""
        plugin = self._setup.policy_plugin
        if plugin is None or not plugin.uses_foresight:
            return None
        ratio = self._setup.max_weight_ratio
        return foresight_model.Foresight(
            used=batch.newest,
            wanted=batch.wanted,
            user=batch.user,
            ratio=np.full(len(resources.CONTROLS), ratio),
            views=self._knowledge.views(batch, tick),
            exempt=self._cloud.exempt_vms[batch.rows],
        )


def _create_knowledge(
    cloud: cloud_module.Cloud, setup: model.Setup
) -> knowledge.SimulatedKnowledge:
    if setup.links is None and cloud.cut is None:
        return knowledge.SharedKnowledge(cloud, setup)
    nodes = len(cloud.nodes)
    ways = setup.links or cloud_module.Links(
        np.zeros((nodes, nodes), dtype=np.int64), np.zeros((nodes, nodes))
    )
    return links.LinkedKnowledge(cloud, setup, ways)
