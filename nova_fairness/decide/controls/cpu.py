# SPDX-License-Identifier: Apache-2.0

"""CPU weights: conversion to shares of the kernel and back.

``max_weight_ratio`` bounds weights. Kernel units may differ by a larger
factor, because a VM with more vCPUs, or a flavor with more shares, should get
more.

Only ratios between the VMs of a node have an effect. So if the units of the
largest VM would exceed the kernel's range, all units of the node are scaled
down by one factor. A VM never gets less than the smallest unit, so a small VM
has at most one unit too much, while the largest has thousands. If the units of
the largest VM were cut instead, its weight would have no effect.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import types
from typing import Any

import numpy as np

from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import scale
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


class CgroupVersion(enum.Enum):
    """Version of the cgroup hierarchy that has the CPU controller."""

    V1 = 'v1'
    V2 = 'v2'


@dataclasses.dataclass(frozen=True, slots=True)
class UnitRange:
    """Kernel units of CPU weights, in one version of control groups.

    :ivar smallest: smallest value that the kernel accepts.
    :ivar largest: largest value that the kernel accepts.
    :ivar base: units of a vCPU with a weight of 1.
    :ivar idle: units of an idle group (``WEIGHT_IDLEPRIO``).
    """

    smallest: int
    largest: int
    base: int
    idle: float


SPEC = 'quota:cpu_shares'
"""The flavor's extra spec that replaces base x vCPUs."""

THESIS = 1, 100
"""Smallest and largest units of the original system."""

STEP = 0.8
"""Units of a node are scaled by powers of this, as a VM of 256 vCPUs passes
the end of ``cpu.weight``. Finer steps would write all VMs of a node more
often, coarser ones round small VMs more."""

FURTHER = 4
"""Number of powers of :data:`STEP` that are tried, from the first with which
all units fit. A later power may round units of 1 or 2 by less."""

ROUNDED = 0.01
"""Part of a VM's units, on average, by which a later power must round less to
be chosen: a rounding of 1 % is no reason to write all VMs of the node. The
case is 52 VMs of one vCPU on a node with a VM of 441: each of them has 1.5
units."""

_EXACT = 1e-9
"""Part of a step that is a rounding error of floats."""


RANGES: Mapping[CgroupVersion, UnitRange] = types.MappingProxyType(
    {
        CgroupVersion.V1: UnitRange(2, 262144, 1024, 3.0),
        CgroupVersion.V2: UnitRange(1, 10000, 100, 0.3),
    }
)
"""One neutral vCPU has 1024 units in ``cpu.shares`` and 100 in ``cpu.weight``,
as libvirt sets them for a VM of one vCPU without shares in its flavor. libvirt
writes the flavor's shares to ``cpu.weight`` unchanged, so the extra spec has
the units of the version that the host uses.
"""


def _neutral_units_of_flavor(
    vm: instance.Instance, units: UnitRange
) -> int | None:
    text = vm.extra_specs.get(SPEC, '').strip()
    # Whole numbers only, and none so long that reading it takes time.
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    value = int(text)
    return value if units.smallest <= value <= units.largest else None


def neutral_units(vm: instance.Instance, units: UnitRange) -> int:
    """Return the kernel units of a VM with a weight of 1."""
    return _neutral_units_of_flavor(vm, units) or units.base * vm.vcpus


def _neutral_units_of_vms(
    vms: Sequence[instance.Instance], units: UnitRange
) -> usage_model.Scalars:
    return np.array([float(neutral_units(vm, units)) for vm in vms])


