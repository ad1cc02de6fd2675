# SPDX-License-Identifier: Apache-2.0

"""Waiting for a CPU: a test against the noise of the node.

A VM that waits for a CPU does less than it wants, even if it has idle time:
most programs run, wait for input, and run again (a closed loop), and the
longer they wait for a CPU, the fewer loops they make. But other VMs wait, too:
an idle guest when it wakes up on a busy host, a lone busy guest for QEMU's
other threads, and all VMs while the host itself works. So a VM counts as
waiting only if its stall is significantly longer than the stalls of VMs on a
busy node where no VM lacks CPU time, and in more than one interval.

All functions take many nodes at once. CPU time is in CPUs: 1 is one CPU for
the whole interval.
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
"""Assumed mean stall, as a part of the time, of VMs that lack nothing on a
busy node, before noise is measured there. It was measured on 4 CPUs."""

DEVIATION_BUSY, DEVIATION_IDLE = 0.04 / 3, 0.08 / 3
"""Assumed standard deviation of this stall, for a busy and an idle VM. A lone
busy VM waits 1-3 % for its own emulator thread and for the host, and an idle
VM waits up to 8 % if the host is busy. A VM of several vCPUs counts like an
idle VM, because the stall counts if any of them waits."""

SIGNIFICANT = 3.0
"""Standard deviations above the mean of the noise from which a stall is not
noise. By chance, one of 740 intervals exceeds this, and two in a row one of
500,000."""

LEAST = 0.03
"""Part of the time. A VM that waits for less has nearly all that it wants,
however quiet its node is: a busy VM with a CPU of its own waits 1 to 3 % for
the emulator."""

NOTHING = 0.01
"""Part of the time. A VM that counted as waiting still does until it lacks
less than this."""

PRIOR = 8.0
"""Intervals of measured noise that count as much as the assumption before it:
for a node the numbers above, for a VM the noise of its node."""

FORGETTING = 1 / 32
"""Part of the measured noise that is forgotten in an interval: noise changes
with the programs on the host, within minutes."""

RUNNABLE = 0.7
"""Part of an interval. A VM that ran or waited for longer than this part is
busy, and one interval is enough: it had work all the time. A VM with idle time
may have been late only for a short time, so a second interval decides."""

BUSY_WITH_STALL = 0.85
"""Part of a node's capacity in use from which stalls mean contention.

