# SPDX-License-Identifier: Apache-2.0

"""Waiting for a CPU: a test against the noise of the node.

A VM does less than it wants as soon as it waits, idle time or not: most
programs run, wait for something, and run again (a closed loop), and the
longer they wait for a CPU, the less often they come round. But an idle guest
waits, too, when it wakes up on a busy host, a lone busy one waits for QEMU's
other threads, and a moment in which the host does something makes all VMs
wait. So a VM counts as waiting if its stall is significant against the stalls
of VMs of a busy node where none lacks anything, and not in one interval only.

All arithmetic takes many nodes at once. CPU time is in CPUs here: 1 is one
CPU for the whole interval.
"""

from collections.abc import Iterator
import dataclasses
from typing import Any

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model
from nova_fairness.shares import loops

Scalars = usage_model.Scalars
Indices = usage_model.Indices
Mask = resources.Mask

NOISE = 0.02
"""Stall, as part of the time, of VMs that lack nothing on a busy node where no
noise was measured yet. It was measured on 4 CPUs."""

DEVIATION_BUSY, DEVIATION_IDLE = 0.04 / 3, 0.08 / 3
"""... and its standard deviation. A lone busy VM waits 1-3 % for its own
emulator thread and for the host, an idle one up to 8 % where the host is
busy. A VM of several vCPUs counts like an idle one, because any of them that
waits counts."""

SIGNIFICANT = 3.0
"""Standard deviations above the mean of the noise from which a stall is none.
One interval of 740 passes that by chance, two in a row one of 500,000."""

LEAST = 0.03
"""Part of the time. A VM that waits for less has nearly all it wants, however
quiet its node is: a busy VM with a CPU of its own waits 1 to 3 % for the
emulator."""

NOTHING = 0.01
"""Part of the time. A VM that waited goes on doing so until it lacks less than
this."""

PRIOR = 8.0
"""Intervals of measured noise that count as much as what is known before: of
a node against the numbers above, of a VM against its node."""

FORGETTING = 1 / 32
"""Part of what is known of the noise that is forgotten in an interval: noise
changes with the programs on the host, in minutes."""

RUNNABLE = 0.7
"""Part of an interval for which a VM ran or waited for a CPU, from which it is
busy, and one interval is enough: it had something to do all the time. A VM
with idle time may have been late for a moment only, so a second interval
decides."""

BUSY_WITH_STALL = 0.85
"""Part of a node's capacity from which stalls mean contention.

Below that the VMs do not wait for each other but for a quota, or for a few
CPUs to which they are pinned. The host's own use counts, because VMs that
compete with it for the rest compete with each other.
"""

BUSY_WITHOUT_STALL = 0.9
"""The same where the kernel reports no stalls and utilisation is the only
sign; higher, because a node can be that busy while no VM waits."""

SHORT = 0.01
"""Part of a node's CPUs that VMs must lack beyond what is idle: weights cannot
divide a smaller amount."""

SHORT_CPUS = 0.05
"""Most CPUs that VMs must lack: one vCPU that lacks more than noise counts,
however large the node is. Half of it is enough where they lacked it before:
what is nearly made good shall become so."""

CROWD = 0.04
"""Part of a node's CPUs that its VMs lack together, beyond what is idle and
without the one that lacks most, from which one standard deviation is enough:
the CPUs are in use, and more is wanted. Lone busy VMs on all CPUs lack up to
3 %."""

SATISFIED = 0.95
"""Part of what its vCPUs could use, from which a VM has what it wants, where
the kernel tells no stalls."""

IDLE = 0.01
"""Part of what its vCPUs could use, below which a VM wants nothing, where the
kernel tells no stalls."""

ALL = 0.999
"""Part of the time. A VM that waits for longer may want anything."""


@dataclasses.dataclass(frozen=True, eq=False)
class Interval:
    """Use and stalls of the VMs of one or more nodes in one interval.

    :ivar node: (n,) index of each VM's node.
    :ivar used: (n,) CPUs, >= 0.
    :ivar stall: (n,) part of the interval, 0..1, in which each waited for a
        CPU; NaN where the kernel does not report it.
    :ivar most: (n,) CPUs that each could use.
    :ivar ready: (n,) whether the VM runs and its usage is known.
    :ivar cpus: (m,) of each node, > 0.
    :ivar busy: (m,) part of them, 0..1, in use, the host included; NaN where
        only the VMs' own use is known.
    """

    node: Indices
    used: Scalars
    stall: Scalars
    most: Scalars
    ready: Mask
    cpus: Scalars
    busy: Scalars


