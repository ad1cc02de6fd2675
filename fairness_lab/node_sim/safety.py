# SPDX-License-Identifier: Apache-2.0

"""The safety net of all agents: which nodes get neutral weights.

Reports that are under way count as heard, so that one sum serves all nodes.
"""

import dataclasses

import numpy as np

from fairness_lab.node_sim import knowledge as knowledge_module
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import safety_net
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import resources
from nova_fairness.shares import grouping

_CPU = resources.CONTROLS.index(resources.ResourceControl.CPU)
_TIME = resources.RESOURCES.index('cpu_time')


class SimulatedSafetyNet:
    """Remembers the effects of weights on all nodes, and judges them.

    :param cloud: the nodes and VMs.
    :param setup: of the agents.
    :param knowledge: of the nodes, from which users are weighed.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        setup: model.Setup,
        knowledge: knowledge_module.SimulatedKnowledge,
    ) -> None:
        self._cloud = cloud
        self._metric = setup.metric_plugin
        self._knowledge = knowledge
        self._past = safety_net.RoundCounts.unknown(len(cloud.nodes))

    @property
    def resting(self) -> resources.Mask:
        """Whether each node has neutral weights for a while, (m,)."""
        return self._past.rest > 0

    def judge(
        self,
        batch: knowledge_module.ActingNodes,
        ready: resources.Mask,
        parts: model.Scalars,
        neutral: model.Scalars,
    ) -> resources.Mask:
        """Judge the interval of the nodes that act.

        :param ready: (p,) whether a VM's usage is known.
        :param parts: (p,) what each counts by what its kernel holds.
        :param neutral: (p,) what each counts with a neutral weight.
        :returns: (k,) whether a node is to be neutral.
        """
        scene = _ActingVms.of(
            self._cloud, self._metric, self._knowledge, batch
        )
        division = safety_net.CpuDivision(
            node=scene.local,
            nodes=len(batch.acting),
            user=batch.user,
            received=batch.newest[:, _TIME],
            wanted=batch.wanted[:, _TIME],
            parts=parts,
            neutral=neutral,
            user_total=scene.used[scene.user, _TIME],
            is_steered=ready,
        )
        past = self._past.select(batch.acting)
        found = safety_net.judge(division, past, scene.heaviness_with_less)
        self._past.replace_nodes(batch.acting, found.past)
        return found.neutral


@dataclasses.dataclass(frozen=True, eq=False)
class _ActingVms:
    """The VMs of acting nodes, with the reports of all nodes.

    :ivar local: (p,) position of each VM's node among those that act.
    :ivar told: newest reports of all nodes.
    :ivar supply: (r,) of them.
    :ivar user: (p,) index of each VM's user among those with a report.
    :ivar used: (u, r) by these users.
    :ivar quota: (u, r).
    """

    knowledge: knowledge_module.SimulatedKnowledge
    metric: metric_base.Metric
    batch: knowledge_module.ActingNodes
    local: model.Indices
    told: knowledge_module.ReportRows
    supply: resources.Vector
    user: model.Indices
    used: resources.Vector
    quota: resources.Vector

    @classmethod
    def of(
        cls,
        cloud: cloud_module.Cloud,
        metric: metric_base.Metric,
        knowledge: knowledge_module.SimulatedKnowledge,
        batch: knowledge_module.ActingNodes,
    ) -> '_ActingVms':
        """Create the object from the newest reports of all nodes."""
        rows = np.flatnonzero(knowledge.where != knowledge_module.NEVER)
        told = knowledge.newest(rows)
        supply = knowledge.supply(np.arange(len(cloud.nodes)))
        users, totals = knowledge.sum_of_users(told, supply)
        return cls(
            knowledge=knowledge,
            metric=metric,
            batch=batch,
            local=np.searchsorted(batch.acting, batch.node),
            told=told,
            supply=supply,
            user=np.searchsorted(users, batch.user),
            used=totals.usage,
            quota=totals.quota,
        )

    def heaviness_with_less(self, less: model.Scalars) -> model.Scalars:
        """Heaviness of VMs if all VMs of their node used ``less`` less."""
        batch = self.batch
        usage = batch.usage.copy()
        usage[:, _TIME] = (usage[:, _TIME] - less).clip(0.0)
        key, cell = np.unique(
            batch.node * (len(self.used) + 1) + self.user, return_inverse=True
        )
        cell = cell.reshape(-1)
        user = key % (len(self.used) + 1)
        change = grouping.sum_by(cell, usage - batch.usage, len(key))
        of_users = measure_foresight.of_users(
            self.metric,
            self.quota[user],
            self.knowledge.normalising_supply(self.supply),
        )
        if of_users is not None:
            return of_users((self.used[user] + change).clip(0.0))[cell]
        heavy = np.zeros(len(batch.rows))
        for node in batch.acting:
            mine = batch.node == node
            heavy[mine] = self._node_heaviness(int(node), usage[mine])
        return heavy

    def _node_heaviness(
        self, node: int, usage: resources.Vector
    ) -> model.Scalars:
        """Heaviness of the VMs of one node with another usage."""
        part = dataclasses.replace(self.batch.of_node(node), usage=usage)
        own = self.knowledge.instance_heaviness(
            part, self.supply, len(self.used)
        )
        told = dataclasses.replace(
            self.told,
            heaviness=self.told.heaviness.copy(),
            usage=self.told.usage.copy(),
        )
        here = np.flatnonzero(self.told.node == node)
        told.heaviness[here], told.usage[here] = own, usage
        return self.knowledge.heaviness_of_treatment(
            part, own, told, self.supply
        )