Below this part, VMs do not wait for each other but for a quota, or for a few
CPUs to which they are pinned. The host's own use counts, because VMs that
compete with it for the rest compete with each other.
"""

BUSY_WITHOUT_STALL = 0.9
"""Part of a node's capacity in use that means contention if the kernel reports
no stalls. It is higher, because a node can be so busy while no VM waits."""

SHORT = 0.01
"""Part of a node's CPUs that VMs must lack beyond the idle CPUs: weights
cannot divide a smaller amount."""

SHORT_CPUS = 0.05
"""Most CPUs that VMs must lack for a node to be short: one vCPU that lacks
more than noise counts, however large the node is. Half of the amount is enough
on a node that was short before, so that a lack is removed completely."""

CROWD = 0.04
"""Part of a node's CPUs. If its VMs together, without the one that lacks most,
lack more than this part beyond the idle CPUs, then one standard deviation is
enough: the CPUs are in use, and VMs want more. Lone busy VMs on all CPUs lack
up to 3 %."""

SATISFIED = 0.95
"""Part of the CPUs that a VM could use, from which it has all that it wants,
if the kernel reports no stalls."""

IDLE = 0.01
"""Part of the CPUs that a VM could use, below which it wants nothing more, if
the kernel reports no stalls."""

ALL = 0.999
"""Part of the time. A VM that waits for longer may want all CPUs that it could
use."""


@dataclasses.dataclass(frozen=True, eq=False)
class Interval:
    """Use and stalls of the VMs of one or more nodes in one interval.

    :ivar node: (n,) index of each VM's node.
    :ivar used: (n,) CPUs that each VM used, >= 0.
    :ivar stall: (n,) part of the interval, 0..1, in which each VM waited for a
        CPU; NaN if the kernel does not report it.
    :ivar most: (n,) CPUs that each VM could use.
    :ivar ready: (n,) whether the VM runs and its usage is known.
    :ivar cpus: (m,) CPUs of each node, > 0.
    :ivar busy: (m,) part of these CPUs in use, 0..1, with the host's own use;
        NaN if only the use of VMs is known.
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
    """Past waits of VMs, a row for each VM.

    :ivar late: (n,) whether the stall of the last interval was above the
        noise.
    :ivar began: (n,) whether the VM has counted as waiting in the present
        shortage of its node.
    :ivar count: (n,) number of intervals whose stall was noise, >= 0. Older
        intervals count less.
    :ivar mean: (n,) mean stall in these intervals.
    :ivar variance: (n,) variance of the stall in these intervals.
    :ivar changes: past changes of use and stalls, which show whether a stall
        reduces the use.
    """

    late: Mask
    began: Mask
    count: Scalars
    mean: Scalars
    variance: Scalars
    changes: loops.LoopMemory

    @classmethod
    def unknown(cls, count: int) -> 'WaitHistory':
        """Return the history of new VMs."""
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
        """Return the history of some rows; a row below 0 is a new VM."""
        seen = rows >= 0
        blank = WaitHistory.unknown(len(rows))
        for mine, its in _array_pairs(self, blank):
            its[seen] = mine[rows[seen]]
        return blank

    def put(self, rows: Indices, other: 'WaitHistory') -> None:
        """Replace some rows with the rows of another history."""
        for mine, its in _array_pairs(self, other):
            mine[rows] = its

    def bounds(
        self, node: Indices, nodes: int, steady: Mask
    ) -> tuple[Scalars, Scalars]:
        """Return the stalls from which a stall is too long to be noise.

        The noise of a VM is averaged with the noise of its node, and this with
        the noise assumed at first. Stalls of other VMs only lower the bounds.

        :param steady: (n,) whether a VM has one vCPU that was busy.
        :returns: (n,) stall from which a VM begins to count as waiting, and
            (n,) stall from which it still counts while its node is short.
        """

        def summed(values: Scalars) -> Scalars:
            return np.asarray(np.bincount(node, values, nodes), np.float64)

        weight = PRIOR + summed(self.count)
        mean = PRIOR * NOISE + summed(self.count * self.mean)
        mean = (mean / weight)[node]
        spread = self.variance + (self.mean - mean) ** 2
        usual = _deviation(steady) ** 2
        variance = PRIOR * usual + summed(self.count * spread)[node]
        # Idle VMs that wake up all the time would hide the lack of others.
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
        """Learn the noise of an interval.

        :param stall: (n,) stalls in the interval.
        :param quiet: (n,) whether the stall of a VM is noise.
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


def use_without_waits(used: Scalars, stall: Scalars, most: Scalars) -> Scalars:
    """Estimate the use of VMs if they never waited for a CPU.

    The programs of a VM run, wait for input, and run again (a closed loop). A
    VM that waits for a CPU for the part *s* of the time does this only in the
    rest of the time. Without waits it would use ``used / (1 - s)``, at most
    the capacity of its vCPUs.

    :param used: (n,) use of each VM, >= 0.
    :param stall: (n,) part of the time for which each VM waits, 0..1.
    :param most: (n,) capacity of the vCPUs, in the unit of ``used``.
    :returns: (n,) estimated use, at least ``used``.
    """
    left = np.where(stall < ALL, 1.0 - stall, 1.0)
    wanting = np.where(stall < ALL, used / left, most)
    return np.maximum(used, np.minimum(wanting, most))


def may_want_more(used: Scalars, most: Scalars) -> Mask:
    """Mark the VMs that may want more, (n,), if the kernel reports no
    stalls.
    """
    return np.asarray((used > IDLE * most) & (used < SATISFIED * most))


def judge_waits(
    now: Interval, past: WaitHistory
) -> tuple[usage_model.CpuWaits, WaitHistory]:
    """Judge which VMs wait for a CPU; call this once for each interval.

    :param past: history of the same VMs, from the last call.
    """
    nodes = len(now.cpus)
    told = np.isfinite(now.stall)
    changes = past.changes.after(now.used, now.stall, now.ready)
    stall = np.where(told, now.stall, 0.0)
    active = now.used + stall >= RUNNABLE
    stall = changes.lacking(now.used, stall)
    steady = active & (now.most <= 1.0)
    begin, end = past.bounds(now.node, nodes, steady)
    blind = now.ready & ~told & may_want_more(now.used, now.most)
    now = dataclasses.replace(now, stall=stall)
    crowded = _crowded_nodes(now)
    # One deviation above the mean, instead of three.
    soon = end + (begin - end) / SIGNIFICANT
    late = now.ready & (stall > np.where(crowded[now.node], soon, begin))
    waits = late & (active | past.late)
    waits |= now.ready & past.began & (stall > end)
    least = np.minimum(SHORT, SHORT_CPUS / now.cpus)
    before = np.zeros(nodes, dtype=np.bool_)
    before[now.node[past.began & now.ready]] = True
    least = np.where(before, least / 2, least)
    _, short = _busy_and_short_nodes(now, waits, blind, least)
    # A stall that may be a lack is not learned as noise.
    deviation = _deviation(steady)
    unusual = stall > NOISE + SIGNIFICANT * deviation
    busy, suspect = _busy_and_short_nodes(
        now, waits | late | unusual, blind, least
    )
    quiet = told & now.ready & (busy & ~suspect & ~crowded)[now.node]
    # A lasting lack that is learned as noise would hide itself and larger
    # ones. Noise varies: if all its longer stalls were left out, further ones
    # would exceed the learned noise.
    doubt = NOISE + deviation
    lasts = (stall > doubt) & (past.changes.stall > doubt)
    _, lacks = _busy_and_short_nodes(now, waits | lasts, blind, least)
    quiet &= ~(lasts & lacks[now.node])
    began = (waits | past.began) & short[now.node]
    kept = dataclasses.replace(past, late=late, began=began, changes=changes)
    lacking = np.where(told, stall, np.nan)
    found = usage_model.CpuWaits(waits | blind, short, lacking)
    return found, kept.learned(stall, quiet)


def _array_pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of the arrays of two histories, field by field."""
    for field in dataclasses.fields(one):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(mine):
            yield from _array_pairs(mine, its)
        else:
            yield mine, its


