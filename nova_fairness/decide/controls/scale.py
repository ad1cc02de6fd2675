# SPDX-License-Identifier: Apache-2.0

"""How one control counts: from weights to kernel units, and back.

Every control counts in its own way. One form for all of them lets the agent
treat them alike.
"""

import abc
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools

import numpy as np

from nova_fairness.decide import policy as policy_base
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Judgement = tuple[bool, resources.Mask]
"""Whether VMs compete, and (n,) who wants more."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleFacts:
    """State of VMs and kernel in a round.

    :ivar usage: rows of all arrays.
    :ivar preset: of the policy in force.
    :ivar present: values in the kernel, kernel units by knob.
    :ivar exempt: keys of incarnations that are left alone.
    :ivar tolerance: by control, part of a value by which the kernel's may
        differ from the wanted one.
    :ivar pressure: ``None`` if it is not known.
    :ivar best_effort: keys of incarnations that get only what all others
        leave.
    """

    usage: usage_model.Usage
    preset: policy_base.Preset
    present: allocation.Allocation
    exempt: frozenset[str]
    tolerance: Callable[[resources.ResourceControl], float]
    pressure: pressure_model.Pressure | None = None
    best_effort: frozenset[str] = frozenset()

    @property
    def vms(self) -> Sequence[instance.Incarnation]:
        """The VMs."""
        return self.usage.incarnations

    @functools.cached_property
    def apart(self) -> resources.Mask:
        """(n,) whether each VM gets only what all others leave."""
        return np.array(
            [item.key in self.best_effort for item in self.vms], np.bool_
        )

    @functools.cached_property
    def left_alone(self) -> resources.Mask:
        """(n,) whether each VM is exempt."""
        return np.array(
            [item.key in self.exempt for item in self.vms], np.bool_
        )

    @functools.cached_property
    def _knobs(self) -> dict[resources.ResourceControl, list[allocation.Knob]]:
        keys = [item.key for item in self.vms]
        return {
            control: [allocation.Knob(key, control) for key in keys]
            for control in resources.CONTROLS
        }

    def knobs(
        self, control: resources.ResourceControl
    ) -> list[allocation.Knob]:
        """Each VM's knob of a control."""
        return self._knobs[control]

    @functools.cached_property
    def _units(self) -> dict[resources.ResourceControl, list[int | None]]:
        return {}

    def units(self, control: resources.ResourceControl) -> list[int | None]:
        """Value in the kernel of each VM, ``None`` if unknown."""
        if control not in self._units:
            self._units[control] = [
                self.present.get(knob) for knob in self.knobs(control)
            ]
        return self._units[control]


@dataclasses.dataclass(frozen=True, slots=True)
class LastDecision:
    """The last decision about a VM.

    :ivar weight: > 0.
    :ivar units: kernel units of the weight; ``None`` if the VM was not
        steered.
    """

    weight: float
    units: int | None


class Scale(abc.ABC):
    """How one control counts."""

    control: resources.ResourceControl

    def judge(self, facts: ScaleFacts) -> Judgement | None:
        """Judge who wants more; ``None`` where this scale cannot tell."""
        return None

    def is_steered(self, vm: instance.Instance) -> bool:
        """Tell whether weights of this control mean anything for a VM."""
        return True

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Name the flavors' extra specs that cannot be followed."""
        return ()

    def sizes(self, facts: ScaleFacts) -> usage_model.Scalars:
        """Size that a weight of 1 stands for: (n,), > 0, in any unit."""
        return np.ones(len(facts.vms))

    def rows(self, facts: ScaleFacts) -> list[int]:
        """Rows of the VMs that can be steered now."""
        return [
            row
            for row, units in enumerate(facts.units(self.control))
            if units is not None
            and facts.vms[row].key not in facts.exempt
            and self.is_steered(facts.vms[row].instance)
        ]

    def part(self, units: int) -> float:
        """Weight of kernel units relative to others of the node, > 0."""
        return float(units)

    @abc.abstractmethod
    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: ScaleFacts,
    ) -> Sequence[int]:
        """Kernel units of some VMs.

        :param weights: (n,) finite, > 0, of all VMs.
        :param rows: of those that are steered.
        """

    def previous(
        self,
        held: Sequence[int | None],
        last: Sequence[LastDecision | None],
        facts: ScaleFacts,
    ) -> usage_model.Scalars:
        """Weights in force, (n,).

        The kernel has whole units. Where it has the units of the last weights,
        these weights are more exact. Where it has others, because a write
        failed or was too small a change, the kernel's are right.

        :param held: last value that this agent, or one before it, applied;
            ``None`` for VMs that are not steered: those stay neutral, because
            a weight without effect would only grow.
        :param last: the last decision, by row.
        :returns: (n,) finite, > 0.
        """
        weights = np.ones(len(held))
        for row, (units, decided) in enumerate(zip(held, last, strict=True)):
            if units is None:
                continue
            if decided is not None and decided.units == units:
                weights[row] = decided.weight
            else:
                weights[row] = self.weight(units, row, decided, facts)
        return weights

    @abc.abstractmethod
    def weight(
        self, held: int, row: int, last: LastDecision | None, facts: ScaleFacts
    ) -> float:
        """The weight that stands for units that were not decided."""


Scales = Mapping[resources.ResourceControl, Scale]
"""How each control counts that a node can steer."""
