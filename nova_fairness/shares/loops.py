# SPDX-License-Identifier: Apache-2.0

"""Whether VMs that wait get less done, or the same later.

A closed loop runs, waits for input, and runs again: while it has to wait for
a part *s* of the time it uses ``1 - s`` of what it would use of a plenty. To
an open loop work comes at a rate of its own, and as long as it has idle time
left it uses the same however long it waits. So what a VM uses follows
``(1 - s) ** slope``, with a slope of 1 or 0, or one in between where several
threads wait. It is estimated by regression on what changes from one interval
to the next, and taken to be 1 until changes clearly say otherwise.
"""

import dataclasses

import numpy as np

from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

Scalars = usage_model.Scalars
Mask = resources.Mask

MOVED = 0.05
"""Smaller changes of the time that a VM does not wait (natural logarithm) are
noise."""

LARGEST = 0.02
"""Largest square of a change that counts: one change says little, whether of
what was used or of what was waited."""

FEW = 2 * LARGEST
"""... two may be chance, ..."""

BELIEF = 0.02
"""Sum of such squares that counts as much as the belief in closed loops. It is
the evidence needed before open loops are believed."""

DOUBT = 4.0
"""How much more the unexplained part of a slope counts against it: a VM that
wants something else all the time shows no slope."""

FORGETTING = 1 / 8
"""Part of the changes that is forgotten with each new one: a program that
changes is judged by its new behaviour within eight intervals."""

ALWAYS = 0.95
"""A VM that runs or waits for this part of the time has work left: it lacks
the time that it waits for, whatever its slope."""

NEVER = 0.999
"""Longer stalls than this part of the time tell nothing: a VM that always
waits has no rest to compare."""


@dataclasses.dataclass(frozen=True, eq=False)
class LoopMemory:
    """Memory of VMs, (n,) each.

    :ivar used: CPUs in the interval before; NaN if unknown.
    :ivar stall: in the interval before; NaN if unknown.
    :ivar moved: sum of the squared changes of the time not waited.
    :ivar followed: sum of their products with the changes of use.
    :ivar varied: sum of the squared changes of use.
    """

    used: Scalars
    stall: Scalars
    moved: Scalars
    followed: Scalars
    varied: Scalars

    @classmethod
    def unknown(cls, count: int) -> 'LoopMemory':
        """Memory of VMs never seen before."""
        never = np.full(count, np.nan)
        sums = [np.zeros(count) for _ in range(3)]
        return cls(never, never.copy(), *sums)

    def after(
        self, used: Scalars, stall: Scalars, ready: Mask
    ) -> 'LoopMemory':
        """Add an interval.

        :param used: (n,) CPUs, >= 0.
        :param stall: (n,) 0..1; NaN where the kernel does not tell.
        :param ready: (n,) whether these are known.
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
        """Estimate how what VMs use follows the time they do not wait.

        :returns: (n,) 0..1.
        """
        some = self.moved > 0
        found = self.followed / np.where(some, self.moved, 1.0)
        left = (self.varied - found * self.followed).clip(0.0)
        many = (self.moved - FEW).clip(0.0)
        trust = many / (many + BELIEF + DOUBT * left)
        return np.asarray(1.0 + trust * (found.clip(0.0, 1.0) - 1.0))

    def lacking(self, used: Scalars, stall: Scalars) -> Scalars:
        """The part of what VMs want that they lack for waiting.

        :param used: (n,) CPUs.
        :param stall: (n,) 0..1.
        :returns: (n,) 0..1, at most ``stall``.
        """
        followed = 1.0 - (1.0 - stall) ** self.slope()
        # No power of one is to change a digit.
        sure = (self.moved <= FEW) | (used + stall >= ALWAYS)
        return np.where(sure, stall, np.minimum(followed, stall))
