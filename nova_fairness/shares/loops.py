# SPDX-License-Identifier: Apache-2.0

"""Whether VMs that wait for a CPU do less work, or the same work later.

A closed loop runs, waits for input, and runs again: if it waits for a CPU for
a part *s* of the time, it uses ``1 - s`` of the CPU time that it would use of
a plenty. An open loop gets work at a rate of its own: as long as it has idle
time left, it uses the same CPU time however long it waits. So the use of a VM
is proportional to ``(1 - s) ** slope``, with a slope of 1 or 0, or between
them if several threads wait. The slope is estimated by regression on the
changes from one interval to the next. It counts as 1 until changes clearly
show another value.
"""

import dataclasses

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

MOVED = 0.05
"""Least change of the time that a VM does not wait (natural logarithm) that
counts; smaller changes are noise."""

LARGEST = 0.02
"""Largest square with which a change of use or of waiting counts, so that one
change has little effect."""

FEW = 2 * LARGEST
"""Sum of squares that is no evidence yet: two changes may be chance."""

BELIEF = 0.02
"""Sum of squares that counts as much as the assumption of closed loops: the
evidence needed before a VM counts as an open loop."""

DOUBT = 4.0
"""Weight of the unexplained variance against a slope: a VM whose wants change
all the time shows no slope."""

FORGETTING = 1 / 8
"""Part of the changes that is forgotten with each new one: a program with a
new behaviour is judged by it within eight intervals."""

ALWAYS = 0.95
"""Part of the time. A VM that runs or waits for longer than this part has work
left: it lacks all the time that it waits, whatever its slope."""

NEVER = 0.999
"""Part of the time. Longer stalls are not used: a VM that always waits has no
other time for a comparison."""


@dataclasses.dataclass(frozen=True, eq=False)
class LoopMemory:
    """Sums for the regression of each VM, (n,) each.

    Changes are differences of logarithms.

    :ivar used: CPUs used in the last interval; NaN if unknown.
    :ivar stall: part of the last interval waited; NaN if unknown.
    :ivar moved: sum of the squared changes of the time not waited.
    :ivar followed: sum of the products of these changes and those of use.
    :ivar varied: sum of the squared changes of use.
    """

    used: Scalars
    stall: Scalars
    moved: Scalars
    followed: Scalars
    varied: Scalars

    @classmethod
    def unknown(cls, count: int) -> 'LoopMemory':
        """Sums for VMs that were never seen before."""
        never = np.full(count, np.nan)
        sums = [np.zeros(count) for _ in range(3)]
        return cls(never, never.copy(), *sums)

    def after(
        self, used: Scalars, stall: Scalars, ready: Mask
    ) -> 'LoopMemory':
        """Add an interval.

        :param used: (n,) CPUs used, >= 0.
        :param stall: (n,) part of the interval waited, 0..1; NaN if the kernel
            does not report it.
        :param ready: (n,) whether both are known.
        """
        told = ready & (used > 0) & (stall < NEVER)
        used = np.where(told, used, np.nan)
        stall = np.where(told, stall, np.nan)
        x = np.log1p(-stall) - np.log1p(-self.stall)
        y = np.log(used) - np.log(self.used)
        clear = np.isfinite(x) & (np.abs(x) >= MOVED)
        x, y = np.where(clear, x, 0.0), np.where(clear, y, 0.0)
        kept = np.where(clear, 1 - FORGETTING, 1.0)
        larger = np.maximum(np.abs(x), np.abs(y))
        scale = np.sqrt(LARGEST) / np.maximum(larger, np.sqrt(LARGEST))
        x, y = x * scale, y * scale
        return LoopMemory(
            used=used,
            stall=stall,
            moved=kept * self.moved + x * x,
            followed=kept * self.followed + x * y,
            varied=kept * self.varied + y * y,
        )

    def slope(self) -> Scalars:
        """Estimate the slope of use over the time not waited.

        :returns: (n,) 0..1.
        """
        some = self.moved > 0
        found = self.followed / np.where(some, self.moved, 1.0)
        left = (self.varied - found * self.followed).clip(0.0)
        many = (self.moved - FEW).clip(0.0)
        trust = many / (many + BELIEF + DOUBT * left)
        return np.asarray(1.0 + trust * (found.clip(0.0, 1.0) - 1.0))

    def lacking(self, used: Scalars, stall: Scalars) -> Scalars:
        """Part of their wants that VMs lack because they wait.

        :param used: (n,) CPUs used.
        :param stall: (n,) part of the interval waited, 0..1.
        :returns: (n,) 0..1, at most ``stall``.
        """
        followed = 1.0 - (1.0 - stall) ** self.slope()
        # With a slope of 1 the power must not change the last digit.
        sure = (self.moved <= FEW) | (used + stall >= ALWAYS)
        return np.where(sure, stall, np.minimum(followed, stall))
