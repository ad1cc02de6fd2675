# SPDX-License-Identifier: Apache-2.0

"""Hosts that a batch system and a cloud share, and the work of both.

Times are seconds since the begin. The work of the cloud is a
:class:`.workload.Cloud` of all hosts; jobs are a stream of the same kind,
whose servers are parts of a job that start together.
"""

import dataclasses

from fairness_lab.queue_sim import workload
from nova_fairness.planners.border import demand

VCPU = workload.CLASSES.index('VCPU')
"""Column of cores."""


@dataclasses.dataclass(frozen=True, eq=False)
class Jobs:
    """Demand of the batch system.

    :ivar owners: groups with their pledges, and users.
    :ivar stream: jobs; memory does not count.
    :ivar limit_s: (n,) time limits, at least the lifetimes.
    """

    owners: workload.Owners
    stream: workload.Stream
    limit_s: workload.Floats


@dataclasses.dataclass(frozen=True)
class OperatorSettings:
    """Hours at which an operator moves the border, and the TTL of servers.

    :ivar hours: of each day, ascending, 0 to 24.
    :ivar ttl_s: time to live of servers on a host that goes to the batch
        system; then they are killed.
    """

    hours: tuple[float, ...] = (9.0, 17.0)
    ttl_s: float = 600.0


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """Everything that is simulated: hosts, both sides, the border's rules.

    :ivar cloud: all hosts, and what is asked of the cloud.
    :ivar jobs: what is asked of the batch system.
    :ivar cloud_hosts_at_start: number of hosts of the cloud at the begin.
    :ivar rules: by which demand moves the border.
    :ivar operator: settings of the operator who moves it by hand.
    :ivar boot_s: from when a side may open a host until it takes work.
    :ivar migrate_s: for which a live migration of one server takes; those of
        one host come one after the other.
    :ivar adjust_s: between two adjustments of shares; ``None`` if each side
        goes by what was used of it alone.
    """

    cloud: workload.QueuedCloud
    jobs: Jobs
    cloud_hosts_at_start: int
    rules: demand.BorderRules
    operator: OperatorSettings = OperatorSettings()
    boot_s: float = 300.0
    migrate_s: float = 60.0
    adjust_s: float | None = 300.0

    @property
    def cores(self) -> int:
        """Number of cores of all hosts."""
        return int(self.cloud.capacity[VCPU])
