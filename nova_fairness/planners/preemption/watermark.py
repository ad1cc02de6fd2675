# SPDX-License-Identifier: Apache-2.0

"""Watermarks: a part of the cloud stays free before requests need it.

Preemptible requests start only if a part of the cloud stays free (the upper
mark). If other requests use this part, preemptible servers leave until a
smaller part is free (the lower mark). Between the marks, none starts and none
leaves, so that servers do not start and leave in turns. Cloud Scheduler and
Aardvark have one mark.

Amounts are those of the whole cloud, in each resource class.
"""

import dataclasses

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import alternatives
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import over_share
from nova_fairness.planners.preemption import planner
from nova_fairness.planners.preemption import pricing

_START = cluster.Verb.START


@dataclasses.dataclass(frozen=True, slots=True)
class WatermarkBounds:
    """Parts of the cloud that stay free.

    :ivar upper: free part that must remain when preemptible requests start, 0
        to 1.
    :ivar lower: free part below which preemptible servers are evicted, 0 to
        ``upper``.
    :raises ValueError: if a part is out of its range.
    """

    upper: float = 0.0
    lower: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper <= 1:
            raise ValueError(
                f'{self.lower:g} and {self.upper:g}, expected parts from 0 to'
                ' 1, the lower first'
            )


NONE = WatermarkBounds()


def plan(
    snapshot: cluster.ClusterSnapshot,
    now: float,
    queue: planner.Planner,
    upper: float,
) -> cluster.Plan:
    """Return the plan of the queue, without starts of preemptible requests
    that would leave too little free.

    The first preemptible request whose start would leave too little free
    waits, and so do all preemptible requests after it.

    :param snapshot: state of the cloud.
    :param now: seconds of the epoch.
    :param queue: planner of the queue.
    :param upper: see :attr:`Marks.upper`.
    """
    snapshot = alternatives.with_chosen_alternatives(snapshot)
    made = queue(snapshot, now)
    known = {each.uuid: each for each in snapshot.requests}
    starts = [
        known[each.request]
        for each in made.actions
        if each.verb is _START and known[each.request].is_preemptible
    ]
    if not starts or upper <= 0:
        return made
    spare = _free_beyond(snapshot, made, upper)
    request_uuids: set[str] = set()
    # Requests that start together wait together.
    for unit in reversed(order_module.group_into_units(starts)):
        if (spare >= 0).all():
            break
        request_uuids.update(each.uuid for each in unit.requests)
        for each in unit.requests:
            spare = spare + _amounts_of_server(each, snapshot) * len(
                each.servers
            )
    return _with_postponed_requests(
        snapshot, made, starts, request_uuids, upper
    )


def servers_to_evict(
    snapshot: cluster.ClusterSnapshot,
    made: cluster.Plan,
    now: float,
    rules: planner.PreemptionRules,
    lower: float,
) -> tuple[str, ...]:
    """Return the servers that are evicted so that the lower part is free
    again.

    Victims that leave already count as gone, and planned starts as running.

    :param snapshot: state of the cloud.
    :param made: the present plan.
    :param now: seconds of the epoch.
    :param rules: conditions and limits of evictions.
    :param lower: see :attr:`Marks.lower`.
    """
    lack = np.maximum(-_free_beyond(snapshot, made, lower), 0.0)
    if lower <= 0 or not lack.any():
        return ()
    levels = over_share.ShareLevels(snapshot)
    going = {uuid for each in made.actions for uuid in each.leaving}
    listed = [
        each
        for each in pricing.list_candidates(
            snapshot, levels, now, rules.least_run_s
        )
        if not any(server.uuid in going for server in each.servers)
    ]
    if not listed:
        return ()
    hosts = hosts_module.Hosts(snapshot)
    field = pricing.victim_candidates(
        snapshot, levels, hosts, listed, now, rules.step_s
    )
    frees = np.array(
        [
            field.amounts[field.party == v].sum(axis=0)
            for v in range(len(listed))
        ]
    )
    chosen = _cheapest_cover(field, frees, lack)
    most, found = max(rules.per_hour - snapshot.evicted, 0), list[str]()
    for v in chosen:
        if len(found) + len(field.servers[v]) <= most:
            found += field.servers[v]
    return tuple(found)


