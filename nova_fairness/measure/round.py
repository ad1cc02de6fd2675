# SPDX-License-Identifier: Apache-2.0

"""A round of the measure room in arrays, of one node or of many.

It finds the wants of VMs, the input of a metric, and the heaviness of all VMs
and users. The agent runs this on its own VMs and on reports of other nodes, a
simulator on the VMs of all nodes.
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
    """Memory of VMs from the intervals before, a row for each.

    :ivar wanted: (2, n, r) in the last interval and in the one before, as
        amounts of the last; NaN where a VM did not run.
    :ivar interval_s: length of the last interval, seconds, > 0.
    :ivar waiting: who waited for a CPU, and the noise.
    :ivar paused: (n,) whether a VM was paused when the interval ended.
    """

    wanted: resources.Vector
    interval_s: float
    waiting: waiting.WaitHistory
    paused: resources.Mask

    @classmethod
    def unknown(cls, count: int, interval_s: float = 1.0) -> 'VmHistory':
        """Memory of VMs never seen before."""
        return cls(
            np.full((2, count, len(resources.RESOURCES)), np.nan),
            interval_s,
            waiting.WaitHistory.unknown(count),
            np.zeros(count, dtype=np.bool_),
        )

    def picked(self, rows: usage_model.Indices) -> 'VmHistory':
        """Some rows; those below 0 as never seen."""
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

    def put(self, rows: usage_model.Indices, other: 'VmHistory') -> None:
        """Write other rows, of an interval as long, in the place of some."""
        self.wanted[:, rows] = other.wanted
        self.waiting.put(rows, other.waiting)
        self.paused[rows] = other.paused


@dataclasses.dataclass(frozen=True, eq=False)
class WaitJudgement:
    """Wants and waits of VMs in an interval.

    :ivar wanted: (n, r) amounts of the interval, at least the newest usage.
    :ivar waiting: who waits for a CPU.
    :ivar past: to be remembered.
    """

    wanted: resources.Vector
    waiting: usage_model.CpuWaits
    past: VmHistory


def judge(
    now: waiting.Interval,
    past: VmHistory,
    newest: resources.Vector,
    one_cpu: usage_model.Scalars | float,
    interval_s: float,
    paused: resources.Mask | None = None,
) -> WaitJudgement:
    """Judge what VMs want, once for each interval; one node or many.

    :param now: what the VMs did.
    :param past: of the same VMs, as this function returned it last.
    :param newest: (n, r) amounts of the newest interval.
    :param one_cpu: what one CPU does in the interval, > 0; of all or (n,).
    :param interval_s: length of the interval, seconds, > 0.
    :param paused: (n,) whether a VM is paused now; ``None``: none is.
    """
    found, learned = waiting.judge(now, past.waiting)
    begun = wants.wanted(now, found.lacking, newest, one_cpu)
    began = now.ready & past.paused
    begun = wants.of_begun(begun, began, now.most * one_cpu)
    # Intervals differ in length; memory is wanted as it is used.
    known = past.wanted * (interval_s / past.interval_s)
    short = found.nodes[now.node][:, np.newaxis]
    lasting = wants.lasting(begun, newest, np.fmax(*known))
    # A VM that arrives by live migration waits, paused, for its memory:
    # nothing follows from that for what it wants when it runs.
    ran = now.ready[:, np.newaxis]
    kept = np.where(ran, np.stack([begun, known[0]]), np.nan)
    still = np.zeros(len(ran), dtype=np.bool_) if paused is None else paused
    return WaitJudgement(
        np.where(short, lasting, newest),
        found,
        VmHistory(kept, interval_s, learned, still),
    )


def demands(
    usage: resources.Vector,
    endowment: resources.Vector,
    node: usage_model.Indices,
    supply: resources.Vector,
    overcommit: resources.Vector,
    users: int,
    rates: usage_model.Scalars | None = None,
) -> metric_base.Demands:
    """Input of the instance stage.

    :param usage: (n, r) amounts of the interval.
    :param endowment: (n, r) of :func:`.endowment.endowments`.
    :param node: (n,) index of each VM's node.
    :param supply: (r,) of all known nodes, without overcommit.
    :param overcommit: (r,) factors > 0.
    :param users: that are known.
    :param rates: (n,) > 0; ``None`` if unknown.
    """
    return metric_base.Demands(
        usage=usage,
        endowment=endowment,
        supply=quota.overcommitted(supply, overcommit),
        node=node,
        user_count=max(1, users),
        rates=rates,
    )


def treated(
    metric: metric_base.Metric,
    of_all: metric_base.Totals,
    user: usage_model.Indices,
    own: metric_base.Heaviness,
) -> tuple[metric_base.Heaviness, metric_base.Heaviness]:
    """Heaviness of users, (u,), and that by which VMs are treated, (n,).

    :param of_all: sums over all known nodes.
    :param user: (n,) index of each VM's user in these sums.
    :param own: (n,) of the instance stage.
    :raises PluginMisbehaved: if the metric fails in either stage.
    """
    of_users = stages.user_stage(metric, of_all)
    return of_users, stages.combine_stage(metric, of_users[user], own)
