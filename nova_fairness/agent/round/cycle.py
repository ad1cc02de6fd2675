# SPDX-License-Identifier: Apache-2.0

"""The node cycle: collect, measure, exchange, decide, apply.

Only the first and the last step have effects; between them are pure functions
over frozen values. A round reads one snapshot, computes the wanted state,
compares it with the present state, and writes only the difference.
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
class NodeCycleParts:
    """The objects that a cycle uses.

    :ivar pressure: reads memory and disk pressure; ``None`` where no control
        needs it.
    :ivar preferences: returns preferences of owners among their VMs, by UUID.
    :ivar throttling: limits the rates of disks without weights; ``None`` if
        off.
    :ivar pinning: pins vCPUs; ``None`` if off.
    :ivar missing: cause why a control is missing, by kind.
    :ivar best_effort: returns which of some VMs, by UUID, get only leftover
        resources.
    :ivar proof: checks the effect of CPU weights; ``None`` if off.
    :ivar idling: finds idle VMs; ``None`` if off.
    :ivar lacking: finds VMs that lack CPUs; ``None`` if off.
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
    proof: weight_check.WeightCheck | None = None
    idling: idle.IdleMemory | None = None
    lacking: cpu_shortfall.CpuShortfall | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class _Readings:
    """Readings of a round from the host, and facts about its VMs.

    :ivar present: kernel values by control and VM.
    :ivar exempt: keys of the VMs that an operator exempted.
    :ivar best_effort: keys of the VMs that get only leftover resources.
    """

    sample: sample_model.Sample
    pressure: pressure_model.Pressure | None
    present: allocation.Allocation
    exempt: frozenset[str]
    best_effort: frozenset[str]


