# SPDX-License-Identifier: Apache-2.0

"""The scales of the four controls, made of the decide room's functions."""

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from nova_fairness.decide import disk_contention
from nova_fairness.decide import memory_contention
from nova_fairness.decide.controls import cpu
from nova_fairness.decide.controls import disk
from nova_fairness.decide.controls import memory
from nova_fairness.decide.controls import network
from nova_fairness.decide.controls import scale
from nova_fairness.model import instance
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model


class CpuScale(scale.Scale):
    """CPU shares and ``cpu.weight``: base x vCPUs x weight.

    :param version: of the control groups that have the CPU.
    """

    control = resources.Control.CPU

    def __init__(self, version: cpu.CgroupVersion) -> None:
        self._version = version
        self._units = cpu.RANGES[version, self.control]

    def unusable_specs(
        self, vms: Sequence[instance.Incarnation]
    ) -> tuple[str, ...]:
        """Name shares that are no number of the kernel's range."""
        return cpu.unusable_specs(vms, self._version)

    def is_steered(self, vm: instance.Instance) -> bool:
        """Leave VMs with dedicated CPUs alone."""
        return not vm.dedicated_cpus

    def sizes(self, facts: scale.Facts) -> usage_model.Scalars:
        """Base of the flavor, or the number of vCPUs."""
        return np.array(
            [float(cpu.base(item.instance, self._units)) for item in facts.vms]
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.Facts,
    ) -> Sequence[int]:
        """Shares."""
        return [
            cpu.to_units(
                float(weights[row]),
                facts.vms[row].instance,
                facts.preset,
                self._units,
            )
            for row in rows
        ]

    def weight(
        self, held: int, row: int, last: scale.Last | None, facts: scale.Facts
    ) -> float:
        """Undo :meth:`units`."""
        if held <= 0 or not self.is_steered(facts.vms[row].instance):
            return 1.0
        return cpu.to_weight(
            held, facts.vms[row].instance, facts.preset, self._units
        )


class BlkioScale(scale.Scale):
    """Weights of block I/O: the same base for every VM.

    :param file_of: gives the file of a VM, by key; see
        :data:`blkio_units.BASES`.
    """

    control = resources.Control.BLKIO

    def __init__(self, file_of: Callable[[str], str]) -> None:
        self._file_of = file_of

    def judge(self, facts: scale.Facts) -> scale.Judgement | None:
        """Say who competes for a saturated disk."""
        if facts.pressure is None:
            return None
        steered = resources.RESOURCES.steered_by(self.control)
        moved = facts.usage.amounts[:, steered].sum(axis=1)
        return disk_contention.judge(facts.pressure, moved)

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.Facts,
    ) -> Sequence[int]:
        """Weights of the file."""
        return [
            disk.units(
                float(weights[row]),
                self._file_of(facts.vms[row].key),
                facts.preset,
            )
            for row in rows
        ]

    def weight(
        self, held: int, row: int, last: scale.Last | None, facts: scale.Facts
    ) -> float:
        """Undo :meth:`units`."""
        if held <= 0:
            return 1.0
        file = self._file_of(facts.vms[row].key)
        return disk.weight_of(held, file, facts.preset)


class MemoryScale(scale.Scale):
    """Bytes of each VM that are spared when memory is short.

    What a VM gets depends on what it holds, so bytes say nothing of a weight
    and the last one counts.

    :param capacity_bytes: that VMs may use together.
    :param rules: what is never taken from a VM.
    """

    control = resources.Control.MEMORY

    def __init__(self, capacity_bytes: float, rules: memory.Rules) -> None:
        self._capacity_bytes = capacity_bytes
        self._rules = rules

    def judge(self, facts: scale.Facts) -> scale.Judgement | None:
        """Say who waits for memory on a node that is short of it."""
        if facts.pressure is None:
            return None
        return memory_contention.judge(facts.pressure)

    def sizes(self, facts: scale.Facts) -> usage_model.Scalars:
        """Flavors' memory."""
        return np.array(
            [float(item.instance.memory_bytes) for item in facts.vms]
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.Facts,
    ) -> Sequence[int]:
        """Divide the node's memory among all VMs that are steered."""
        held = np.full(len(facts.vms), np.nan)
        if facts.pressure is not None:
            held = facts.pressure.held_bytes
        demand = memory.Demand(
            held_bytes=held[list(rows)],
            memory_bytes=self.sizes(facts)[list(rows)],
        )
        found: list[int] = memory.protections(
            weights[list(rows)],
            demand,
            self._capacity_bytes,
            facts.preset,
            self._rules,
        ).tolist()
        return found

    def weight(
        self, held: int, row: int, last: scale.Last | None, facts: scale.Facts
    ) -> float:
        """Last weight, neutral after a restart."""
        return 1.0 if last is None or last.units is None else last.weight


class NetworkScale(scale.Scale):
    """Rates of classes: the link divided by weight.

    :param capacity: gives bytes per second of one direction that all VMs
        share, now.
    """

    control = resources.Control.NETWORK

    def __init__(self, capacity: Callable[[], float]) -> None:
        self._capacity = capacity

    def judge(self, facts: scale.Facts) -> scale.Judgement | None:
        """Say who fills a busy link."""
        held = np.array(
            [units or 0 for units in facts.units(self.control)],
            dtype=np.int64,
        )
        return network.situation(
            network.moved(facts.usage.amounts),
            held,
            self._capacity(),
            facts.usage.interval_s,
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.Facts,
    ) -> Sequence[int]:
        """Divide the link; VMs that are left alone get a neutral part."""
        known = sum(units is not None for units in facts.units(self.control))
        found: list[int] = network.rates(
            weights[list(rows)],
            known - len(rows),
            self._capacity(),
            facts.tolerance(self.control),
        ).tolist()
        return found

    def weight(
        self, held: int, row: int, last: scale.Last | None, facts: scale.Facts
    ) -> float:
        """Last weight as far as the kernel took it over."""
        if last is not None and last.units:
            return max(last.weight * held / last.units, 1e-9)
        if not held:
            return 1.0
        units = np.array(
            [found or 0 for found in facts.units(self.control)], dtype=np.int64
        )
        return float(network.weights_from(units)[row])
