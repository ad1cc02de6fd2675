# SPDX-License-Identifier: Apache-2.0

"""Forecast of a node's VMs with weights in force, by metric.

The rounds of measure and decide run one after the other, from neutral weights
on, on a model of the node's CPUs. VMs want as much as on average in the last
minutes. They share by their kernel units the CPU time that they have in all.
The units in the end divide the CPU time of each of the rounds of these
minutes: that gives a mean, and how far rounds are from it. Nothing is written.
Only the CPU is forecast: for other resources the wants of VMs are not known.
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
from nova_fairness.agent.round import foresight
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.measure import foresight as measure_foresight
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

ROUNDS = 100
"""After which nothing is waited for any more."""

SETTLED = 0.01
"""Part by which a weight moves at most in each of the last rounds of a preview
that is at its end."""

STILL = 3
"""... and so many of these there are."""

CONTENT = 0.99
"""Part of what it wants from which a VM waits for nothing more."""

KEPT_S = 300.0
"""Age of the oldest round that counts. Two previews within seconds have nearly
the same rounds, and so nearly the same result."""

STEP_S = 10.0
"""Between two rounds that count, at least: cycles may be of a second."""

AGAIN_S = 60.0
"""Seconds after which a metric that failed is tried again."""

NOT_MEASURED = 'nothing is measured yet: ask again after the next round'
NO_CONTROL = 'this node cannot steer the CPU'
UNKNOWN = 'the newest round does not tell what VMs want'

_CONTROL = resources.ResourceControl.CPU
_COLUMN = resources.CONTROLS.index(_CONTROL)
_TIME = resources.RESOURCES.index('cpu_time')


@dataclasses.dataclass(frozen=True, eq=False)
class CpuSample:
    """CPU time of a node's VMs in a round.

    :ivar wall_s: end of the round, since the epoch.
    :ivar rates: amounts a second that each VM had, and wanted at least, by
        key.
    :ivar short: whether more was wanted of the node than it has, (1,).
    """

    wall_s: float
    rates: Mapping[str, tuple[float, float]]
    short: resources.Mask

    @classmethod
    def of(cls, done: round_model.Round) -> 'CpuSample | None':
        """Take it from a round; ``None`` if that does not tell."""
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
    :ivar scales: how each control counts that the node can steer.
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
    """Forecast of the VMs of a round, with one metric.

    :ivar gets: (k, n) CPUs that each has in each of the rounds.
    :ivar wants: (k, n) that it wants.
    :ivar would_get: (k, n) that it would get.
    :ivar weights: (n,) of the CPU.
    :ivar units: kernel units of each; ``None`` where it is not steered.
    :ivar rounds: that were run.
    :ivar settled: whether nothing moved any more in the last of them.
    """

    gets: usage_model.Scalars
    wants: usage_model.Scalars
    would_get: usage_model.Scalars
    weights: usage_model.Scalars
    units: Sequence[int | None]
    rounds: int
    settled: bool


def preview(
    start: PreviewInput,
    name: str,
    metric: metric_base.Metric,
    policy: policy_base.Policy,
    guard: guard_module.Guard,
) -> Preview:
    """Run rounds with a metric until weights stand still.

    :param name: of the metric.
    :param guard: runs metric and policy.
    :raises PluginMisbehaved: if one of them fails.
    :raises StateError: if the round does not tell enough.
    """
    model = _Model(start, name, metric, guard)
    room = decision.Decision(
        start.done.node, guard, {_CONTROL: start.scales[_CONTROL]}
    )
    only = frozenset({_CONTROL})
    settings = dataclasses.replace(start.settings, controls=only)
    got = model.newest
    held: allocation.Allocation = {}
    log = np.zeros(len(got))
    still = number = 0
    while still < STILL and number < ROUNDS:
        decided = room.decide(
            model.measured(got), policy, settings, model.ask(held)
        )
        held = decided.wanted
        got = model.divided(held)
        before, log = log, np.log(decided.weights[:, _COLUMN])
        moved = float(np.abs(log - before).max(initial=0.0))
        still = still + 1 if moved <= SETTLED else 0
        number += 1
    return Preview(
        gets=model.cpus(model.had),
        wants=model.cpus(model.wanted),
        would_get=model.cpus(model.divided_in_each(held)),
        weights=np.exp(log),
        units=[held.get(knob) for knob in model.knobs],
        rounds=number,
        settled=still >= STILL,
    )


class _Model:
    """The CPUs of a node on which all want what the last rounds found.

    :ivar had: (k, n) amounts of CPU time that VMs had in each of the rounds,
        as long as the newest.
    :ivar wanted: (k, n) that they wanted.
    :ivar newest: (n,) that they had on average.
    :ivar knobs: of the CPU, of each VM.
    :raises StateError: if the round does not tell enough.
    """

    def __init__(
        self,
        start: PreviewInput,
        name: str,
        metric: metric_base.Metric,
        guard: guard_module.Guard,
    ) -> None:
        given, now = parts.given_to(start.measured), CpuSample.of(start.done)
        if given is None or now is None:
            raise exception.StateError(UNKNOWN)
        samples = start.samples or (now,)
        self._start = start
        self._metric = metric
        self._given = given
        # Weights that moved in one of the rounds are at work in all of them.
        self._short = np.any([each.short for each in samples], axis=0)
        self.had, self.wanted = _amounts(start.measured.usage, samples, now)
        self.newest = self.had.mean(axis=0)
        self._wanted = self.wanted.mean(axis=0)
        self._weigh = functools.partial(guard.call, f'the preview with {name}')
        vms = start.measured.usage.incarnations
        self.knobs = [allocation.Knob(vm.key, _CONTROL) for vm in vms]
        # VMs with CPUs of their own share with nobody.
        scale = start.scales[_CONTROL]
        self._sharing = np.flatnonzero(
            [scale.is_steered(vm.instance) for vm in vms]
        )
        self._sizes = self._kernel_units()
        decided = start.done.decided
        self._best_effort = decided.best_effort if decided else frozenset()
        self._elsewhere = (
            _told_elsewhere(start, given)
            if name == start.done.metric
            else self._weigh(lambda: _like_elsewhere(start, given, metric))
        )

    def cpus(self, amounts: usage_model.Scalars) -> usage_model.Scalars:
        """Turn CPU time of the interval into CPUs."""
        usage = self._start.measured.usage
        speed = self._start.done.node.speed_factor
        return np.asarray(amounts / (usage.interval_s * speed))

    def ask(self, held: allocation.Allocation) -> decision.Ask:
        """Other input of a decision, if some units are held."""
        start = self._start
        vms = start.measured.usage.incarnations
        return decision.Ask(
            present={**start.done.applied, **held},
            held=held,
            exempt=application.exempt(vms, start.settings),
            elapsed_s=start.measured.usage.interval_s,
            preferences=start.preferences,
            best_effort=self._best_effort,
        )

    def divided(self, held: allocation.Allocation) -> usage_model.Scalars:
        """CPUs of VMs if kernel units divide all that they have, (n,)."""
        return self._divided(held, self.newest, self._wanted)

    def divided_in_each(
        self, held: allocation.Allocation
    ) -> usage_model.Scalars:
        """The same in each of the rounds, (k, n)."""
        return np.array(
            [
                self._divided(held, *each)
                for each in zip(self.had, self.wanted, strict=True)
            ]
        )

    def _divided(
        self,
        held: allocation.Allocation,
        had: usage_model.Scalars,
        wanted: usage_model.Scalars,
    ) -> usage_model.Scalars:
        rows, part = self._sharing, self._start.scales[_CONTROL].part
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

    def measured(self, got: usage_model.Scalars) -> round_model.MeasuredRound:
        """Measurement of a round if VMs got some CPU time, (n,)."""
        given, before = self._given, self._start.measured
        users = given.totals.user_count
        usage = self._using(got)
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
        of_users, treated = self._weigh(
            lambda: measure_round.treated(
                self._metric, of_all, given.owner, own
            )
        )
        return dataclasses.replace(
            before,
            usage=usage,
            counted=None,
            instance_heaviness=own,
            heaviness=treated,
            user_heaviness=of_users,
            user_usage=of_all.usage,
            waiting=self._waiting(got),
            knowledge=functools.partial(self._knowledge, of_all),
        )

    def _using(self, got: usage_model.Scalars) -> usage_model.Usage:
        """Use that counts if VMs get some CPU time, (n,)."""
        usage = _using(self._start.measured.usage, got)
        return usage_measure.counted(usage, self._best_effort)

    def _waiting(self, got: usage_model.Scalars) -> usage_model.CpuWaits:
        wanted = np.where(self._wanted > 0, self._wanted, 1.0)
        part = np.where(self._wanted > 0, got / wanted, 1.0)
        return usage_model.CpuWaits(
            vms=part < CONTENT, nodes=self._short, lacking=1.0 - part
        )

    def _knowledge(self, of_all: metric_base.Totals) -> Any:
        measured = self._start.measured
        return foresight.knowledge_of_node(
            self._start.done.node.host,
            measured.view,
            totals.CombinedTotals(
                measured.ownership.users, of_all, measured.supply
            ),
            measured.usage,
            self._metric,
            self._start.settings,
        )

    def _kernel_units(self) -> list[float]:
        """Units of each VM while it is not steered."""
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
        part, applied = start.scales[_CONTROL].part, start.done.applied
        return [
            part(applied[knob]) if knob in applied else float(size)
            for knob, size in zip(self.knobs, sizes, strict=True)
        ]


def _amounts(
    usage: usage_model.Usage, samples: Sequence[CpuSample], now: CpuSample
) -> tuple[usage_model.Scalars, usage_model.Scalars]:
    """CPU time that VMs had and wanted in each round, (k, n) each.

    A VM that was not there yet counts as it is now.
    """
    keys = [vm.key for vm in usage.incarnations]
    rates = np.array(
        [
            [each.rates.get(key, now.rates[key]) for key in keys]
            for each in samples
        ]
    ).reshape(len(samples), len(keys), 2)
    had, wanted = np.moveaxis(rates * usage.interval_s, -1, 0)
    return had, wanted


def _using(
    usage: usage_model.Usage, got: usage_model.Scalars
) -> usage_model.Usage:
    """The same usage with other CPU time."""
    amounts, newest = usage.amounts.copy(), usage.newest.copy()
    amounts[:, _TIME] = newest[:, _TIME] = got
    return dataclasses.replace(usage, amounts=amounts, unsmoothed=newest)


def _told_elsewhere(
    start: PreviewInput, given: parts.MetricInput
) -> metric_base.Heaviness:
    """Sums of the instance stage over users' VMs on other nodes, (u,).

    Reports tell them for the metric in force.
    """
    own, users = start.measured.instance_heaviness, given.totals.user_count
    here = grouping.sum_by(given.owner, own, users)
    return np.asarray(given.totals.instance_heaviness - here)


def _like_elsewhere(
    start: PreviewInput, given: parts.MetricInput, metric: metric_base.Metric
) -> metric_base.Heaviness:
    """The same for a metric that is in no report, (u,).

    All that a user has on a node counts as one VM.
    """
    of_all, name = given.totals, start.done.metric
    view = start.measured.view
    known = measure_foresight.told(view, start.measured.usage.interval_s, name)
    weighing = measure_foresight.HeavinessProbe(
        metric, known, of_all.quota, of_all.supply
    )
    hosts = [item.host for item in totals.usable(view, name)]
    others = known.node != hosts.index(start.done.node.host)
    heavy = np.where(others, weighing.instances(known.used), 0.0)
    return grouping.sum_by(known.user, heavy, of_all.user_count)


class Previewer:
    """Previews of the last rounds, with each metric that is installed.

    Rounds never wait for it, and a metric or policy that fails here is not
    taken from them.

    :param scales: how each control counts that the node can steer.
    :param deadline_s: seconds that a metric or policy may take at a time.
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

    def see(self, done: round_model.Round) -> None:
        """Let a round count; never waits for a preview."""
        last = self._samples[-1].wall_s if self._samples else -np.inf
        if last <= done.wall_s < last + STEP_S:
            return
        if (sample := CpuSample.of(done)) is not None:
            # A clock that went back leaves no samples of the future.
            self._samples = (
                *(
                    each
                    for each in self._samples
                    if 0 <= done.wall_s - each.wall_s < KEPT_S
                ),
                sample,
            )

    def told(
        self,
        done: round_model.Round | None,
        settings: settings_module.Settings,
        preferences: Mapping[str, float],
        names: Sequence[str],
    ) -> list[Mapping[str, Any]]:
        """Say what would become of the VMs of a round, metric by metric.

        :param settings: in force.
        :param names: of metrics.
        :returns: JSON types, in the order of the names.
        """
        with self._lock:
            return [
                {
                    'metric': name,
                    'in_force': name == settings.metric,
                    **self._of(name, done, settings, preferences),
                }
                for name in names
            ]

    def stop(self) -> None:
        """End the thread; may be called twice."""
        self._guard.stop()

    def _of(
        self,
        name: str,
        done: round_model.Round | None,
        settings: settings_module.Settings,
        preferences: Mapping[str, float],
    ) -> Mapping[str, Any]:
        if done is None or done.measured is None:
            return _nothing(NOT_MEASURED)
        if _CONTROL not in self._scales:
            return _nothing(NO_CONTROL)
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
            return _of_node(start, self._preview(name, start))
        except exception.FairnessError as error:
            return _nothing(str(error))

    def _preview(self, name: str, start: PreviewInput) -> Preview:
        failed_s, why = self._failed.get(name, (-AGAIN_S, ''))
        if self._clock() - failed_s < AGAIN_S and why:
            raise exception.PluginMisbehaved(why)
        metric = plugins.load_metric(name)
        policy = plugins.load_policy(start.settings.policy)
        try:
            return preview(start, name, metric, policy, self._guard)
        except exception.PluginMisbehaved as error:
            self._failed[name] = self._clock(), str(error)
            for held in self._guard.quarantined:
                self._guard.release(held)
            raise


