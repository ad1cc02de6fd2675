# SPDX-License-Identifier: Apache-2.0

"""Results of past moves, and the measured outcome of plans."""

from collections.abc import Iterable
from collections.abc import Mapping
import math

from nova_fairness.cluster.admission import start_estimates
from nova_fairness.cluster.move_plans import registry
from nova_fairness.cluster.openstack import nova
from nova_fairness.model import cluster
from nova_fairness.model import plans as model
from nova_fairness.planners.consolidation import utilisation

_MEMORY = 'MEMORY_MB'


def servers_moved_since(
    plans: Iterable[model.MigrationPlan], since: float
) -> frozenset[str]:
    """Return the UUIDs of servers for which a move was requested since a time.

    :param since: seconds of the epoch.
    """
    return frozenset(
        move.server
        for plan in plans
        for move in plan.moves
        if move.asked_at is not None and move.asked_at >= since
    )


def last_arrival_time(plans: Iterable[model.MigrationPlan]) -> float:
    """Return the time at which the last moved server arrived on its new
    host, seconds of the epoch; minus infinity if none did.
    """
    return max(
        (
            move.ended_at
            for plan in plans
            for move in plan.moves
            if move.state is model.MoveState.MOVED and move.ended_at
        ),
        default=-math.inf,
    )


def sent_memory_factors(
    plans: Iterable[model.MigrationPlan], running: Iterable[cluster.Running]
) -> dict[str, float]:
    """Return the memory that the last move of each server sent, as a
    multiple of the server's memory, by UUID.
    """
    sent = {
        move.server: move.sent_mb
        for plan in sorted(plans, key=lambda each: each.made_at)
        for move in plan.moves
        if move.sent_mb is not None
    }
    memory = {
        each.uuid: dict(each.amounts).get(_MEMORY, 0)
        for each in running
        if each.uuid in sent
    }
    return {
        server: sent[server] / have for server, have in memory.items() if have
    }


def is_still_useful(
    plan: model.MigrationPlan,
    servers: Mapping[str, nova.Server],
    waiting: Mapping[str, cluster.Waiting],
) -> bool:
    """Whether a proposed plan is still useful.

    Its servers are still on the hosts from which it moves them, and its goal
    is not reached yet.
    """
    at: dict[str, str] = {}
    for move in plan.moves:
        at.setdefault(move.server, move.source)
    return registry.GOALS[plan.goal].is_of_use(plan, waiting) and all(
        uuid in servers and servers[uuid].host == host
        for uuid, host in at.items()
    )


def measured_outcome(
    plan: model.MigrationPlan, last: start_estimates.LastCycle
) -> model.PlanOutcome:
    """Return the measured outcome of a plan that has ended.

    :param last: state and plan of the first cycle of the queue after the end.
    """
    seen = utilisation.utilisation_figures(last.snapshot)
    done = [each for each in plan.moves if each.state is model.MoveState.MOVED]
    return model.PlanOutcome(
        hosts_before=plan.promised.hosts_before,
        hosts_after=len(seen.busy),
        spread_before=plan.promised.spread_before,
        spread_after=seen.spread,
        emptied=sum(host not in seen.busy for host in plan.empties),
        moves=len(done),
        memory_mb=sum(
            each.cost_mb if each.sent_mb is None else each.sent_mb
            for each in done
        ),
        served=registry.GOALS[plan.goal].served(plan, last.records),
    )
