# SPDX-License-Identifier: Apache-2.0

"""Preemptible servers leave so that a part of the cloud is free.

The planner (``watermark.py``) decides which requests start and which servers
leave; this module carries it out. A server that was told and is not needed any
more stays.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness.cluster.eviction import cycle_evictions
from nova_fairness.cluster.eviction import evictor
from nova_fairness.cluster.eviction import preemption as preemption_module
from nova_fairness.cluster.openstack import nova
from nova_fairness.cluster.store import records
from nova_fairness.model import cluster
from nova_fairness.model import eviction
from nova_fairness.planners.preemption import planner as preemption
from nova_fairness.planners.preemption import watermark


@dataclasses.dataclass(frozen=True)
class WatermarkOptions:
    """Options that operators set.

    :ivar lower: part of the cloud below which servers leave, 0 to 1; 0: none
        do.
    :ivar actions: done one after the other until their room is free.
    :ivar when: servers may have to leave.
    """

    lower: float = 0.0
    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )
    when: preemption.PreemptionRules = preemption.USUAL


class Watermark:
    """Lets servers leave until so much is free.

    :param to: lets them leave.
    :param rules: what operators chose.
    """

    def __init__(
        self,
        to: evictor.Evictor,
        rules: WatermarkOptions,
    ) -> None:
        self._to = to
        self._rules = rules
        self._left_over = True

    def apply(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        found: Sequence[records.RequestRecord],
        servers: Mapping[str, nova.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> None:
        """Choose who leaves, and spare who need not any more.

        :param snapshot: of the cloud.
        :param plan: that was made of it.
        :param found: requests that have not ended.
        :param servers: all there are, by UUID.
        :param leaves: how far servers have left.
        :param now: seconds of the epoch.
        :param epoch: of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        lower = self._rules.lower
        if not (lower or self._left_over):
            return
        # Once the option is off, those that were told are spared once.
        self._left_over = False
        self._spare(snapshot, plan, leaves, epoch)
        chosen = watermark.leaving(
            snapshot, plan, now, self._rules.when, lower
        )
        if not chosen:
            return
        why = watermark.why(snapshot, plan, lower)
        requests = preemption_module.by_server(found)
        for uuid in chosen:
            if uuid in servers:
                own = requests.get(uuid)
                evictor.attempt(
                    servers[uuid].named,
                    self._to.choose,
                    servers[uuid],
                    eviction.EvictionCause.FREE,
                    why,
                    preemption_module.in_order(own, self._rules.actions),
                    epoch,
                    0.0,
                    '',
                    own and own.asked_at,
                )

    def _spare(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        told = {
            uuid: each
            for uuid, each in leaves.found(eviction.UNTOUCHED).items()
            if each.cause is eviction.EvictionCause.FREE
        }
        names = sorted(told, key=lambda uuid: (told[uuid].chosen_at, uuid))
        for uuid in watermark.needless(
            snapshot, plan, names, self._rules.lower
        ):
            named = self._to.named(uuid)
            evictor.attempt(named, self._to.spare, told[uuid], epoch)
