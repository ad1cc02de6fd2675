# SPDX-License-Identifier: Apache-2.0

"""Memory: who wants what others have, and how much of each VM's is protected.

The protection is the same on both generations of control groups: below it a VM
is spared when the node takes memory away, above it the VM is among the first.
``memory.soft_limit_in_bytes`` (v1) and ``memory.low`` (v2) mean just that.
Neither takes anything while memory is free.
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
"""Bytes per second that a VM waits for, from which it wants more memory. One
that comes back from a pause faults for a moment; one whose memory does not
fit faults all the time."""

STALL = 0.05
"""Part of an interval in which a VM waits for memory, from which it wants
more. A VM back from a pause faults for a moment."""

RECLAIM_RATE = 1024 * 1024.0
"""Bytes per second that the node takes away, from which it is short. Some
page cache is always recycled."""

Bytes = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryRules:
    """Protected memory of a VM, and how far it may grow.

    :ivar minimum_bytes: protected of every VM that holds so much, >= 0; an
        idle Linux guest answers with the default.
    :ivar floor_part: part of the flavor's memory, 0..1, protected of every VM
        that holds so much.
    :ivar headroom: part of a VM's held memory, >= 0, that is protected on
        top, so that it can grow until the next round.
    :ivar unspared_part: part of the node's memory, 0..1, that is never
        protected. Were all of it, the kernel would take from the host's own
        programs first, and then from protected VMs, too.
    """

    minimum_bytes: int = 128 * _MIB
    floor_part: float = 0.25
    headroom: float = 0.125
    unspared_part: float = 0.1


DEFAULT_RULES = MemoryRules()


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryDemand:
    """Memory that VMs of a node hold, and could hold.

    :ivar held_bytes: (n,) resident and swapped out, NaN if unknown: then a
        VM counts as holding all of its flavor's.
    :ivar memory_bytes: (n,) > 0, of the flavor.
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
    """Divide a node's memory among its VMs.

    Parts are in proportion to weight x the flavor's memory, but no VM is
    given more than it holds (with headroom), nor less than its floor. The
    others share the memory that one does not need. If the floors alone are
    more than the node has, each VM gets its floor. A part of the node's memory
    is left out, see :attr:`MemoryRules.unspared_part`.

    The preset ``THESIS`` gives the place in the range 10 MiB .. the flavor's
    memory instead, never less than the floor.

    :param weights: (n,) finite, > 0.
    :param capacity_bytes: that VMs may use together, >= 0.
    :returns: (n,) bytes, whole MiB, at least 0.
    """
    most = _most(demand, rules)
    floor = _floor(demand, most, rules)
    if preset is policy.Preset.THESIS:
        ranges = zip(weights, demand.memory_bytes, strict=True)
        chosen = np.array(
            [_thesis(float(weight), int(size)) for weight, size in ranges],
            dtype=np.float64,
        )
        return _whole(np.maximum(chosen, floor))
    shares = weights * demand.memory_bytes
    spared = capacity_bytes * (1 - rules.unspared_part)
    return _whole(_filled(shares, floor, most, spared))


def _most(demand: MemoryDemand, rules: MemoryRules) -> usage_model.Scalars:
    known = np.where(
        np.isfinite(demand.held_bytes), demand.held_bytes, demand.memory_bytes
    )
    return np.asarray(known * (1 + rules.headroom))


def _floor(
    demand: MemoryDemand, most: usage_model.Scalars, rules: MemoryRules
) -> usage_model.Scalars:
    wanted = np.maximum(
        float(rules.minimum_bytes), rules.floor_part * demand.memory_bytes
    )
    return np.asarray(np.minimum(wanted, most))


def _thesis(weight: float, memory_bytes: int) -> int:
    largest = max(memory_bytes, _THESIS_SMALLEST)
    return legacy_priority.units(
        legacy_priority.place_of(weight), _THESIS_SMALLEST, largest
    )


def _filled(
    shares: usage_model.Scalars,
    floor: usage_model.Scalars,
    most: usage_model.Scalars,
    capacity: float,
) -> usage_model.Scalars:
    """Raise one level until the capacity is given away.

    Each part is ``level x share`` within its floor and its most, so their
    sum is made of straight pieces, which end where a part reaches either.
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


def _whole(amounts: usage_model.Scalars) -> Bytes:
    """Round down to whole MiB: what is less is not worth a write."""
    bounded = np.clip(amounts, 0, _LARGEST)
    return (bounded // _MIB).astype(np.int64) * _MIB


def judge(pressure: pressure_model.Pressure) -> tuple[bool, resources.Mask]:
    """Judge who wants more memory on one node.

    A VM that waits because of a limit of its own, or for a disk, does not
    compete with anybody: the node itself must be short.

    :returns: whether VMs compete, and (n,) who wants more; rows as in
        ``pressure``.
    """
    faults = _at_least(pressure.fault_rate, FAULT_RATE)
    stalls = _at_least(pressure.memory_stall, STALL)
    running = np.array(
        [not item.paused for item in pressure.incarnations], dtype=np.bool_
    )
    wanting = np.asarray((faults | stalls) & running)
    holding = _at_least(pressure.held_bytes, 1.0)
    short = pressure.reclaim_rate >= RECLAIM_RATE
    here = np.zeros(len(wanting), dtype=np.intp)
    rivals = contention.compete(here, 1, wanting, holding)
    return short and bool(rivals[0]), wanting


def judged(
    load: contention.ContentionLoad, _weights: usage_model.Scalars
) -> contention.Judged:
    """Judge the memory of many nodes by stalls alone.

    A VM lacks memory only where its node takes some away.
    """
    stall = load.stall[
        :, resources.CONTROLS.index(resources.ResourceControl.MEMORY)
    ]
    wanting = _at_least(stall, STALL) & load.ready
    holding = load.used[:, resources.RESOURCES.index('memory')] >= 1.0
    nodes = len(load.supply)
    return contention.compete(load.node, nodes, wanting, holding), wanting


def _at_least(values: pressure_model.Scalars, bound: float) -> resources.Mask:
    """Compare; a value that is not known is not enough."""
    return np.asarray(np.where(np.isfinite(values), values, -1.0) >= bound)


class MemoryScale(scale.Scale):
    """Bytes of each VM that are protected when memory is short.

    The service of a VM depends on the memory that it holds, so bytes say
    nothing of a weight and the last one counts.

    :param capacity_bytes: that VMs may use together.
    :param rules: bounds of the memory that is never taken from a VM.
    """

    control = resources.ResourceControl.MEMORY

    def __init__(self, capacity_bytes: float, rules: MemoryRules) -> None:
        self._capacity_bytes = capacity_bytes
        self._rules = rules

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Say who waits for memory on a node that is short of it."""
        if facts.pressure is None:
            return None
        return judge(facts.pressure)

    def sizes(self, facts: scale.ScaleFacts) -> usage_model.Scalars:
        """Memory of the flavors, bytes, (n,)."""
        return np.array(
            [float(item.instance.memory_bytes) for item in facts.vms]
        )

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Divide the node's memory among all VMs that are steered.

        Best-effort ones are spared nothing.
        """
        held = np.full(len(facts.vms), np.nan)
        if facts.pressure is not None:
            held = facts.pressure.held_bytes
        chosen = np.array(rows, dtype=np.intp)
        spared = chosen[~facts.apart[chosen]]
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
        """The last weight, neutral after a restart."""
        return 1.0 if last is None or last.units is None else last.weight
