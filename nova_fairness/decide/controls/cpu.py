# SPDX-License-Identifier: Apache-2.0

"""Weights to kernel units and back, by one table per cgroup version.

``max_weight_ratio`` bounds weights. Kernel units may lie further apart,
because a VM with more vCPUs, or a flavor with more shares, is meant to get
more.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import types

import numpy as np

from nova_fairness.decide import places
from nova_fairness.decide import policy
from nova_fairness.model import allocation
from nova_fairness.model import instance
from nova_fairness.model import resources


class CgroupVersion(enum.Enum):
    """Which cgroup hierarchy holds a controller (on a hybrid host: which
    one holds this controller).
    """

    V1 = 'v1'
    V2 = 'v2'


@dataclasses.dataclass(frozen=True, slots=True)
class UnitRange:
    """How the kernel counts one control.

    :ivar smallest: least value the kernel accepts.
    :ivar largest: greatest value the kernel accepts.
    :ivar base: units of a weight of 1, per vCPU.
    :ivar base_spec: the flavor's extra spec that replaces base x vCPUs;
        empty if there is none.
    :ivar thesis: ends of the original's range.
    """

    smallest: int
    largest: int
    base: int
    base_spec: str
    thesis: tuple[int, int]


RANGES: Mapping[tuple[CgroupVersion, resources.Control], UnitRange] = (
    types.MappingProxyType(
        {
            (CgroupVersion.V1, resources.Control.CPU): UnitRange(
                2, 262144, 1024, 'quota:cpu_shares', (1, 100)
            ),
            (CgroupVersion.V2, resources.Control.CPU): UnitRange(
                1, 10000, 100, 'quota:cpu_shares', (1, 100)
            ),
        }
    )
)
"""A control without an entry is not steered on that version.

CPU: ``cpu.shares`` counts 1024 and ``cpu.weight`` 100 for one neutral vCPU,
which is what libvirt gives a VM of one vCPU that names none. libvirt hands
the flavor's shares to ``cpu.weight`` unchanged, so the extra spec is in the
units of the version that the host has.
"""


def allowed(
    version: CgroupVersion,
) -> Mapping[resources.Control, tuple[int, int]]:
    """Give the kernel's range of every control steered on a version."""
    return {
        control: (item.smallest, item.largest)
        for (found, control), item in RANGES.items()
        if found is version
    }


def allocate(
    weights: allocation.Weights,
    incarnations: Sequence[instance.Incarnation],
    preset: policy.Preset,
    version: CgroupVersion,
    exempt: frozenset[str] = frozenset(),
) -> allocation.Allocation:
    """Turn the weights of a node into what the kernel gets.

    :param weights: (n, c) finite, > 0, rows of ``incarnations``.
    :param exempt: keys of incarnations that are left alone.
    :returns: every steered knob; VMs with dedicated CPUs have none for CPU.
    """
    return {
        knob: to_units(
            float(weights[row, column]), item.instance, preset, units
        )
        for row, column, item, knob, units in _steered(
            incarnations, version, exempt
        )
    }


def weights_from(
    applied: allocation.Allocation,
    incarnations: Sequence[instance.Incarnation],
    preset: policy.Preset,
    version: CgroupVersion,
) -> allocation.Weights:
    """Give the weights that stand for kernel units: undoes :func:`allocate`.

    :param applied: what the kernel holds.
    :returns: (n, c) finite, > 0; neutral where no knob is known, steered or
        positive. Equal to the allocated weights but for the rounding to
        whole units.
    """
    weights = np.ones((len(incarnations), len(resources.CONTROLS)))
    for row, column, item, knob, units in _steered(
        incarnations, version, frozenset()
    ):
        value = applied.get(knob, 0)
        if value > 0:
            weights[row, column] = to_weight(
                value, item.instance, preset, units
            )
    return weights


def unusable_specs(
    incarnations: Sequence[instance.Incarnation], version: CgroupVersion
) -> tuple[str, ...]:
    """Name the extra specs that :func:`allocate` ignores, for the log.

    :returns: messages that say VM, spec, value and range; in row order.
    """
    return tuple(
        f'{item.instance.uuid}: {units.base_spec}='
        f'{item.instance.extra_specs[units.base_spec]!r} is no whole number'
        f' from {units.smallest} to {units.largest}'
        for _, _, item, _, units in _steered(
            incarnations, version, frozenset()
        )
        if units.base_spec in item.instance.extra_specs
        and _base_of_flavor(item.instance, units) is None
    )


def _steered(
    incarnations: Sequence[instance.Incarnation],
    version: CgroupVersion,
    exempt: frozenset[str],
) -> Iterator[
    tuple[int, int, instance.Incarnation, allocation.Knob, UnitRange]
]:
    for row, item in enumerate(incarnations):
        if item.key in exempt:
            continue
        for column, control in enumerate(resources.CONTROLS):
            pinned = item.instance.dedicated_cpus
            if control is resources.Control.CPU and pinned:
                continue
            units = RANGES.get((version, control))
            if units is not None:
                knob = allocation.Knob(item.key, control)
                yield row, column, item, knob, units


def _base_of_flavor(vm: instance.Instance, units: UnitRange) -> int | None:
    text = vm.extra_specs.get(units.base_spec, '').strip()
    # Whole numbers only, and none so long that reading it takes time.
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    value = int(text)
    return value if units.smallest <= value <= units.largest else None


def base(vm: instance.Instance, units: UnitRange) -> int:
    """Give the kernel units that a VM has with a weight of 1."""
    return _base_of_flavor(vm, units) or units.base * vm.vcpus


def to_units(
    weight: float,
    vm: instance.Instance,
    preset: policy.Preset,
    units: UnitRange,
) -> int:
    """Give the kernel units of one VM's weight.

    :param weight: finite, > 0.
    """
    if preset is policy.Preset.THESIS:
        value = places.units(places.place_of(weight), *units.thesis)
    else:
        value = round(base(vm, units) * weight)
    return min(units.largest, max(units.smallest, value))


def to_weight(
    value: int,
    vm: instance.Instance,
    preset: policy.Preset,
    units: UnitRange,
) -> float:
    """Give the weight that stands for kernel units: undoes :func:`to_units`.

    :param value: > 0.
    """
    if preset is policy.Preset.THESIS:
        return places.weight_of(places.place_at(value, *units.thesis))
    return value / base(vm, units)