def unneeded_victims(
    snapshot: cluster.ClusterSnapshot,
    made: cluster.Plan,
    told: list[str],
    lower: float,
) -> list[str]:
    """Return servers that received a notice and may stay, because enough is
    free without their eviction.

    :param told: servers that leave only because of the mark; the last ones are
        put back first, all servers of a group or none.
    """
    spare = _free_beyond(snapshot, made, lower)
    running = {each.uuid: each for each in snapshot.running}
    together: dict[tuple[str, str], list[cluster.Running]] = {}
    for uuid in told:
        if uuid in running:
            each = running[uuid]
            key = (each.project, each.group) if each.group else ('', uuid)
            together.setdefault(key, []).append(each)
    stay: list[str] = []
    for those in reversed(together.values()):
        amounts = sum(
            cluster.amounts_vector(dict(each.amounts), snapshot.classes)
            for each in those
        )
        if (spare - amounts >= 0).all():
            spare = spare - amounts
            stay += [each.uuid for each in those]
    return stay


def watermark_reason(
    snapshot: cluster.ClusterSnapshot, made: cluster.Plan, part: float
) -> reason.Why:
    """Return the reason, with the resource class that has the smallest free
    part.
    """
    capacity = _total_capacity(snapshot)
    spare = _free_beyond(snapshot, made, part)
    ratio = np.divide(
        spare, capacity, out=np.full(len(spare), np.inf), where=capacity > 0
    )
    c = int(ratio.argmin())
    free = 100.0 * (float(ratio[c]) + part)
    return reason.why(
        reason.Reason.KEEPS_FREE,
        snapshot.classes[c],
        kept=100.0 * part,
        free=max(free, 0.0),
    )


def _cheapest_cover(
    field: candidates.VictimCandidates,
    frees: cluster.Amounts,
    lack: candidates.Floats,
) -> list[int]:
    """Return candidates that cover a lack at a low price.

    Parties that are not needed stay; the dearest are tested first.
    """
    asked = np.flatnonzero(lack > 0)
    use = (np.minimum(frees[:, asked], lack[asked]) / lack[asked]).sum(axis=1)
    helps = np.flatnonzero(use > 0)
    order = helps[np.lexsort((helps, field.price[helps] / use[helps]))]
    left, chosen = lack.copy(), list[int]()
    for v in order.tolist():
        if not (left > 0).any():
            break
        if (frees[v][left > 0] > 0).any():
            left = left - frees[v]
            chosen.append(v)
    for v in sorted(chosen, key=lambda v: (-field.price[v], v)):
        if (left + frees[v] <= 0).all():
            left = left + frees[v]
            chosen.remove(v)
    return chosen


def _free_beyond(
    snapshot: cluster.ClusterSnapshot, made: cluster.Plan, part: float
) -> candidates.Floats:
    """Return the amounts that are free beyond a part, after a plan, (c,)."""
    used = snapshot.inventory.used.sum(axis=0, dtype=np.float64)
    for each in snapshot.running:
        if each.uuid in snapshot.leaving:
            used -= cluster.amounts_vector(
                dict(each.amounts), snapshot.classes
            )
    waiting = {each.uuid: each for each in snapshot.requests}
    started = {
        each.request: each.hosts
        for each in made.actions
        if each.verb is _START
    }
    for uuid, hosts in {**snapshot.promised, **started}.items():
        if uuid in waiting:
            used += _amounts_of_server(waiting[uuid], snapshot) * len(hosts)
    capacity = _total_capacity(snapshot)
    spare: candidates.Floats = capacity * (1 - part) - used
    return spare


def _total_capacity(snapshot: cluster.ClusterSnapshot) -> candidates.Floats:
    capacity = snapshot.inventory.capacity.sum(axis=0)
    return np.asarray(capacity, dtype=np.float64)


def _amounts_of_server(
    request: request_model.Request, snapshot: cluster.ClusterSnapshot
) -> candidates.Floats:
    """Return the amounts that one server of a request needs, (c,)."""
    amounts = dict(request.demand.amounts)
    one = cluster.amounts_vector(amounts, snapshot.classes)
    return np.asarray(one, dtype=np.float64)


def _with_postponed_requests(
    snapshot: cluster.ClusterSnapshot,
    made: cluster.Plan,
    starts: list[request_model.Request],
    request_uuids: set[str],
    upper: float,
) -> cluster.Plan:
    """Return a plan in which some requests wait behind all others instead
    of starting.
    """
    actions = tuple(
        each for each in made.actions if each.request not in request_uuids
    )
    kept = cluster.Plan(actions, made.waiting)
    said, first = (
        watermark_reason(snapshot, kept, upper),
        len(made.waiting) + 1,
    )
    waits = [each.uuid for each in starts if each.uuid in request_uuids]
    behind = {
        uuid: cluster.Waiting(position, said)
        for position, uuid in enumerate(waits, first)
    }
    return cluster.Plan(actions, {**made.waiting, **behind})
