# SPDX-License-Identifier: Apache-2.0

"""Whether VMs get the parts of the CPU that their weights promise.

A kernel may accept a weight and not follow it, for example if its scheduler
was replaced. Therefore the use of VMs in an interval is compared with two
divisions of the same CPU time: by weights, and as if there were no weights. If
both divisions are the same, the interval gives no evidence.
"""

import dataclasses

import numpy as np

from nova_fairness.model import usage as usage_model
from nova_fairness.shares import filling

LEAST_DIFFERENCE = 0.1
"""Part of the CPU time that the two divisions must give to different VMs.
Otherwise the interval gives no evidence."""

NEWEST = 0.2
"""Part that the newest interval has in the mean of the evidence."""

ENOUGH = 5
"""Number of intervals with evidence that are needed for a judgement."""

FOLLOWED = 0.3
"""Part of the effect that weights should have. Below it, the kernel ignores
weights, as with a scheduler that was replaced. Few CPUs and many threads
divide coarsely, so that less than 1 is usual."""


@dataclasses.dataclass(frozen=True, eq=False)
class Competition:
    """VMs that share CPUs for an interval; amounts in one unit.

    :ivar received: (n,) CPU time of each VM, >= 0.
    :ivar wanted: (n,) CPU time that each VM would have had without
        competition, >= ``received``.
    :ivar parts: (n,) share of each VM by its weight, > 0.
    :ivar vcpus: (n,) share of each VM without weights, > 0.
    """

    received: usage_model.Scalars
    wanted: usage_model.Scalars
    parts: usage_model.Scalars
    vcpus: usage_model.Scalars

    def divide(self, parts: usage_model.Scalars) -> usage_model.Scalars:
        """Divide the CPU time of all VMs in proportion to shares, (n,)."""
        here = np.zeros(len(parts), dtype=np.intp)
        whole = np.array([self.received.sum()])
        return filling.fill(whole, here, self.wanted, parts)[0]

    def followed_part(self) -> float | None:
        """Return which part of the effect of the weights VMs had, 0..1.

        It is 0 for a division without weights, and 1 for the division by
        weights. In between it is fitted by least squares.

        :returns: ``None`` if the interval gives no evidence.
        """
        without = self.divide(self.vcpus)
        promised = self.divide(self.parts) - without
        moved = float(np.abs(promised).sum()) / 2
        if not moved or moved < LEAST_DIFFERENCE * float(self.received.sum()):
            return None
        # Squares of the smallest amounts would be nothing.
        way, gone = promised / moved, (self.received - without) / moved
        return float(np.clip(gone @ way / (way @ way), 0.0, 1.0))


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """Recent evidence of how far weights are followed.

    :ivar mean: mean part of the effect that weights should have, 0..1.
    :ivar count: number of intervals with evidence.
    """

    mean: float = 1.0
    count: int = 0

    def with_interval(self, followed_part: float | None) -> 'Evidence':
        """Return the evidence with one more interval."""
        if followed_part is None:
            return self
        part = max(NEWEST, 1 / (self.count + 1))
        mean = self.mean + part * (followed_part - self.mean)
        return Evidence(mean, self.count + 1)

    @property
    def known_mean(self) -> float | None:
        """The mean; ``None`` before the first interval with evidence."""
        return self.mean if self.count else None

    @property
    def shows_no_effect(self) -> bool:
        """Whether there is enough evidence that weights are not followed."""
        return self.count >= ENOUGH and self.mean < FOLLOWED
