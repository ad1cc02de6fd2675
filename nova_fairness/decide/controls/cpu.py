# SPDX-License-Identifier: Apache-2.0

"""CPU: weights to shares and back, by one table per cgroup version.

``max_weight_ratio`` bounds weights. Kernel units may lie further apart,
because a VM with more vCPUs, or a flavor with more shares, is meant to get
more.

Only ratios between the VMs of a node count. So where the largest would pass
the kernel's range, all units of the node are scaled down by one factor. The
low end gives way: a VM never gets less than the smallest unit. So each VM has
at most one unit too much, and the largest has thousands. A cut at the high end
would take from a large VM all that its weight is to give.
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
    """Cgroup hierarchy that holds a controller (on a hybrid host: which
    one holds this controller).
    """

    V1 = 'v1'
    V2 = 'v2'


@dataclasses.dataclass(frozen=True, slots=True)
class UnitRange:
    """How the kernel counts the CPU.

    :ivar smallest: least value the kernel accepts.
    :ivar largest: greatest value the kernel accepts.
    :ivar base: units of a weight of 1, per vCPU.
    :ivar idle: what a group counts that is idle (``WEIGHT_IDLEPRIO``).
    """

    smallest: int
    largest: int
    base: int
    idle: float


SPEC = 'quota:cpu_shares'
"""The flavor's extra spec that replaces base x vCPUs."""

THESIS = 1, 100
"""Ends of the original's range."""

STEP = 0.8
"""Units of a node are scaled by powers of this, as a VM of 256 vCPUs passes
the end of ``cpu.weight``. Finer steps would write all VMs of a node more
often, coarser ones round small VMs more."""

FURTHER = 4
"""Number of powers that are tried, from the first with which all fit: a later
one may round units of one or two less."""

ROUNDED = 0.01
"""Part of a VM's units, on average, by which a later power must round less to
be taken: a rounding of 1 % is no reason to write all VMs of the node. The case
is 52 VMs of one vCPU beside one of 441: they have 1.5 units each."""

_EXACT = 1e-9
"""Part of a step; less is arithmetic."""


RANGES: Mapping[CgroupVersion, UnitRange] = types.MappingProxyType(
    {
        CgroupVersion.V1: UnitRange(2, 262144, 1024, 3.0),
        CgroupVersion.V2: UnitRange(1, 10000, 100, 0.3),
    }
)
"""``cpu.shares`` counts 1024 and ``cpu.weight`` 100 for one neutral vCPU,
which is what libvirt gives a VM of one vCPU that names none. libvirt hands
the flavor's shares to ``cpu.weight`` unchanged, so the extra spec is in the
units of the version that the host has.
"""


def _base_of_flavor(vm: instance.Instance, units: UnitRange) -> int | None:
    text = vm.extra_specs.get(SPEC, '').strip()
    # Whole numbers only, and none so long that reading it takes time.
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    value = int(text)
    return value if units.smallest <= value <= units.largest else None


def base(vm: instance.Instance, units: UnitRange) -> int:
    """Kernel units of a VM with a weight of 1."""
    return _base_of_flavor(vm, units) or units.base * vm.vcpus


def _bases(
    vms: Sequence[instance.Instance], units: UnitRange
) -> usage_model.Scalars:
    return np.array([float(base(vm, units)) for vm in vms])


def factors(
    exact: usage_model.Scalars,
    node: usage_model.Indices,
    nodes: int,
    units: UnitRange,
) -> usage_model.Scalars:
    """Factors that scale the units of each node so that the largest fits.

    :param exact: (n,) units of VMs, > 0, as if the range had no end.
    :param node: (n,) index of each VM's node.
    :returns: (nodes,) in (0, 1], powers of :data:`STEP`; 1 where all fit.
    """
    most = np.full(nodes, float(units.largest))
    fits = np.rint(exact) <= units.largest
    np.maximum.at(most, node, np.where(fits, 0.0, exact))
    found = np.asarray(STEP ** np.ceil(_steps(units.largest / most) - _EXACT))
    for place in np.flatnonzero(found < 1.0):
        found[place] = _least_rounded(
            exact[node == place], float(found[place]), units
        )
    return found


def _least_rounded(
    exact: usage_model.Scalars, first: float, units: UnitRange
) -> float:
    """The power from one on with which units of a node are rounded least.

    Where many small VMs are rounded alike, their users have too much or too
    little, and a policy that sees it would move the weights of all others.
    """
    tried = first * STEP ** np.arange(FURTHER)
    meant = np.outer(tried, exact)
    off = np.abs(fitting(meant, units) / meant - 1).mean(axis=1)
    return float(tried[np.flatnonzero(off <= off.min() + ROUNDED)[0]])


