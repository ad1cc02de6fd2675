# SPDX-License-Identifier: Apache-2.0

"""Evictions in a simulated cloud, and their preemptors."""

from collections.abc import Iterable

import numpy as np

from fairness_lab.queue_sim import workload
from fairness_lab.scenario import chance
from nova_fairness.model import cluster

SAVED_IN_S = 120.0
"""Notice that is enough to save work."""

_SAVED = 100
"""Key under which it is drawn who saves their work."""

_ANYBODY = 'anybody'
"""The preemptor of servers that leave so that a part of the cloud is free."""


class SimulatedEvictions:
    """Servers that leave, and their preemptors.

    :param requests: number of them.

    :ivar promised: hosts by UUID of the request that room is made for.
    :ivar left: (n,) how often servers of each request left.
    :ivar lost: (n, c) amounts times seconds that they had run then.
    """

    def __init__(self, requests: int) -> None:
        self.left = np.zeros(requests, dtype=np.int64)
        self.lost = np.zeros((requests, len(workload.CLASSES)))
        self.promised: dict[str, tuple[str, ...]] = {}
        self._noticed: dict[str, str] = {}
        self._notice_times_s: list[float] = []

    def notify_victims(self, action: cluster.Action, now_s: float) -> None:
        """Tell servers to leave for a request."""
        self.promised[action.request] = action.hosts
        self._noticed.update(dict.fromkeys(action.leaving, action.request))
        self._notice_times_s += [now_s] * len(action.leaving)

    def free(self, servers: Iterable[str], now_s: float) -> None:
        """Tell servers to leave, without a preemptor."""
        told = list(servers)
        self._noticed.update(dict.fromkeys(told, _ANYBODY))
        self._notice_times_s += [now_s] * len(told)

    def end_notice(self, server: str) -> bool:
        """A server was told, and leaves or stays.

        :returns: whether its room is still waited for.
        """
        request = self._noticed.pop(server, '')
        return request in self.promised or request == _ANYBODY

    @property
    def servers(self) -> frozenset[str]:
        """UUIDs of those that were told."""
        return frozenset(self._noticed)

    def count_in_last_hour(self, now_s: float) -> int:
        """Number of servers that were told in the last hour."""
        hour_s = now_s - workload.HOUR_S
        self._notice_times_s = [
            each for each in self._notice_times_s if each > hour_s
        ]
        return len(self._notice_times_s)


def saves(cloud: workload.QueuedCloud) -> workload.Marks:
    """(n,) whether servers of each request save their work at a notice."""
    rows = np.arange(len(cloud.stream))
    drawn = chance.uniform(cloud.seed, _SAVED, 0, rows)
    is_time = cloud.notice_s >= SAVED_IN_S
    return np.asarray((drawn < cloud.saves) & is_time)
