# SPDX-License-Identifier: Apache-2.0

"""The explanation of a VM's resources as JSON types, for API answers."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.explain import history as weight_history
from nova_fairness.agent.explain import parts as breakdown
from nova_fairness.agent.explain import standing
from nova_fairness.agent.explain import summary
from nova_fairness.decide import policy as policy_base
from nova_fairness.model import instance
from nova_fairness.model import moments
from nova_fairness.model import resources
from nova_fairness.model import round as round_model


@dataclasses.dataclass(frozen=True, eq=False)
class AskedVm:
    """The VM to explain, with its round and other facts.

    :ivar done: the round.
    :ivar row: of the VM in the round.
    :ivar parts: of the heaviness by resource; ``None`` if unknown.
    :ivar history: earlier weights, oldest first.
    :ivar settings: in force.
    :ivar preset: of the policy in force.
    """

    done: round_model.Round
    row: int
    parts: breakdown.HeavinessParts | None
    history: Sequence[weight_history.MinuteWeights]
    settings: settings_module.Settings
    preset: policy_base.Preset = policy_base.Preset.DEFAULT

    @property
    def vm(self) -> instance.Incarnation:
        """The VM."""
        return self.done.incarnations[self.row]


def find_row(done: round_model.Round, uuid: str) -> int | None:
    """Return the row of a VM in a round; ``None`` if the round lacks it."""
    for row, item in enumerate(done.incarnations):
        if item.instance.uuid == uuid:
            return row
    return None


def explain(asked: AskedVm) -> Mapping[str, Any]:
    """Return the explanation why a VM gets its resources, as JSON types."""
    done, vm = asked.done, asked.vm.instance
    return {
        'uuid': vm.uuid,
        'name': vm.display_name or vm.domain_name,
        'user_id': vm.user_id,
        'project_id': vm.project_id,
        'user_name': vm.user_name or vm.user_id,
        'project_name': vm.project_name or vm.project_id,
        **_sentences(asked),
        'entity': asked.settings.entity,
        'metric': done.metric,
        'policy': done.policy,
        'enforced': done.enforced,
        'heaviness': _heaviness(asked),
        **_amounts_by_resource(asked),
        **_contention_and_weights(asked),
        'weights_last_hour': [
            {
                'at': moments.stamp(item.wall_s),
                'weights': _values_by_control(item.weights),
            }
            for item in asked.history
        ],
    }


def _heaviness(asked: AskedVm) -> Mapping[str, Any]:
    measured, parts, row = asked.done.measured, asked.parts, asked.row
    total = None if measured is None else float(measured.heaviness[row])
    if parts is None:
        return {
            'total': total,
            'additive': None,
            'by_resource': {},
            'elsewhere': None,
            **_shadow(asked),
        }
    return {
        'total': total,
        'additive': bool(parts.additive[row]),
        'by_resource': _values_by_resource(parts.by_resource[row]),
        'elsewhere': float(parts.elsewhere[row]),
        **_shadow(asked),
    }


def _shadow(asked: AskedVm) -> Mapping[str, Any]:
    """Return the heaviness by the shadow metric."""
    shadow = asked.done.shadow
    if shadow is None:
        return {'shadow': None, 'shadow_metric': ''}
    return {
        'shadow': shadow.heaviness.get(asked.vm.key),
        'shadow_metric': shadow.metric,
    }


def _amounts_by_resource(asked: AskedVm) -> Mapping[str, Any]:
    """Return endowment, quota and usage in the units of the API."""
    names = ('endowment', 'quota', 'usage', 'owner_usage')
    measured, row = asked.done.measured, asked.row
    if measured is None:
        return {name: {} for name in names}
    owner = measured.ownership.user_index[row]
    of_owner = measured.user_usage
    given = (
        measured.endowment[row],
        measured.quota[owner],
        measured.usage.amounts[row],
        None if of_owner is None else of_owner[owner],
    )
    return {
        name: {}
        if vector is None
        else _values_by_resource(
            standing.in_rate_units(asked.done, measured, vector)
        )
        for name, vector in zip(names, given, strict=True)
    }


def _contention_and_weights(asked: AskedVm) -> Mapping[str, Any]:
    """Return the contended resources and the weights of the VM."""
    decided, row = asked.done.decided, asked.row
    if decided is None:
        # What was decided last stays in force.
        last = asked.history[-1:]
        weights = [_values_by_control(item.weights) for item in last] or [{}]
        return {'waiting': [], 'contended': [], 'weights': weights[0]}
    return {
        'waiting': _resources_of_controls(decided.wanting[row]),
        'contended': _resources_of_controls(decided.contended),
        'weights': _values_by_control(decided.weights[row]),
    }


def _resources_of_controls(controls: resources.Mask) -> list[str]:
    """Return the names of the resources that the controls steer.

    :param controls: (c,) mask of the controls.
    """
    chosen = {
        control
        for control, is_one in zip(resources.CONTROLS, controls, strict=True)
        if is_one
    }
    return [
        item.name for item in resources.RESOURCES if item.control in chosen
    ]


def _sentences(asked: AskedVm) -> Mapping[str, Any]:
    """Return the summary and the advice of the explanation."""
    measured, decided = asked.done.measured, asked.done.decided
    if measured is None or decided is None:
        failed = bool(asked.done.quarantined)
        said = summary.PLUGIN_FAILED if failed else summary.NOT_MEASURED
        return {'summary': said, 'advice': [said]}
    facts = standing.collect_facts(
        standing.JudgedVm(
            done=asked.done,
            measured=measured,
            decided=decided,
            row=asked.row,
            parts=asked.parts,
            settings=asked.settings,
            preset=asked.preset,
        )
    )
    return {
        'summary': summary.short_summary(facts),
        'advice': summary.full_summary(facts),
    }


def _values_by_resource(vector: resources.Vector) -> dict[str, float]:
    names = resources.RESOURCES.names
    return dict(zip(names, vector.tolist(), strict=True))


def _values_by_control(weights: Any) -> dict[str, float]:
    return {
        control.value: value
        for control, value in zip(
            resources.CONTROLS, weights.tolist(), strict=True
        )
    }