class Cycle:
    """Runs rounds, and stores the settings in force and the applied values.

    :param parts: the objects that the cycle uses.
    :param settings: the configured settings.
    :param plugins: the configured metric and policy.
    :param clock: monotonic, seconds.
    :param wall_clock: seconds since the epoch.
    :ivar paused: whether enforcement is paused, whatever the settings say.
    :ivar epoch: of the desired state in force; 0 if the configuration applies.
    :ivar chosen_by: who created that epoch.
    :ivar paused_by: who began or ended the pause.
    """

    def __init__(
        self,
        parts: NodeCycleParts,
        settings: settings_module.Settings,
        plugins: Plugins,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
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
            parts.applier, parts.missing
        )
        self._vms: tuple[instance.Incarnation, ...] = ()

    def reconfigure(
        self, settings: settings_module.Settings, plugins: Plugins
    ) -> None:
        """Apply new settings, and end the quarantine of their plugins."""
        self._settings = settings
        self._plugins = plugins
        self._parts.guard.deadline_s = settings.metric_deadline_s
        self._parts.guard.release(settings.metric)
        self._parts.guard.release(settings.policy)

    def round(self, missed: int = 0) -> round_model.Round:
        """Run one round, and return its result.

        :param missed: number of rounds that were skipped before this one.
        """
        self._number += 1
        started_s, wall_s = self._clock(), self._wall_clock()
        errors: list[str] = []
        seen = self._collect(errors)
        used = self._parts.measurement.usage(
            seen.sample, self._settings.decay_factor
        )
        measured = decided = None
        try:
            if used is not None:
                measured = self._measure(used, seen)
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
        errors += (*self._parts.applier.problems(), *failures)
        errors += self._throttle(seen, measured, decided) + self._pin_vms(seen)
        return round_model.Round(
            number=self._number,
            started_s=started_s,
            wall_s=wall_s,
            duration_s=self._clock() - started_s,
            metric=self._settings.metric,
            policy=self._settings.policy,
            enforced=self._enforces,
            node=self._parts.node,
            sample=seen.sample,
            measured=measured,
            decided=decided,
            applied=applied,
            tally=dataclasses.replace(tally, missed=missed),
            quarantined=self._parts.guard.quarantined,
            errors=tuple(errors),
            epoch=self.epoch,
            paused=self.paused,
            chosen_by=self.chosen_by,
            paused_by=self.paused_by,
            **self._control_and_vm_states(used, seen, measured, decided),
        )

    def _control_and_vm_states(
        self,
        used: usage_model.Usage | None,
        readings: _Readings,
        measured: round_model.MeasuredRound | None,
        decided: round_model.DecidedRound | None,
    ) -> dict[str, Any]:
        """Return which controls work, and which VMs are idle or lack CPUs."""
        proof, idling = self._parts.proof, self._parts.idling
        told: dict[str, Any] = {}
        if used is not None and proof is not None:
            told['effect'] = proof.check_interval(used, readings.present)
        if used is not None and idling is not None:
            told['idle_since'] = idling.add(used)
        if used is not None and self._parts.lacking is not None:
            wanted = None if measured is None else measured.wanted
            told['lacks'] = self._parts.lacking.add(used, wanted)
        controls = self._application.controls(self._settings)
        if decided is not None:
            controls = safety_net.with_safety_net(controls, decided.safety_net)
        told['controls'] = proof.with_effect(controls) if proof else controls
        return told

    @property
    def _uses_safety_net(self) -> bool:
        """Whether the effect of weights is judged: only while they are in
        force.
        """
        return self._enforces and self._settings.safety_net

    @property
    def _enforces(self) -> bool:
        return self._settings.enforce and not self.paused

    def reset(self) -> None:
        """Restore found values and neutral weights, and clear policies'
        memory.

        :raises StateError: if the record of found values cannot be written.
        """
        self._parts.decision.forget()
        self.restore()

    def restore(self) -> tuple[control.ApplyResult, ...]:
        """Restore every control to the value it had before the agent
        started.
        """
        for beside in (self._parts.throttling, self._parts.pinning):
            for problem in beside.stop() if beside is not None else ():
                LOG.error('%s', problem)
        return self._application.restore()

    def _collect(self, errors: list[str]) -> _Readings:
        vms = self._parts.inventory.incarnations()
        if problem := self._parts.inventory.problem:
            errors.append(problem)
        self._warn_of_unusable_specs(vms)
        kinds = self._settings.controls
        self._parts.applier.observe(vms, kinds)
        sample = self._parts.counters.read(vms)
        exempt = application.exempt_keys(vms, self._settings)
        return _Readings(
            sample,
            self._pressure(sample, errors),
            self._parts.applier.read_values([item.key for item in vms], kinds),
            exempt,
            self._best_effort(vms) - exempt,
        )

    def _best_effort(
        self, vms: tuple[instance.Incarnation, ...]
    ) -> frozenset[str]:
        chosen = self._parts.best_effort([vm.instance.uuid for vm in vms])
        return frozenset(vm.key for vm in vms if vm.instance.uuid in chosen)

    def _pressure(
        self, sample: sample_model.Sample, errors: list[str]
    ) -> pressure_model.Pressure | None:
        """Read which VMs wait for memory and disks, if a control needs it."""
        wanted = controls.NEED_PRESSURE & self._settings.controls
        if self._parts.pressure is None or not wanted:
            return None
        try:
            reading = self._parts.pressure.read(sample)
            return self._parts.measurement.pressure(reading)
        except Exception as error:
            # Steering of the CPU and the network continues after any error.
            LOG.exception('Pressure on memory and disks: reading failed')
            errors.append(f'pressure on memory and disks: {error}')
            return None

    def _throttle(
        self,
        readings: _Readings,
        measured: round_model.MeasuredRound | None,
        decided: round_model.DecidedRound | None,
    ) -> tuple[str, ...]:
        """Limit rates on disks without weights, if configured."""
        parts, disk = self._parts, resources.ResourceControl.DISK
        if parts.throttling is None or parts.pressure is None:
            return ()
        steers = self._enforces and disk in self._settings.controls
        if not steers or measured is None or decided is None:
            return parts.throttling.stop()
        return parts.throttling.apply(
            readings.pressure,
            parts.pressure.newest,
            measured.usage,
            decided.weights[:, resources.CONTROLS.index(disk)],
            readings.exempt,
        )

    def _pin_vms(self, readings: _Readings) -> tuple[str, ...]:
        """Pin vCPUs to cores by the spending rates of their VMs, if
        configured.
        """
        pinning = self._parts.pinning
        if pinning is None:
            return ()
        settings = self._settings
        steers = (
            self._enforces
            and resources.ResourceControl.CPU in settings.controls
        )
        if not steers or not settings.pin_vcpus:
            return pinning.stop()
        left_alone = readings.exempt | readings.best_effort
        vms = [
            each
            for each in readings.sample.incarnations
            if each.key not in left_alone
        ]
        rates = self._parts.measurement.rates(
            [each.instance.uuid for each in vms]
        )
        return pinning.apply(vms, rates)

    def _warn_of_unusable_specs(
        self, vms: tuple[instance.Incarnation, ...]
    ) -> None:
        """Log a warning for each unusable extra spec of a new VM's flavor."""
        if vms == self._vms:
            return
        new = [item for item in vms if item not in self._vms]
        self._vms = vms
        for text in self._parts.decision.unusable_specs(new):
            LOG.warning('%s', text)

    def _measure(
        self, used: usage_model.Usage, readings: _Readings
    ) -> round_model.MeasuredRound:
        return self._parts.measurement.measure(
            used,
            self._plugins.metric,
            self._settings,
            self._number,
            readings.best_effort,
        )

    def _decide(
        self, measured: round_model.MeasuredRound, readings: _Readings
    ) -> round_model.DecidedRound:
        now_s = self._clock()
        elapsed_s = (
            measured.usage.interval_s
            if self._decided_s is None
            else now_s - self._decided_s
        )
        ask = decision.DecisionInput(
            present=readings.present,
            held=self._application.own_values(readings.present),
            exempt=readings.exempt,
            elapsed_s=elapsed_s,
            pressure=readings.pressure
            and pressure_measure.without_vms(
                readings.pressure, readings.best_effort
            ),
            preferences=self._parts.preferences(),
            best_effort=readings.best_effort,
            metric=self._plugins.metric if self._uses_safety_net else None,
        )
        decided = self._parts.decision.decide(
            measured, self._plugins.policy, self._settings, ask
        )
        self._decided_s = now_s
        return decided
