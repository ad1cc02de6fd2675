# SPDX-License-Identifier: Apache-2.0

"""From heaviness to kernel units: the decide room in order."""

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
class Ask:
    """Input of a decision besides the measurement.

    :ivar present: what the kernel holds.
    :ivar held: what this agent, or one before it, applied last; VMs that
        were never steered are absent and begin neutral.
    :ivar exempt: keys of incarnations that are not steered.
    :ivar elapsed_s: since the last decision, seconds, > 0.
    :ivar pressure: who waited for memory and disks; ``None`` if unknown.
    :ivar preferences: of owners among their own VMs, by UUID.
    :ivar best_effort: keys of incarnations that get only what is left over.
    :ivar metric: by which it is judged what weights do; ``None``: it is not.
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
    """Runs a policy and turns its weights into kernel units.

    :param node: what the node has.
    :param guard: runs the policy.
    :param scales: how each control counts that the node can steer.
    :param memory: what a policy of that name remembered, by policy name.
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
        self._apart: frozenset[str] = frozenset()
        self._preset = policy_base.Preset.DEFAULT
        self._foreseer = foresight.Foreseer(guard)
        self._safety_net = safety_net.SafetyNet(guard)

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Name the flavors' extra specs that cannot be followed."""
        return tuple(
            text
            for scale in self._scales.values()
            for text in scale.unusable_specs(vms)
        )

    @property
    def memory(self) -> Mapping[str, policy_base.Memory]:
        """Memory of the policies, by policy name."""
        return dict(self._memory)

    def forget(self) -> None:
        """Forget weights and what policies remember: all begin neutral."""
        self._memory = {}
        self._last = {}
        self._safety_net.forget()

    def decide(
        self,
        measured: round_model.MeasuredRound,
        policy: policy_base.Policy,
        settings: settings_module.Settings,
        ask: Ask,
    ) -> round_model.DecidedRound:
        """Decide the weights of one round.

        :raises PluginMisbehaved: if the policy fails.
        """
        facts = _facts(measured, policy, settings, ask)
        situation = dataclasses.replace(
            self._situation(measured, settings, facts),
            foresight=self._foreseer.of_node(
                measured, policy, settings.ratios(), facts.left_alone
            ),
        )
        previous = self._previous(facts, ask.held)
        sizes = self._sizes(facts)
        net = self._judged(measured, settings, ask, facts)
        preference = preferences.of_instances(facts.vms, ask.preferences)
        owner = _alone(situation.user, facts.apart)
        chosen = preferences.concerned(preference, owner)
        # The weights of the other preset are places in a range.
        chosen &= policy.preset is policy_base.Preset.DEFAULT
        weights = self._bounded(
            policy,
            settings,
            *_of_users(situation, previous, sizes, chosen),
            ask.elapsed_s,
            is_neutral=net is not None and net.rest > 0,
        )
        if chosen.any():
            weights = preferences.divided(
                weights, preference, sizes, owner, settings.ratios()
            )
        weights[facts.apart] = allocation.LEAST
        wanted = self._wanted(weights, settings, facts)
        self._remember(facts, weights, wanted)
        return round_model.DecidedRound(
            contended=situation.contended,
            wanting=situation.wanting,
            weights=weights,
            wanted=wanted,
            preference=preference,
            best_effort=ask.best_effort,
            safety_net=net,
        )

    def _judged(
        self,
        measured: round_model.MeasuredRound,
        settings: settings_module.Settings,
        ask: Ask,
        facts: scale_module.ScaleFacts,
    ) -> round_model.SafetyVerdict | None:
        """Judge what CPU weights did, where there are any."""
        scale = self._scales.get(_CONTROL)
        if (
            ask.metric is None
            or scale is None
            or _CONTROL not in settings.controls
            or facts.preset is not policy_base.Preset.DEFAULT
        ):
            return None
        return self._safety_net.judge(
            measured, ask.metric, settings, scale, facts
        )

    def _situation(
        self,
        measured: round_model.MeasuredRound,
        settings: settings_module.Settings,
        facts: scale_module.ScaleFacts,
    ) -> policy_base.Situation:
        """Judge every control; one that cannot be judged is not contended."""
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
                # Whatever it was, the other controls go on.
                LOG.exception(
                    'VMs that wait for %s could not be found', control.value
                )
                continue
            if judged is not None:
                column = resources.CONTROLS.index(control)
                contended[column], wanting[:, column] = judged
        return dataclasses.replace(found, contended=contended, wanting=wanting)

    def _bounded(
        self,
        policy: policy_base.Policy,
        settings: settings_module.Settings,
        situation: policy_base.Situation,
        previous: allocation.Weights,
        elapsed_s: float,
        *,
        is_neutral: bool,
    ) -> allocation.Weights:
        """Run the policy; give its weights as far as they are allowed.

        :param is_neutral: whether CPU weights are neutral whatever it wants.
        """
        if is_neutral:
            situation = _uncontended(situation)
        remembered = self._memory.get(settings.policy, _NOTHING)
        wished, memory = self._guard.call(
            settings.policy,
            lambda: decide_round.decided(
                policy, situation, previous, remembered, elapsed_s
            ),
        )
        self._memory = {settings.policy: memory}
        if policy.preset is not policy_base.Preset.DEFAULT:
            return wished
        weights = decide_round.bounded(
            wished, previous, settings.ratios(), settings.steps()
        )
        if is_neutral:
            weights[:, _CPU] = 1.0
        return weights

    def _sizes(self, facts: scale_module.ScaleFacts) -> allocation.Weights:
        sizes = np.ones((len(facts.vms), len(resources.CONTROLS)))
        for control, scale in self._scales.items():
            sizes[:, resources.CONTROLS.index(control)] = scale.sizes(facts)
        return sizes

    def _wanted(
        self,
        weights: allocation.Weights,
        settings: settings_module.Settings,
        facts: scale_module.ScaleFacts,
    ) -> allocation.Allocation:
        """Kernel units of the controls that can and may be written."""
        wanted: dict[allocation.Knob, int] = {}
        for control, scale in self._scales.items():
            if control not in settings.controls:
                continue
            column = weights[:, resources.CONTROLS.index(control)]
            try:
                rows = scale.rows(facts)
                units = scale.units(column, rows, facts)
            except Exception:
                # Whatever it was, the other controls go on.
                LOG.exception(
                    'The control %s is not written in this round',
                    control.value,
                )
                continue
            knobs = facts.knobs(control)
            for row, value in zip(rows, units, strict=True):
                wanted[knobs[row]] = value
        return wanted

    def _remember(
        self,
        facts: scale_module.ScaleFacts,
        weights: allocation.Weights,
        wanted: allocation.Allocation,
    ) -> None:
        self._preset = facts.preset
        self._apart = facts.best_effort
        self._last = {
            knob: scale_module.LastDecision(weight, wanted.get(knob))
            for control in self._scales
            for knob, weight in zip(
                facts.knobs(control),
                weights[:, resources.CONTROLS.index(control)].tolist(),
                strict=True,
            )
        }

    def _previous(
        self, facts: scale_module.ScaleFacts, held: allocation.Allocation
    ) -> allocation.Weights:
        """Weights in force, neutral of what is not steered."""
        weights = np.ones((len(facts.vms), len(resources.CONTROLS)))
        known = {} if facts.preset is not self._preset else self._last
        for control, scale in self._scales.items():
            knobs = facts.knobs(control)
            weights[:, resources.CONTROLS.index(control)] = scale.previous(
                [held.get(knob) for knob in knobs],
                [known.get(knob) for knob in knobs],
                facts,
            )
        # Whoever was best effort until now begins neutral.
        begun = self._apart | facts.best_effort
        weights[[vm.key in begun for vm in facts.vms]] = 1.0
        return weights


