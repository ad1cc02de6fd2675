# SPDX-License-Identifier: Apache-2.0

"""Amounts that users of a simulated cloud have and want, now and so far."""

import dataclasses

import numpy as np

from fairness_lab.queue_sim import workload
from nova_fairness.model import cluster

Floats = workload.Floats


@dataclasses.dataclass(frozen=True, eq=False)
class QueueMoment:
    """The cloud at one moment.

    :ivar at_s: when.
    :ivar used: (u, c) allocated by user.
    :ivar wanted: (u, c) what waits, by user.
    :ivar area: (u, c) allocated amount times seconds, since the begin.
    """

    at_s: float
    used: cluster.Amounts
    wanted: cluster.Amounts
    area: Floats


class UserAmounts:
    """Amounts that users have and want, (u, c), and had, times seconds."""

    def __init__(self, users: int, classes: int) -> None:
        amounts = np.zeros((3, users, classes), dtype=np.int64)
        # Of what is used the second is what preemptible servers have.
        self.used, self.lent, self.wanted = amounts
        self.area, self.lent_area = np.zeros((2, users, classes))
        self.at_s = 0.0

    def advance_to(self, until_s: float) -> None:
        """Let time pass in which nothing happens."""
        self.area += self.used * (until_s - self.at_s)
        self.lent_area += self.lent * (until_s - self.at_s)
        self.at_s = until_s
