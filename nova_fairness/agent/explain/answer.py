# SPDX-License-Identifier: Apache-2.0

"""Why a VM gets what it gets, as JSON types; see the page of the calls."""

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
    """The VM of a question, and facts about it besides its round.

    :ivar row: of the VM in the round.
    :ivar parts: of the heaviness; ``None`` if they are not known.
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


def row_of(done: round_model.Round, uuid: str) -> int | None:
    """Find a VM in a round."""
    for row, item in enumerate(done.incarnations):
        if item.instance.uuid == uuid:
            return row
    return None


def explain(asked: AskedVm) -> Mapping[str, Any]:
    """Say why a VM gets what it gets."""
    done, vm = asked.done, asked.vm.instance
    return {
        'uuid': vm.uuid,
        'name': vm.display_name or vm.domain_name,
        'user_id': vm.user_id,
        'project_id': vm.project_id,
        'user_name': vm.user_name or vm.user_id,
        'project_name': vm.project_name or vm.project_id,
        **_words(asked),
        'entity': asked.settings.entity,
        'metric': done.metric,
        'policy': done.policy,
        'enforced': done.enforced,
        'heaviness': _heaviness(asked),
        **_amounts(asked),
        **_competition(asked),
        'weights_last_hour': [
            {
                'at': moments.stamp(item.wall_s),
                'weights': _by_control(item.weights),
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
        }
    return {
        'total': total,
        'additive': bool(parts.additive[row]),
        'by_resource': _by_resource(parts.by_resource[row]),
        'elsewhere': float(parts.elsewhere[row]),
    }


def _amounts(asked: AskedVm) -> Mapping[str, Any]:
    """Amounts in units that people know."""
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
        else _by_resource(standing.in_units(asked.done, measured, vector))
        for name, vector in zip(names, given, strict=True)
    }


def _competition(asked: AskedVm) -> Mapping[str, Any]:
    decided, row = asked.done.decided, asked.row
    if decided is None:
        # What was decided last stays in force.
        last = asked.history[-1:]
        weights = [_by_control(item.weights) for item in last] or [{}]
        return {'waiting': [], 'contended': [], 'weights': weights[0]}
    return {
        'waiting': _steered(decided.wanting[row]),
        'contended': _steered(decided.contended),
        'weights': _by_control(decided.weights[row]),
    }


def _steered(controls: resources.Mask) -> list[str]:
    """Name the resources that some controls steer."""
    chosen = {
        control
        for control, is_one in zip(resources.CONTROLS, controls, strict=True)
        if is_one
    }
    return [
        item.name for item in resources.RESOURCES if item.control in chosen
    ]


def _words(asked: AskedVm) -> Mapping[str, Any]:
    """Say it in sentences: in short, and all."""
    measured, decided = asked.done.measured, asked.done.decided
    if measured is None or decided is None:
        failed = bool(asked.done.quarantined)
        said = summary.NOBODY_JUDGED if failed else summary.NOT_MEASURED
        return {'summary': said, 'advice': [said]}
    facts = standing.facts(
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
        'summary': summary.text(facts),
        'advice': summary.sentences(facts),
    }


def _by_resource(vector: resources.Vector) -> dict[str, float]:
    names = resources.RESOURCES.names
    return dict(zip(names, vector.tolist(), strict=True))


def _by_control(weights: Any) -> dict[str, float]:
    return {
        control.value: value
        for control, value in zip(
            resources.CONTROLS, weights.tolist(), strict=True
        )
    }
