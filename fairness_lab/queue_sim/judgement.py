# SPDX-License-Identifier: Apache-2.0

"""How fair a run was, and how long requests waited.

At every moment all allocations are divided again, in thought. They are divided
by shares among those who want something. No project gets more than it wants,
and the rest of one goes to the others (weighted max-min). Each project's part
is divided in the same way among its users. The result is the *entitlement* of
each. The ideal gives out exactly as much as the order did, so that the error
of shares says nothing of utilisation. Amounts are parts of the cloud in the
class that is the owner's largest (the dominant share).
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from fairness_lab.queue_sim import engine
from fairness_lab.queue_sim import usage_now
from fairness_lab.queue_sim import workload
from nova_fairness.shares import filling
from nova_fairness.shares import jain
from nova_fairness.shares import ledger as ledger_module

Floats = workload.Floats
Json = dict[str, Any]
Columns = dict[str, Any]

_LEAST_SHARE = 1e-9
"""Value of a share of 0: its owner gets only leftovers."""

_NEVER = float('nan')


@dataclasses.dataclass(frozen=True, eq=False)
class QueueJudgement:
    """Results of a run.

    :ivar summary: numbers, by name; ``None`` where there is none.
    :ivar tables: columns by name, by table: ``series``, ``projects``,
        ``users`` and ``sizes``.
    """

    summary: Json
    tables: Mapping[str, Columns]


class QueueJudge:
    """Looks at moments and gives the results.

    :param cloud: that was simulated.
    """

    def __init__(self, cloud: workload.QueuedCloud) -> None:
        self._cloud = cloud
        owners = cloud.owners
        self._project = np.array(owners.project, dtype=np.int64)
        self._share = np.maximum(np.array(owners.shares), _LEAST_SHARE)
        self._projects = len(owners.projects)
        self._ledger = ledger_module.UseLedger(cloud.half_life_s, 0.0)
        self._rows: list[tuple[float, ...]] = []
        self._held: list[Floats] = []
        self._entitled: list[Floats] = []
        self._counts_from_s = min(2 * cloud.half_life_s, cloud.duration_s / 2)
        nothing = np.zeros((len(owners.users), len(workload.CLASSES)))
        begin = usage_now.QueueMoment(
            0.0, nothing.astype(np.int64), nothing.astype(np.int64), nothing
        )
        self._settled = self._last = begin

    def see(self, moment: usage_now.QueueMoment) -> None:
        """Take a moment in."""
        held = self._dominant(moment.used)
        wants = self._by_project(moment.wanted).any(axis=1)
        entitled, users = self._ideal(moment, held)
        self._ledger = self._ledger.advanced(
            moment.at_s,
            {'held': held, 'entitled': entitled},
            np.ones_like(held),
        )
        used, due = self._ledger.use['held'], self._ledger.use['entitled']
        own = self._own(moment.used)
        used_part = moment.used.sum(axis=0) / self._cloud.capacity
        self._rows.append(
            (
                moment.at_s,
                float(used_part.max()),
                float(self._own(moment.wanted).sum()),
                _error(held, entitled),
                _error(used, due),
                _error(used[wants], due[wants]),
                _fairness(own, users),
                float(own.max(initial=0.0)),
            )
        )
        if self._settled.at_s >= self._counts_from_s:
            self._held.append(held)
            self._entitled.append(entitled)
        else:
            self._settled = moment
        self._last = moment

    def result(self, simulation: engine.Simulation) -> QueueJudgement:
        """Results of the run, after its last moment."""
        series = dict(zip(_SERIES, np.array(self._rows).T, strict=True))
        waits = _Waits(self._cloud, simulation)
        summary = {
            'requests': {
                each.name.lower(): int((simulation.fate == each).sum())
                for each in engine.Fate
            },
            'plans': simulation.plans,
            'settled_s': self._settled.at_s,
            'waiting': waits.of(np.ones(len(simulation.fate), dtype=bool)),
            'estimates': (
                simulation.estimate_judge.result()
                if simulation.estimate_judge
                else None
            ),
            'utilisation': self._utilisation(),
            'made_room': self._made_room(simulation),
            **self._spreads(series),
        }
        tables = {
            'series': series,
            'projects': self._project_table(waits),
            'users': self._user_table(waits, simulation),
            'sizes': self._size_table(waits),
        }
        return QueueJudgement(summary, tables)

    def _ideal(
        self, moment: usage_now.QueueMoment, held: Floats
    ) -> tuple[Floats, Floats]:
        """Entitlements of projects (p,) and users (u,)."""
        both = moment.used + moment.wanted
        entitled, _ = filling.fill(
            np.array([held.sum()]),
            np.zeros(self._projects, dtype=np.int64),
            self._dominant(both),
            self._share,
        )
        users, _ = filling.fill(
            entitled, self._project, self._own(both), np.ones(len(both))
        )
        return entitled, users

    def _own(self, amounts: Any) -> Floats:
        """Dominant part of each user, (u,)."""
        parts: Floats = (amounts / self._cloud.capacity).max(axis=1)
        return parts

    def _dominant(self, amounts: Any) -> Floats:
        """Dominant part of each project, (p,)."""
        return self._own(self._by_project(amounts))

    def _by_project(self, amounts: Any) -> Floats:
        total = np.zeros((self._projects, amounts.shape[1]))
        np.add.at(total, self._project, amounts)
        return total

    def _utilisation(self) -> Json:
        """Mean allocated part of the class that is used most."""
        begin, end = self._settled, self._last
        capacity = self._cloud.capacity
        return {
            'mean': _part(end.area, end.at_s, capacity),
            'settled_mean': _part(
                end.area - begin.area, end.at_s - begin.at_s, capacity
            ),
        }

    def _spreads(self, series: Columns) -> Json:
        rows = series['time_s'] > self._settled.at_s
        names = (
            'share_error_now',
            'share_error',
            'share_error_wanting',
            'jain',
        )
        return {name: _spread(series[name][rows]) for name in names}

    def _project_table(self, waits: '_Waits') -> Columns:
        owners = self._cloud.owners
        project = self._project[self._cloud.stream.user]
        return {
            'project': list(owners.projects),
            'share': np.array(owners.shares),
            'held_part': np.mean(self._held, axis=0),
            'entitled_part': np.mean(self._entitled, axis=0),
            **waits.table(project, self._projects),
        }

    def _made_room(self, simulation: engine.Simulation) -> Json | None:
        """Losses of evicted servers; ``None`` if none could be evicted."""
        stream = self._cloud.stream
        if not stream.is_preemptible.any():
            return None
        servers = self._servers_left(simulation)
        lost = simulation.leaving.lost.sum(axis=0)
        done = self._last.area.sum(axis=0)
        return {
            'servers': int(servers.sum()),
            'lost_part': float((lost / np.maximum(done, 1e-9)).max()),
            'follows_share': self._follows_share(servers),
        }

    def _servers_left(self, simulation: engine.Simulation) -> Floats:
        """Number of servers that left, of each user, (u,)."""
        stream = self._cloud.stream
        each = np.array([size.servers for size in stream.sizes])
        found: Floats = np.bincount(
            stream.user,
            simulation.leaving.left * each[stream.size],
            minlength=len(self._cloud.owners.users),
        ).astype(float)
        return found

    def _follows_share(self, servers: Floats) -> float | None:
        """Rank correlation of servers that left and use in times of a share.

        Of users of preemptible servers; ``None`` if all are alike.
        """
        stream = self._cloud.stream
        users = np.unique(stream.user[stream.is_preemptible])
        counts = np.bincount(self._project, minlength=self._projects)
        share = (self._share / counts)[self._project]
        over = self._own(self._last.area) / share
        if np.ptp(over[users]) == 0 or np.ptp(servers[users]) == 0:
            return None
        ranks = np.corrcoef(_ranks(over[users]), _ranks(servers[users]))
        return float(ranks[0, 1])

    def _user_table(
        self, waits: '_Waits', simulation: engine.Simulation
    ) -> Columns:
        owners, end = self._cloud.owners, self._last
        return {
            'project': [owners.projects[p] for p in owners.project],
            'user': list(owners.users),
            'dominant_share': self._own(end.area / end.at_s),
            'servers_left': self._servers_left(simulation),
            **waits.table(self._cloud.stream.user, len(owners.users)),
        }

    def _size_table(self, waits: '_Waits') -> Columns:
        stream = self._cloud.stream
        return {
            'size': [each.name for each in stream.sizes],
            'servers': [each.servers for each in stream.sizes],
            'vcpus': [each.vcpus for each in stream.sizes],
            'memory_mib': [each.memory_mib for each in stream.sizes],
            **waits.table(stream.size, len(stream.sizes)),
        }


_SERIES = (
    'time_s',
    'utilisation',
    'waiting_part',
    'share_error_now',
    'share_error',
    'share_error_wanting',
    'jain',
    'largest_dominant_share',
)


class _Waits:
    """How long requests waited; those that never started as long as they did.

    :param cloud: that was simulated.
    :param simulation: after its end.
    """

    def __init__(
        self, cloud: workload.QueuedCloud, simulation: engine.Simulation
    ) -> None:
        asked_s = cloud.stream.asked_s
        self._fate = simulation.fate
        self._there = asked_s <= cloud.duration_s
        self._started = np.isfinite(simulation.started_s)
        left_s = np.where(
            np.isfinite(simulation.left_s),
            simulation.left_s,
            cloud.duration_s,
        )
        self._waited_s = (
            np.where(self._started, simulation.started_s, left_s) - asked_s
        )

    def of(self, rows: Any) -> Json:
        """Of some requests; ``None`` if there are none."""
        rows = rows & self._there
        started = self._waited_s[rows & self._started]
        waited = self._waited_s[rows]
        return {
            'requests': int(rows.sum()),
            'started': len(started),
            'expired': int((self._fate[rows] == engine.Fate.EXPIRED).sum()),
            'mean_s': float(started.mean()) if len(started) else None,
            'p95_s': (
                float(np.percentile(started, 95)) if len(started) else None
            ),
            'longest_s': float(waited.max()) if len(waited) else None,
        }

    def table(self, group: workload.Indices, count: int) -> Columns:
        """The same for each of some groups of requests.

        :param group: (n,) index of each request's group.
        :param count: of groups.
        """
        order = np.argsort(group, kind='stable')
        edges = np.searchsorted(group[order], np.arange(count + 1))
        found = []
        for n in range(count):
            rows = np.zeros(len(group), dtype=bool)
            rows[order[edges[n] : edges[n + 1]]] = True
            found.append(self.of(rows))
        return {
            key: np.array(
                [_NEVER if each[key] is None else each[key] for each in found]
            )
            for key in found[0]
        }


def _ranks(values: Floats) -> Floats:
    """Places of values in their order; those that are equal share theirs."""
    order = np.sort(values)
    first = np.searchsorted(order, values, 'left')
    last = np.searchsorted(order, values, 'right')
    return np.asarray((first + last) / 2, dtype=np.float64)


def _error(held: Floats, entitled: Floats) -> float:
    """Part of the allocations that others should have, 0 to 1."""
    if not (held.sum() > 0 and entitled.sum() > 0):
        return 0.0
    apart = held / held.sum() - entitled / entitled.sum()
    return float(np.abs(apart).sum() / 2)


def _fairness(held: Floats, entitled: Floats) -> float:
    """Jain's index of what users have of what they are entitled to."""
    want = entitled > 0
    if not want.any():
        return 1.0
    return jain.jain_index(held[want] / entitled[want])


def _part(area: Floats, seconds: float, capacity: Any) -> float:
    return float((area.sum(axis=0) / seconds / capacity).max())


def _spread(values: Floats) -> Json:
    return {
        'mean': float(values.mean()),
        'p95': float(np.percentile(values, 95)),
        'largest': float(values.max()),
        'end': float(values[-1]),
    }
