# SPDX-License-Identifier: Apache-2.0

"""The node cycle: collect, measure, exchange, decide, apply.

Only the two ends have effects; between them are pure functions over frozen
values. A round takes one snapshot, computes the wanted state, compares it with
the present state, and writes only the difference.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import logging
import time
from typing import Any

from nova_fairness import exception
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import application
from nova_fairness.agent.round import decision
from nova_fairness.agent.round import measurement
from nova_fairness.agent.round import safety_net
from nova_fairness.agent.steering import controls
from nova_fairness.agent.steering import pinning as pinning_module
from nova_fairness.agent.steering import throttling as throttling_module
from nova_fairness.agent.steering import weight_check
from nova_fairness.agent.watch import cpu_shortfall
from nova_fairness.agent.watch import idle
from nova_fairness.apply import applier as applier_module
from nova_fairness.apply import control
from nova_fairness.collect import counters
from nova_fairness.collect import inventory
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.measure import pressure as pressure_measure
from nova_fairness.model import allocation
from nova_fairness.model import caller
from nova_fairness.model import instance
from nova_fairness.model import node as node_model
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import sample as sample_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Plugins:
    """The metric and the policy in force."""

    metric: metric_base.Metric
    policy: policy_base.Policy


@dataclasses.dataclass(frozen=True)
class Rooms:
    """The parts of a cycle.

    :ivar pressure: ``None`` where no control needs it.
    :ivar preferences: gives preferences of owners among their VMs, by UUID.
    :ivar throttling: of disks without weights, if there is any.
    :ivar pinning: of VCPUs, if there is any.
    :ivar missing: why there is no control of some kinds.
    :ivar best_effort: says which of some VMs, by UUID, get only what is left
        over.
    :ivar proof: of the effect of CPU weights, if it is looked for.
    :ivar idling: watches for idle VMs, if configured.
    :ivar lacking: watches for VMs that lack CPUs, if configured.
    """

    inventory: inventory.VmInventory
    counters: counters.CounterReader
    measurement: measurement.Measurement
    decision: decision.Decision
    applier: applier_module.Applier
    guard: guard_module.Guard
    node: node_model.NodeResources
    pressure: controls.PressureWatch | None = None
    preferences: Callable[[], Mapping[str, float]] = dict
    throttling: throttling_module.Throttling | None = None
    pinning: pinning_module.Pinning | None = None
    missing: Mapping[resources.ResourceControl, str] = dataclasses.field(
        default_factory=dict
    )
    best_effort: Callable[[Collection[str]], frozenset[str]] = lambda _: (
        frozenset()
    )
    proof: weight_check.Proof | None = None
    idling: idle.IdleMemory | None = None
    lacking: cpu_shortfall.CpuShortfall | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class _Seen:
    """Readings of a round from the host, and facts about its VMs.

    :ivar present: kernel units by knob.
    :ivar exempt: keys of the VMs that an operator exempted.
    :ivar best_effort: keys of those that get only what is left over.
    """

    sample: sample_model.Sample
    pressure: pressure_model.Pressure | None
    present: allocation.Allocation
    exempt: frozenset[str]
    best_effort: frozenset[str]


class Cycle:
    """Runs rounds; knows what is in force and what was applied.

    :param rooms: collect, measure, exchange, decide, apply.
    :param settings: what is configured.
    :param plugins: what is configured, loaded.
    :param clock: monotonic, seconds.
    :param wall_clock: since the epoch, seconds.
    :ivar paused: nothing is enforced, whatever the settings say.
    :ivar epoch: of the desired state in force; 0 if the settings are.
    :ivar chosen_by: who made that epoch.
    :ivar paused_by: who began or ended the pause.
    """

    def __init__(
        self,
        rooms: Rooms,
        settings: settings_module.Settings,
        plugins: Plugins,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._rooms = rooms
        self._settings = settings
        self._plugins = plugins
        self._clock = clock
        self._wall_clock = wall_clock
        self.paused = False
        self.epoch = 0
        self.chosen_by = self.paused_by = caller.UNKNOWN
        self._number = 0
        self._decided_s: float | None = None
        self._application = application.AppliedState(
            rooms.applier, rooms.missing
        )
        self._known: tuple[instance.Incarnation, ...] = ()

    def reconfigure(
        self, settings: settings_module.Settings, plugins: Plugins
    ) -> None:
        """Take over new settings; sets quarantined plugins free."""
        self._settings = settings
        self._plugins = plugins
        self._rooms.guard.deadline_s = settings.metric_deadline_s
        self._rooms.guard.release(settings.metric)
        self._rooms.guard.release(settings.policy)

    def round(self, missed: int = 0) -> round_model.Round:
        """Run one round.

        :param missed: rounds that were left out before this one.
        """
        self._number += 1
        started_s, wall_s = self._clock(), self._wall_clock()
        errors: list[str] = []
        seen = self._collect(errors)
        used = self._rooms.measurement.usage(
            seen.sample, self._settings.decay_factor
        )
        measured = decided = None
        try:
            if used is not None:
                measured = self._weigh(used, seen)
                decided = self._decide(measured, seen)
        except exception.PluginMisbehaved as error:
            errors.append(str(error))
        applied, tally, failures = self._application.apply(
            seen.sample.incarnations,
            seen.present,
            decided,
            self._settings,
            enforces=self._enforces,
        )
        errors += (*self._rooms.applier.problems(), *failures)
        errors += (*self._throttle(seen, measured, decided), *self._pin(seen))
        return round_model.Round(
            number=self._number,
            started_s=started_s,
            wall_s=wall_s,
            duration_s=self._clock() - started_s,
            metric=self._settings.metric,
            policy=self._settings.policy,
            enforced=self._enforces,
            node=self._rooms.node,
            sample=seen.sample,
            measured=measured,
            decided=decided,
            applied=applied,
            tally=dataclasses.replace(tally, missed=missed),
            quarantined=self._rooms.guard.quarantined,
            errors=tuple(errors),
            epoch=self.epoch,
            paused=self.paused,
            chosen_by=self.chosen_by,
            paused_by=self.paused_by,
            **self._watched(used, seen, measured, decided),
        )

    def _watched(
        self,
        used: usage_model.Usage | None,
        seen: _Seen,
        measured: round_model.MeasuredRound | None,
        decided: round_model.DecidedRound | None,
    ) -> dict[str, Any]:
        """Tell which controls work and how, and who is idle or lacks."""
        proof, idling = self._rooms.proof, self._rooms.idling
        told: dict[str, Any] = {}
        if used is not None and proof is not None:
            told['effect'] = proof.look(used, seen.present)
        if used is not None and idling is not None:
            told['idle_since'] = idling.add(used)
        if used is not None and self._rooms.lacking is not None:
            wanted = None if measured is None else measured.wanted
            told['lacks'] = self._rooms.lacking.add(used, wanted)
        controls = self._application.controls(self._settings)
        if decided is not None:
            controls = safety_net.judged(controls, decided.safety_net)
        told['controls'] = proof.judged(controls) if proof else controls
        return told

    @property
    def _has_net(self) -> bool:
        """Tell whether what weights do is judged: they must be in force."""
        return self._enforces and self._settings.safety_net

    @property
    def _enforces(self) -> bool:
        return self._settings.enforce and not self.paused

    def reset(self) -> None:
        """Start again: found values, neutral weights, no memory.

        :raises StateError: if what was restored cannot be noted.
        """
        self._rooms.decision.forget()
        self.restore()

    def restore(self) -> tuple[control.ApplyResult, ...]:
        """Restore every control to the value it was found with."""
        for beside in (self._rooms.throttling, self._rooms.pinning):
            for problem in beside.stop() if beside is not None else ():
                LOG.error('%s', problem)
        return self._application.restore()

    def _collect(self, errors: list[str]) -> _Seen:
        vms = self._rooms.inventory.incarnations()
        if problem := self._rooms.inventory.problem:
            errors.append(problem)
        self._name_unusable_specs(vms)
        kinds = self._settings.controls
        self._rooms.applier.observe(vms, kinds)
        sample = self._rooms.counters.read(vms)
        exempt = application.exempt(vms, self._settings)
        return _Seen(
            sample,
            self._pressure(sample, errors),
            self._rooms.applier.present([item.key for item in vms], kinds),
            exempt,
            self._best_effort(vms) - exempt,
        )

    def _best_effort(
        self, vms: tuple[instance.Incarnation, ...]
    ) -> frozenset[str]:
        chosen = self._rooms.best_effort([vm.instance.uuid for vm in vms])
        return frozenset(vm.key for vm in vms if vm.instance.uuid in chosen)

    def _pressure(
        self, sample: sample_model.Sample, errors: list[str]
    ) -> pressure_model.Pressure | None:
        """Read who waits for memory and disks, where a control needs it."""
        wanted = controls.NEED_PRESSURE & self._settings.controls
        if self._rooms.pressure is None or not wanted:
            return None
        try:
            reading = self._rooms.pressure.read(sample)
            return self._rooms.measurement.pressure(reading)
        except Exception as error:
            # Whatever it was, the CPU and the network are steered.
            LOG.exception('The pressure on memory and disks is not known')
            errors.append(f'pressure on memory and disks: {error}')
            return None

    def _throttle(
        self,
        seen: _Seen,
        measured: round_model.MeasuredRound | None,
        decided: round_model.DecidedRound | None,
    ) -> tuple[str, ...]:
        """Limit rates on disks without weights, if that is configured."""
        rooms, disk = self._rooms, resources.ResourceControl.DISK
        if rooms.throttling is None or rooms.pressure is None:
            return ()
        steers = self._enforces and disk in self._settings.controls
        if not steers or measured is None or decided is None:
            return rooms.throttling.stop()
        return rooms.throttling.round(
            seen.pressure,
            rooms.pressure.newest,
            measured.usage,
            decided.weights[:, resources.CONTROLS.index(disk)],
            seen.exempt,
        )

    def _pin(self, seen: _Seen) -> tuple[str, ...]:
        """Keep VCPUs on cores by what is spent, if that is configured."""
        pinning = self._rooms.pinning
        if pinning is None:
            return ()
        settings = self._settings
        steers = (
            self._enforces
            and resources.ResourceControl.CPU in settings.controls
        )
        if not steers or not settings.pin_vcpus:
            return pinning.stop()
        left_alone = seen.exempt | seen.best_effort
        vms = [
            each
            for each in seen.sample.incarnations
            if each.key not in left_alone
        ]
        rates = self._rooms.measurement.rates(
            [each.instance.uuid for each in vms]
        )
        return pinning.round(vms, rates)

    def _name_unusable_specs(
        self, vms: tuple[instance.Incarnation, ...]
    ) -> None:
        if vms == self._known:
            return
        new = [item for item in vms if item not in self._known]
        self._known = vms
        for text in self._rooms.decision.unusable_specs(new):
            LOG.warning('%s', text)

    def _weigh(
        self, used: usage_model.Usage, seen: _Seen
    ) -> round_model.MeasuredRound:
        return self._rooms.measurement.weigh(
            used,
            self._plugins.metric,
            self._settings,
            self._number,
            seen.best_effort,
        )

    def _decide(
        self, measured: round_model.MeasuredRound, seen: _Seen
    ) -> round_model.DecidedRound:
        now_s = self._clock()
        elapsed_s = (
            measured.usage.interval_s
            if self._decided_s is None
            else now_s - self._decided_s
        )
        ask = decision.Ask(
            present=seen.present,
            held=self._application.held(seen.present),
            exempt=seen.exempt,
            elapsed_s=elapsed_s,
            pressure=seen.pressure
            and pressure_measure.counted(seen.pressure, seen.best_effort),
            preferences=self._rooms.preferences(),
            best_effort=seen.best_effort,
            metric=self._plugins.metric if self._has_net else None,
        )
        decided = self._rooms.decision.decide(
            measured, self._plugins.policy, self._settings, ask
        )
        self._decided_s = now_s
        return decided
