# SPDX-License-Identifier: Apache-2.0

"""Use and wants of users on every node: the input of foresight."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.measure.metrics import quota_parts
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Endowment, use and wants of users on nodes: :class:`.CpuKnowledge`.

    The simulator has a row for each VM, until it adds them up.

    :ivar node: (n,) index of each cell's node.
    :ivar user: (n,) index of its user.
    :ivar endowment: (n, r) amounts of an interval.
    :ivar used: (n, r) amounts of the interval.
    :ivar wanted: (n, r) amounts of the interval.
    """

    node: usage_model.Indices
    user: usage_model.Indices
    endowment: resources.Vector
    used: resources.Vector
    wanted: resources.Vector


@dataclasses.dataclass(frozen=True, eq=False)
class HeavinessProbe:
    """A metric that is asked how heavy cells would be.

    Each cell is shown to it as one VM.

    :ivar metric: any.
    :ivar cells: that are weighed.
    :ivar quota: (u, r) amounts of the interval.
    :ivar supply: (r,) as metrics are given it, with overcommit.
    """

    metric: metric_base.Metric
    cells: Cells
    quota: resources.Vector
    supply: resources.Vector

    @property
    def of_users(self) -> foresight_model.Weigh | None:
        """Weigh users by their total use, if the metric needs only that."""
        return of_users(self.metric, self.quota, self.supply)

    def instances(self, used: resources.Vector) -> metric_base.Heaviness:
        """Instance stage of the cells, (n,).

        :param used: (n, r) amounts of the interval.
        :raises PluginMisbehaved: if the metric fails.
        """
        return stages.instance_stage(
            self.metric,
            metric_base.Demands(
                usage=used,
                endowment=self.cells.endowment,
                supply=self.supply,
                node=self.cells.node,
                user_count=max(1, len(self.quota)),
            ),
        )

    def __call__(self, used: resources.Vector) -> metric_base.Heaviness:
        """Weigh the cells.

        :param used: (n, r) amounts of the interval.
        :returns: (n,) by which the VMs of each would be treated.
        :raises PluginMisbehaved: if the metric fails in any stage.
        """
        cells, own = self.cells, self.instances(used)
        summed = totals.sum_rows(
            cells.user, own, cells.endowment, used, self.quota, self.supply
        )
        return measure_round.run_user_stages(
            self.metric, summed, cells.user, own
        )[1]


def of_users(
    metric: metric_base.Metric,
    quota: resources.Vector,
    supply: resources.Vector,
) -> foresight_model.Weigh | None:
    """Weigh users by their total use, if the metric needs only that.

    :param quota: (u, r) amounts of the interval.
    :param supply: (r,) as metrics are given it, with overcommit.
    """
    if not isinstance(metric, quota_parts.QuotaMetric):
        return None

    def weigh(used: resources.Vector) -> metric_base.Heaviness:
        totals_of = metric_base.Totals(
            instance_heaviness=np.zeros(len(used)),
            usage=used,
            endowment=np.zeros(used.shape),
            quota=quota,
            supply=supply,
        )
        return stages.user_stage(metric, totals_of)

    return weigh


_WHOLE = 1 - 1e-9
"""Part of a grade's vCPUs that is all of them, but for rounding."""

NOTHING = 1e-6
"""Of a CPU: what a cell that wants nothing is taken to want, so that it has
a weight."""


def demand(
    wanted: usage_model.Scalars,
    one_cpu: usage_model.Scalars,
    grades: resources.Vector,
    exempt: resources.Vector | None = None,
) -> foresight_model.CpuDemand:
    """Say how much of how many vCPUs is wanted.

    :param wanted: (n,) of each cell, >= 0.
    :param one_cpu: (n,) what one CPU of its node does in the interval.
    :param grades: (n, 2g) as in a report, whose sender may lie; all zero
        where a node does not tell: then vCPUs are taken to want all.
    :param exempt: (n, 2g) the part of it of VMs that are not steered.
    """
    cpus = np.maximum(wanted / one_cpu, NOTHING)
    vcpus, asked = np.hsplit(grades, 2)
    # A vCPU uses one CPU at most, and who has none wants nothing.
    asked = np.minimum(asked, vcpus)
    told = asked.sum(axis=1)
    known = told > 0
    vcpus = np.where(known[:, np.newaxis], vcpus, 0.0)
    asked[~known, 0] = cpus[~known]
    # A vCPU that wants nothing must not look like one that wants all of it:
    # the weights of others would be measured against it.
    vcpus[~known, 0] = np.where(cpus > NOTHING, cpus, 1.0)[~known]
    part = np.where(known, cpus / np.where(known, told, 1.0), 1.0)
    if exempt is not None and exempt.any():
        asked, vcpus = _steered_before_exempt(
            asked, vcpus, exempt * known[:, np.newaxis]
        )
    cell, grade = np.nonzero(asked)
    return foresight_model.CpuDemand(
        cell=cell,
        wanted=asked[cell, grade] * (part * one_cpu)[cell],
        vcpus=vcpus[cell, grade],
        exempt=grade >= report.GRADES,
    )


