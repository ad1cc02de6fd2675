# SPDX-License-Identifier: Apache-2.0

"""Movers of the border: the planner of the service, and an operator."""

import dataclasses
import math
from typing import Protocol

from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import workload
from nova_fairness.model import border
from nova_fairness.planners.border import demand
from nova_fairness.planners.border import planner


class Mover(Protocol):
    """Plans which hosts change their side."""

    def plan(
        self, snapshot: border.Snapshot, now_s: float
    ) -> border.BorderPlan:
        """Plan the actions of this moment.

        :param now_s: seconds since the begin.
        """


class DemandMover:
    """Moves hosts as the service does, by what waits on both sides.

    :param rules: what an operator allows.
    """

    def __init__(self, rules: demand.BorderRules) -> None:
        self._rules = rules

    def plan(
        self, snapshot: border.Snapshot, now_s: float
    ) -> border.BorderPlan:
        """See :class:`Mover`."""
        return planner.plan(snapshot, now_s, self._rules)


class Operator:
    """Moves hosts as Partition Director does: by hand, with a TTL.

    At some hours of the day the operator asks for as many hosts to go to the
    side with more cores waiting as fill half of the difference: then both
    sides wait for as much (a rule that is ours; none is published). No server
    is moved away; those that are left after the time to live are deleted.
    Jobs are waited for.

    :param settings: hours and time to live.
    :param hosts: number of hosts of the cloud at the begin.
    """

    def __init__(
        self, settings: world_module.OperatorSettings, hosts: int
    ) -> None:
        self._settings = settings
        self._target_hosts = hosts
        self._last_look_s = -math.inf

    def plan(
        self, snapshot: border.Snapshot, now_s: float
    ) -> border.BorderPlan:
        """See :class:`Mover`."""
        if self._is_due(now_s):
            self._target_hosts = self._wanted_cloud_hosts(snapshot)
            self._last_look_s = now_s
        return planner.plan(
            dataclasses.replace(
                snapshot, target=border.CloudTarget(self._target_hosts)
            ),
            now_s,
            demand.BorderRules(
                stay_s=0.0,
                most_moving=len(snapshot.nodes),
                most_per_day=len(snapshot.nodes),
                ttl_s=self._settings.ttl_s,
                end_vms=True,
            ),
        )

    def _is_due(self, now_s: float) -> bool:
        midnight = now_s - now_s % workload.DAY_S
        past = [
            midnight + hour * workload.HOUR_S
            for hour in self._settings.hours
            if midnight + hour * workload.HOUR_S <= now_s
        ]
        return bool(past) and past[-1] > self._last_look_s

    def _wanted_cloud_hosts(self, snapshot: border.Snapshot) -> int:
        waits = {
            side: sum(each.cores for each in seen.wants)
            for side in border.BorderSide
            if (seen := snapshot.side(side))
        }
        more = waits[border.BorderSide.CLOUD] - waits[border.BorderSide.BATCH]
        each = sum(node.host.cores for node in snapshot.nodes) / len(
            snapshot.nodes
        )
        hosts = self._target_hosts + math.trunc(more / 2 / each)
        return min(max(hosts, 0), len(snapshot.nodes))
