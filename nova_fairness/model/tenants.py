# SPDX-License-Identifier: Apache-2.0

"""CPUs that servers want on their hosts, and CPUs that they get.

All amounts are means over a period that agents measured, in CPUs: 1 is one CPU
all the time.
"""

from collections.abc import Mapping
import dataclasses
import math

from nova_fairness import exception
from nova_fairness.model import cluster


@dataclasses.dataclass(frozen=True, slots=True)
class ServerWant:
    """CPU time of a server, as its agent measured it.

    :ivar owner: user or project of the server; owners are compared.
    :ivar wanted_cpus: CPUs that it would use of a plenty, >= 0.
    :ivar used_cpus: CPUs that it used, >= 0.
    :ivar weight: weight of the server in the kernel of its host, > 0.
    :ivar seen_s: seconds for which its agent has seen it.
    :ivar moved_at: time of its last move, seconds of the epoch.
    :raises BadSnapshot: if a number is out of its range.
    """

    owner: str
    wanted_cpus: float
    used_cpus: float
    weight: float = 1.0
    seen_s: float = math.inf
    moved_at: float = -math.inf

    def __post_init__(self) -> None:
        for name in ('wanted_cpus', 'used_cpus'):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise exception.BadSnapshot(
                    f'{name} must be CPUs from 0 up, got {value!r}'
                )
        if not 0.0 < self.weight < math.inf:
            raise exception.BadSnapshot(
                f'weight must be above 0 and finite, got {self.weight!r}'
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Tenants:
    """A cloud, and the wants of its servers, in CPUs.

    :ivar cloud: the cloud with its running servers.
    :ivar wants: wants by UUID of the server; servers without an entry stay.
    :ivar cpus: CPUs of the hosts with reports, > 0, by name; no server moves
        to or from other hosts.
    :ivar shares: shares by owner, > 0; an owner without an entry has 1.
    :raises BadSnapshot: if a number is out of its range.
    """

    cloud: cluster.ClusterSnapshot
    wants: Mapping[str, ServerWant]
    cpus: Mapping[str, float]
    shares: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, numbers in (('CPUs', self.cpus), ('share', self.shares)):
            for name, value in numbers.items():
                if not 0.0 < value < math.inf:
                    raise exception.BadSnapshot(
                        f'{what} of {name} must be above 0 and finite,'
                        f' got {value!r}'
                    )
