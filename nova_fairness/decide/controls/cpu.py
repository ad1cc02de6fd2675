# SPDX-License-Identifier: Apache-2.0

"""CPU: weights to shares and back, by one table per cgroup version.

``max_weight_ratio`` bounds weights. Kernel units may lie further apart,
because a VM with more vCPUs, or a flavor with more shares, is meant to get
more.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import types

import numpy as np

from nova_fairness.decide import places
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


def to_units(
    weight: float,
    vm: instance.Instance,
    preset: policy.Preset,
    units: UnitRange,
) -> int:
    """Kernel units of one VM's weight.

    :param weight: finite, > 0.
    """
    if preset is policy.Preset.THESIS:
        value = places.units(places.place_of(weight), *THESIS)
    else:
        value = round(base(vm, units) * weight)
    return min(units.largest, max(units.smallest, value))


def to_weight(
    value: int,
    vm: instance.Instance,
    preset: policy.Preset,
    units: UnitRange,
) -> float:
    """The weight that stands for kernel units: undoes :func:`to_units`.

    :param value: > 0.
    """
    if preset is policy.Preset.THESIS:
        return places.weight_of(places.place_at(value, *THESIS))
    return value / base(vm, units)


class CpuScale(scale.Scale):
    """CPU shares and ``weight``: base x vCPUs x weight.

    :param version: of the control groups that have the CPU.
    :param can_idle: tells of a VM, by key, whether it can be idle.
    """

    control = resources.Control.CPU

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

    def sizes(self, facts: scale.Facts) -> usage_model.Scalars:
        """What the flavors say, or the number of vCPUs."""
        return np.array(
            [float(base(item.instance, self._units)) for item in facts.vms]
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.Facts,
    ) -> Sequence[int]:
        """Shares of the VMs in ``rows``."""
        return [
            allocation.IDLE
            if facts.apart[row] and self._can_idle(facts.vms[row].key)
            else to_units(
                float(weights[row]),
                facts.vms[row].instance,
                facts.preset,
                self._units,
            )
            for row in rows
        ]

    def part(self, units: int) -> float:
        """Shares, also of a VM that is idle."""
        return self._units.idle if units == allocation.IDLE else float(units)

    def weight(
        self, held: int, row: int, last: scale.Last | None, facts: scale.Facts
    ) -> float:
        """The weight that units of the kernel stand for."""
        if held <= 0 or not self.is_steered(facts.vms[row].instance):
            return 1.0
        return to_weight(
            held, facts.vms[row].instance, facts.preset, self._units
        )