def not_foreseen(done: round_model.Round | None) -> list[str]:
    """Name what VMs compete for besides the CPU: weights of it move, too."""
    if done is None or done.decided is None:
        return []
    return [
        control.value
        for control, is_contended in zip(
            resources.CONTROLS, done.decided.contended, strict=True
        )
        if is_contended and control is not _CONTROL
    ]


def _nothing(problem: str) -> Mapping[str, Any]:
    return {
        'problem': problem,
        'settled': False,
        'rounds_count': 0,
        'sampled_rounds_count': 0,
        'users': {},
        'instances': [],
    }


def _of_node(start: PreviewInput, found: Preview) -> Mapping[str, Any]:
    """Gains and losses of each VM and of each owner here, as JSON types."""
    owners = start.measured.ownership
    here = np.unique(owners.user_index)
    return {
        'problem': '',
        'settled': found.settled,
        'rounds_count': found.rounds,
        'sampled_rounds_count': len(found.gets),
        'users': {
            owners.users[owner]: _of_owner(
                start, found, np.flatnonzero(owners.user_index == owner)
            )
            for owner in here
        },
        'instances': [
            _of_instance(start, found, row)
            for row in range(len(start.measured.usage.incarnations))
        ],
    }


def _of_owner(
    start: PreviewInput, found: Preview, rows: usage_model.Indices
) -> dict[str, Any]:
    vm = start.measured.usage.incarnations[rows[0]].instance
    return {
        'name': _names(vm)[f'{start.settings.entity}_name'],
        'instances_here_count': len(rows),
        **_together(found, rows),
    }


def _of_instance(
    start: PreviewInput, found: Preview, row: int
) -> dict[str, Any]:
    vm = start.measured.usage.incarnations[row].instance
    return {
        'uuid': vm.uuid,
        'name': vm.display_name or vm.domain_name,
        **_names(vm),
        **_together(found, np.array([row])),
        'weight_ratio': float(found.weights[row]),
        'cpu_units': found.units[row],
    }


def _names(vm: instance_model.Instance) -> dict[str, str]:
    return {
        'user': vm.user_id,
        'user_name': vm.user_name or vm.user_id,
        'project': vm.project_id,
        'project_name': vm.project_name or vm.project_id,
    }


def _together(
    found: Preview, rows: usage_model.Indices
) -> dict[str, float | None]:
    """CPUs of some VMs on average, and how far rounds are from that."""
    gets, wants, would_get = (
        each[:, rows].sum(axis=1)
        for each in (found.gets, found.wants, found.would_get)
    )
    change = would_get - gets
    return {
        'gets_cpus': float(gets.mean()),
        'wants_cpus': float(wants.mean()),
        'would_get_cpus': float(would_get.mean()),
        'change_cpus': float(change.mean()),
        'change_spread_cpus': float(change.std()) if len(change) > 1 else None,
    }
