# SPDX-License-Identifier: Apache-2.0

"""Servers at risk: those that would be evicted next.

They are the servers with the lowest price for the room that they free, of
owners over their shares. There are some only while requests wait for room. The
prices are those of :mod:`.pricing`.
"""

from collections.abc import Iterator
import dataclasses
import math

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import reason
from nova_fairness.model import request as request_model
from nova_fairness.planners import hosts as hosts_module
from nova_fairness.planners.preemption import over_share
from nova_fairness.planners.preemption import planner
from nova_fairness.planners.preemption import pricing

_R = reason.Reason
_NEEDS_ROOM = frozenset({_R.NO_ROOM, _R.GROUP_HAS_NO_ROOM, _R.ROOM_IS_MADE})

_MOST_TIMES = 1000.0
"""Largest ratio of use to share that a reason shows."""


@dataclasses.dataclass(frozen=True, slots=True)
class NextVictim:
    """A server that would be evicted next.

    :ivar server: UUID of the server.
    :ivar times: use of its owner divided by the owner's share; infinite
        without a share.
    :ivar waiting: number of requests that wait for room.
    """

    server: str
    times: float
    waiting: int

    def why(self, token: reason.Reason) -> reason.Why:
        """Return a reason that contains these numbers."""
        return reason.why(
            token,
            times=min(self.times, _MOST_TIMES),
            waiting=float(self.waiting),
        )


def next_victims(
    snapshot: cluster.ClusterSnapshot,
    plan: cluster.Plan,
    now: float,
    rules: planner.PreemptionRules,
    most: int,
) -> list[NextVictim]:
    """Return the servers that would be evicted next, the cheapest first.

    All servers of a group are included, or none.

    :param snapshot: state of the cloud.
    :param plan: the plan for this snapshot.
    :param now: seconds of the epoch.
    :param rules: conditions and limits of evictions.
    :param most: largest number of returned servers, >= 0.
    """
    waiting = list(_waiting_for_room(snapshot, plan))
    if not most or not waiting:
        return []
    levels = over_share.ShareLevels(snapshot)
    least = _lowest_level_at_risk(waiting, levels, rules)
    listed = [
        each
        for each in pricing.list_candidates(
            snapshot, levels, now, rules.least_run_s
        )
        if levels.level[each.place] > least
    ]
    if not listed:
        return []
    hosts = hosts_module.Hosts(snapshot)
    field = pricing.victim_candidates(
        snapshot, levels, hosts, listed, now, rules.step_s
    )
    freed = pricing.lost_parts(snapshot, listed).max(axis=1, initial=0.0)
    ratio = field.price / np.maximum(freed, 1e-12)
    found: list[NextVictim] = []
    for v in np.lexsort((np.arange(len(ratio)), ratio)).tolist():
        if len(found) + len(field.servers[v]) <= most:
            times = float(levels.level[listed[v].place])
            found += [
                NextVictim(uuid, times, len(waiting))
                for uuid in field.servers[v]
            ]
    return found


def _waiting_for_room(
    snapshot: cluster.ClusterSnapshot, plan: cluster.Plan
) -> Iterator[request_model.Request]:
    for each in snapshot.requests:
        place = plan.waiting.get(each.uuid)
        if place is not None and place.why.reason in _NEEDS_ROOM:
            yield each


def _lowest_level_at_risk(
    waiting: list[request_model.Request],
    levels: over_share.ShareLevels,
    rules: planner.PreemptionRules,
) -> float:
    """Return the level above which servers of owners are at risk, at least 1.

    For preemptible requests, only servers leave whose owner's level exceeds
    that of the request's owner by the margin.
    """
    if not all(each.is_preemptible for each in waiting):
        return 1.0
    if not rules.by_shares:
        return math.inf
    asking = min(
        float(levels.level[levels.place(each.project, each.user)])
        for each in waiting
    )
    return max(1.0, rules.margin * asking)