def _steered_before_exempt(
    asked: resources.Vector, vcpus: resources.Vector, exempt: resources.Vector
) -> tuple[resources.Vector, resources.Vector]:
    """Wants and vCPUs, first of VMs that are steered, then of the others.

    :param asked: (n, g), at most ``vcpus``.
    :param exempt: (n, 2g), whose sender may lie.
    :returns: (n, 2g) each.
    """
    size, wish = np.hsplit(exempt, 2)
    # All but rounding is all, and next to nothing is nothing.
    size = np.where(size < vcpus * _WHOLE, size, vcpus)
    size = np.where(size > vcpus * (1 - _WHOLE), size, 0.0)
    rest = vcpus - size
    # No vCPU uses more than one CPU.
    wish = np.minimum(np.maximum(wish, asked - rest), np.minimum(asked, size))
    return np.hstack((asked - wish, wish)), np.hstack((rest, size))


def knowledge(
    view: report.View,
    interval_s: float,
    metric: metric_base.Metric,
    name: str,
    of_all: metric_base.Totals,
) -> foresight_model.CpuKnowledge:
    """Knowledge that a policy may take from a view.

    :param interval_s: of the result, seconds.
    :param name: of the metric.
    :param of_all: of the users in the view; rows of the quota.
    :returns: nodes in the order of :func:`.totals.usable`.
    """
    reports = totals.usable_reports(view, name)
    tables = [report.UserTable.of(item.users) for item in reports]
    supply = _supply(reports, interval_s)
    cpu = resources.RESOURCES.index('cpu_time')
    cpus = np.array([len(item.resources.cpus) for item in reports])
    # A peer may say that it has no CPU time, but it must not make NaN of all.
    one_cpu = np.maximum(supply[:, cpu] / cpus, NOTHING)
    cells = _join_reports(reports, tables, supply, interval_s)
    weighing = HeavinessProbe(metric, cells, of_all.quota, of_all.supply)
    return of_cells(
        weighing,
        cells.user,
        supply,
        one_cpu,
        _grades([table.grades for table in tables], tables),
        name,
        _grades([table.exempt for table in tables], tables),
    )


def of_cells(
    weighing: HeavinessProbe,
    user: usage_model.Indices,
    supply: resources.Vector,
    one_cpu: usage_model.Scalars,
    grades: resources.Vector,
    name: str,
    exempt: resources.Vector | None = None,
) -> foresight_model.CpuKnowledge:
    """Knowledge that a policy may take from cells.

    :param user: (n,) index of each cell's user among all there are.
    :param supply: (m, r) of each node.
    :param one_cpu: (m,) CPU time of one CPU of each in the interval, > 0.
    :param grades: (n, 2g) of :func:`.demand_buckets.graded`.
    :param name: of the metric.
    :param exempt: (n, 2g) the part of VMs that are not steered.
    """
    cells = weighing.cells
    cpu_time = cells.wanted[:, resources.RESOURCES.index('cpu_time')]
    return foresight_model.CpuKnowledge(
        node=cells.node,
        user=user,
        wanted=cells.wanted,
        used=np.minimum(cells.used, cells.wanted),
        supply=supply,
        one_cpu=one_cpu,
        demand=demand(cpu_time, one_cpu[cells.node], grades, exempt),
        weigh=weighing,
        weigh_users=weighing.of_users,
        metric=name,
        quota=weighing.quota,
    )


def cells_of_reports(view: report.View, interval_s: float, name: str) -> Cells:
    """Put the users of nodes one below the other, as reports tell them.

    A user's wants are bounded by the amounts that its VMs could have of a
    node, so that no user gains by reporting more.

    :param interval_s: of the result, seconds.
    :param name: of the metric.
    :returns: nodes in the order of :func:`.totals.usable`, users in that of
        :func:`.totals.known_users`.
    """
    reports = totals.usable_reports(view, name)
    tables = [report.UserTable.of(item.users) for item in reports]
    return _join_reports(
        reports, tables, _supply(reports, interval_s), interval_s
    )


def _supply(
    reports: Sequence[report.NodeReport], interval_s: float
) -> resources.Vector:
    """Amounts of each node, (m, r)."""
    rates = np.array([item.resources.capacity for item in reports])
    return resources.RESOURCES.over(rates, interval_s)


def _join_reports(
    reports: Sequence[report.NodeReport],
    tables: Sequence[report.UserTable],
    supply: resources.Vector,
    interval_s: float,
) -> Cells:
    scales = interval_s / np.array([item.interval_s for item in reports])
    _, user = totals.index_of_users(tuple(table.ids for table in tables))
    node = np.repeat(np.arange(len(tables)), [len(t) for t in tables])
    scale = scales[node]
    instances = np.concatenate([table.instances for table in tables])
    usage = totals.scale_to_interval([table.usage for table in tables], scale)
    wanted = totals.scale_to_interval(
        [t.usage if t.wanted is None else t.wanted for t in tables], scale
    )
    most = supply[node] * instances[:, np.newaxis]
    return Cells(
        node=node,
        user=user,
        endowment=totals.scale_to_interval(
            [table.endowment for table in tables], scale
        ),
        used=usage,
        wanted=np.minimum(np.maximum(wanted, usage), most),
    )


def _grades(
    told: Sequence[resources.Vector | None],
    tables: Sequence[report.UserTable],
) -> resources.Vector:
    """Reported grades of vCPUs, (n, 2g); zero where a report has none."""
    untold = np.zeros((1, 2 * report.GRADES))
    return np.concatenate(
        [
            np.repeat(untold, len(table), axis=0) if grades is None else grades
            for grades, table in zip(told, tables, strict=True)
        ]
    )
