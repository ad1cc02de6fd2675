# SPDX-License-Identifier: Apache-2.0

"""Computes kernel units from heaviness: one decision of the node's weights."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import logging
import types

import numpy as np

from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.round import foresight
from nova_fairness.agent.round import safety_net
from nova_fairness.decide import contention
from nova_fairness.decide import policy as policy_base
from nova_fairness.decide import preferences
from nova_fairness.decide import round as decide_round
from nova_fairness.decide.controls import scale as scale_module
from nova_fairness.measure import metric as metric_base
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import node as node_model
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import round as round_model
from nova_fairness.model import usage as usage_model
from nova_fairness.runtime import guard as guard_module

LOG = logging.getLogger(__name__)

_CONTROL = resources.ResourceControl.CPU
_CPU = resources.CONTROLS.index(_CONTROL)

_NOTHING: policy_base.Memory = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, eq=False)
class DecisionInput:
    """Input of a decision besides the measurement.

    :ivar present: kernel values now.
    :ivar held: values that this agent, or an earlier one, applied last; VMs
        without an entry start at neutral.
    :ivar exempt: keys of incarnations that are not steered.
    :ivar elapsed_s: seconds since the last decision, > 0.
    :ivar pressure: which VMs waited for memory and disks; ``None`` if unknown.
    :ivar preferences: of owners among their own VMs, by UUID.
    :ivar best_effort: keys of incarnations that get only leftover resources.
    :ivar metric: judges the effect of weights; ``None`` turns the safety net
        off.
    """

    present: allocation.Allocation
    held: allocation.Allocation
    exempt: frozenset[str]
    elapsed_s: float
    pressure: pressure_model.Pressure | None = None
    preferences: Mapping[str, float] = dataclasses.field(default_factory=dict)
    best_effort: frozenset[str] = frozenset()
    metric: metric_base.Metric | None = None


class Decision:
    """Runs a policy and converts its weights to kernel units.

    :param node: resources of the node.
    :param guard: runs the policy.
    :param scales: converts weights to kernel units, by control.
    :param memory: stored memory of the policies, by policy name.
    """

    def __init__(
        self,
        node: node_model.NodeResources,
        guard: guard_module.Guard,
        scales: scale_module.Scales,
        memory: Mapping[str, policy_base.Memory] = _NOTHING,
    ) -> None:
        self._node = node
        self._guard = guard
        self._scales = scales
        self._memory = dict(memory)
        self._last: dict[allocation.Knob, scale_module.LastDecision] = {}
        self._best_effort: frozenset[str] = frozenset()
        self._preset = policy_base.Preset.DEFAULT
        self._foreseer = foresight.Foreseer(guard)
        self._safety_net = safety_net.SafetyNet(guard)

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Return a message for each unusable extra spec of the VMs'
        flavors.
        """
        return tuple(
            text
            for scale in self._scales.values()
            for text in scale.unusable_specs(vms)
        )

    @property
    def memory(self) -> Mapping[str, policy_base.Memory]:
        """The memory of the policies, by policy name."""
        return dict(self._memory)

    def forget(self) -> None:
        """Delete all weights and the policies' memory: all VMs start at
        neutral.
        """
        self._memory = {}
        self._last = {}
        self._safety_net.forget()

    def decide(
        self,
        measured: round_model.MeasuredRound,
        policy: policy_base.Policy,
        settings: settings_module.Settings,
        inputs: DecisionInput,
    ) -> round_model.DecidedRound:
        """Decide the weights of one round.

        :raises PluginMisbehaved: if the policy fails.
        """
        facts = _scale_facts(measured, policy, settings, inputs)
        situation = dataclasses.replace(
            self._situation(measured, settings, facts),
            foresight=self._foreseer.of_node(
                measured, policy, settings.max_ratios(), facts.is_exempt
            ),
        )
        previous = self._previous_weights(facts, inputs.held)
        sizes = self._vm_sizes(facts)
        net = self._safety_verdict(measured, settings, inputs, facts)
        preference = preferences.preferences_of_vms(
            facts.vms, inputs.preferences
        )
        owner = _separate_owners(situation.user, facts.is_best_effort)
        chosen = preferences.has_unequal_preferences(preference, owner)
        # The weights of the other preset are places in a range.
        chosen &= policy.preset is policy_base.Preset.DEFAULT
        weights = self._bounded_weights(
            policy,
            settings,
            *_with_equal_vms(situation, previous, sizes, chosen),
            inputs.elapsed_s,
            is_neutral=net is not None and net.rest > 0,
        )
        if chosen.any():
            weights = preferences.divide_by_preference(
                weights, preference, sizes, owner, settings.max_ratios()
            )
        weights[facts.is_best_effort] = allocation.LEAST
        wanted = self._kernel_units(weights, settings, facts)
        self._store_decision(facts, weights, wanted)
        return round_model.DecidedRound(
            contended=situation.contended,
            wanting=situation.wanting,
            weights=weights,
            wanted=wanted,
            preference=preference,
            best_effort=inputs.best_effort,
            safety_net=net,
        )

    def _safety_verdict(
        self,
        measured: round_model.MeasuredRound,
        settings: settings_module.Settings,
        inputs: DecisionInput,
        facts: scale_module.ScaleFacts,
    ) -> round_model.SafetyVerdict | None:
        """Judge whether CPU weights did harm; ``None`` if that is not
        judged.
        """
        scale = self._scales.get(_CONTROL)
        if (
            inputs.metric is None
            or scale is None
            or _CONTROL not in settings.controls
            or facts.preset is not policy_base.Preset.DEFAULT
        ):
            return None
        return self._safety_net.judge(
            measured, inputs.metric, settings, scale, facts
        )

    def _situation(
        self,
        measured: round_model.MeasuredRound,
        settings: settings_module.Settings,
        facts: scale_module.ScaleFacts,
    ) -> policy_base.Situation:
        """Find which VMs compete for which control.

        A control that cannot be judged counts as not contended.
        """
        found = contention.situation(
            measured.weighed,
            measured.heaviness,
            measured.ownership.user_index,
            self._node,
            measured.waiting,
        )
        contended, wanting = found.contended.copy(), found.wanting.copy()
        for control, scale in self._scales.items():
            if control not in settings.controls:
                continue
            try:
                judged = scale.judge(facts)
            except Exception:
                # The other controls continue after any error.
                LOG.exception(
                    'Control %s: VMs that wait for it could not be found',
                    control.value,
                )
                continue
            if judged is not None:
                column = resources.CONTROLS.index(control)
                contended[column], wanting[:, column] = judged
        return dataclasses.replace(found, contended=contended, wanting=wanting)

    def _bounded_weights(
        self,
        policy: policy_base.Policy,
        settings: settings_module.Settings,
        situation: policy_base.Situation,
        previous: allocation.Weights,
        elapsed_s: float,
        *,
        is_neutral: bool,
    ) -> allocation.Weights:
        """Run the policy, and return its weights within the allowed bounds.

        :param is_neutral: whether CPU weights stay neutral, whatever the
            policy wants.
        """
        if is_neutral:
            situation = _without_cpu_contention(situation)
        remembered = self._memory.get(settings.policy, _NOTHING)
        wished, memory = self._guard.call(
            settings.policy,
            lambda: decide_round.run_policy(
                policy, situation, previous, remembered, elapsed_s
            ),
        )
        self._memory = {settings.policy: memory}
        if policy.preset is not policy_base.Preset.DEFAULT:
            return wished
        weights = decide_round.bound_weights(
            wished, previous, settings.max_ratios(), settings.max_steps()
        )
        if is_neutral:
            weights[:, _CPU] = 1.0
        return weights

    def _vm_sizes(self, facts: scale_module.ScaleFacts) -> allocation.Weights:
        sizes = np.ones((len(facts.vms), len(resources.CONTROLS)))
        for control, scale in self._scales.items():
            sizes[:, resources.CONTROLS.index(control)] = scale.sizes(facts)
        return sizes

    def _kernel_units(
        self,
        weights: allocation.Weights,
        settings: settings_module.Settings,
        facts: scale_module.ScaleFacts,
    ) -> allocation.Allocation:
        """Return the kernel units of the controls that are to be written."""
        wanted: dict[allocation.Knob, int] = {}
        for control, scale in self._scales.items():
            if control not in settings.controls:
                continue
            column = weights[:, resources.CONTROLS.index(control)]
            try:
                rows = scale.steerable_rows(facts)
                units = scale.units(column, rows, facts)
            except Exception:
                # The other controls continue after any error.
                LOG.exception(
                    'Control %s: not written in this round',
                    control.value,
                )
                continue
            knobs = facts.knobs(control)
            for row, value in zip(rows, units, strict=True):
                wanted[knobs[row]] = value
        return wanted

    def _store_decision(
        self,
        facts: scale_module.ScaleFacts,
        weights: allocation.Weights,
        wanted: allocation.Allocation,
    ) -> None:
        self._preset = facts.preset
        self._best_effort = facts.best_effort
        self._last = {
            knob: scale_module.LastDecision(weight, wanted.get(knob))
            for control in self._scales
            for knob, weight in zip(
                facts.knobs(control),
                weights[:, resources.CONTROLS.index(control)].tolist(),
                strict=True,
            )
        }

    def _previous_weights(
        self, facts: scale_module.ScaleFacts, held: allocation.Allocation
    ) -> allocation.Weights:
        """Return the weights in force; 1 for controls that are not steered."""
        weights = np.ones((len(facts.vms), len(resources.CONTROLS)))
        known = {} if facts.preset is not self._preset else self._last
        for control, scale in self._scales.items():
            knobs = facts.knobs(control)
            weights[:, resources.CONTROLS.index(control)] = (
                scale.weights_in_force(
                    [held.get(knob) for knob in knobs],
                    [known.get(knob) for knob in knobs],
                    facts,
                )
            )
        # A VM that was best effort until now starts at neutral.
        begun = self._best_effort | facts.best_effort
        weights[[vm.key in begun for vm in facts.vms]] = 1.0
        return weights


