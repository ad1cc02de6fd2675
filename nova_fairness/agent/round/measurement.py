# SPDX-License-Identifier: Apache-2.0

"""Computes heaviness from a sample: the measure and exchange steps of a
round.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools

import numpy as np

from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import foresight
from nova_fairness.exchange import base as exchange_base
from nova_fairness.measure import demand_buckets
from nova_fairness.measure import endowment
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import ownership
from nova_fairness.measure import pressure as pressure_measure
from nova_fairness.measure import report_expiry
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.measure import usage as usage_measure
from nova_fairness.measure import wants
from nova_fairness.model import foresight as foresight_model
from nova_fairness.model import node as node_model
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import report
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import sample as sample_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module

Weights = Callable[[Iterable[str]], Mapping[str, float]]
"""Returns the known weights > 0 of some users, by id; never blocks."""


Rates = Callable[[sample_model.Sample], Mapping[str, float]]
"""Returns the spending rates > 0 of VMs, by UUID; never blocks.

It returns an empty mapping if spending rates are not in use.
"""


def no_rates(_sample: sample_model.Sample) -> Mapping[str, float]:
    """Return no spending rates."""
    return {}


def no_weights(_users: Iterable[str]) -> Mapping[str, float]:
    """Return no weights, so that only those of the settings apply."""
    return {}


class Measurement:
    """Measures usage and heaviness; stores the last sample and usage.

    :param node: resources of the node.
    :param exchange: publishes and receives reports.
    :param guard: runs the metric.
    :param boot_id: identifier of this run of the agent.
    :param clock: monotonic, seconds.
    :param weights: returns weights of users that the settings do not name.
    :param rates: returns spending rates of VMs; the default rate is 1.
    """

    def __init__(
        self,
        node: node_model.NodeResources,
        exchange: exchange_base.Exchange,
        guard: guard_module.Guard,
        boot_id: str,
        clock: Callable[[], float],
        weights: Weights = no_weights,
        rates: Rates = no_rates,
    ) -> None:
        self._node = node
        self._exchange = exchange
        self._guard = guard
        self._boot_id = boot_id
        self._clock = clock
        self._weights = weights
        self._rates = rates
        self._last_sample: sample_model.Sample | None = None
        self._last_usage: usage_model.Usage | None = None
        self._reading: pressure_model.PressureSample | None = None
        self._silent_nodes = SilentNodes()
        self._wants = WantsHistory(node)

    def usage(
        self, sample: sample_model.Sample, decay_factor: float
    ) -> usage_model.Usage | None:
        """Return the usage since the last sample.

        :returns: ``None`` for the first sample.
        """
        before, self._last_sample = self._last_sample, sample
        if before is None or sample.time_s <= before.time_s:
            return None
        self._last_usage = usage_measure.usage_between(
            before,
            sample,
            self._node.speed_factor,
            self._last_usage,
            decay_factor,
        )
        return self._last_usage

    def pressure(
        self, reading: pressure_model.PressureSample
    ) -> pressure_model.Pressure | None:
        """Return the pressure of VMs since the last reading.

        :returns: ``None`` for the first reading.
        """
        before, self._reading = self._reading, reading
        if before is None or reading.time_s <= before.time_s:
            return None
        return pressure_measure.pressure_between(before, reading)

    def measure(
        self,
        used: usage_model.Usage,
        metric: metric_base.Metric,
        settings: settings_module.Settings,
        number: int,
        best_effort: frozenset[str] = frozenset(),
    ) -> round_model.MeasuredRound:
        """Return the heaviness of this node's VMs, by the totals of all nodes.

        :param number: of the round; it is the sequence number of the report.
        :param best_effort: keys of VMs whose usage must not count, neither for
            other VMs nor for their owners.
        :raises PluginMisbehaved: if the metric fails in any stage.
        """
        counted = usage_measure.without_vms(used, best_effort)
        measured = self._measure(
            counted, metric, settings, number, best_effort
        )
        if not best_effort:
            return measured
        return dataclasses.replace(measured, usage=used, counted=counted)

    def _measure(
        self,
        used: usage_model.Usage,
        metric: metric_base.Metric,
        settings: settings_module.Settings,
        number: int,
        best_effort: frozenset[str],
    ) -> round_model.MeasuredRound:
        owners = ownership.owners_of_node(used.incarnations, settings.entity)
        demands = _without_best_effort(
            self._demands(used, owners, settings), used, best_effort
        )
        own = self._guard.call(
            settings.metric, lambda: stages.instance_stage(metric, demands)
        )
        found = self._wants.judge(used)
        vcpus = demand_buckets.grades_of_node(
            used, found.wanted, owners, self._node, _exempt(used, settings)
        )
        told = totals.sum_by_user(
            owners, own, demands.endowment, demands.usage, found.wanted, *vcpus
        )
        self._publish(number, settings.metric, used.interval_s, told)
        view = self._exchange.view(self._clock(), settings.metric)
        combined = self._combined_totals(view, used, settings)
        owners = ownership.with_other_users(owners, combined.users)
        of_all, user = combined.totals, owners.user_index
        of_users, final = self._guard.call(
            settings.metric,
            lambda: measure_round.run_user_stages(metric, of_all, user, own),
        )
        return round_model.MeasuredRound(
            usage=used,
            ownership=owners,
            endowment=demands.endowment,
            instance_heaviness=own,
            heaviness=final,
            user_heaviness=of_users,
            quota=of_all.quota,
            supply=combined.supply,
            view=view,
            user_usage=of_all.usage,
            basis=_basis(demands, of_all),
            wanted=found.wanted,
            waiting=found.waiting,
            knowledge=self._foresight_input(
                view, combined, used, metric, settings
            ),
        )

    def _combined_totals(
        self,
        view: report.View,
        used: usage_model.Usage,
        settings: settings_module.Settings,
    ) -> totals.CombinedTotals:
        return totals.combine_reports(
            view,
            used.interval_s,
            settings.metric,
            self._quota_weights(view, settings),
            settings.overcommit,
        )

    def _foresight_input(
        self,
        view: report.View,
        combined: totals.CombinedTotals,
        used: usage_model.Usage,
        metric: metric_base.Metric,
        settings: settings_module.Settings,
    ) -> Callable[[], foresight_model.NodeKnowledge] | None:
        """Return a function for the policy's knowledge of other nodes.

        It includes nodes whose newest reports are missing by chance.
        """
        held = self._silent_nodes.extended(
            view, self._clock(), used.interval_s
        )
        if not held.reports:
            return None
        if held is not view:
            combined = self._combined_totals(held, used, settings)
        return functools.partial(
            foresight.knowledge_of_node,
            self._node.host,
            held,
            combined,
            used,
            metric,
            settings,
        )

    def _demands(
        self,
        used: usage_model.Usage,
        owners: usage_model.Ownership,
        settings: settings_module.Settings,
    ) -> metric_base.Demands:
        vms = [item.instance for item in used.incarnations]
        own_supply = self._node.supply(used.interval_s)
        view = self._other_nodes_reports(settings.metric)
        users = {
            *owners.users,
            *totals.known_users(view, settings.metric),
        }
        return measure_round.instance_input(
            used.amounts,
            endowment.endowments(
                np.array([vm.vcpus for vm in vms], dtype=np.float64),
                np.array([vm.memory_bytes for vm in vms], dtype=np.float64),
                owners.node_index,
                own_supply[np.newaxis, :],
            ),
            owners.node_index,
            own_supply
            + totals.supply_of_nodes(view, used.interval_s, settings.metric),
            settings.overcommit,
            len(users),
            self.rates([vm.uuid for vm in vms]),
        )

    def rates(self, uuids: Iterable[str]) -> usage_model.Scalars | None:
        """Return the spending rates of VMs; ``None`` if there are none."""
        known = self._rates(self._last_sample) if self._last_sample else {}
        if not known:
            return None
        return np.array([known.get(uuid, 1.0) for uuid in uuids])

    def _quota_weights(
        self, view: report.View, settings: settings_module.Settings
    ) -> Mapping[str, float]:
        users = totals.known_users(view, settings.metric)
        return {**self._weights(users), **settings.quota_weights}

    def _other_nodes_reports(self, metric: str) -> report.View:
        """Return the reports of the other nodes before this round."""
        view = self._exchange.view(self._clock(), metric)
        peers = {
            host: item
            for host, item in view.reports.items()
            if host != self._node.host
        }
        return report.View(peers, view.age_s, view.left_out)

    def _publish(
        self,
        number: int,
        metric: str,
        interval_s: float,
        users: Mapping[str, report.UserTotals],
    ) -> None:
        self._exchange.publish(
            report.NodeReport(
                host=self._node.host,
                boot_id=self._boot_id,
                sequence=number,
                interval_s=interval_s,
                metric=metric,
                resources=self._node,
                users=users,
            )
        )


def _exempt(
    used: usage_model.Usage, settings: settings_module.Settings
) -> resources.Mask:
    """Return which VMs an operator exempted, (n,)."""
    vms = [item.instance for item in used.incarnations]
    return np.array([settings.is_exempt(vm) for vm in vms], dtype=np.bool_)


def _without_best_effort(
    demands: metric_base.Demands,
    used: usage_model.Usage,
    best_effort: frozenset[str],
) -> metric_base.Demands:
    """Set the endowment of best-effort VMs to 0."""
    if not best_effort:
        return demands
    kept = [[vm.key not in best_effort] for vm in used.incarnations]
    return dataclasses.replace(
        demands, endowment=np.where(kept, demands.endowment, 0.0)
    )


def _basis(
    demands: metric_base.Demands, of_all: metric_base.Totals
) -> round_model.Basis:
    return round_model.Basis(
        supply=demands.supply,
        user_count=demands.user_count,
        user_supply=of_all.supply,
        user_instance_heaviness=of_all.instance_heaviness,
        user_endowment=of_all.endowment,
        rates=demands.rates,
    )


class WantsHistory:
    """Estimates the wants of this node's VMs over several intervals.

    :param node: resources of the node.
    """

    def __init__(self, node: node_model.NodeResources) -> None:
        self._node = node
        self._rows: dict[str, int] = {}
        self._last_usage = measure_round.VmHistory.unknown(0)

    def judge(self, usage: usage_model.Usage) -> measure_round.WaitJudgement:
        """Estimate the wants of the VMs; call it once for each interval."""
        keys = [item.key for item in usage.incarnations]
        rows = np.array([self._rows.get(key, -1) for key in keys], np.intp)
        found = measure_round.judge_wants(
            wants.cpu_interval(usage, self._node),
            self._last_usage.select(rows),
            usage.newest,
            self._node.speed_factor * usage.interval_s,
            usage.interval_s,
            np.array([vm.paused for vm in usage.incarnations], dtype=np.bool_),
        )
        self._last_usage = found.past
        self._rows = {key: row for row, key in enumerate(keys)}
        return found


@dataclasses.dataclass
class _LastReport:
    """The newest report of a node, and how often its reports are missing.

    :ivar newest: the newest report.
    :ivar arrived_s: time of arrival, monotonic clock.
    :ivar missing_part: part of its reports that was missing, 0..1.
    """

    newest: report.NodeReport
    arrived_s: float
    missing_part: float = 0.0

    def receive(
        self,
        new_report: report.NodeReport,
        arrived_s: float,
        interval_s: float,
    ) -> None:
        """Store a report, and update the missing part."""
        if new_report is self.newest:
            return
        gap = (arrived_s - self.arrived_s) / interval_s
        self.missing_part = float(
            report_expiry.updated_missing_part(
                np.array(self.missing_part), np.array(gap)
            )
        )
        self.newest, self.arrived_s = new_report, arrived_s

    def silent_intervals(self, now_s: float, interval_s: float) -> float:
        """Return the number of intervals since the last report."""
        return (now_s - self.arrived_s) / max(
            interval_s, self.newest.interval_s
        )

    def allowed_intervals(self) -> float:
        """Return for how many intervals the node counts as silent by
        chance.
        """
        return float(
            report_expiry.allowed_silence(np.array(self.missing_part))
        )


class SilentNodes:
    """Stores last reports of nodes whose new reports are missing by chance.

    The VMs of such a node still want resources. A forecast without them would
    change all weights whenever reports get lost.
    """

    def __init__(self) -> None:
        self._last_reports: dict[str, _LastReport] = {}

    def extended(
        self, view: report.View, now_s: float, interval_s: float
    ) -> report.View:
        """Add the last reports of nodes that may be silent by chance.

        The reports of the view are stored for the next rounds.

        :param now_s: seconds of a monotonic clock.
        :param interval_s: seconds between two rounds of this node; it reads
            reports once in a round.
        :returns: the same view if no node is silent by chance.
        """
        for host, said in view.reports.items():
            arrived_s = now_s - view.age_s.get(host, 0.0)
            known = self._last_reports.setdefault(
                host, _LastReport(said, arrived_s)
            )
            known.receive(said, arrived_s, max(interval_s, said.interval_s))
        self._last_reports = {
            host: known
            for host, known in self._last_reports.items()
            if known.silent_intervals(now_s, interval_s)
            <= report_expiry.MAX_INTERVALS
        }
        by_chance = {
            host: known.newest
            for host, known in self._last_reports.items()
            if host not in view.reports
            and known.silent_intervals(now_s, interval_s)
            <= known.allowed_intervals()
        }
        if not by_chance:
            return view
        every = {**view.reports, **by_chance}
        return report.View(
            dict(sorted(every.items())), view.age_s, view.left_out
        )
