# SPDX-License-Identifier: Apache-2.0

"""CPUs that servers want of their hosts, and CPUs that they get.

All amounts are means over a history, as agents saw it, in CPUs: 1 is one CPU
all the time.
"""

from collections.abc import Mapping
import dataclasses
import math

from nova_fairness import exception
from nova_fairness.model import cluster


@dataclasses.dataclass(frozen=True, slots=True)
class ServerWant:
    """A server that an agent has seen for a while.

    :ivar owner: user or project that it belongs to, and that is compared.
    :ivar wanted: what it would use of a plenty, CPUs, >= 0.
    :ivar got: what it used, CPUs, >= 0.
    :ivar weight: by which its kernel divides CPUs between it and others, > 0.
    :ivar seen_s: seconds for which its agent has seen it.
    :ivar moved_at: when it was moved last, seconds of the epoch.
    :raises BadSnapshot: if a number is none of these.
    """

    owner: str
    wanted: float
    got: float
    weight: float = 1.0
    seen_s: float = math.inf
    moved_at: float = -math.inf

    def __post_init__(self) -> None:
        for name in ('wanted', 'got'):
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

    :ivar cloud: with what runs.
    :ivar wants: by UUID of the server; others are not known, and they stay.
    :ivar cpus: of the hosts that told, > 0, by name; nothing is moved to or
        from others.
    :ivar shares: by owner, > 0; those not named have 1.
    :raises BadSnapshot: if a number is none of these.
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
