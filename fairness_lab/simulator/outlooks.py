# SPDX-License-Identifier: Apache-2.0

"""What agents may look ahead on, of simulated clouds."""

import numpy as np

from fairness_lab.simulator import model
from nova_fairness.decide import look_ahead
from nova_fairness.measure import cells
from nova_fairness.measure import grades
from nova_fairness.measure import quota
from nova_fairness.model import outlook
from nova_fairness.model import resources
from nova_fairness.shares import grouping

KEPT = 64
"""Outlooks that are remembered."""


class Outlooks:
    """Makes outlooks; the same one again while next to nothing changes.

    :param cloud: the nodes.
    :param setup: of the agents.
    """

    def __init__(self, cloud: model.Cloud, setup: model.Setup) -> None:
        self._cloud = cloud
        self._setup = setup
        self._made: list[tuple[outlook.Outlook, outlook.End]] = []

    def of(
        self,
        told: cells.Cells,
        supply: resources.Vector,
        normal: resources.Vector,
        vcpus: model.Scalars,
    ) -> tuple[outlook.Outlook, outlook.End]:
        """Make one of reports, and look ahead.

        :param told: a row for each VM, where it was, in any order.
        :param vcpus: (n,) of these VMs.
        :param supply: (r,) of the nodes whose reports count, in a round.
        :param normal: (r,) with overcommit.
        """
        made = self._make(told, supply, normal, vcpus)
        for item in self._made:
            if item[0].is_like(made):
                return item
        end = look_ahead.end(made, self._setup.max_weight_ratio)
        self._made = [(made, end), *self._made[: KEPT - 1]]
        return made, end

    def _make(
        self,
        told: cells.Cells,
        supply: resources.Vector,
        normal: resources.Vector,
        vcpus: model.Scalars,
    ) -> outlook.Outlook:
        cloud, users = self._cloud, len(self._cloud.users)
        key, cell = np.unique(
            told.node * users + told.user, return_inverse=True
        )
        cell = cell.reshape(-1)
        node, user = key // users, key % users
        present, owner = np.unique(user, return_inverse=True)
        found = cells.Cells(
            node=node,
            user=owner.reshape(-1),
            endowment=grouping.sum_by(cell, told.endowment, len(key)),
            used=grouping.sum_by(cell, told.used, len(key)),
            wanted=grouping.sum_by(cell, told.wanted, len(key)),
        )
        quotas = quota.quotas(supply, cloud.user_weight[present])
        whole = resources.RESOURCES.over(cloud.capacity, cloud.interval_s)
        one_cpu = cloud.speed * cloud.interval_s
        cpu = resources.RESOURCES.index('cpu_time')
        asked = np.minimum(told.wanted[:, cpu] / one_cpu[told.node], vcpus)
        weighing = cells.Weighing(
            self._setup.metric_plugin, found, quotas, normal
        )
        return outlook.Outlook(
            node=node,
            user=user,
            wanted=found.wanted,
            used=np.minimum(found.used, found.wanted),
            supply=whole,
            one_cpu=one_cpu,
            demand=cells.demand(
                found.wanted[:, cpu],
                one_cpu[node],
                grades.graded(cell, vcpus, asked, len(key)),
            ),
            weigh=weighing,
            weigh_users=weighing.of_users,
            metric=self._setup.metric,
            quota=quotas,
        )
