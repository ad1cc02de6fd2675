# SPDX-License-Identifier: Apache-2.0

"""Evicts preemptible servers so that a part of the cloud stays free.

The planner module of the same name decides which requests start and which
servers are evicted; this module executes that. A server with a notice is
spared if its room is no longer needed.
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

    :ivar lower: fraction of the cloud that must be free, 0 to 1: servers are
        evicted if less is free; 0: no server is evicted.
    :ivar actions: actions of Nova, tried one after the other until the room is
        free.
    :ivar when: rules that decide when servers may be evicted.
    """

    lower: float = 0.0
    actions: tuple[eviction.EvictionAction, ...] = (
        eviction.EvictionAction.SHELVE,
    )
    when: preemption.PreemptionRules = preemption.USUAL


class Watermark:
    """Evicts servers until enough of the cloud is free.

    :param server_evictor: evicts servers.
    :param rules: options of operators.
    """

    def __init__(
        self,
        server_evictor: evictor.Evictor,
        rules: WatermarkOptions,
    ) -> None:
        self._to = server_evictor
        self._rules = rules
        self._left_over = True

    def apply(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        open_requests: Sequence[records.RequestRecord],
        servers: Mapping[str, nova.Server],
        leaves: cycle_evictions.CycleEvictions,
        now: float,
        epoch: int,
    ) -> None:
        """Evict servers until enough is free, and spare unneeded victims.

        :param snapshot: snapshot of the cloud.
        :param plan: plan of that snapshot.
        :param open_requests: requests that have not ended.
        :param servers: all servers, by UUID.
        :param leaves: evictions of the cycle.
        :param now: seconds of the epoch.
        :param epoch: epoch of the leader.
        :raises Deposed: if that leader no longer leads.
        :raises StoreAway: if the store does not answer.
        """
        rules = self._rules
        if not (rules.lower or self._left_over):
            return
        # After the option was switched off, notices are withdrawn once.
        self._left_over = False
        self._spare_unneeded_victims(snapshot, plan, leaves, epoch)
        when, lower, actions = rules.when, rules.lower, rules.actions
        chosen = watermark.servers_to_evict(snapshot, plan, now, when, lower)
        if not chosen:
            return
        why = watermark.watermark_reason(snapshot, plan, lower)
        requests = preemption_module.newest_request_by_server(open_requests)
        for uuid in chosen:
            if uuid in servers:
                own = requests.get(uuid)
                evictor.attempt_for_server(
                    servers[uuid].log_name,
                    self._to.start_eviction,
                    servers[uuid],
                    eviction.EvictionCause.FREE,
                    why,
                    preemption_module.actions_of_owner_first(own, actions),
                    epoch,
                    0.0,
                    '',
                    own and own.asked_at,
                )

    def _spare_unneeded_victims(
        self,
        snapshot: cluster.ClusterSnapshot,
        plan: cluster.Plan,
        leaves: cycle_evictions.CycleEvictions,
        epoch: int,
    ) -> None:
        """End the evictions of servers whose room is no longer needed."""
        told = {
            uuid: each
            for uuid, each in leaves.in_states(eviction.UNTOUCHED).items()
            if each.cause is eviction.EvictionCause.FREE
        }
        names = sorted(told, key=lambda uuid: (told[uuid].chosen_at, uuid))
        for uuid in watermark.unneeded_victims(
            snapshot, plan, names, self._rules.lower
        ):
            named = self._to.log_name(uuid)
            evictor.attempt_for_server(
                named, self._to.spare, told[uuid], epoch
            )