def _factor(
    exact: usage_model.Scalars, beside: float, units: UnitRange
) -> float:
    """The factor that scales the units of one node.

    Beside units that stay as they are, each step down takes from all that are
    scaled. There the factor counts that leaves all nearest to what they would
    have in a range without end.

    :param beside: units, >= 0, of VMs that are left alone.
    """
    here = np.zeros(len(exact), dtype=np.intp)
    least = float(factors(exact, here, 1, units)[0])
    if not beside or least == 1.0:
        return least
    tried = STEP ** np.arange(round(_steps(least)) + 1)
    given = fitting(np.outer(tried, exact), units)
    parts = given / (given.sum(axis=1, keepdims=True) + beside)
    meant = exact / (exact.sum() + beside)
    left = np.abs(parts.sum(axis=1) - meant.sum())
    off = np.abs(parts - meant).sum(axis=1) + left
    return float(tried[off.argmin()])


def _steps(part: Any) -> Any:
    """Powers of :data:`STEP`, whole or not, that a part in (0, 1] takes."""
    return np.log(part) / np.log(STEP)


def fitting(exact: usage_model.Scalars, units: UnitRange) -> Any:
    """The nearest units that the kernel accepts."""
    return np.clip(np.rint(exact), units.smallest, units.largest)


def to_units(
    weights: usage_model.Scalars,
    vms: Sequence[instance.Instance],
    preset: policy.Preset,
    units: UnitRange,
    beside: float = 0.0,
) -> list[int]:
    """Kernel units of the weights of one node's VMs.

    :param weights: (n,) finite, > 0.
    :param beside: units, >= 0, of VMs with which they share CPUs and that
        are left alone.
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
    exact = _bases(vms, units) * weights
    found: list[int] = (
        fitting(exact * _factor(exact, beside, units), units)
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
    """The weight that stands for kernel units that were not scaled.

    :param value: > 0.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.weight_of(
            legacy_priority.place_at(value, *THESIS)
        )
    return value / base(vm, units)


def _nearest(part: float) -> float:
    """The factor that is nearest to a part, > 0."""
    return float(STEP ** max(0, round(_steps(part))))


class CpuScale(scale.Scale):
    """CPU shares and ``weight``: base x vCPUs x weight.

    :param version: of the control groups that have the CPU.
    :param can_idle: tells of a VM, by key, whether it can be idle.
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
        """Name shares that are no number of the kernel's range."""
        return tuple(
            f'{item.instance.uuid}: {SPEC}='
            f'{item.instance.extra_specs[SPEC]!r} is no whole number from '
            f'{self._units.smallest} to {self._units.largest}'
            for item in vms
            if SPEC in item.instance.extra_specs
            and self.is_steered(item.instance)
            and _base_of_flavor(item.instance, self._units) is None
        )

    def is_steered(self, vm: instance.Instance) -> bool:
        """Leave VMs with dedicated CPUs alone."""
        return not vm.dedicated_cpus

    def sizes(self, facts: scale.ScaleFacts) -> usage_model.Scalars:
        """Bases of the flavors, or the numbers of vCPUs."""
        return _bases([item.instance for item in facts.vms], self._units)

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Shares of the VMs in ``rows``."""
        vms = [facts.vms[row] for row in rows]
        found = to_units(
            weights[list(rows)],
            [vm.instance for vm in vms],
            facts.preset,
            self._units,
            self._beside(rows, facts),
        )
        return [
            allocation.IDLE
            if facts.apart[row] and self._can_idle(vm.key)
            else units
            for row, vm, units in zip(rows, vms, found, strict=True)
        ]

    def _beside(self, rows: Sequence[int], facts: scale.ScaleFacts) -> float:
        """Units of the VMs that share the CPUs and are left alone."""
        held, steered = facts.units(self.control), set(rows)
        return sum(
            self.part(units)
            for row, units in enumerate(held)
            if units is not None
            and row not in steered
            and self.is_steered(facts.vms[row].instance)
        )

    def part(self, units: int) -> float:
        """Shares, also of a VM that is idle."""
        return self._units.idle if units == allocation.IDLE else float(units)

    def previous(
        self,
        held: Sequence[int | None],
        last: Sequence[scale.LastDecision | None],
        facts: scale.ScaleFacts,
    ) -> usage_model.Scalars:
        """Weights in force, also those of an agent before this one.

        The factor of that agent is not recorded. Weights of a node lie around
        1. These are taken to do so, too, where that gives the same units.
        """
        weights = super().previous(held, last, facts)
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
            found = weights[rows] / _nearest(middle)
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
        """The weight that units of the kernel stand for."""
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
        exact = base(vm, self._units) * last.weight
        return found / _nearest(last.units / exact)
