# SPDX-License-Identifier: Apache-2.0

"""Forecasts the CPUs of a node's VMs with weights in force, for a metric.

The rounds of measure and decide run one after another, starting from neutral
weights, on a model of the node's CPUs. VMs want the mean of the last minutes.
Their kernel units divide the CPU time that all VMs had. Then the final units
divide the CPU time of each sampled round of these minutes, which gives a mean
and a spread. Nothing is written. Only the CPU is forecast, because the wants
of other resources are unknown.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import threading
import time
from typing import Any

import numpy as np

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.explain import parts
from nova_fairness.agent.round import application
from nova_fairness.agent.round import decision
from nova_fairness.agent.round import elsewhere
from nova_fairness.agent.round import foresight
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import round as measure_round
from nova_fairness.measure import stages
from nova_fairness.measure import totals
from nova_fairness.measure import usage as usage_measure
from nova_fairness.model import allocation
from nova_fairness.model import instance as instance_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module
from nova_fairness.shares import filling
from nova_fairness.shares import grouping

MAX_ROUNDS = 100
"""Largest number of rounds of a preview."""

SETTLED_CHANGE = 0.01
"""Largest relative change of a weight in a round that counts as settled."""

SETTLED_ROUNDS = 3
"""Number of successive settled rounds that end a preview."""

SATISFIED_PART = 0.99
"""Part of its wanted CPU time from which a VM does not wait."""

MAX_SAMPLE_AGE_S = 300.0
"""Age of the oldest round that counts, in seconds. Two previews within
seconds use nearly the same rounds, so their results are nearly equal."""

SAMPLE_STEP_S = 10.0
"""Smallest time between two rounds that count, in seconds."""

RETRY_AFTER_S = 60.0
"""Seconds until a metric that failed runs again."""

NOT_MEASURED = 'nothing is measured yet; ask again after the next round'
NO_CONTROL = 'this node cannot steer the CPU'
WANTS_UNKNOWN = 'the newest round has no estimate of what VMs want'

_CONTROL = resources.ResourceControl.CPU
_COLUMN = resources.CONTROLS.index(_CONTROL)
_TIME = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, eq=False)
class CpuSample:
    """CPU time of a node's VMs in a round.

    :ivar wall_s: end of the round, seconds since the epoch.
    :ivar use_and_want: two rates by key: the amount a second that the VM had,
        and the smallest amount a second that it wanted.
    :ivar contended: whether VMs wanted more than the node has, (1,).
    """

    wall_s: float
    use_and_want: Mapping[str, tuple[float, float]]
    contended: resources.Mask

    @classmethod
    def from_round(cls, done: round_model.Round) -> 'CpuSample | None':
        """Return the sample of a round; ``None`` if it lacks wants or
        waits.
        """
        measured = done.measured
        if measured is None:
            return None
        if measured.wanted is None or measured.waiting is None:
            return None
        usage = measured.usage
        had = usage.newest[:, _TIME]
        wanted = np.fmax(measured.wanted[:, _TIME], had)
        pairs = zip(
            (had / usage.interval_s).tolist(),
            (wanted / usage.interval_s).tolist(),
            strict=True,
        )
        keys = (vm.key for vm in usage.incarnations)
        rates = dict(zip(keys, pairs, strict=True))
        return cls(done.wall_s, rates, measured.waiting.nodes)


@dataclasses.dataclass(frozen=True, eq=False)
class PreviewInput:
    """Input of a preview.

    :ivar done: a round that was measured and decided.
    :ivar settings: in force.
    :ivar scales: converts weights to kernel units, by control.
    :ivar preferences: of owners among their own VMs, by UUID.
    :ivar samples: of earlier rounds, or of this one.
    """

    done: round_model.Round
    measured: round_model.MeasuredRound
    settings: settings_module.Settings
    scales: scale_module.Scales
    preferences: Mapping[str, float]
    samples: Sequence[CpuSample]


@dataclasses.dataclass(frozen=True, eq=False)
class Preview:
    """Forecast of the VMs of a round with one metric.

    :ivar gets: (k, n) CPUs that each VM got in each sampled round.
    :ivar wants: (k, n) CPUs that it wanted.
    :ivar would_get: (k, n) CPUs that it would get.
    :ivar weights: (n,) of the CPU.
    :ivar units: kernel units of each VM; ``None`` where it is not steered.
    :ivar rounds: number of rounds of the forecast.
    :ivar settled: whether the weights were stable in the last rounds.
    """

    gets: usage_model.Scalars
    wants: usage_model.Scalars
    would_get: usage_model.Scalars
    weights: usage_model.Scalars
    units: Sequence[int | None]
    rounds: int
    settled: bool


def preview(
    inputs: PreviewInput,
    name: str,
    metric: metric_base.Metric,
    policy: policy_base.Policy,
    guard: guard_module.Guard,
) -> Preview:
    """Run rounds with a metric until the weights are stable.

    :param name: of the metric.
    :param guard: runs metric and policy.
    :raises PluginMisbehaved: if one of them fails.
    :raises StateError: if the round lacks the VMs' wants.
    """
    model = _CpuModel(inputs, name, metric, guard)
    room = decision.Decision(
        inputs.done.node, guard, {_CONTROL: inputs.scales[_CONTROL]}
    )
    only = frozenset({_CONTROL})
    settings = dataclasses.replace(inputs.settings, controls=only)
    got = model.newest
    held: allocation.Allocation = {}
    log = np.zeros(len(got))
    still = number = 0
    while still < SETTLED_ROUNDS and number < MAX_ROUNDS:
        decided = room.decide(
            model.measured_round(got),
            policy,
            settings,
            model.decision_input(held),
        )
        held = decided.wanted
        got = model.cpu_time(held)
        before, log = log, np.log(decided.weights[:, _COLUMN])
        moved = float(np.abs(log - before).max(initial=0.0))
        still = still + 1 if moved <= SETTLED_CHANGE else 0
        number += 1
    return Preview(
        gets=model.cpus(model.had),
        wants=model.cpus(model.wanted),
        would_get=model.cpus(model.cpu_time_by_round(held)),
        weights=np.exp(log),
        units=[held.get(knob) for knob in model.knobs],
        rounds=number,
        settled=still >= SETTLED_ROUNDS,
    )


class _CpuModel:
    """A model of the node's CPUs: kernel units divide the CPU time of the VMs.

    :ivar had: (k, n) CPU time that the VMs had in each sampled round, scaled
        to the length of the newest round.
    :ivar wanted: (k, n) CPU time that they wanted.
    :ivar newest: (n,) their mean CPU time.
    :ivar knobs: identifiers of the VMs' CPU controls.
    :raises StateError: if the round lacks the VMs' wants.
    """

    def __init__(
        self,
        inputs: PreviewInput,
        name: str,
        metric: metric_base.Metric,
        guard: guard_module.Guard,
    ) -> None:
        given, now = (
            parts.metric_input(inputs.measured),
            CpuSample.from_round(inputs.done),
        )
        if given is None or now is None:
            raise exception.StateError(WANTS_UNKNOWN)
        samples = inputs.samples or (now,)
        self._start = inputs
        self._metric = metric
        self._given = given
        # Weights that moved in one of the rounds are at work in all of them.
        self._short = np.any([each.contended for each in samples], axis=0)
        self.had, self.wanted = _cpu_amounts(
            inputs.measured.usage, samples, now
        )
        self.newest = self.had.mean(axis=0)
        self._wanted = self.wanted.mean(axis=0)
        self._weigh = functools.partial(guard.call, f'the preview with {name}')
        vms = inputs.measured.usage.incarnations
        self.knobs = [allocation.Knob(vm.key, _CONTROL) for vm in vms]
        # VMs with CPUs of their own share with nobody.
        scale = inputs.scales[_CONTROL]
        self._sharing = np.flatnonzero(
            [scale.is_steered(vm.instance) for vm in vms]
        )
        self._sizes = self._initial_units()
        decided = inputs.done.decided
        self._best_effort = decided.best_effort if decided else frozenset()
        self._elsewhere = (
            _reported_elsewhere(inputs, given)
            if name == inputs.done.metric
            else self._weigh(
                lambda: elsewhere.estimated_elsewhere(
                    inputs.done.node.host,
                    inputs.done.metric,
                    inputs.measured,
                    given.totals,
                    metric,
                )
            )
        )

    def cpus(self, amounts: usage_model.Scalars) -> usage_model.Scalars:
        """Convert CPU time of the interval to CPUs."""
        usage = self._start.measured.usage
        speed = self._start.done.node.speed_factor
        return np.asarray(amounts / (usage.interval_s * speed))

    def decision_input(
        self, held: allocation.Allocation
    ) -> decision.DecisionInput:
        """Return the other input of a decision, with these units applied.

        :param held: kernel units that are applied.
        """
        start = self._start
        vms = start.measured.usage.incarnations
        return decision.DecisionInput(
            present={**start.done.applied, **held},
            held=held,
            exempt=application.exempt_keys(vms, start.settings),
            elapsed_s=start.measured.usage.interval_s,
            preferences=start.preferences,
            best_effort=self._best_effort,
        )

    def cpu_time(self, held: allocation.Allocation) -> usage_model.Scalars:
        """Return the CPU time of VMs with these kernel units, (n,)."""
        return self._fill_cpus(held, self.newest, self._wanted)

    def cpu_time_by_round(
        self, held: allocation.Allocation
    ) -> usage_model.Scalars:
        """Return the CPU time of VMs with these units in each round, (k,
        n).
        """
        return np.array(
            [
                self._fill_cpus(held, *each)
                for each in zip(self.had, self.wanted, strict=True)
            ]
        )

    def _fill_cpus(
        self,
        held: allocation.Allocation,
        had: usage_model.Scalars,
        wanted: usage_model.Scalars,
    ) -> usage_model.Scalars:
        rows, part = (
            self._sharing,
            self._start.scales[_CONTROL].weight_of_units,
        )
        units = [
            part(held[knob]) if knob in held else size
            for knob, size in zip(self.knobs, self._sizes, strict=True)
        ]
        got = had.copy()
        got[rows], _ = filling.fill(
            np.array([had[rows].sum()]),
            np.zeros(len(rows), dtype=np.intp),
            wanted[rows],
            np.array(units, dtype=np.float64)[rows],
        )
        return got

    def measured_round(
        self, cpu_time: usage_model.Scalars
    ) -> round_model.MeasuredRound:
        """Return the measurement of a round with other CPU time.

        :param cpu_time: (n,) of the VMs.
        """
        given, before = self._given, self._start.measured
        users = given.totals.user_count
        usage = self._with_cpu_time(cpu_time)
        demands = dataclasses.replace(given.demands, usage=usage.amounts)
        own = self._weigh(lambda: stages.instance_stage(self._metric, demands))
        more = grouping.sum_by(
            given.owner, usage.amounts - before.weighed.amounts, users
        )
        of_all = dataclasses.replace(
            given.totals,
            instance_heaviness=self._elsewhere
            + grouping.sum_by(given.owner, own, users),
            usage=(given.totals.usage + more).clip(0.0),
        )
        of_users, final = self._weigh(
            lambda: measure_round.run_user_stages(
                self._metric, of_all, given.owner, own
            )
        )
        return dataclasses.replace(
            before,
            usage=usage,
            counted=None,
            instance_heaviness=own,
            heaviness=final,
            user_heaviness=of_users,
            user_usage=of_all.usage,
            waiting=self._cpu_waits(cpu_time),
            knowledge=functools.partial(self._foresight_input, of_all),
        )

    def _with_cpu_time(
        self, cpu_time: usage_model.Scalars
    ) -> usage_model.Usage:
        """Return the usage that counts, with other CPU time of the VMs,
        (n,).
        """
        usage = _with_cpu_time(self._start.measured.usage, cpu_time)
        return usage_measure.without_vms(usage, self._best_effort)

    def _cpu_waits(
        self, cpu_time: usage_model.Scalars
    ) -> usage_model.CpuWaits:
        """Return which VMs wait for the CPU with this CPU time, (n,)."""
        wanted = np.where(self._wanted > 0, self._wanted, 1.0)
        part = np.where(self._wanted > 0, cpu_time / wanted, 1.0)
        return usage_model.CpuWaits(
            vms=part < SATISFIED_PART, nodes=self._short, lacking=1.0 - part
        )

    def _foresight_input(self, totals_of_users: metric_base.Totals) -> Any:
        measured = self._start.measured
        return foresight.knowledge_of_node(
            self._start.done.node.host,
            measured.view,
            totals.CombinedTotals(
                measured.ownership.users, totals_of_users, measured.supply
            ),
            measured.usage,
            self._metric,
            self._start.settings,
        )

    def _initial_units(self) -> list[float]:
        """Return the kernel units of each VM at the start of the preview."""
        start = self._start
        sizes = start.scales[_CONTROL].sizes(
            scale_module.ScaleFacts(
                usage=start.measured.usage,
                preset=policy_base.Preset.DEFAULT,
                present=start.done.applied,
                exempt=frozenset(),
                tolerance=start.settings.tolerance,
            )
        )
        part, applied = (
            start.scales[_CONTROL].weight_of_units,
            start.done.applied,
        )
        return [
            part(applied[knob]) if knob in applied else float(size)
            for knob, size in zip(self.knobs, sizes, strict=True)
        ]


def _cpu_amounts(
    usage: usage_model.Usage, samples: Sequence[CpuSample], current: CpuSample
) -> tuple[usage_model.Scalars, usage_model.Scalars]:
    """Return CPU time that VMs had and wanted in each round, (k, n) each.

    A VM that is missing in a sample has its present values there.
    """
    keys = [vm.key for vm in usage.incarnations]
    rates = np.array(
        [
            [
                each.use_and_want.get(key, current.use_and_want[key])
                for key in keys
            ]
            for each in samples
        ]
    ).reshape(len(samples), len(keys), 2)
    had, wanted = np.moveaxis(rates * usage.interval_s, -1, 0)
    return had, wanted


def _with_cpu_time(
    usage: usage_model.Usage, cpu_time: usage_model.Scalars
) -> usage_model.Usage:
    """Return a copy of the usage with other CPU time."""
    amounts, newest = usage.amounts.copy(), usage.newest.copy()
    amounts[:, _TIME] = newest[:, _TIME] = cpu_time
    return dataclasses.replace(usage, amounts=amounts, unsmoothed=newest)


def _reported_elsewhere(
    inputs: PreviewInput, metric_input: parts.MetricInput
) -> metric_base.Heaviness:
    """Return the reported heaviness of users' VMs on other nodes, (u,).

    Reports contain it for the metric in force only.
    """
    own, users = (
        inputs.measured.instance_heaviness,
        metric_input.totals.user_count,
    )
    here = grouping.sum_by(metric_input.owner, own, users)
    return np.asarray(metric_input.totals.instance_heaviness - here)


class Previewer:
    """Computes previews from the last rounds, for any installed metric.

    Rounds never wait for it. A metric or policy that fails here stays in use
    by the rounds.

    :param scales: converts weights to kernel units, by control.
    :param deadline_s: longest run time of a metric or policy call in seconds.
    :param clock: monotonic, seconds.
    """

    def __init__(
        self,
        scales: scale_module.Scales,
        deadline_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scales = scales
        self._clock = clock
        self._lock = threading.Lock()
        self._guard = guard_module.Guard(deadline_s)
        self._failed: dict[str, tuple[float, str]] = {}
        self._samples: tuple[CpuSample, ...] = ()

    def add_round(self, done: round_model.Round) -> None:
        """Store a sample of a round; never waits for a preview."""
        last = self._samples[-1].wall_s if self._samples else -np.inf
        if last <= done.wall_s < last + SAMPLE_STEP_S:
            return
        if (sample := CpuSample.from_round(done)) is not None:
            # A clock that went back leaves no samples of the future.
            self._samples = (
                *(
                    each
                    for each in self._samples
                    if 0 <= done.wall_s - each.wall_s < MAX_SAMPLE_AGE_S
                ),
                sample,
            )

    def previews(
        self,
        done: round_model.Round | None,
        settings: settings_module.Settings,
        preferences: Mapping[str, float],
        names: Sequence[str],
    ) -> list[Mapping[str, Any]]:
        """Return the preview of each metric for the VMs of a round.

        :param settings: in force.
        :param names: of metrics.
        :returns: JSON types, in the sequence of the names.
        """
        with self._lock:
            return [
                {
                    'metric': name,
                    'in_force': name == settings.metric,
                    **self._preview_values(name, done, settings, preferences),
                }
                for name in names
            ]

    def stop(self) -> None:
        """Stop the thread; may be called twice."""
        self._guard.stop()

    def _preview_values(
        self,
        name: str,
        done: round_model.Round | None,
        settings: settings_module.Settings,
        preferences: Mapping[str, float],
    ) -> Mapping[str, Any]:
        if done is None or done.measured is None:
            return _no_preview(NOT_MEASURED)
        if _CONTROL not in self._scales:
            return _no_preview(NO_CONTROL)
        # What is in force may be newer than the newest round.
        known = dataclasses.replace(settings, metric=done.metric)
        start = PreviewInput(
            done,
            done.measured,
            known,
            self._scales,
            preferences,
            self._samples,
        )
        try:
            return _node_values(start, self._preview(name, start))
        except exception.FairnessError as error:
            return _no_preview(str(error))

    def _preview(self, name: str, inputs: PreviewInput) -> Preview:
        failed_s, why = self._failed.get(name, (-RETRY_AFTER_S, ''))
        if self._clock() - failed_s < RETRY_AFTER_S and why:
            raise exception.PluginMisbehaved(why)
        metric = plugins.load_metric(name)
        policy = plugins.load_policy(inputs.settings.policy)
        try:
            return preview(inputs, name, metric, policy, self._guard)
        except exception.PluginMisbehaved as error:
            self._failed[name] = self._clock(), str(error)
            for held in self._guard.quarantined:
                self._guard.release(held)
            raise


def contended_besides_cpu(done: round_model.Round | None) -> list[str]:
    """Return the contended controls that a preview does not forecast."""
    if done is None or done.decided is None:
        return []
    return [
        control.value
        for control, is_contended in zip(
            resources.CONTROLS, done.decided.contended, strict=True
        )
        if is_contended and control is not _CONTROL
    ]


def _no_preview(problem: str) -> Mapping[str, Any]:
    return {
        'problem': problem,
        'settled': False,
        'rounds_count': 0,
        'sampled_rounds_count': 0,
        'users': {},
        'instances': [],
    }


def _node_values(inputs: PreviewInput, forecast: Preview) -> Mapping[str, Any]:
    """Return the forecast of each VM and each owner here, as JSON types."""
    owners = inputs.measured.ownership
    here = np.unique(owners.user_index)
    return {
        'problem': '',
        'settled': forecast.settled,
        'rounds_count': forecast.rounds,
        'sampled_rounds_count': len(forecast.gets),
        'users': {
            owners.users[owner]: _owner_values(
                inputs, forecast, np.flatnonzero(owners.user_index == owner)
            )
            for owner in here
        },
        'instances': [
            _vm_values(inputs, forecast, row)
            for row in range(len(inputs.measured.usage.incarnations))
        ],
    }


def _owner_values(
    inputs: PreviewInput, forecast: Preview, rows: usage_model.Indices
) -> dict[str, Any]:
    vm = inputs.measured.usage.incarnations[rows[0]].instance
    return {
        'name': _owner_names(vm)[f'{inputs.settings.entity}_name'],
        'instances_here_count': len(rows),
        **_cpu_means(forecast, rows),
    }


def _vm_values(
    inputs: PreviewInput, forecast: Preview, row: int
) -> dict[str, Any]:
    vm = inputs.measured.usage.incarnations[row].instance
    return {
        'uuid': vm.uuid,
        'name': vm.display_name or vm.domain_name,
        **_owner_names(vm),
        **_cpu_means(forecast, np.array([row])),
        'weight_ratio': float(forecast.weights[row]),
        'cpu_units': forecast.units[row],
    }


def _owner_names(vm: instance_model.Instance) -> dict[str, str]:
    return {
        'user': vm.user_id,
        'user_name': vm.user_name or vm.user_id,
        'project': vm.project_id,
        'project_name': vm.project_name or vm.project_id,
    }


def _cpu_means(
    forecast: Preview, rows: usage_model.Indices
) -> dict[str, float | None]:
    """Return mean CPUs of some VMs, and the spread over the rounds."""
    gets, wants, would_get = (
        each[:, rows].sum(axis=1)
        for each in (forecast.gets, forecast.wants, forecast.would_get)
    )
    change = would_get - gets
    return {
        'gets_cpus': float(gets.mean()),
        'wants_cpus': float(wants.mean()),
        'would_get_cpus': float(would_get.mean()),
        'change_cpus': float(change.mean()),
        'change_spread_cpus': float(change.std()) if len(change) > 1 else None,
    }
