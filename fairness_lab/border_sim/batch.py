# SPDX-License-Identifier: Apache-2.0

"""A batch system like Slurm: jobs start by priority, with EASY backfill.

A priority is ``W_fs F + W_age age / longest``, with the rank of the user in
the fair tree and an age that counts up to a week (Slurm's multifactor plugin
and its defaults). The first job that does not fit is promised the earliest
moment at which it will by the limits of all that runs; a job behind it starts
only if that is not put off (Lifka 1995; Slurm's ``sched/backfill``). Cores
alone are given away; jobs end by themselves, at their limits at the latest.
"""

import collections
from collections.abc import Mapping
import dataclasses
import heapq
import math

import numpy as np

from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import workload
from nova_fairness.model import border
from nova_fairness.model import request as request_model
from nova_fairness.shares import factors
from nova_fairness.shares import ledger as ledger_module
from nova_fairness.shares import tree as tree_module

Floats = workload.Floats

DEPTH = 100
"""Jobs that are looked at, by priority (``bf_max_job_test``)."""

WEIGHT_FAIRSHARE = 10_000.0
WEIGHT_AGE = 1000.0
LONGEST_AGE_S = 7 * workload.DAY_S

_ALL = ''
"""Under which the ledger has all users, side by side."""


@dataclasses.dataclass(frozen=True, slots=True)
class JobOnHost:
    """Cores that one job uses on one host.

    :ivar job: number of the job.
    :ivar row: index of the host.
    :ivar cores: number of cores.
    :ivar limit_at: latest end of the job, seconds.
    """

    job: int
    row: int
    cores: int
    limit_at: float


@dataclasses.dataclass
class _Reservation:
    """Reservation of cores for the first job that does not fit.

    :ivar at: latest start of that job, seconds.
    :ivar late: (h,) cores that other jobs may use at that time.
    """

    at: float
    late: workload.Indices


