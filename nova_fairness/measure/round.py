# SPDX-License-Identifier: Apache-2.0

"""One round of measuring, in arrays, of one node or of many.

It estimates the wants of VMs, builds the input of a metric, and computes the
heaviness of all VMs and users. The agent runs it on its own VMs and the
reports of other nodes, a simulator on the VMs of all nodes.
"""

import dataclasses

import numpy as np

from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import quota
from nova_fairness.measure import stages
from nova_fairness.measure import wants
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import waiting


@dataclasses.dataclass(frozen=True, eq=False)
class VmHistory:
    """The history of VMs from the intervals before, one row per VM.

    :ivar wanted: (2, n, r) in the last interval and in the one before, as
        amounts of the last; NaN where a VM did not run.
    :ivar interval_s: length of the last interval in seconds, > 0.
    :ivar waiting: history of the waits for a CPU.
    :ivar paused: (n,) whether a VM was paused at the end of the interval.
    """

    wanted: resources.Vector
    interval_s: float
    waiting: waiting.WaitHistory
    paused: resources.Mask

    @classmethod
    def unknown(cls, count: int, interval_s: float = 1.0) -> 'VmHistory':
        """Return the history of VMs that were never observed."""
        return cls(
            np.full((2, count, len(resources.RESOURCES)), np.nan),
            interval_s,
            waiting.WaitHistory.unknown(count),
            np.zeros(count, dtype=np.bool_),
        )

    def select(self, rows: usage_model.Indices) -> 'VmHistory':
        """Return some rows; rows below 0 are VMs that were never observed."""
        seen = rows >= 0
        if seen.all():
            return VmHistory(
                self.wanted[:, rows],
                self.interval_s,
                self.waiting.picked(rows),
                self.paused[rows],
            )
        result = dataclasses.replace(
            VmHistory.unknown(len(rows), self.interval_s),
            waiting=self.waiting.picked(rows),
        )
        result.wanted[:, seen] = self.wanted[:, rows[seen]]
        result.paused[seen] = self.paused[rows[seen]]
        return result

    def replace_rows(
        self, rows: usage_model.Indices, other: 'VmHistory'
    ) -> None:
        """Replace some rows by those of a history with the same interval."""
        self.wanted[:, rows] = other.wanted
        self.waiting.put(rows, other.waiting)
        self.paused[rows] = other.paused


@dataclasses.dataclass(frozen=True, eq=False)
class WaitJudgement:
    """Wants and waits of VMs in an interval.

    :ivar wanted: (n, r) amounts of the interval, at least the newest usage.
    :ivar waiting: which VMs wait for a CPU.
    :ivar past: the history for the next call.
    """

    wanted: resources.Vector
    waiting: usage_model.CpuWaits
    past: VmHistory


def judge_wants(
    present: waiting.Interval,
    past: VmHistory,
    newest: resources.Vector,
    one_cpu: usage_model.Scalars | float,
    interval_s: float,
    paused: resources.Mask | None = None,
) -> WaitJudgement:
    """Estimate the wants of VMs; call once for each interval.

    :param present: use and waits of the VMs in the interval.
    :param past: history of the same VMs, from the last call.
    :param newest: (n, r) amounts of the newest interval.
    :param one_cpu: amount of one CPU in the interval, > 0; a number or (n,).
    :param interval_s: length of the interval in seconds, > 0.
    :param paused: (n,) whether a VM is paused now; ``None`` if none is.
    """
    found, learned = waiting.judge_waits(present, past.waiting)
    begun = wants.estimate_wants(present, found.lacking, newest, one_cpu)
    began = present.ready & past.paused
    begun = wants.with_full_want(begun, began, present.most * one_cpu)
    # Intervals differ in length; memory is wanted as it is used.
    known = past.wanted * (interval_s / past.interval_s)
    short = found.nodes[present.node][:, np.newaxis]
    lasting = wants.lasting_wants(begun, newest, np.fmax(*known))
    # A VM that arrives by live migration waits, paused, for its memory:
    # nothing follows from that for what it wants when it runs.
    ran = present.ready[:, np.newaxis]
    kept = np.where(ran, np.stack([begun, known[0]]), np.nan)
    still = np.zeros(len(ran), dtype=np.bool_) if paused is None else paused
    return WaitJudgement(
        np.where(short, lasting, newest),
        found,
        VmHistory(kept, interval_s, learned, still),
    )


def instance_input(
    usage: resources.Vector,
    endowment: resources.Vector,
    node: usage_model.Indices,
    supply: resources.Vector,
    overcommit: resources.Vector,
    users: int,
    rates: usage_model.Scalars | None = None,
) -> metric_base.Demands:
    """Return the input of the instance stage.

    :param usage: (n, r) amounts of the interval.
    :param endowment: (n, r) of :func:`.endowment.endowments`.
    :param node: (n,) index of each VM's node.
    :param supply: (r,) of all known nodes, without overcommit.
    :param overcommit: (r,) factors > 0.
    :param users: number of known users.
    :param rates: (n,) > 0; ``None`` if unknown.
    """
    return metric_base.Demands(
        usage=usage,
        endowment=endowment,
        supply=quota.with_overcommit(supply, overcommit),
        node=node,
        user_count=max(1, users),
        rates=rates,
    )


def run_user_stages(
    metric: metric_base.Metric,
    totals: metric_base.Totals,
    user: usage_model.Indices,
    vm_heaviness: metric_base.Heaviness,
) -> tuple[metric_base.Heaviness, metric_base.Heaviness]:
    """Return the heaviness of users, (u,), and the combined one of VMs, (n,).

    :param totals: sums over all known nodes.
    :param user: (n,) index of each VM's user in these sums.
    :param vm_heaviness: (n,) of the instance stage.
    :raises PluginMisbehaved: if the metric fails in either stage.
    """
    of_users = stages.user_stage(metric, totals)
    return of_users, stages.combine_stage(metric, of_users[user], vm_heaviness)
