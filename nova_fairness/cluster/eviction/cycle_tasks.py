# SPDX-License-Identifier: Apache-2.0

"""Tasks of each cycle for running servers: warnings, idle reclaim, retirement
and watermark.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness.cluster.eviction import at_risk
from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import idle_reclaim
from nova_fairness.cluster.eviction import retirement
from nova_fairness.cluster.eviction import watermark
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.planners.preemption import risk

Following = Callable[
    [cluster.ClusterSnapshot, cluster.Plan, float], list[risk.NextVictim]
]
"""Returns the servers that would be evicted next, in this order."""


@dataclasses.dataclass(frozen=True)
class CycleState:
    """State and plan of one cycle.

    :ivar snapshot: snapshot of the cloud.
    :ivar plan: plan of that snapshot.
    :ivar found: requests that have not ended.
    :ivar servers: all servers, by UUID.
    :ivar leaves: evictions, kept up to date.
    :ivar now: seconds of the epoch.
    :ivar epoch: epoch of the leader.
    """

    snapshot: cluster.ClusterSnapshot
    plan: cluster.Plan
    found: Sequence[records.RequestRecord]
    servers: Mapping[str, nova.Server]
    leaves: cycle_evictions.CycleEvictions
    now: float
    epoch: int


class CycleTasks:
    """Executes all tasks, one after the other.

    :param idling: see :attr:`idling`.
    :param warnings: see :attr:`warnings`.
    :param find_next_victims: returns the servers that would be evicted next.
    :param retirement_task: evicts servers that have finished their work.
    :param watermark_task: evicts servers so that a part of the cloud is free.
    :ivar idling: evicts idle servers.
    :ivar warnings: warns servers that are at risk of eviction.
    """

    def __init__(
        self,
        idling: idle_reclaim.IdleReclaim,
        warnings: at_risk.RiskWarnings,
        find_next_victims: Following,
        retirement_task: retirement.Retirement,
        watermark_task: watermark.Watermark,
    ) -> None:
        self.idling = idling
        self.warnings = warnings
        self._following = find_next_victims
        self._retiring = retirement_task
        self._freeing = watermark_task

    def apply(self, cycle: CycleState) -> None:
        """Execute the tasks that are due.

        :raises Deposed: if the leader of the cycle no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        servers, now, epoch = cycle.servers, cycle.now, cycle.epoch
        leaves = cycle.leaves
        self.idling.apply(
            cycle.snapshot, cycle.found, servers, leaves, now, epoch
        )
        following = self._following(cycle.snapshot, cycle.plan, now)
        self.warnings.apply(following, servers, leaves, now, epoch)
        told = self.warnings.told
        self._retiring.apply(following, told, servers, leaves, epoch)
        self._freeing.apply(
            cycle.snapshot,
            cycle.plan,
            cycle.found,
            servers,
            leaves,
            now,
            epoch,
        )
