# SPDX-License-Identifier: Apache-2.0

"""Work of each cycle beside requests: servers that may not stay, or may."""

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
    [cluster.ClusterSnapshot, cluster.Plan, float], list[risk.Next]
]
"""Says who would make room next, the first first."""


@dataclasses.dataclass(frozen=True)
class CycleState:
    """State and plan of one cycle.

    :ivar snapshot: of the cloud.
    :ivar plan: that was made of it.
    :ivar found: requests that have not ended.
    :ivar servers: all there are, by UUID.
    :ivar leaves: how far servers have left; follows what is written.
    :ivar now: seconds of the epoch.
    :ivar epoch: of the leader.
    """

    snapshot: cluster.ClusterSnapshot
    plan: cluster.Plan
    found: Sequence[records.RequestRecord]
    servers: Mapping[str, nova.Server]
    leaves: cycle_evictions.CycleEvictions
    now: float
    epoch: int


class CycleTasks:
    """Does all of them, one after the other.

    :param idling: see :attr:`idling`.
    :param warnings: see :attr:`warnings`.
    :param following: says who would make room next.
    :param retiring: lets those leave that are done.
    :param freeing: keeps a part of the cloud free.

    :ivar idling: says who leaves because it does nothing.
    :ivar warnings: says to servers that they are at risk.
    """

    def __init__(
        self,
        idling: idle_reclaim.IdleReclaim,
        warnings: at_risk.Warnings,
        following: Following,
        retiring: retirement.Retirement,
        freeing: watermark.Watermark,
    ) -> None:
        self.idling = idling
        self.warnings = warnings
        self._following = following
        self._retiring = retiring
        self._freeing = freeing

    def apply(self, look: CycleState) -> None:
        """Do what is due.

        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        servers, now, epoch = look.servers, look.now, look.epoch
        leaves = look.leaves
        self.idling.apply(
            look.snapshot, look.found, servers, leaves, now, epoch
        )
        following = self._following(look.snapshot, look.plan, now)
        self.warnings.apply(following, servers, leaves, now, epoch)
        told = self.warnings.told
        self._retiring.apply(following, told, servers, leaves, epoch)
        self._freeing.apply(
            look.snapshot, look.plan, look.found, servers, leaves, now, epoch
        )