def scale_factors(
    exact: usage_model.Scalars,
    node: usage_model.Indices,
    nodes: int,
    units: UnitRange,
) -> usage_model.Scalars:
    """Return factors that scale the units of each node into the range.

    :param exact: (n,) units of VMs, > 0, also beyond the kernel's range.
    :param node: (n,) index of each VM's node.
    :returns: (nodes,) in (0, 1], powers of :data:`STEP`; 1 if all units fit.
    """
    most = np.full(nodes, float(units.largest))
    fits = np.rint(exact) <= units.largest
    np.maximum.at(most, node, np.where(fits, 0.0, exact))
    found = np.asarray(
        STEP ** np.ceil(_step_count(units.largest / most) - _EXACT)
    )
    for place in np.flatnonzero(found < 1.0):
        found[place] = _factor_with_least_rounding(
            exact[node == place], float(found[place]), units
        )
    return found


def _factor_with_least_rounding(
    exact: usage_model.Scalars, first: float, units: UnitRange
) -> float:
    """Return the factor with which the units of a node are rounded least.

    If many small VMs are rounded in the same direction, their users get too
    much or too little, and a policy would change the weights of all others.

    :param first: largest factor with which all units fit.
    """
    tried = first * STEP ** np.arange(FURTHER)
    meant = np.outer(tried, exact)
    off = np.abs(nearest_units(meant, units) / meant - 1).mean(axis=1)
    return float(tried[np.flatnonzero(off <= off.min() + ROUNDED)[0]])


def _scale_factor(
    exact: usage_model.Scalars, unsteered: float, units: UnitRange
) -> float:
    """Return the factor that scales the units of one node into the range.

    If some VMs are not steered, a smaller factor takes CPU time from all
    steered VMs. Then the factor is chosen with which the parts of all VMs are
    nearest to those in a range without end.

    :param unsteered: sum of the units of VMs that are not steered, >= 0.
    """
    here = np.zeros(len(exact), dtype=np.intp)
    least = float(scale_factors(exact, here, 1, units)[0])
    if not unsteered or least == 1.0:
        return least
    tried = STEP ** np.arange(round(_step_count(least)) + 1)
    given = nearest_units(np.outer(tried, exact), units)
    parts = given / (given.sum(axis=1, keepdims=True) + unsteered)
    meant = exact / (exact.sum() + unsteered)
    left = np.abs(parts.sum(axis=1) - meant.sum())
    off = np.abs(parts - meant).sum(axis=1) + left
    return float(tried[off.argmin()])


def _step_count(part: Any) -> Any:
    """Return the exponent of :data:`STEP` for a part in (0, 1], a float."""
    return np.log(part) / np.log(STEP)


def nearest_units(exact: usage_model.Scalars, units: UnitRange) -> Any:
    """Return the nearest units that the kernel accepts."""
    return np.clip(np.rint(exact), units.smallest, units.largest)


def to_units(
    weights: usage_model.Scalars,
    vms: Sequence[instance.Instance],
    preset: policy.Preset,
    units: UnitRange,
    unsteered: float = 0.0,
) -> list[int]:
    """Return the kernel units for the weights of one node's VMs.

    :param weights: (n,) finite, > 0.
    :param unsteered: sum of the units of VMs on the same CPUs that are not
        steered, >= 0.
    """
    if preset is policy.Preset.THESIS:
        return [
            max(
                units.smallest,
                legacy_priority.units(
                    legacy_priority.place_of(weight), *THESIS
                ),
            )
            for weight in weights.tolist()
        ]
    exact = _neutral_units_of_vms(vms, units) * weights
    found: list[int] = (
        nearest_units(exact * _scale_factor(exact, unsteered, units), units)
        .astype(np.int64)
        .tolist()
    )
    return found


