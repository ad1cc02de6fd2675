# SPDX-License-Identifier: Apache-2.0

"""Whether VMs get the parts of the CPU that their weights promise.

A kernel may take a weight and not follow it, for example if its scheduler was
replaced. Therefore the use of VMs in an interval is compared with two
divisions of the same CPU time: by weight, and as if there were no weights.
Where both are the same nothing can be told.
"""

import dataclasses

import numpy as np

from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

TELLING = 0.1
"""Part of the CPU time that two divisions must give to different VMs. Where
both are alike, they tell nothing of the kernel."""

NEWEST = 0.2
"""Part that the newest interval has in what was seen lately."""

ENOUGH = 5
"""Intervals that must have told something."""

FOLLOWED = 0.3
"""Part of the effect that weights should have. Below it, the kernel ignores
weights, as with a scheduler that was replaced. Few CPUs and many threads
divide coarsely, so that less than 1 is usual."""


@dataclasses.dataclass(frozen=True, eq=False)
class Competition:
    """VMs that share CPUs for an interval; amounts in one unit.

    :ivar had: (n,) CPU time, >= 0.
    :ivar wanted: (n,) what each would have had of a plenty, >= ``had``.
    :ivar parts: (n,) what each counts by its weight, > 0.
    :ivar vcpus: (n,) what each counts without weights, > 0.
    """

    had: usage_model.Scalars
    wanted: usage_model.Scalars
    parts: usage_model.Scalars
    vcpus: usage_model.Scalars

    def by(self, parts: usage_model.Scalars) -> usage_model.Scalars:
        """Divide what all had, (n,)."""
        here = np.zeros(len(parts), dtype=np.intp)
        whole = np.array([self.had.sum()])
        return filling.fill(whole, here, self.wanted, parts)[0]

    def followed(self) -> float | None:
        """How far the VMs followed their weights, 0..1.

        The place of what they had on the way from a division without weights
        to that by weight, by least squares.

        :returns: ``None`` if that cannot be told.
        """
        without = self.by(self.vcpus)
        promised = self.by(self.parts) - without
        moved = float(np.abs(promised).sum()) / 2
        if not moved or moved < TELLING * float(self.had.sum()):
            return None
        # Squares of the smallest amounts would be nothing.
        way, gone = promised / moved, (self.had - without) / moved
        return float(np.clip(gone @ way / (way @ way), 0.0, 1.0))


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """Recent evidence of how far weights are followed.

    :ivar mean: 0..1.
    :ivar count: intervals that told something.
    """

    mean: float = 1.0
    count: int = 0

    def after(self, followed: float | None) -> 'Evidence':
        """The evidence with one more interval."""
        if followed is None:
            return self
        part = max(NEWEST, 1 / (self.count + 1))
        mean = self.mean + part * (followed - self.mean)
        return Evidence(mean, self.count + 1)

    @property
    def told(self) -> float | None:
        """Mean of the evidence; ``None`` before the first interval."""
        return self.mean if self.count else None

    @property
    def is_bad(self) -> bool:
        """Whether enough was seen to say that weights are not followed."""
        return self.count >= ENOUGH and self.mean < FOLLOWED
