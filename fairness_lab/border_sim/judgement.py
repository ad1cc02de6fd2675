# SPDX-License-Identifier: Apache-2.0

"""Results of a simulated run of a batch system and a cloud."""

from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any

import numpy as np

from fairness_lab.border_sim import engine
from fairness_lab.border_sim import world as world_module
from fairness_lab.queue_sim import engine as queue_engine
from fairness_lab.queue_sim import workload
from nova_fairness.model import border as border_module

Json = dict[str, Any]
Columns = dict[str, Any]

_Side = border_module.BorderSide

SETTLED_HALF_LIVES = 2
"""At the begin, in which use is not judged by pledges."""


@dataclasses.dataclass(frozen=True)
class BorderJudgement:
    """Results of a run.

    :ivar summary: JSON.
    :ivar tables: columns by name, by name of the table.
    """

    summary: Json
    tables: dict[str, Columns]


class BorderJudge:
    """Collects moments of a run, and computes its results.

    :param world: what is simulated.
    """

    def __init__(self, world: world_module.World) -> None:
        self._world = world
        self._settled_s = min(
            SETTLED_HALF_LIVES * world.cloud.half_life_s,
            world.cloud.duration_s / 2,
        )
        self._rows: list[engine.BorderMoment] = []
        self._errors: list[float] = []

    def see(
        self, moment: engine.BorderMoment, pledges: workload.Floats
    ) -> None:
        """Add a moment to the results."""
        if moment.at_s >= self._settled_s:
            self._errors.append(_pledge_error(moment.use_by_group, pledges))
        self._rows.append(moment)

    def result(self, border: engine.BorderRun) -> BorderJudgement:
        """All results of a run.

        :param border: whose run has ended.
        """
        work = _work_hours(self._world, border)
        summary = {
            'work': work,
            'moves': _move_counts(self._world, border),
            'in_both': border.hosts_on_both_sides,
            'migrations': border.cloud.moved,
            'killed': border.cloud.killed,
            'expired': int(
                (border.cloud.fate == queue_engine.Fate.EXPIRED).sum()
            ),
            'waiting': _waits_by_side(self._world, border),
            'settled_s': self._settled_s,
            'pledge_error': {
                'mean': _rounded(np.mean(self._errors)),
                'largest': _rounded(np.max(self._errors)),
                'end': _rounded(self._errors[-1]),
            }
            if self._errors
            else None,
        }
        tables = {
            'series': _series_columns(self._rows),
            'groups': _group_columns(border, self._world.cloud.duration_s),
        }
        return BorderJudgement(summary, tables)


def _rounded(number: Any) -> float:
    return round(float(number), 6)


def _pledge_error(parts: workload.Floats, pledges: workload.Floats) -> float:
    """Largest difference of a group's fraction of all use and its pledge."""
    use = parts.sum(axis=1)
    total = use.sum()
    if not total:
        return 0.0
    return float(np.abs(use / total - pledges).max())


def _work_hours(world: world_module.World, border: engine.BorderRun) -> Json:
    """Core-hours of useful work by side, and of lost work."""
    cloud = border.cloud.core_seconds - border.cloud.lost_core_seconds.sum()
    hours = {
        'batch': float(border.batch.area.sum()) / workload.HOUR_S,
        'cloud': float(cloud) / workload.HOUR_S,
    }
    total = sum(hours.values())
    capacity = world.cores * world.cloud.duration_s / workload.HOUR_S
    return {
        **{name: _rounded(each) for name, each in hours.items()},
        'total': _rounded(total),
        'part': _rounded(total / capacity),
        'lost': _rounded(
            border.cloud.lost_core_seconds.sum() / workload.HOUR_S
        ),
    }


def _move_counts(world: world_module.World, border: engine.BorderRun) -> Json:
    """Number of moved hosts: in all, per host and day, and the most."""
    days = world.cloud.duration_s / workload.DAY_S
    by_day = [
        len(list(group))
        for _, group in itertools.groupby(
            sorted(
                (row, at_s // workload.DAY_S) for row, at_s in border.arrived
            )
        )
    ]
    count = len(border.arrived)
    return {
        'count': count,
        'a_host_a_day': _rounded(count / days / len(world.cloud.hosts)),
        'most_of_a_host_in_a_day': max(by_day, default=0),
    }


def _waits_by_side(
    world: world_module.World, border: engine.BorderRun
) -> Json:
    streams = {
        'batch': (world.jobs.stream, border.batch.started_s),
        'cloud': (world.cloud.stream, border.cloud.started_s),
    }
    return {
        name: _wait_statistics(started_s - stream.asked_s)
        for name, (stream, started_s) in streams.items()
    }


def _wait_statistics(wait_s: workload.Floats) -> Json:
    known = wait_s[np.isfinite(wait_s)]
    if not len(known):
        return {'started': 0, 'mean_s': None, 'p95_s': None}
    return {
        'started': len(known),
        'mean_s': _rounded(known.mean()),
        'p95_s': _rounded(np.quantile(known, 0.95)),
    }


def _series_columns(rows: Sequence[engine.BorderMoment]) -> Columns:
    return {
        'time_s': np.array([each.at_s for each in rows]),
        'cloud_hosts': [each.hosts[_Side.CLOUD] for each in rows],
        'moving': [each.moving for each in rows],
        **{
            f'{side.value}_used': [each.used[side] for each in rows]
            for side in _Side
        },
        **{
            f'{side.value}_waiting': np.array(
                [each.waiting[side] for each in rows], float
            )
            for side in _Side
        },
    }


def _group_columns(border: engine.BorderRun, now_s: float) -> Columns:
    """Pledges, and the decayed use of groups at the end."""
    parts = border.use_by_group(now_s)
    parts = parts / max(parts.sum(), 1e-12)
    return {
        'group': list(border.groups),
        'pledge': np.round(border.pledges, 6),
        'batch_part': np.round(parts[:, 0], 6),
        'cloud_part': np.round(parts[:, 1], 6),
        'part': np.round(parts.sum(axis=1), 6),
    }
