# SPDX-License-Identifier: Apache-2.0

"""CPU time that a VM lacked on its node, over a period."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class MeanLack:
    """Means over a period.

    :ivar wanted: CPUs that the VM would have used without contention, >= 0.
    :ivar got: CPUs that it used, >= 0.
    :ivar seen_s: length of the period, seconds.
    """

    wanted: float
    got: float
    seen_s: float
