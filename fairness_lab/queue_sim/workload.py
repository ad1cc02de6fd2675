# SPDX-License-Identifier: Apache-2.0

"""A cloud, those who share it, and what they ask for in a stretch of time.

Times are seconds since the begin. Amounts are int64; their columns are
:data:`CLASSES`.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.preemption import watermark

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

CLASSES = ('MEMORY_MB', 'VCPU')
"""Resource classes that servers of simulated clouds need."""

MIB_PER_GIB = 1024
DAY_S = 86400.0
HOUR_S = 3600.0

RESIZED_AFTER_S = 600.0
"""From a start to when its user first tries to resize its servers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """Size of a request.

    :ivar vcpus: of each server, >= 1.
    :ivar memory_mib: of each server, >= 1.
    :ivar servers: that start together, >= 1.
    """

    vcpus: int
    memory_mib: int
    servers: int = 1

    @property
    def name(self) -> str:
        """How tables call it, such as ``2 x 4 VCPU, 16 GiB``."""
        memory = f'{self.memory_mib / MIB_PER_GIB:g} GiB'
        one = f'{self.vcpus} VCPU, {memory}'
        return f'{self.servers} x {one}' if self.servers > 1 else one

    @property
    def demand(self) -> request_model.Demand:
        """Demand of one server."""
        amounts = (self.memory_mib, self.vcpus)
        return request_model.Demand(tuple(zip(CLASSES, amounts, strict=True)))

    @property
    def amounts(self) -> cluster.Amounts:
        """(c,) of all servers."""
        one = np.array([self.memory_mib, self.vcpus], dtype=np.int64)
        return one * self.servers


@dataclasses.dataclass(frozen=True)
class Owners:
    """Projects that share a cloud, and their users.

    :ivar projects: (p,) names.
    :ivar shares: (p,) >= 0.
    :ivar users: (u,) names; unique in their project.
    :ivar project: (u,) index of each user's project.
    """

    projects: tuple[str, ...]
    shares: tuple[float, ...]
    users: tuple[str, ...]
    project: tuple[int, ...]

    @property
    def accounts(self) -> tuple[cluster.Account, ...]:
        """The share tree: projects first, users after them."""
        top = [
            cluster.Account(name, None, share)
            for name, share in zip(self.projects, self.shares, strict=True)
        ]
        return (
            *top,
            *(
                cluster.Account(
                    request_model.account_of(self.projects[at], user),
                    self.projects[at],
                )
                for user, at in zip(self.users, self.project, strict=True)
            ),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """Requests in the order in which they are asked for.

    :ivar asked_s: (n,) ascending, >= 0.
    :ivar lifetime_s: (n,) for which its servers run, > 0.
    :ivar deleted_s: (n,) when its user deletes it, whether it waits or runs;
        infinite for never.
    :ivar user: (n,) index of its user.
    :ivar size: (n,) index of its size.
    :ivar sizes: what they ask for.
    :ivar resized: (n,) index of the size that its user resizes it to as soon
        as hosts have room, which asks no queue; below 0 for none, as for all
        without it.
    :ivar preemptible: (n,) whether its servers make room for others; without
        it none do.
    :ivar limit_s: (n,) time limits, >= ``lifetime_s``; infinite for none, as
        for all without it.
    """

    asked_s: Floats
    lifetime_s: Floats
    deleted_s: Floats
    user: Indices
    size: Indices
    sizes: tuple[Size, ...]
    resized: Indices | None = None
    preemptible: Marks | None = None
    limit_s: Floats | None = None

    def without_preemptible(self) -> 'Stream':
        """The same stream without requests for preemptible servers."""
        rows = ~self.is_preemptible
        columns = ('asked_s', 'lifetime_s', 'deleted_s', 'user', 'size')
        kept = {name: getattr(self, name)[rows] for name in columns}
        return Stream(sizes=self.sizes, **kept)

    def time_limit_s(self, n: int) -> float | None:
        """How long the servers of a request may run; ``None`` for ever."""
        if self.limit_s is None or not np.isfinite(self.limit_s[n]):
            return None
        return float(self.limit_s[n])

    @property
    def is_preemptible(self) -> Marks:
        """(n,) the same, also if none do."""
        if self.preemptible is None:
            return np.zeros(len(self), dtype=bool)
        return self.preemptible

    def __len__(self) -> int:
        return len(self.asked_s)


@dataclasses.dataclass(frozen=True, eq=False)
class QueuedCloud:
    """A cloud to simulate, with all that is asked of it.

    :ivar name: of the scenario.
    :ivar description: what it shows.
    :ivar seed: of everything that is drawn.
    :ivar duration_s: > 0.
    :ivar cycle_s: between two plans, > 0.
    :ivar half_life_s: after which use counts half, > 0.
    :ivar longest_wait_s: after which a request expires; ``None`` for never.
    :ivar patience_s: for which others start where room is reserved for a
        request that waits, >= 0.
    :ivar estimates_s: between estimates of starts, > 0; ``None`` for none.
    :ivar hosts: (h, c) capacity.
    :ivar owners: who shares it.
    :ivar stream: what they ask for.
    :ivar notice_s: after which a server leaves that was told to, >= 0.
    :ivar marks: parts of it that are to be free.
    :ivar saves: part of preemptible requests whose servers save their work at
        a notice, and go on from there later, 0 to 1.
    """

    name: str
    description: str
    seed: int
    duration_s: float
    cycle_s: float
    half_life_s: float
    longest_wait_s: float | None
    patience_s: float
    estimates_s: float | None
    hosts: cluster.Amounts
    owners: Owners
    stream: Stream
    notice_s: float = 600.0
    marks: watermark.WatermarkBounds = watermark.NONE
    saves: float = 0.0

    @property
    def capacity(self) -> cluster.Amounts:
        """(c,) of all hosts."""
        total: cluster.Amounts = self.hosts.sum(axis=0)
        return total
