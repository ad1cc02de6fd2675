# SPDX-License-Identifier: Apache-2.0

"""Knowledge of agents about each other: reports, their ways and ages.

Where reports neither tarry nor get lost all nodes know the same, and one sum
over all VMs serves thousands of nodes. Where they do, each node adds up the
reports that reached it.
"""

import abc
from collections.abc import Iterator
import dataclasses

import numpy as np

from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.decide import foresight as decide_foresight
from nova_fairness.measure import demand_buckets
from nova_fairness.measure import foresight as measure_foresight
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import quota
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.model import defaults
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import resources
from nova_fairness.shares import grouping

NEVER = -1
"""Tick of what did not happen, and node of a VM that no report names."""

STEP_S, ROW_S = 1.5e-3, 1e-6
"""CPU time that a step of the search takes an agent, and for each row of the
demand, with a metric that looks at users' sums alone, ..."""

OF_CELLS = 3
"""... and how many times as much with one that looks at cells: as measured."""

LONGEST_STEP_S = decide_foresight.AFFORDABLE * defaults.METRIC_DEADLINE_S

KEPT = 64
"""Views that are remembered."""


@dataclasses.dataclass(frozen=True, eq=False)
class ActingNodes:
    """The VMs of the nodes whose agents act now.

    :ivar acting: (k,) indices of those nodes, ascending.
    :ivar rows: (p,) indices of their VMs.
    :ivar node: (p,) index of each VM's node.
    :ivar user: (p,) index of each VM's user.
    :ivar usage: (p, r) amounts of a round.
    :ivar endowment: (p, r) amounts of a round.
    :ivar newest: (p, r) used in the newest interval alone.
    :ivar wanted: (p, r) what would be used of a plenty.
    """

    acting: model.Indices
    rows: model.Indices
    node: model.Indices
    user: model.Indices
    usage: resources.Vector
    endowment: resources.Vector
    newest: resources.Vector
    wanted: resources.Vector

    def of_node(self, node: int) -> 'ActingNodes':
        """The VMs of one acting node."""
        mine = self.node == node
        return ActingNodes(
            np.array([node], dtype=np.intp),
            self.rows[mine],
            self.node[mine],
            self.user[mine],
            self.usage[mine],
            self.endowment[mine],
            self.newest[mine],
            self.wanted[mine],
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows of reports: VMs, their nodes, and their reported values.

    :ivar user: (p,) index of each VM's user.
    :ivar heaviness: (p,) of the instance stage.
    :ivar usage: (p, r) amounts of a round.
    :ivar endowment: (p, r) amounts of a round.
    :ivar node: (p,) where each VM was.
    :ivar wanted: (p, r) amounts of a round.
    :ivar vcpus: (p,) of each VM.
    :ivar exempt: (p,) VMs that are not steered.
    """

    user: model.Indices
    heaviness: model.Scalars
    usage: resources.Vector
    endowment: resources.Vector
    node: model.Indices
    wanted: resources.Vector
    vcpus: model.Scalars
    exempt: resources.Mask


class Searches:
    """Knowledge from reports, and the state of each node's search.

    Nodes that know the same, and did so before, search together.

    :param cloud: the nodes.
    :param setup: of the agents.
    """

    def __init__(self, cloud: cloud_module.Cloud, setup: model.Setup) -> None:
        self._cloud = cloud
        self._setup = setup
        self._known: list[foresight_model.CpuKnowledge] = []
        self._courses = [decide_foresight.AgentSearch()] * len(cloud.nodes)
        self._followed: dict[
            tuple[foresight_model.CpuKnowledge, decide_foresight.AgentSearch],
            decide_foresight.AgentSearch,
        ] = {}

    def begin(self) -> None:
        """Begin a round: forget the searches of the round before."""
        self._followed.clear()

    def views(
        self,
        deciding: model.Indices,
        place: model.Indices,
        known: foresight_model.CpuKnowledge,
    ) -> Iterator[foresight_model.SharedView]:
        """Continue the searches of nodes, as agents do.

        :param deciding: of nodes that act and know the same.
        :param place: indices of these nodes.
        :returns: the views of nodes that decide by foresight.
        """
        groups: dict[decide_foresight.AgentSearch, list[int]] = {}
        for row, node in enumerate(place):
            groups.setdefault(self._courses[node], []).append(row)
        for course, rows in groups.items():
            found = self._continue_search(known, course)
            for node in place[rows]:
                self._courses[node] = found
            if (last := found.last) is not None:
                yield foresight_model.SharedView(
                    deciding[rows], place[rows], last.knowledge, last.end
                )

    def _continue_search(
        self,
        known: foresight_model.CpuKnowledge,
        course: decide_foresight.AgentSearch,
    ) -> decide_foresight.AgentSearch:
        key = known, course
        if key not in self._followed:
            self._followed[key] = course.continue_for_round(
                known, self._search, LONGEST_STEP_S
            )
        return self._followed[key]

    def _search(
        self,
        known: foresight_model.CpuKnowledge,
        before: decide_foresight.ForesightSearch | None,
        steps: int,
    ) -> tuple[decide_foresight.ForesightSearch, float]:
        """Search, and estimate the CPU seconds that an agent would need."""
        rows = self._setup.stands_for * len(known.demand.cell)
        step_s = STEP_S + ROW_S * rows
        found = decide_foresight.search_division(
            known, self._setup.max_weight_ratio, before, steps
        )
        return found, step_s * (OF_CELLS if known.weigh_users is None else 1)

    def knowledge(
        self,
        told: measure_foresight.Cells,
        supply: resources.Vector,
        normal: resources.Vector,
        vcpus: model.Scalars,
        exempt: resources.Mask,
    ) -> foresight_model.CpuKnowledge:
        """The knowledge from reports; the same object while little changes.

        :param told: a row for each VM, where it was, in any order.
        :param vcpus: (n,) of these VMs.
        :param exempt: (n,) whether they are not steered.
        :param supply: (r,) of the nodes whose reports count, in a round.
        :param normal: (r,) with overcommit.
        """
        made = self.compute_knowledge(told, supply, normal, vcpus, exempt)
        for item in self._known:
            if item.is_like(made):
                return item
        self._known = [made, *self._known[: KEPT - 1]]
        return made

    def compute_knowledge(
        self,
        told: measure_foresight.Cells,
        supply: resources.Vector,
        normal: resources.Vector,
        vcpus: model.Scalars,
        exempt: resources.Mask,
    ) -> foresight_model.CpuKnowledge:
        """Compute the knowledge from reports; see :meth:`knowledge`."""
        cloud, users = self._cloud, len(self._cloud.users)
        key, cell = np.unique(
            told.node * users + told.user, return_inverse=True
        )
        cell = cell.reshape(-1)
        node, user = key // users, key % users
        present, owner = np.unique(user, return_inverse=True)
        found = measure_foresight.Cells(
            node=node,
            user=owner.reshape(-1),
            endowment=grouping.sum_by(cell, told.endowment, len(key)),
            used=grouping.sum_by(cell, told.used, len(key)),
            wanted=grouping.sum_by(cell, told.wanted, len(key)),
        )
        quotas = quota.divide_by_weights(supply, cloud.user_weight[present])
        whole = resources.RESOURCES.over(cloud.capacity, cloud.interval_s)
        one_cpu = cloud.speed * cloud.interval_s
        cpu = resources.RESOURCES.index('cpu_time')
        asked = np.minimum(told.wanted[:, cpu] / one_cpu[told.node], vcpus)
        grades, left = demand_buckets.sum_by_grade_with_exempt(
            cell, vcpus, asked, len(key), exempt
        )
        return measure_foresight.of_cells(
            measure_foresight.HeavinessProbe(
                self._setup.metric_plugin, found, quotas, normal
            ),
            user,
            whole,
            one_cpu,
            grades,
            self._setup.metric,
            left,
        )


class SimulatedKnowledge(abc.ABC):
    """Knowledge of each node; one for all agents of a run.

    :param cloud: the nodes.
    :param setup: of the agents.
    """

    def __init__(self, cloud: cloud_module.Cloud, setup: model.Setup) -> None:
        self.cloud = cloud
        self.metric = setup.metric_plugin
        self.overcommit = setup.overcommit
        self.max_age = setup.view_max_age * setup.ticks
        count, width = len(cloud.vms), len(resources.RESOURCES)
        self.where = np.full(count, NEVER, dtype=np.intp)
        self.heaviness = np.zeros(count)
        self.usage = np.zeros((count, width))
        self.endowment = np.zeros((count, width))
        self.wanted = np.zeros((count, width))
        self.searches = Searches(cloud, setup)
        self.last = np.full(len(cloud.nodes), NEVER, dtype=np.int64)

    @abc.abstractmethod
    def weigh(self, batch: ActingNodes, tick: int) -> metric_base.Heaviness:
        """Heaviness of the VMs that act, as their own nodes know it.

        :param tick: ascending number of the moment.
        :returns: (p,) by which each VM is treated.
        :raises PluginMisbehaved: if the metric fails in any stage.
        """

    @abc.abstractmethod
    def views(
        self, batch: ActingNodes, tick: int
    ) -> tuple[foresight_model.SharedView, ...]:
        """Views of the cloud that acting nodes have, after :meth:`weigh`."""

    def views_of(
        self,
        deciding: model.Indices,
        place: model.Indices,
        told: ReportRows,
        counts: resources.Mask,
    ) -> Iterator[foresight_model.SharedView]:
        """Create the views of nodes that have the same reports.

        :param deciding: of the nodes that act.
        :param place: indices of these nodes.
        :param counts: (m,) nodes whose reports count.
        """
        supply = self.supply(np.flatnonzero(counts))
        known = self.searches.knowledge(
            measure_foresight.Cells(
                told.node,
                told.user,
                told.endowment,
                told.usage,
                told.wanted,
            ),
            supply,
            self.normalising_supply(supply),
            told.vcpus,
            told.exempt,
        )
        return self.searches.views(deciding, place, known)

    def skip(self, tick: int) -> None:
        """Let a tick pass at which no agent acts."""

    def nodes_with_counting_report(self, tick: int) -> resources.Mask:
        """Whether the newest report of each node is young enough, (m,)."""
        known = self.last != NEVER
        return np.asarray(known & (tick - self.last <= self.max_age))

    def of_users(self) -> metric_base.Heaviness:
        """Heaviness of users by the newest report of every node, (u,)."""
        rows = np.flatnonzero(self.where != NEVER)
        supply = self.supply(np.arange(len(self.cloud.nodes)))
        result = np.zeros(len(self.cloud.users))
        if rows.size:
            users, of_all = self.sum_of_users(self.newest(rows), supply)
            result[users] = stages.user_stage(self.metric, of_all)
        return result

    def newest(self, rows: model.Indices) -> ReportRows:
        """Rows of these VMs in the newest reports of their nodes."""
        return ReportRows(
            self.cloud.user_of_vm[rows],
            self.heaviness[rows],
            self.usage[rows],
            self.endowment[rows],
            self.where[rows],
            self.wanted[rows],
            self.cloud.vcpus[rows].astype(np.float64),
            self.cloud.exempt_vms[rows],
        )

    def supply(self, nodes: model.Indices) -> resources.Vector:
        """Supply of nodes in a round, (r,)."""
        whole = self.cloud.capacity[nodes].sum(axis=0)
        return resources.RESOURCES.over(whole, self.cloud.interval_s)

    def normalising_supply(self, supply: resources.Vector) -> resources.Vector:
        """Supply with overcommit, by which metrics normalise, (r,)."""
        return quota.with_overcommit(supply, self.overcommit)

    def instance_heaviness(
        self, batch: ActingNodes, supply: resources.Vector, users: int
    ) -> metric_base.Heaviness:
        """Run the instance stage of the metric for the acting VMs, (p,)."""
        return stages.instance_stage(
            self.metric,
            measure_round.instance_input(
                batch.usage,
                batch.endowment,
                np.searchsorted(batch.acting, batch.node),
                supply,
                self.overcommit,
                users,
            ),
        )

    def sum_of_users(
        self, told: ReportRows, supply: resources.Vector
    ) -> tuple[model.Indices, metric_base.Totals]:
        """Sum the rows of reports by user.

        :returns: indices of the users who have a row, and their sums.
        """
        users, place = np.unique(told.user, return_inverse=True)
        return users, totals.sum_rows(
            place.reshape(-1),
            told.heaviness,
            told.endowment,
            told.usage,
            quota.divide_by_weights(supply, self.cloud.user_weight[users]),
            self.normalising_supply(supply),
        )

    def heaviness_of_treatment(
        self,
        batch: ActingNodes,
        own: metric_base.Heaviness,
        told: ReportRows,
        supply: resources.Vector,
    ) -> metric_base.Heaviness:
        """Run the later stages: heaviness by which VMs are treated, (p,)."""
        users, of_all = self.sum_of_users(told, supply)
        place = np.searchsorted(users, batch.user)
        return measure_round.run_user_stages(self.metric, of_all, place, own)[
            1
        ]

    def publish(
        self, batch: ActingNodes, own: metric_base.Heaviness, tick: int
    ) -> None:
        """Replace the reports of the nodes that act."""
        acting = np.zeros(len(self.cloud.nodes) + 1, dtype=np.bool_)
        acting[batch.acting] = True
        self.where[acting[self.where]] = NEVER
        self.where[batch.rows] = batch.node
        self.heaviness[batch.rows] = own
        self.usage[batch.rows] = batch.usage
        self.endowment[batch.rows] = batch.endowment
        self.wanted[batch.rows] = batch.wanted
        self.last[batch.acting] = tick


class SharedKnowledge(SimulatedKnowledge):
    """Every node knows every newest report at once."""

    def weigh(self, batch: ActingNodes, tick: int) -> metric_base.Heaviness:
        """Heaviness of VMs from one sum over all nodes."""
        if not batch.rows.size:
            self.publish(batch, np.zeros(0), tick)
            return np.zeros(0)
        fresh = self.nodes_with_counting_report(tick)
        fresh[batch.acting] = True
        supply = self.supply(np.flatnonzero(fresh))
        # The last place stands for VMs that no report names.
        counts = np.append(fresh, False)[self.where]
        counts[batch.rows] = True
        users = len(np.unique(self.cloud.user_of_vm[counts]))
        own = self.instance_heaviness(batch, supply, users)
        self.publish(batch, own, tick)
        rows = np.flatnonzero(np.append(fresh, False)[self.where])
        return self.heaviness_of_treatment(
            batch, own, self.newest(rows), supply
        )

    def views(
        self, batch: ActingNodes, tick: int
    ) -> tuple[foresight_model.SharedView, ...]:
        """One view that all acting nodes share."""
        fresh = self.nodes_with_counting_report(tick)
        rows = np.flatnonzero(np.append(fresh, False)[self.where])
        told = self.newest(rows)
        every = np.arange(len(batch.acting))
        self.searches.begin()
        return tuple(self.views_of(every, batch.acting, told, fresh))
