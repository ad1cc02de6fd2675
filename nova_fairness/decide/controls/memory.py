# SPDX-License-Identifier: Apache-2.0

"""Memory: VMs that compete for it, and the bytes of each that are protected.

Both versions of control groups have the same protection: if the node reclaims
memory, VMs with more than their protected bytes lose memory first.
``memory.soft_limit_in_bytes`` (v1) and ``memory.low`` (v2) set these bytes.
Neither has an effect while memory is free.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.decide import contention
from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import scale
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

_MIB = 1 << 20
_THESIS_SMALLEST = 10 * _MIB
_LARGEST = 1 << 62

FAULT_RATE = 20 * 4096.0
"""Bytes per second of page faults from which a VM wants more memory. A VM
faults for a moment after a pause, but all the time if its memory does not
fit."""

STALL = 0.05
"""Part of an interval for which a VM waits for memory, from which it wants
more memory. After a pause a VM waits for a moment only."""

RECLAIM_RATE = 1024 * 1024.0
"""Bytes per second that the node reclaims, from which it is short of memory.
Some page cache is always reclaimed."""

Bytes = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryRules:
    """Bounds of the protected memory of VMs.

    :ivar minimum_bytes: protected bytes of every VM that holds this much,
        >= 0; with the default an idle Linux guest still answers.
    :ivar floor_part: protected part of the flavor's memory, 0..1, of every VM
        that holds this much.
    :ivar headroom: part of a VM's held memory, >= 0, that is protected in
        addition, so that the VM can grow until the next round.
    :ivar unprotected_part: part of the node's memory, 0..1, that is never
        protected. If all of it were protected, the kernel would reclaim from
        the host's own programs first, and then also from protected VMs.
    """

    minimum_bytes: int = 128 * _MIB
    floor_part: float = 0.25
    headroom: float = 0.125
    unprotected_part: float = 0.1


DEFAULT_RULES = MemoryRules()


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryDemand:
    """Memory that VMs of a node hold, and memory of their flavors.

    :ivar held_bytes: (n,) resident and swapped out bytes; NaN if unknown:
        then the VM counts as if it held all memory of its flavor.
    :ivar memory_bytes: (n,) memory of the flavor, > 0.
    """

    held_bytes: usage_model.Scalars
    memory_bytes: usage_model.Scalars


def protections(
    weights: usage_model.Scalars,
    demand: MemoryDemand,
    capacity_bytes: float,
    preset: policy.Preset = policy.Preset.DEFAULT,
    rules: MemoryRules = DEFAULT_RULES,
) -> Bytes:
    """Return the protected bytes of each VM of a node, (n,).

    They are in proportion to weight x the flavor's memory, but no VM gets
    more than it holds (with headroom), nor less than its floor. The other VMs
    share the memory that a VM does not need. If the floors alone exceed the
    node's memory, each VM gets its floor. A part of the node's memory is not
    divided, see :attr:`MemoryRules.unprotected_part`.

    With the preset ``THESIS`` a weight is a place in the range from 10 MiB to
    the flavor's memory, but a VM never gets less than its floor.

    :param weights: (n,) finite, > 0.
    :param capacity_bytes: memory that VMs may use together, >= 0.
    :returns: (n,) bytes, whole MiB, at least 0.
    """
    most = _largest_protection(demand, rules)
    floor = _least_protection(demand, most, rules)
    if preset is policy.Preset.THESIS:
        ranges = zip(weights, demand.memory_bytes, strict=True)
        chosen = np.array(
            [
                _thesis_protection(float(weight), int(size))
                for weight, size in ranges
            ],
            dtype=np.float64,
        )
        return _round_to_mib(np.maximum(chosen, floor))
    shares = weights * demand.memory_bytes
    spared = capacity_bytes * (1 - rules.unprotected_part)
    return _round_to_mib(_divide_by_level(shares, floor, most, spared))


def _largest_protection(
    demand: MemoryDemand, rules: MemoryRules
) -> usage_model.Scalars:
    known = np.where(
        np.isfinite(demand.held_bytes), demand.held_bytes, demand.memory_bytes
    )
    return np.asarray(known * (1 + rules.headroom))


def _least_protection(
    demand: MemoryDemand, most: usage_model.Scalars, rules: MemoryRules
) -> usage_model.Scalars:
    wanted = np.maximum(
        float(rules.minimum_bytes), rules.floor_part * demand.memory_bytes
    )
    return np.asarray(np.minimum(wanted, most))


def _thesis_protection(weight: float, memory_bytes: int) -> int:
    largest = max(memory_bytes, _THESIS_SMALLEST)
    return legacy_priority.units(
        legacy_priority.place_of(weight), _THESIS_SMALLEST, largest
    )


def _divide_by_level(
    shares: usage_model.Scalars,
    floor: usage_model.Scalars,
    most: usage_model.Scalars,
    capacity: float,
) -> usage_model.Scalars:
    """Raise a common level until the whole capacity is divided, (n,).

    Each VM gets ``level x share``, at least its floor and at most ``most``. So
    the sum is a piecewise linear function of the level, whose pieces end where
    a VM reaches one of its bounds.
    """
    if capacity >= most.sum():
        return most
    if capacity <= floor.sum():
        return floor
    begins, ends = floor / shares, most / shares
    levels = np.concatenate([begins, ends])
    slopes = np.concatenate([shares, -shares])
    order = np.argsort(levels, kind='stable')
    levels, slope = levels[order], np.cumsum(slopes[order])
    risen = np.append(0.0, np.cumsum(slope[:-1] * np.diff(levels)))
    sums = floor.sum() + risen
    piece = int(np.searchsorted(sums, capacity, side='right')) - 1
    level = levels[piece] + (capacity - sums[piece]) / max(
        slope[piece], np.finfo(np.float64).tiny
    )
    return np.asarray(np.clip(level * shares, floor, most))


def _round_to_mib(amounts: usage_model.Scalars) -> Bytes:
    """Round down to whole MiB, because smaller changes need no write."""
    bounded = np.clip(amounts, 0, _LARGEST)
    return (bounded // _MIB).astype(np.int64) * _MIB


def judge(pressure: pressure_model.Pressure) -> tuple[bool, resources.Mask]:
    """Return whether VMs of one node compete for memory, and which ones.

    The node itself must be short of memory: a VM that waits because of a limit
    of its own, or for a disk, does not compete with other VMs.

    :returns: whether VMs compete, and (n,) whether each wants more; rows as
        in ``pressure``.
    """
    faults = _reaches(pressure.fault_rate, FAULT_RATE)
    stalls = _reaches(pressure.memory_stall, STALL)
    running = np.array(
        [not item.paused for item in pressure.incarnations], dtype=np.bool_
    )
    wanting = np.asarray((faults | stalls) & running)
    holding = _reaches(pressure.held_bytes, 1.0)
    short = pressure.reclaim_rate >= RECLAIM_RATE
    here = np.zeros(len(wanting), dtype=np.intp)
    rivals = contention.nodes_with_competition(here, 1, wanting, holding)
    return short and bool(rivals[0]), wanting


def judge_load(
    load: contention.ContentionLoad, _weights: usage_model.Scalars
) -> contention.ContentionMasks:
    """Return contention for the memory of many nodes, judged by stalls.

    A VM waits for memory only if its node reclaims some.
    """
    stall = load.stall[
        :, resources.CONTROLS.index(resources.ResourceControl.MEMORY)
    ]
    wanting = _reaches(stall, STALL) & load.ready
    holding = load.used[:, resources.RESOURCES.index('memory')] >= 1.0
    nodes = len(load.supply)
    return contention.nodes_with_competition(
        load.node, nodes, wanting, holding
    ), wanting


def _reaches(values: pressure_model.Scalars, bound: float) -> resources.Mask:
    """Return which values reach a bound; an unknown value does not."""
    return np.asarray(np.where(np.isfinite(values), values, -1.0) >= bound)


class MemoryScale(scale.Scale):
    """Kernel units of memory: the protected bytes of each VM.

    Protected bytes also depend on the memory that the VM holds, so they do not
    show a weight: the last decided weight is the weight in force.

    :param capacity_bytes: memory that VMs may use together.
    :param rules: bounds of the protected memory.
    """

    control = resources.ResourceControl.MEMORY

    def __init__(self, capacity_bytes: float, rules: MemoryRules) -> None:
        self._capacity_bytes = capacity_bytes
        self._rules = rules

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Return which VMs wait for memory on a node that is short of it."""
        if facts.pressure is None:
            return None
        return judge(facts.pressure)

    def sizes(self, facts: scale.ScaleFacts) -> usage_model.Scalars:
        """Return the memory of the flavors in bytes, (n,)."""
        return np.array(
            [float(item.instance.memory_bytes) for item in facts.vms]
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Return the protected bytes of the VMs in ``rows``.

        No memory of best-effort VMs is protected.
        """
        held = np.full(len(facts.vms), np.nan)
        if facts.pressure is not None:
            held = facts.pressure.held_bytes
        chosen = np.array(rows, dtype=np.intp)
        spared = chosen[~facts.is_best_effort[chosen]]
        demand = MemoryDemand(
            held_bytes=held[spared],
            memory_bytes=self.sizes(facts)[spared],
        )
        found = np.zeros(len(facts.vms), dtype=np.int64)
        found[spared] = protections(
            weights[spared],
            demand,
            self._capacity_bytes,
            facts.preset,
            self._rules,
        )
        units: list[int] = found[chosen].tolist()
        return units

    def weight(
        self,
        held: int,
        row: int,
        last: scale.LastDecision | None,
        facts: scale.ScaleFacts,
    ) -> float:
        """Return the last decided weight; neutral after a restart."""
        return 1.0 if last is None or last.units is None else last.weight