class BatchSide:
    """The batch system on all hosts.

    :param world: what is simulated.

    :ivar shares: (g,) relative shares of the groups.
    :ivar area: (u,) core-seconds that each user has used.
    :ivar started_s: (n,) when each job started; NaN for those that did not.
    """

    def __init__(self, world: world_module.World) -> None:
        jobs = world.jobs
        self._jobs, self._cycle_s = jobs, world.cloud.cycle_s
        self._cores = world.cloud.hosts[:, world_module.VCPU]
        self.free = self._cores.copy()
        self._open = np.zeros(len(self.free), dtype=bool)
        sizes = jobs.stream.sizes
        self._cores_of_sizes = np.array(
            [each.vcpus for each in sizes], np.int64
        )
        self._part_counts = np.array(
            [each.servers for each in sizes], np.int64
        )
        self.shares: Floats = np.array(jobs.owners.shares, dtype=float)
        self._project = np.array(jobs.owners.project, dtype=np.int64)
        users = len(jobs.owners.users)
        self.area, self._charged_area = np.zeros((2, users))
        self._used = np.zeros(users, dtype=np.int64)
        self._ledger = ledger_module.UseLedger(
            world.cloud.half_life_s, 0.0, {_ALL: np.zeros(users)}
        )
        self._capacity = np.full(users, float(world.cores))
        self._counted_until_s = 0.0
        self._next_job = 0
        self._pending: list[int] = []
        self._running: dict[int, list[JobOnHost]] = {}
        self._ends: list[tuple[float, int]] = []
        self._by_host: dict[int, dict[int, JobOnHost]] = (
            collections.defaultdict(dict)
        )
        self._changed = False
        self.started_s = np.full(len(jobs.stream), np.nan)

    @property
    def use(self) -> Floats:
        """(u,) decayed use of each user, as a fraction of all hosts."""
        found: Floats = self._ledger.use[_ALL]
        return found

    def granted(self, now_s: float) -> Floats:
        """(u,) use of running jobs that :attr:`use` does not have yet."""
        lacks = np.zeros(len(self.area))
        for n in self._running:
            elapsed_s = now_s - float(self.started_s[n])
            user = self._jobs.stream.user[n]
            lacks[user] += self._cores_of_job(n) * self._ledger.kept(elapsed_s)
        found: Floats = lacks / self._capacity
        return found

    @property
    def used_cores(self) -> int:
        """Number of cores that running jobs use."""
        return int(self._used.sum())

    def set_open(self, row: int, is_open: bool) -> None:
        """Set whether jobs may start on a host."""
        self._changed |= is_open
        self._open[row] = is_open

    def is_open(self, row: int) -> bool:
        """Whether jobs may start on a host."""
        return bool(self._open[row])

    def work(self, row: int) -> tuple[border.RunningWork, ...]:
        """Jobs that run on a host."""
        return tuple(
            border.RunningWork(f'{n}', float(part.cores), part.limit_at)
            for n, part in self._by_host[row].items()
        )

    def pending_work(self) -> tuple[border.PendingWork, ...]:
        """Jobs that wait, in the order of their submission."""
        stream = self._jobs.stream
        return tuple(
            border.PendingWork(
                f'{n}',
                float(self._cores_of_job(n)),
                float(stream.asked_s[n]),
                float(self._cores_per_part(n)),
            )
            for n in self._pending
        )

    def advance(self, until_s: float) -> None:
        """Process arrivals and ends of jobs until a time; start none."""
        asked_s = self._jobs.stream.asked_s
        while self._ends and self._ends[0][0] <= until_s:
            at_s, n = heapq.heappop(self._ends)
            self._count_use_until(at_s)
            self._end_job(n)
        while (
            self._next_job < len(asked_s)
            and asked_s[self._next_job] <= until_s
        ):
            self._pending.append(self._next_job)
            self._next_job += 1
            self._changed = True
        self._count_use_until(until_s)
        mean = (self.area - self._charged_area) / max(
            until_s - self._ledger.at, 1e-9
        )
        self._charged_area = self.area.copy()
        self._ledger = self._ledger.advanced(
            until_s, {_ALL: mean}, self._capacity
        )

    def schedule(self, now_s: float) -> None:
        """Start all jobs that can start, if anything changed."""
        if not self._changed or not self._pending:
            return
        self._changed = False
        promise = None
        for n in self._jobs_by_priority(now_s)[:DEPTH]:
            late = math.inf if promise is None else promise.at
            limit_at = now_s + float(self._jobs.limit_s[n])
            room = self.free
            if promise is not None and limit_at > late:
                room = np.minimum(room, promise.late)
            rows = self._find_hosts(n, room)
            if rows is not None:
                self._start_job(n, rows, now_s, limit_at)
                if promise is not None and limit_at > late:
                    np.subtract.at(promise.late, rows, self._cores_per_part(n))
            elif promise is None:
                promise = self._find_earliest_start(n, now_s)

    def _jobs_by_priority(self, now_s: float) -> list[int]:
        """Jobs that wait, highest priority first, then first come."""
        rank = self._fair_tree_ranks()
        waiting = np.array(self._pending)
        stream = self._jobs.stream
        age = (now_s - stream.asked_s[waiting]) / LONGEST_AGE_S
        priority = WEIGHT_FAIRSHARE * rank[stream.user[waiting]]
        priority += WEIGHT_AGE * age.clip(0.0, 1.0)
        order = np.argsort(-priority, kind='stable')
        found: list[int] = waiting[order].tolist()
        return found

    def _fair_tree_ranks(self) -> Floats:
        """Ranks of users in the fair tree, (u,), above 0 to 1."""
        owners = dataclasses.replace(
            self._jobs.owners, shares=tuple(self.shares.tolist())
        )
        tree = tree_module.AccountTree(owners.accounts)
        names = [
            request_model.account_of(owners.projects[at], user)
            for user, at in zip(owners.users, owners.project, strict=True)
        ]
        places = np.array([tree.place(name) for name in names])
        own = np.zeros(len(tree))
        own[places] = self.use
        members = np.zeros(len(tree), dtype=bool)
        members[places] = True
        rank = factors.fair_tree_rank(tree, tree.summed(own), members)
        found: Floats = rank[places]
        return found

    def _cores_per_part(self, n: int) -> int:
        return int(self._cores_of_sizes[self._jobs.stream.size[n]])

    def _cores_of_job(self, n: int) -> int:
        size = self._jobs.stream.size[n]
        return int(self._cores_of_sizes[size] * self._part_counts[size])

    def _find_hosts(
        self, n: int, room: workload.Indices
    ) -> workload.Indices | None:
        """Find hosts for all parts of a job, fullest first (``CR_Pack``)."""
        size, cores = self._jobs.stream.size[n], self._cores_per_part(n)
        many = np.where(self._open, room, 0) // cores
        if many.sum() < self._part_counts[size]:
            return None
        order = np.argsort(self.free, kind='stable')
        rows = np.repeat(order, many[order].clip(0))
        found: workload.Indices = rows[: self._part_counts[size]]
        return found

    def _find_earliest_start(
        self, n: int, now_s: float
    ) -> _Reservation | None:
        """Find the earliest start of a job if running jobs use their limits.

        :returns: ``None`` if the hosts that are open can never hold it.
        """
        late = np.where(self._open, self.free, 0)
        parts = sorted(
            (part for parts in self._running.values() for part in parts),
            key=lambda part: (part.limit_at, part.job, part.row),
        )
        for part in parts:
            if not self._open[part.row]:
                continue
            late[part.row] += part.cores
            rows = self._find_hosts(n, late)
            if rows is not None:
                np.subtract.at(late, rows, self._cores_per_part(n))
                # What ends then too is free for others as well.
                return _Reservation(max(part.limit_at, now_s), late)
        return None

    def _start_job(
        self, n: int, rows: workload.Indices, now_s: float, limit_at: float
    ) -> None:
        self._pending.remove(n)
        cores = self._cores_per_part(n)
        counts = collections.Counter(rows.tolist())
        parts = [
            JobOnHost(n, row, cores * count, limit_at)
            for row, count in sorted(counts.items())
        ]
        for part in parts:
            self.free[part.row] -= part.cores
            self._by_host[part.row][n] = part
        self._running[n] = parts
        self._used[self._jobs.stream.user[n]] += self._cores_of_job(n)
        self.started_s[n] = now_s
        end_s = now_s + float(self._jobs.stream.lifetime_s[n])
        heapq.heappush(self._ends, (end_s, n))

    def _end_job(self, n: int) -> None:
        for part in self._running.pop(n):
            self.free[part.row] += part.cores
            del self._by_host[part.row][n]
        self._used[self._jobs.stream.user[n]] -= self._cores_of_job(n)
        self._changed = True

    def _count_use_until(self, until_s: float) -> None:
        self.area += self._used * (until_s - self._counted_until_s)
        self._counted_until_s = until_s


def by_group(owners: workload.Owners, amounts: Floats) -> Mapping[str, float]:
    """Sum amounts of users by group."""
    found = dict.fromkeys(owners.projects, 0.0)
    for at, amount in zip(owners.project, amounts.tolist(), strict=True):
        found[owners.projects[at]] += amount
    return found