def to_weight(
    value: int,
    vm: instance.Instance,
    preset: policy.Preset,
    units: UnitRange,
) -> float:
    """Return the weight for kernel units that were not scaled.

    :param value: kernel units, > 0.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.weight_of(
            legacy_priority.place_at(value, *THESIS)
        )
    return value / neutral_units(vm, units)


def _nearest_factor(part: float) -> float:
    """Return the power of :data:`STEP` that is nearest to a number > 0."""
    return float(STEP ** max(0, round(_step_count(part))))


class CpuScale(scale.Scale):
    """Kernel units of the CPU: base x vCPUs x weight.

    :param version: version of control groups that has the CPU controller.
    :param can_idle: returns whether a VM's group, by key, can be idle.
    """

    control = resources.ResourceControl.CPU

    def __init__(
        self,
        version: CgroupVersion,
        can_idle: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._units = RANGES[version]
        self._can_idle = can_idle

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Return a message for each flavor whose shares are out of range."""
        return tuple(
            f'{item.instance.uuid}: {SPEC}='
            f'{item.instance.extra_specs[SPEC]!r} is no whole number from '
            f'{self._units.smallest} to {self._units.largest}'
            for item in vms
            if SPEC in item.instance.extra_specs
            and self.is_steered(item.instance)
            and _neutral_units_of_flavor(item.instance, self._units) is None
        )

    def is_steered(self, vm: instance.Instance) -> bool:
        """Return whether a VM is steered: it has no dedicated CPUs."""
        return not vm.dedicated_cpus

    def sizes(self, facts: scale.ScaleFacts) -> usage_model.Scalars:
        """Return the kernel units of each VM with a weight of 1, (n,)."""
        return _neutral_units_of_vms(
            [item.instance for item in facts.vms], self._units
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Return the kernel units of the VMs in ``rows``."""
        vms = [facts.vms[row] for row in rows]
        found = to_units(
            weights[list(rows)],
            [vm.instance for vm in vms],
            facts.preset,
            self._units,
            self._unsteered_units(rows, facts),
        )
        return [
            allocation.IDLE
            if facts.is_best_effort[row] and self._can_idle(vm.key)
            else units
            for row, vm, units in zip(rows, vms, found, strict=True)
        ]

    def _unsteered_units(
        self, rows: Sequence[int], facts: scale.ScaleFacts
    ) -> float:
        """Return the sum of the units of unsteered VMs on the same CPUs."""
        held, steered = facts.units(self.control), set(rows)
        return sum(
            self.weight_of_units(units)
            for row, units in enumerate(held)
            if units is not None
            and row not in steered
            and self.is_steered(facts.vms[row].instance)
        )

    def weight_of_units(self, units: int) -> float:
        """Return the kernel's share for units, also for an idle group."""
        return self._units.idle if units == allocation.IDLE else float(units)

    def weights_in_force(
        self,
        held: Sequence[int | None],
        last: Sequence[scale.LastDecision | None],
        facts: scale.ScaleFacts,
    ) -> usage_model.Scalars:
        """Return the weights in force, also those of an earlier agent, (n,).

        The scale factor of the earlier agent is not recorded. The middle of a
        node's weights is 1, so the factor is guessed from that, if the guess
        gives the same units.
        """
        weights = super().weights_in_force(held, last, facts)
        rows = [
            row
            for row, (units, decided) in enumerate(
                zip(held, last, strict=True)
            )
            if units
            and (decided is None or not decided.units)
            and self.is_steered(facts.vms[row].instance)
        ]
        if rows and facts.preset is not policy.Preset.THESIS:
            middle = np.sqrt(weights[rows].max() * weights[rows].min())
            found = weights[rows] / _nearest_factor(middle)
            vms = [facts.vms[row].instance for row in rows]
            units = to_units(found, vms, facts.preset, self._units)
            if units == [held[row] for row in rows]:
                weights[rows] = found
        return weights

    def weight(
        self,
        held: int,
        row: int,
        last: scale.LastDecision | None,
        facts: scale.ScaleFacts,
    ) -> float:
        """Return the weight for kernel units."""
        vm = facts.vms[row].instance
        if held <= 0 or not self.is_steered(vm):
            return 1.0
        found = to_weight(held, vm, facts.preset, self._units)
        if (
            last is None
            or not last.units
            or facts.preset is policy.Preset.THESIS
        ):
            return found
        exact = neutral_units(vm, self._units) * last.weight
        return found / _nearest_factor(last.units / exact)