@dataclasses.dataclass(frozen=True, eq=False)
class WaitHistory:
    """Memory of VMs, a row for each.

    :ivar late: (n,) whether the stall was above the noise.
    :ivar began: (n,) whether the VM has counted as waiting since its node
        became short.
    :ivar count: (n,) intervals of noise that are not forgotten, >= 0.
    :ivar mean: (n,) of the stall in these.
    :ivar variance: (n,) of the stall in these.
    :ivar changes: of their use with their stalls.
    """

    late: Mask
    began: Mask
    count: Scalars
    mean: Scalars
    variance: Scalars
    changes: loops.LoopMemory

    @classmethod
    def unknown(cls, count: int) -> 'WaitHistory':
        """Memory of VMs never seen before."""
        never = np.zeros(count, dtype=np.bool_)
        zeros = np.zeros(count)
        return cls(
            never,
            never.copy(),
            zeros,
            zeros.copy(),
            zeros.copy(),
            loops.LoopMemory.unknown(count),
        )

    def picked(self, rows: Indices) -> 'WaitHistory':
        """Some rows; those below 0 as never seen."""
        seen = rows >= 0
        blank = WaitHistory.unknown(len(rows))
        for mine, its in _pairs(self, blank):
            its[seen] = mine[rows[seen]]
        return blank

    def put(self, rows: Indices, other: 'WaitHistory') -> None:
        """Write other rows in the place of some."""
        for mine, its in _pairs(self, other):
            mine[rows] = its

    def bounds(
        self, node: Indices, nodes: int, steady: Mask
    ) -> tuple[Scalars, Scalars]:
        """The stalls that are too long for noise.

        The noise of a VM is mixed with the noise of its node, and that with
        the noise assumed at first. Stalls of others lower bounds and raise
        none.

        :param steady: (n,) whether a VM is one vCPU that was busy.
        :returns: (n,) from which a VM begins to wait, and (n,) from which it
            then goes on while its node is short.
        """

        def summed(values: Scalars) -> Scalars:
            return np.asarray(np.bincount(node, values, nodes), np.float64)

        weight = PRIOR + summed(self.count)
        mean = PRIOR * NOISE + summed(self.count * self.mean)
        mean = (mean / weight)[node]
        spread = self.variance + (self.mean - mean) ** 2
        usual = _deviation(steady) ** 2
        variance = PRIOR * usual + summed(self.count * spread)[node]
        # Idle VMs that wake up all the time would hide what others lack.
        mean = np.minimum(mean, NOISE)
        variance = np.minimum(variance / weight[node], usual)
        own = self.count / (PRIOR + self.count)
        more = (self.mean - mean).clip(0.0)
        variance = variance + own * (self.variance - variance)
        variance = variance + own * (1 - own) * more**2
        mean = mean + own * (self.mean - mean)
        begin = mean + SIGNIFICANT * np.sqrt(variance)
        return begin.clip(LEAST), np.minimum(mean, begin).clip(NOTHING)

    def learned(self, stall: Scalars, quiet: Mask) -> 'WaitHistory':
        """Add an interval to the noise.

        :param stall: (n,) of that interval.
        :param quiet: (n,) whether a VM's stall is noise.
        """
        kept = self.count * (1 - FORGETTING)
        count = kept + quiet
        part = np.where(quiet, 1 / np.maximum(count, 1.0), 0.0)
        off = stall - self.mean
        return dataclasses.replace(
            self,
            count=count,
            mean=self.mean + part * off,
            variance=(1 - part) * (self.variance + part * off**2),
        )


def closed(used: Scalars, stall: Scalars, most: Scalars) -> Scalars:
    """Use of VMs if they had plenty, as closed loops.

    A VM that waits for a part *s* of the time runs and thinks in the rest of
    it, and would do so all the time: ``used / (1 - s)``, at most the capacity
    of its vCPUs.

    :param used: (n,) >= 0.
    :param stall: (n,) 0..1.
    :param most: (n,) in the unit of ``used``.
    :returns: (n,) at least ``used``.
    """
    left = np.where(stall < ALL, 1.0 - stall, 1.0)
    wanting = np.where(stall < ALL, used / left, most)
    return np.maximum(used, np.minimum(wanting, most))


def guessed(used: Scalars, most: Scalars) -> Mask:
    """Tell who may want more, where the kernel does not tell who waits."""
    return np.asarray((used > IDLE * most) & (used < SATISFIED * most))


