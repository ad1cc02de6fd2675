# SPDX-License-Identifier: Apache-2.0

"""Servers that would be the next victims, if a request asked for more.

They are those that cost least for the room that they free, of owners that are
over their shares, and only while requests wait for room: the same prices as of
victims, see :mod:`.pricing`.
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
"""Times of their share that are told of an owner who has none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Next:
    """A server that is among the next.

    :ivar server: UUID.
    :ivar times: how much its owner uses, in times of their share; infinite
        of one without a share.
    :ivar waiting: requests that wait for room.
    """

    server: str
    times: float
    waiting: int

    def why(self, token: reason.Reason) -> reason.Why:
        """A reason with these numbers."""
        return reason.why(
            token,
            times=min(self.times, _MOST_TIMES),
            waiting=float(self.waiting),
        )


def servers(
    snapshot: cluster.ClusterSnapshot,
    plan: cluster.Plan,
    now: float,
    rules: planner.PreemptionRules,
    most: int,
) -> list[Next]:
    """Those that would make room next, the cheapest first.

    All servers of a group, or none.

    :param snapshot: of the cloud.
    :param plan: that was made of it.
    :param now: seconds of the epoch.
    :param rules: when servers may have to leave.
    :param most: of them, >= 0.
    """
    waiting = list(_waiting(snapshot, plan))
    if not most or not waiting:
        return []
    levels = over_share.Levels(snapshot)
    least = _least_level(waiting, levels, rules)
    listed = [
        each
        for each in pricing.parties(snapshot, levels, now, rules.least_run_s)
        if levels.level[each.place] > least
    ]
    if not listed:
        return []
    hosts = hosts_module.Hosts(snapshot)
    field = pricing.field(snapshot, levels, hosts, listed, now, rules.step_s)
    freed = pricing.lost(snapshot, listed).max(axis=1, initial=0.0)
    ratio = field.price / np.maximum(freed, 1e-12)
    found: list[Next] = []
    for v in np.lexsort((np.arange(len(ratio)), ratio)).tolist():
        if len(found) + len(field.servers[v]) <= most:
            times = float(levels.level[listed[v].place])
            found += [
                Next(uuid, times, len(waiting)) for uuid in field.servers[v]
            ]
    return found


def _waiting(
    snapshot: cluster.ClusterSnapshot, plan: cluster.Plan
) -> Iterator[request_model.Request]:
    for each in snapshot.requests:
        place = plan.waiting.get(each.uuid)
        if place is not None and place.why.reason in _NEEDS_ROOM:
            yield each


def _least_level(
    waiting: list[request_model.Request],
    levels: over_share.Levels,
    rules: planner.PreemptionRules,
) -> float:
    """Level above which owners are at risk, at least their share.

    For preemptible requests only servers of owners leave that are further over
    by the margin than the owner of the request.
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