def _scale_facts(
    measured: round_model.MeasuredRound,
    policy: policy_base.Policy,
    settings: settings_module.Settings,
    inputs: DecisionInput,
) -> scale_module.ScaleFacts:
    return scale_module.ScaleFacts(
        usage=measured.weighed,
        preset=policy.preset,
        present=inputs.present,
        exempt=inputs.exempt,
        tolerance=settings.tolerance,
        pressure=inputs.pressure,
        best_effort=inputs.best_effort,
    )


def _without_cpu_contention(
    situation: policy_base.Situation,
) -> policy_base.Situation:
    """Mark the CPU as not contended, because its weights are neutral."""
    contended = situation.contended.copy()
    contended[_CPU] = False
    return dataclasses.replace(situation, contended=contended)


def _separate_owners(
    user: usage_model.Indices, separated: resources.Mask
) -> usage_model.Indices:
    """Return the owners' indices, with an owner of its own for some VMs.

    :param separated: (n,) the VMs that get an owner of their own.
    """
    owners = user.copy()
    owners[separated] = user.max(initial=-1) + 1 + np.arange(separated.sum())
    return owners


def _with_equal_vms(
    situation: policy_base.Situation,
    previous: allocation.Weights,
    sizes: allocation.Weights,
    with_preference: resources.Mask,
) -> tuple[policy_base.Situation, allocation.Weights]:
    """Set one heaviness and weight for all VMs of an owner with preferences.

    Otherwise a policy would lower the weight of a preferred VM because it uses
    more. That would undo the preference.
    """
    if not with_preference.any():
        return situation, previous
    user = situation.user
    heaviness = preferences.means_of_users(
        situation.heaviness, np.ones(len(user)), user, with_preference
    )
    weights = np.column_stack(
        [
            preferences.means_of_users(
                previous[:, place], size, user, with_preference
            )
            for place, size in enumerate(sizes.T)
        ]
    )
    ahead = foresight.of_owners(situation, with_preference)
    alike = dataclasses.replace(situation, heaviness=heaviness)
    return dataclasses.replace(alike, foresight=ahead), weights
