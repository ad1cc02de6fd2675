# SPDX-License-Identifier: Apache-2.0

"""Orders by shares, as other schedulers have them.

An order in turns takes one request after the other. It charges each request
before it takes the next. So a user who is far below their share does not start
all their requests before another user starts one server.
"""

import abc
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import math
import operator
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nova_fairness.model import cluster
from nova_fairness.model import request as request_model
from nova_fairness.planners.fairqueue import order as order_module
from nova_fairness.planners.fairqueue import order_inputs
from nova_fairness.shares import factors
from nova_fairness.shares import tree as tree_module

Floats = npt.NDArray[np.float64]
Requests = Sequence[request_model.Request]


_LARGEST_WEIGHT = 1e9


@dataclasses.dataclass(frozen=True)
class FairTree(order_module.Order):
    """Slurm's fair tree in turns: least use per share first, level by level.

    On each level of the share tree the account with the least ``use / share``
    comes first; the same holds among the accounts below it. A start is added
    to the use of its account for ordering: present use counts as if the
    account had always had it. So with a long half-life one user is not first
    for many cycles (Kueue's entry penalty). All requests below an account come
    before those below a sibling with a larger ``use / share``.

    :ivar charge: part of the amounts of a request that a start adds to the use
        of its account, 0 to 1; 0 orders by past use alone, as Slurm does.
    """

    description = (
        'From the top of the share tree down, always to the account that has '
        'used least of its share.'
    )

    charge: float = 1.0

    def __post_init__(self) -> None:
        _check_ranges(self, charge=(0.0, 1.0))

    def arrange(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Requests:
        """Take requests in turns; see :meth:`.order.Order.arrange`."""
        standing = order_inputs.WaitingAccounts(waiting, snapshot, self.charge)
        return list(_TreeOfTurns(standing, waiting, self.charge))

    def factors(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the use per share, and Slurm's rank; see
        :func:`.factors.fair_tree_rank`.
        """
        standing = order_inputs.WaitingAccounts(waiting, snapshot, self.charge)
        tree = standing.tree
        use = standing.history.max(axis=1, initial=0.0)
        rank = factors.fair_tree_rank(tree, use, standing.wants)
        return {
            each.uuid: {
                **standing.uses(each),
                'fair_share': float(rank[tree.place(each.account)]),
            }
            for each in waiting
        }


_Key = tuple[float, ...]
"""Sort key of a branch of the tree. It has the ``use / share`` of each account
from the top down to the first user, then :data:`_USER`, then the rank of the
user's next request by age. Of equal entries users come first, as in Slurm."""

_USER = -1.0

_Entry = tuple[float, _Key, int]
"""``use / share`` of a branch, the key of its first child, and its index."""


class _TreeOfTurns:
    """Yields requests from a share tree, one after another.

    Each node has a heap of the branches below it that still have requests. A
    start changes only the branches above it, and each of these is the first of
    its heap. Accounts with equal ``use / share`` are treated as one account
    with the children of both; children keep their value below their own
    parent. So the key of an account ends with the key of its first child.
    """

    def __init__(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        charge: float,
    ) -> None:
        self._standing, self._charge = standing, charge
        tree = standing.tree
        self._parent: list[int] = tree.parent.tolist()
        self._share: list[float] = tree.share.tolist()
        self._among: list[float] = tree.share_of_siblings().tolist()
        # A start changes few numbers: lists are faster than arrays for that.
        self._use: list[list[float]] = standing.history.tolist()
        self._asked: dict[tuple[object, int], list[float]] = {}
        self._queues: dict[int, list[request_model.Request]] = {}
        aged = order_module.oldest_first(waiting)
        self._age = {each.uuid: n for n, each in enumerate(aged)}
        for each in reversed(aged):
            place = tree.place(each.account)
            self._queues.setdefault(place, []).append(each)
        self._heaps: dict[int, list[_Entry]] = {}
        for at in range(len(tree) - 1, -1, -1):
            self._push_branch(at)

    def __iter__(self) -> Iterator[request_model.Request]:
        while self._heaps.get(tree_module.ROOT):
            yield self._take_next()

    def _take_next(self) -> request_model.Request:
        path, at = [], tree_module.ROOT
        while at not in self._queues or not self._queues[at]:
            at = self._heaps[at][0][2]
            path.append(at)
        taken = self._queues[at].pop()
        part = self._charge_of_start(taken)
        for below in reversed(path):
            self._use[below] = list(map(operator.add, self._use[below], part))
            heapq.heappop(self._heaps[self._parent[below]])
            self._push_branch(below)
        return taken

    def _charge_of_start(self, taken: request_model.Request) -> list[float]:
        """Return the charge of a start, as parts of the cloud, (c,)."""
        key = taken.demand.amounts, len(taken.servers)
        if key not in self._asked:
            part = self._charge * self._standing.asked_part(taken)
            self._asked[key] = part.tolist()
        return self._asked[key]

    def _push_branch(self, at: int) -> None:
        """Put a branch into the heap above it, if it still has requests."""
        key = self._key_below(at)
        if key is None:
            return
        share, use = self._share[at], self._largest_use(at)
        level = _rounded(use / share) if share else math.inf
        entry = (level, key, at)
        heapq.heappush(self._heaps.setdefault(self._parent[at], []), entry)

    def _largest_use(self, at: int) -> float:
        return max(0.0, *self._use[at])

    def _key_below(self, at: int) -> _Key | None:
        """Return the key of the first request of a branch; ``None`` without
        a request.
        """
        if self._queues.get(at):
            return _USER, self._age[self._queues[at][-1].uuid]
        heap = self._heaps.get(at)
        if not heap:
            return None
        level, below, child = heap[0]
        # Compared with children of other accounts, a child counts by its part
        # of the use of its own parent.
        used = self._largest_use(at)
        if math.isfinite(level):
            level *= self._among[child] / used if used else 0.0
        return _rounded(level), *below


def _rounded(level: float) -> float:
    """Return a level without rounding errors, so that equal levels stay
    equal.
    """
    return float(f'{level:.12g}')


class _PriorityOrder(order_module.Order):
    """Sorts requests by a priority for each request, the largest first."""

    def arrange(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Requests:
        """Sort by the priority; see :meth:`.order.Order.arrange`."""
        summands = self._summands(
            order_inputs.WaitingAccounts(waiting, snapshot), waiting, now
        )
        return sorted(
            order_module.oldest_first(waiting),
            key=lambda each: sum(summands[each.uuid].values()),
            reverse=True,
        )

    def factors(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the use per share, the summands of the priority, and the
        priority.
        """
        standing = order_inputs.WaitingAccounts(waiting, snapshot)
        summands = self._summands(standing, waiting, now)
        return {
            each.uuid: {
                **standing.uses(each),
                **summands[each.uuid],
                'priority': sum(summands[each.uuid].values()),
            }
            for each in waiting
        }

    @abc.abstractmethod
    def _summands(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the summands of the priority of each request, by UUID."""


@dataclasses.dataclass(frozen=True)
class Multifactor(_PriorityOrder):
    """Priority that is a sum of factors from 0 to 1 (Slurm).

    :ivar fair_share: weight of ``2^(-U_E / S)``, see
        :func:`.factors.classic_factor`; >= 0.
    :ivar age: weight of the time waited, 1 after ``longest_s``; >= 0.
    :ivar size: weight of the largest part of the cloud for which the request
        asks; >= 0.
    :ivar longest_s: seconds after which the age factor is 1, at least 1;
        Slurm's ``PriorityMaxAge``.
    """

    description = (
        "A weighted sum of fair share, time waited and size, as Slurm's"
        ' multifactor priority.'
    )

    fair_share: float = 1000.0
    age: float = 100.0
    size: float = 10.0
    longest_s: float = 7 * 86400.0

    def __post_init__(self) -> None:
        any_weight = (0.0, _LARGEST_WEIGHT)
        _check_ranges(
            self, fair_share=any_weight, age=any_weight, size=any_weight
        )
        _check_ranges(self, longest_s=(1.0, _LARGEST_WEIGHT))

    def _summands(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        tree = standing.tree
        use = factors.normalised_use(
            tree, standing.history.max(axis=1, initial=0)
        )
        fair = factors.classic_factor(tree, use, standing.part)

        def summands(request: request_model.Request) -> cluster.Factors:
            waited = (now - request.asked_at) / self.longest_s
            size = standing.asked_part(request).max(initial=0.0)
            fair_share = fair[tree.place(request.account)]
            return {
                'fair_share': self.fair_share * float(fair_share),
                'age': self.age * min(max(waited, 0.0), 1.0),
                'size': self.size * float(size),
            }

        return {each.uuid: summands(each) for each in waiting}


@dataclasses.dataclass(frozen=True)
class Synergy(_PriorityOrder):
    """Priority ``vcpus x F_vcpus + memory x F_memory``, the largest first.

    :ivar vcpus: weight, >= 0; Synergy's code has 100.
    :ivar memory: weight, >= 0; 70.
    """

    description = (
        'Fair shares of VCPUs and of memory in a weighted sum, as Synergy.'
    )

    vcpus: float = 100.0
    memory: float = 70.0

    def __post_init__(self) -> None:
        any_weight = (0.0, _LARGEST_WEIGHT)
        _check_ranges(self, vcpus=any_weight, memory=any_weight)

    def _summands(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        tree = standing.tree
        weights = {
            'VCPU': ('vcpus', self.vcpus),
            'MEMORY_MB': ('memory', self.memory),
        }
        summands = {}
        for column, each in enumerate(standing.classes):
            if each in weights:
                name, weight = weights[each]
                use = factors.normalised_use(tree, standing.history[:, column])
                fair = factors.classic_factor(tree, use, standing.part)
                summands[name] = weight * fair
        places = {each.uuid: tree.place(each.account) for each in waiting}
        return {
            uuid: {
                name: float(all_of[at]) for name, all_of in summands.items()
            }
            for uuid, at in places.items()
        }


@dataclasses.dataclass(frozen=True)
class Fass(_PriorityOrder):
    """``2^(-use / use of all / share)`` of each user, the largest first.

    This is the order of FaSS. It compares users of all projects with each
    other. FaSS counts each older period half; here the ledger has a half-life.

    :ivar published: 0 for the corrected order, 1 for the order of FaSS 1.4
        with its faults: only VCPUs count, the use of one user replaces the use
        of all, and the factor is divided by the number of the server. The one
        user is the owner of the oldest request, and the number of a server is
        the position of its request by age.
    """

    description = (
        'Part of all use divided by the share, user by user, as FaSS.'
    )

    published: float = 0.0

    def __post_init__(self) -> None:
        if self.published not in (0, 1):
            raise ValueError(
                f'published must be 0 or 1, got {self.published!r}'
            )

    def _summands(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        aged = order_module.oldest_first(waiting)
        places = {
            each.uuid: standing.tree.place(each.account) for each in aged
        }
        if self.published:
            vcpus = [name == 'VCPU' for name in standing.classes]
            use = standing.history[:, vcpus].sum(axis=1)
            total = use[[places[each.uuid] for each in aged[:1]]].sum()
        else:
            use = standing.history.max(axis=1, initial=0.0)
            total = use[standing.tree.parent == tree_module.ROOT].sum()
        # The ledger has one period, whose use has decayed already.
        periods = np.array([[1.0, 0.0, 0.0, 0.0]])
        factor = factors.fass_factor(
            use[:, np.newaxis] * periods, total * periods[0], standing.part
        )
        return {
            each.uuid: {
                'fair_share': float(factor[places[each.uuid]])
                / (number if self.published else 1)
            }
            for number, each in enumerate(aged, 1)
        }


class _ProjectOrder(order_module.Order):
    """Yields the oldest request of the project that is first, in turns."""

    def arrange(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Requests:
        """Take requests in turns; see :meth:`.order.Order.arrange`."""
        standing = order_inputs.WaitingAccounts(waiting, snapshot)
        turns = _Projects(standing, waiting, snapshot)
        taken: list[request_model.Request] = []
        while turns.left.any():
            ahead = self._ahead(turns)
            # Of equal projects, the one with the oldest request comes first.
            first = np.lexsort((turns.age, ahead, ~turns.left))[0]
            taken.append(turns.take(int(first)))
        return taken

    def factors(
        self,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
        now: float,
    ) -> Mapping[str, cluster.Factors]:
        """Return the use per share, and how far each project is ahead of its
        share.

        These are the numbers before the first turn. Requests of a project
        without a share have no number.
        """
        standing = order_inputs.WaitingAccounts(waiting, snapshot)
        turns = _Projects(standing, waiting, snapshot)
        ahead = dict(zip(turns.names, self._ahead(turns), strict=True))
        told = {
            name: {self.factor: float(level)} if np.isfinite(level) else {}
            for name, level in ahead.items()
        }
        return {
            each.uuid: {**standing.uses(each), **told[each.project]}
            for each in waiting
        }

    factor: ClassVar[str]
    """Name of the factor that describes how far a project is ahead."""

    @abc.abstractmethod
    def _ahead(self, turns: '_Projects') -> Floats:
        """Return how far each project is ahead of its share, (p,)."""


class _Projects:
    """Amounts that projects use and need while requests are taken in turns.

    :ivar names: (p,) names of projects with waiting requests.
    :ivar classes: (c,) names of the classes.
    :ivar used: (p, c) use, with the amounts of requests taken so far.
    :ivar guaranteed: (p, c) guaranteed amounts and nominal quotas.
    :ivar next: (p, c) amounts of the next request of each project.
    :ivar age: (p,) rank of this request by age among all requests.
    :ivar left: (p,) whether a project still has requests.
    :ivar part: (p,) part of the cloud of each project, by the shares of the
        accounts with waiting requests.
    :ivar weight: (p,) share of each project.
    :ivar capacity: (c,) capacity of the cloud.
    :ivar history: (p,) decayed use, as a part of the cloud, times the class
        weights, summed over the classes.
    :ivar taken: (p,) the same sum of the requests taken so far.
    """

    def __init__(
        self,
        standing: order_inputs.WaitingAccounts,
        waiting: Requests,
        snapshot: cluster.ClusterSnapshot,
    ) -> None:
        tree = standing.tree
        wait = {each.project for each in waiting}
        self.names = sorted(wait)
        self.classes = snapshot.classes
        self._standing = standing
        places = [tree.place(name) for name in self.names]
        self.part = standing.part[places]
        self.weight = tree.share[places]
        self.capacity = standing.capacity
        self.history: Floats = standing.history[places].sum(axis=1)
        self.taken: Floats = np.zeros(len(self.names))
        classes = len(snapshot.classes)
        none = np.zeros(classes)
        self.used: Floats = np.array(
            [snapshot.used.get(name, none) for name in self.names],
            dtype=np.float64,
        ).reshape(-1, classes)
        owned = {each.name: dict(each.nominal) for each in snapshot.accounts}
        self.guaranteed: Floats = np.array(
            [
                cluster.amounts_vector(
                    snapshot.limits.get(name, cluster.NO_LIMITS).guaranteed,
                    snapshot.classes,
                )
                + cluster.amounts_vector(owned.get(name, {}), snapshot.classes)
                for name in self.names
            ],
            dtype=np.float64,
        ).reshape(-1, classes)
        self._queues: list[list[request_model.Request]] = [
            [] for _ in self.names
        ]
        row = {name: p for p, name in enumerate(self.names)}
        aged = order_module.oldest_first(waiting)
        self._age = {each.uuid: n for n, each in enumerate(aged)}
        for each in reversed(aged):
            self._queues[row[each.project]].append(each)
        self.next = np.zeros((len(self.names), classes))
        self.age = np.zeros(len(self.names))
        self.left = np.zeros(len(self.names), dtype=bool)
        for p in range(len(self.names)):
            self._load_next(p)

    def take(self, p: int) -> request_model.Request:
        """Remove the next request of a project, and return it."""
        taken = self._queues[p].pop()
        self.used[p] += self.next[p]
        self.taken[p] += self._standing.asked_part(taken).sum()
        self._load_next(p)
        return taken

    def _load_next(self, p: int) -> None:
        self.left[p] = bool(self._queues[p])
        if self._queues[p]:
            coming = self._queues[p][-1]
            self.next[p] = self._standing.asked(coming)
            self.age[p] = self._age[coming.uuid]


class DominantShare(_ProjectOrder):
    """Orders by the amount that a project would borrow with its request,
    the smallest first (Kueue).
    """

    description = (
        'First those who have borrowed least beyond their nominal quota, as '
        'Kueue.'
    )
    factor = 'dominant_share'

    def _ahead(self, turns: _Projects) -> Floats:
        return factors.dominant_share(
            turns.used + turns.next,
            turns.guaranteed,
            turns.capacity,
            turns.weight,
        )


@dataclasses.dataclass(frozen=True)
class AdmissionFairSharing(_ProjectOrder):
    """First the project with the least decayed use per share (Kueue).

    The use is the sum over the classes (KEP-4136). A start counts at once with
    a small part of its amounts, so that requests of other projects can follow.

    :ivar penalty: part of the amounts of a request that a start adds to the
        use, 0 to 1; Kueue's entry penalty, ``1 - 0.5^(interval / half-life)``.
        The default is that of five minutes and a week.
    """

    description = (
        "First those who have used least of their share, as Kueue's"
        ' admission fair sharing.'
    )
    factor = 'use_per_share'

    penalty: float = 0.000344

    def __post_init__(self) -> None:
        _check_ranges(self, penalty=(0.0, 1.0))

    def _ahead(self, turns: _Projects) -> Floats:
        use = turns.history + self.penalty * turns.taken
        per_share = np.full(len(use), np.inf)
        np.divide(use, turns.part, out=per_share, where=turns.part > 0)
        return per_share


@dataclasses.dataclass(frozen=True)
class Distribution(_ProjectOrder):
    """Orders by the distance to the desired part of a project, the project
    furthest below first (Cloud Scheduler).

    Projects without a desired part come last, whatever they have.

    The use of a project is ``VCPUs^vcpus x MEMORY_MB^memory x DISK_GB^disk``;
    a class that the cloud does not have does not count.

    :ivar vcpus: power of VCPUs, 0 to 3; with 0 they do not count.
    :ivar memory: power of memory, 0 to 3; with 0 it does not count.
    :ivar disk: power of disk, 0 to 3; with 0 it does not count.
    """

    description = (
        'First those who are furthest below the part of the cloud desired '
        'for them, as Cloud Scheduler.'
    )
    factor = 'beyond_desired'

    vcpus: float = 0.0
    memory: float = 1.0
    disk: float = 0.0

    def __post_init__(self) -> None:
        power = (0.0, 3.0)
        _check_ranges(self, vcpus=power, memory=power, disk=power)

    def _ahead(self, turns: _Projects) -> Floats:
        powers = {
            'VCPU': self.vcpus,
            'MEMORY_MB': self.memory,
            'DISK_GB': self.disk,
        }
        power = np.array([powers.get(name, 0.0) for name in turns.classes])
        columns = power > 0
        amounts = turns.used[:, columns] ** power[columns]
        over = factors.excess_over_desired(amounts, turns.part)
        return np.where(turns.part > 0, over, np.inf)


def _check_ranges(
    order: order_module.Order, **ranges: tuple[float, float]
) -> None:
    """Raise ``ValueError`` for numbers that are out of their range."""
    for name, (least, most) in ranges.items():
        given = getattr(order, name)
        if not least <= given <= most:
            raise ValueError(
                f'{name} must be a number from {least:g} to {most:g}, got'
                f' {given!r}'
            )
