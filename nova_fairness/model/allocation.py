# SPDX-License-Identifier: Apache-2.0

"""Weights of VMs, and the kernel values that follow from them."""

from collections.abc import Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources

Weights = npt.NDArray[np.float64]
"""(n, c) finite, > 0; columns in the order of ``resources.CONTROLS``.

A higher weight means more service. 1 is neutral: the VM gets as much as a VM
of the same size gets without the agent.
"""

LEAST = 1e-6
"""Weight of best-effort VMs, for which every control has its lowest value."""

IDLE = 0
"""CPU units of a VM that gets only leftover CPU time: ``cpu.idle``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Knob:
    """Identifies one control of one incarnation of a VM.

    :ivar incarnation: :attr:`nova_fairness.model.instance.Incarnation.key`.
    :ivar control: the control.
    """

    incarnation: str
    control: resources.ResourceControl


Allocation = Mapping[Knob, int]
"""Kernel units by control of a VM: CPU shares (cgroup v1), cpu.weight (v2),
bytes ...
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A new value for one control of a VM.

    :ivar knob: the control.
    :ivar before: present value, kernel units; ``None`` if unknown.
    :ivar after: wanted value, kernel units.
    """

    knob: Knob
    before: int | None
    after: int
