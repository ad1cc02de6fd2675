# SPDX-License-Identifier: Apache-2.0

"""CPU time that a VM lacked on its node, over a history."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class MeanLack:
    """Means over a history.

    :ivar wanted: CPUs that the VM would have used of a plenty, >= 0.
    :ivar got: CPUs that it used, >= 0.
    :ivar seen_s: seconds of the history.
    """

    wanted: float
    got: float
    seen_s: float