def judge(
    now: Interval, past: WaitHistory
) -> tuple[usage_model.CpuWaits, WaitHistory]:
    """Judge who waits for a CPU, once for each interval.

    :param past: of the same VMs, as this function returned it last.
    """
    nodes = len(now.cpus)
    told = np.isfinite(now.stall)
    changes = past.changes.after(now.used, now.stall, now.ready)
    stall = np.where(told, now.stall, 0.0)
    active = now.used + stall >= RUNNABLE
    stall = changes.lacking(now.used, stall)
    steady = active & (now.most <= 1.0)
    begin, end = past.bounds(now.node, nodes, steady)
    blind = now.ready & ~told & guessed(now.used, now.most)
    now = dataclasses.replace(now, stall=stall)
    crowded = _crowded(now)
    # One deviation above the mean, instead of three.
    soon = end + (begin - end) / SIGNIFICANT
    late = now.ready & (stall > np.where(crowded[now.node], soon, begin))
    waits = late & (active | past.late)
    waits |= now.ready & past.began & (stall > end)
    least = np.minimum(SHORT, SHORT_CPUS / now.cpus)
    before = np.zeros(nodes, dtype=np.bool_)
    before[now.node[past.began & now.ready]] = True
    least = np.where(before, least / 2, least)
    _, short = _short(now, waits, blind, least)
    # What may be a lack is not learned as noise, however long it lasts.
    deviation = _deviation(steady)
    unusual = stall > NOISE + SIGNIFICANT * deviation
    busy, suspect = _short(now, waits | late | unusual, blind, least)
    quiet = told & now.ready & (busy & ~suspect & ~crowded)[now.node]
    # A lack that lasts would hide itself and larger ones. Noise comes and
    # goes: if all of its longer stalls were left out, the rest would stand
    # out of what was learned.
    doubt = NOISE + deviation
    lasts = (stall > doubt) & (past.changes.stall > doubt)
    _, lacks = _short(now, waits | lasts, blind, least)
    quiet &= ~(lasts & lacks[now.node])
    began = (waits | past.began) & short[now.node]
    kept = dataclasses.replace(past, late=late, began=began, changes=changes)
    lacking = np.where(told, stall, np.nan)
    found = usage_model.CpuWaits(waits | blind, short, lacking)
    return found, kept.learned(stall, quiet)


def _pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The arrays of two values that remember the same."""
    for field in dataclasses.fields(one):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(mine):
            yield from _pairs(mine, its)
        else:
            yield mine, its


def _deviation(steady: Mask) -> Scalars:
    return np.where(steady, DEVIATION_BUSY, DEVIATION_IDLE)


def _crowded(now: Interval) -> Mask:
    """Tell where VMs together lack so much that little is noise, (m,)."""
    nodes = len(now.cpus)
    lack = closed(now.used, now.stall, now.most) - now.used
    lack = np.where(now.ready & (now.used < SATISFIED * now.most), lack, 0.0)
    largest = np.zeros(nodes)
    np.maximum.at(largest, now.node, lack)
    lacking = np.bincount(now.node, lack, nodes) - largest
    used = np.bincount(now.node, now.used, nodes) / now.cpus
    in_use = np.where(np.isfinite(now.busy), now.busy, used)
    idle = (1.0 - in_use).clip(0.0)
    return np.asarray(lacking / now.cpus > idle + CROWD)


def _short(
    now: Interval, waits: Mask, blind: Mask, least: Scalars
) -> tuple[Mask, Mask]:
    """Tell which nodes are busy, and which lack more than is idle: (m,).

    :param waits: (n,) VMs that want what closed loops want.
    :param blind: (n,) VMs that may want anything.
    :param least: (m,) part of its CPUs that a node must lack.
    """
    nodes = len(now.cpus)
    stall = np.where(waits, now.stall, 0.0)
    lack = closed(now.used, stall, now.most) - now.used
    lack = np.where(blind, now.most - now.used, lack)
    lacking = np.bincount(now.node, lack, nodes) / now.cpus
    used = np.bincount(now.node, now.used, nodes) / now.cpus
    in_use = np.where(np.isfinite(now.busy), now.busy, used)
    some = np.bincount(now.node[waits], minlength=nodes) > 0
    busy = in_use >= np.where(some, BUSY_WITH_STALL, BUSY_WITHOUT_STALL)
    idle = (1.0 - in_use).clip(0.0)
    return busy, busy & (lacking > idle + least)
