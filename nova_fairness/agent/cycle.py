# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The node cycle: collect, measure, exchange, decide, apply.

Effects live at the two ends; what is between them are pure functions over
frozen values. A round takes one snapshot, computes the wanted state,
compares it with the present state, and writes only the difference.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import logging
import time

from nova_fairness import exception
from nova_fairness.agent import decision
from nova_fairness.agent import guard as guard_module
from nova_fairness.agent import measurement
from nova_fairness.agent import settings as settings_module
from nova_fairness.apply import applier as applier_module
from nova_fairness.apply import control
from nova_fairness.collect import counters
from nova_fairness.collect import inventory
from nova_fairness.decide import changes
from nova_fairness.decide import policy as policy_base
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import node as node_model
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model

LOG = logging.getLogger(__name__)

Incarnations = Sequence[instance.Incarnation]


@dataclasses.dataclass(frozen=True)
class Plugins:
    """The metric and the policy in force."""

    metric: metric_base.Metric
    policy: policy_base.Policy


@dataclasses.dataclass(frozen=True)
class Rooms:
    """What a cycle is made of."""

    inventory: inventory.Inventory
    counters: counters.CounterReader
    measurement: measurement.Measurement
    decision: decision.Decision
    applier: applier_module.Applier
    guard: guard_module.Guard
    node: node_model.NodeResources


class Cycle:
    """Runs rounds; knows what is in force and what was applied.

    :param rooms: collect, measure, exchange, decide, apply.
    :param settings: what is configured.
    :param plugins: what is configured, loaded.
    :param clock: monotonic, seconds.
    :param wall_clock: since the epoch, seconds.
    :ivar paused: nothing is enforced, whatever the settings say.
    :ivar epoch: of the desired state in force; 0 if the settings are.
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
        self._number = 0
        self._decided_s: float | None = None
        self._expected: allocation.Allocation = {}
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
        # collect
        vms = self._rooms.inventory.incarnations()
        if problem := self._rooms.inventory.problem:
            errors.append(problem)
        self._name_unusable_specs(vms)
        sample = self._rooms.counters.read(vms)
        present = self._rooms.applier.present([item.key for item in vms])
        errors.extend(self._rooms.applier.problems())
        # measure, exchange, decide
        used = self._rooms.measurement.usage(
            sample, self._settings.decay_factor
        )
        measured = decided = None
        try:
            if used is not None:
                measured = self._weigh(used)
                decided = self._decide(measured, present, vms)
        except exception.PluginMisbehaved as error:
            errors.append(str(error))
        # apply
        applied, tally, failures = self._apply(vms, present, decided)
        errors.extend(failures)
        return round_model.Round(
            number=self._number,
            started_s=started_s,
            wall_s=wall_s,
            duration_s=self._clock() - started_s,
            metric=self._settings.metric,
            policy=self._settings.policy,
            enforced=self._enforces,
            node=self._rooms.node,
            sample=sample,
            measured=measured,
            decided=decided,
            applied=applied,
            tally=dataclasses.replace(tally, missed=missed),
            quarantined=self._rooms.guard.quarantined,
            errors=tuple(errors),
            epoch=self.epoch,
            paused=self.paused,
        )

    @property
    def _enforces(self) -> bool:
        return self._settings.enforce and not self.paused

    def reset(self) -> None:
        """Begin anew: found values, neutral weights, no memory.

        :raises StateError: if what was restored cannot be noted.
        """
        self._rooms.decision.forget()
        self.restore()

    def restore(self) -> tuple[control.Outcome, ...]:
        """Give every control the value it was found with."""
        self._expected = {}
        return self._rooms.applier.restore()

    def _name_unusable_specs(
        self, vms: tuple[instance.Incarnation, ...]
    ) -> None:
        if vms == self._known:
            return
        new = [item for item in vms if item not in self._known]
        self._known = vms
        for text in self._rooms.decision.unusable_specs(new):
            LOG.warning('%s', text)

    def _weigh(self, used: usage_model.Usage) -> round_model.Measured:
        return self._rooms.measurement.weigh(
            used, self._plugins.metric, self._settings, self._number
        )

    def _decide(
        self,
        measured: round_model.Measured,
        present: allocation.Allocation,
        vms: Incarnations,
    ) -> round_model.Decided:
        now_s = self._clock()
        elapsed_s = (
            measured.usage.interval_s
            if self._decided_s is None
            else now_s - self._decided_s
        )
        decided = self._rooms.decision.decide(
            measured,
            self._plugins.policy,
            # Other hands' values are repaired, not built upon.
            {**self._inherited(present), **self._held(present)},
            self._settings,
            self._exempt(vms),
            elapsed_s,
        )
        self._decided_s = now_s
        return decided

    def _exempt(self, vms: Incarnations) -> frozenset[str]:
        return frozenset(
            item.key for item in vms if self._settings.is_exempt(item.instance)
        )

    def _apply(
        self,
        vms: Incarnations,
        present: allocation.Allocation,
        decided: round_model.Decided | None,
    ) -> tuple[allocation.Allocation, round_model.Tally, tuple[str, ...]]:
        drifted = len(applier_module.drift(self._expected, present))
        let_go = self._let_go(vms)
        outcomes = self._write(present, decided)
        return (
            self._applied(present, outcomes, let_go),
            round_model.Tally(
                changed=sum(item.written for item in outcomes),
                failed=sum(bool(item.error) for item in outcomes),
                restored=sum(item.written for item in let_go),
                drifted=drifted,
            ),
            tuple(item.error for item in (*let_go, *outcomes) if item.error),
        )

    def _let_go(self, vms: Incarnations) -> tuple[control.Outcome, ...]:
        """Restore what is not to be steered any more."""
        try:
            if not self._enforces:
                return self._rooms.applier.restore()
            exempt = self._exempt(vms)
            return self._rooms.applier.restore(exempt) if exempt else ()
        except exception.StateError as error:
            LOG.error('%s', error)
            return ()

    def _write(
        self,
        present: allocation.Allocation,
        decided: round_model.Decided | None,
    ) -> tuple[control.Outcome, ...]:
        if not self._enforces:
            return ()
        wanted = decided.wanted if decided is not None else self._held(present)
        return self._rooms.applier.apply(
            changes.changes(wanted, present, self._settings.weight_tolerance)
        )

    def _held(self, present: allocation.Allocation) -> allocation.Allocation:
        """Give what the agent applied last, of VMs that still are there."""
        return {
            knob: value
            for knob, value in self._expected.items()
            if knob in present
        }

    def _inherited(
        self, present: allocation.Allocation
    ) -> allocation.Allocation:
        """Give what an agent before this one applied and did not restore."""
        recorded = self._rooms.applier.recorded
        return {
            knob: value for knob, value in present.items() if knob in recorded
        }

    def _applied(
        self,
        present: allocation.Allocation,
        outcomes: tuple[control.Outcome, ...],
        let_go: tuple[control.Outcome, ...],
    ) -> allocation.Allocation:
        applied = dict(present)
        for item in (*let_go, *outcomes):
            if item.written:
                applied[item.change.knob] = item.change.after
            elif item.gone:
                applied.pop(item.change.knob, None)
        released = {item.change.knob for item in let_go}
        kept = {k: v for k, v in applied.items() if k not in released}
        self._expected = kept if self._enforces else {}
        return applied