def _deviation(steady: Mask) -> Scalars:
    return np.where(steady, DEVIATION_BUSY, DEVIATION_IDLE)


def _crowded_nodes(now: Interval) -> Mask:
    """Mark the nodes, (m,), whose VMs together lack too much for noise."""
    nodes = len(now.cpus)
    lack = use_without_waits(now.used, now.stall, now.most) - now.used
    lack = np.where(now.ready & (now.used < SATISFIED * now.most), lack, 0.0)
    largest = np.zeros(nodes)
    np.maximum.at(largest, now.node, lack)
    lacking = np.bincount(now.node, lack, nodes) - largest
    used = np.bincount(now.node, now.used, nodes) / now.cpus
    in_use = np.where(np.isfinite(now.busy), now.busy, used)
    idle = (1.0 - in_use).clip(0.0)
    return np.asarray(lacking / now.cpus > idle + CROWD)


def _busy_and_short_nodes(
    now: Interval, waits: Mask, blind: Mask, least: Scalars
) -> tuple[Mask, Mask]:
    """(m,) Nodes that are busy, and (m,) nodes that are short.

    The VMs of a short node lack more CPUs than are idle.

    :param waits: (n,) VMs whose wants are those of closed loops.
    :param blind: (n,) VMs that may want all CPUs that they could use.
    :param least: (m,) least lack of a short node, as a part of its CPUs.
    """
    nodes = len(now.cpus)
    stall = np.where(waits, now.stall, 0.0)
    lack = use_without_waits(now.used, stall, now.most) - now.used
    lack = np.where(blind, now.most - now.used, lack)
    lacking = np.bincount(now.node, lack, nodes) / now.cpus
    used = np.bincount(now.node, now.used, nodes) / now.cpus
    in_use = np.where(np.isfinite(now.busy), now.busy, used)
    some = np.bincount(now.node[waits], minlength=nodes) > 0
    busy = in_use >= np.where(some, BUSY_WITH_STALL, BUSY_WITHOUT_STALL)
    idle = (1.0 - in_use).clip(0.0)
    return busy, busy & (lacking > idle + least)