def _facts(
    measured: round_model.MeasuredRound,
    policy: policy_base.Policy,
    settings: settings_module.Settings,
    ask: Ask,
) -> scale_module.ScaleFacts:
    return scale_module.ScaleFacts(
        usage=measured.weighed,
        preset=policy.preset,
        present=ask.present,
        exempt=ask.exempt,
        tolerance=settings.tolerance,
        pressure=ask.pressure,
        best_effort=ask.best_effort,
    )


def _uncontended(situation: policy_base.Situation) -> policy_base.Situation:
    """Take the CPU out of the contention when weights do not divide it."""
    contended = situation.contended.copy()
    contended[_CPU] = False
    return dataclasses.replace(situation, contended=contended)


def _alone(
    user: usage_model.Indices, apart: resources.Mask
) -> usage_model.Indices:
    """Owners, as if each VM that is apart had one of its own."""
    owners = user.copy()
    owners[apart] = user.max(initial=-1) + 1 + np.arange(apart.sum())
    return owners


def _of_users(
    situation: policy_base.Situation,
    previous: allocation.Weights,
    sizes: allocation.Weights,
    chosen: resources.Mask,
) -> tuple[policy_base.Situation, allocation.Weights]:
    """Let a policy see VMs of owners with preferences as equals.

    Otherwise it would take from a preferred VM, because it uses more, what
    its owner gives to it.
    """
    if not chosen.any():
        return situation, previous
    user = situation.user
    heaviness = preferences.together(
        situation.heaviness, np.ones(len(user)), user, chosen
    )
    weights = np.column_stack(
        [
            preferences.together(previous[:, place], size, user, chosen)
            for place, size in enumerate(sizes.T)
        ]
    )
    ahead = foresight.of_owners(situation, chosen)
    alike = dataclasses.replace(situation, heaviness=heaviness)
    return dataclasses.replace(alike, foresight=ahead), weights
