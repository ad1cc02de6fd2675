# SPDX-License-Identifier: Apache-2.0

"""The scale of a control: conversion of weights to kernel units, and back.

Every control has its own kernel units. The agent uses all of them through this
interface.
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
"""Whether VMs compete, and (n,) whether each wants more."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleFacts:
    """State of VMs and kernel in a round.

    :ivar usage: usage of the VMs; all arrays have its rows.
    :ivar preset: preset of the policy in force.
    :ivar present: values in the kernel, kernel units by knob.
    :ivar exempt: keys of the incarnations that are not steered.
    :ivar tolerance: returns, for a control, the part of a value by which the
        kernel's value may differ from the wanted one.
    :ivar pressure: pressure of memory and disks; ``None`` if it is unknown.
    :ivar best_effort: keys of the incarnations that get only resources that
        no other VM wants.
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
    def is_best_effort(self) -> resources.Mask:
        """(n,) whether each VM gets only resources that no other wants."""
        return np.array(
            [item.key in self.best_effort for item in self.vms], np.bool_
        )

    @functools.cached_property
    def is_exempt(self) -> resources.Mask:
        """(n,) whether each VM is exempt."""
        return np.array(
            [item.key in self.exempt for item in self.vms], np.bool_
        )

    @functools.cached_property
    def _knobs_by_control(
        self,
    ) -> dict[resources.ResourceControl, list[allocation.Knob]]:
        keys = [item.key for item in self.vms]
        return {
            control: [allocation.Knob(key, control) for key in keys]
            for control in resources.CONTROLS
        }

    def knobs(
        self, control: resources.ResourceControl
    ) -> list[allocation.Knob]:
        """Return the knob of a control for each VM."""
        return self._knobs_by_control[control]

    @functools.cached_property
    def _units_by_control(
        self,
    ) -> dict[resources.ResourceControl, list[int | None]]:
        return {}

    def units(self, control: resources.ResourceControl) -> list[int | None]:
        """Return the kernel's value of a control for each VM; ``None`` if it
        is unknown.
        """
        if control not in self._units_by_control:
            self._units_by_control[control] = [
                self.present.get(knob) for knob in self.knobs(control)
            ]
        return self._units_by_control[control]


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
    """Conversion between the weights and the kernel units of one control."""

    control: resources.ResourceControl

    def judge(self, facts: ScaleFacts) -> Judgement | None:
        """Return which VMs want more; ``None`` if the facts do not show it."""
        return None

    def is_steered(self, vm: instance.Instance) -> bool:
        """Return whether weights of this control have an effect on a VM."""
        return True

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Return a message for each extra spec that cannot be followed."""
        return ()

    def sizes(self, facts: ScaleFacts) -> usage_model.Scalars:
        """Return the share of each VM with a weight of 1, (n,), > 0."""
        return np.ones(len(facts.vms))

    def steerable_rows(self, facts: ScaleFacts) -> list[int]:
        """Return the rows of the VMs that can be steered now."""
        return [
            row
            for row, units in enumerate(facts.units(self.control))
            if units is not None
            and facts.vms[row].key not in facts.exempt
            and self.is_steered(facts.vms[row].instance)
        ]

    def weight_of_units(self, units: int) -> float:
        """Return the share that the kernel gives for units, > 0.

        Only ratios between the shares of a node count.
        """
        return float(units)

    @abc.abstractmethod
    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: ScaleFacts,
    ) -> Sequence[int]:
        """Return the kernel units of some VMs.

        :param weights: (n,) weights of all VMs, finite, > 0.
        :param rows: rows of the VMs that are steered.
        """

    def weights_in_force(
        self,
        held: Sequence[int | None],
        last: Sequence[LastDecision | None],
        facts: ScaleFacts,
    ) -> usage_model.Scalars:
        """Return the weights in force, (n,).

        The kernel has whole units. If it has the units of the last decided
        weight, this weight is returned, because it is more exact. If it has
        other units, because a write failed or the change was too small, the
        weight follows from the units.

        :param held: last value of each VM that this agent, or an earlier one,
            applied; ``None`` for VMs that are not steered: they stay neutral,
            because a weight without effect would only grow.
        :param last: the last decision about each VM.
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
        """Return the weight for units that were not decided."""


Scales = Mapping[resources.ResourceControl, Scale]
"""Scale of each control that a node can steer."""
