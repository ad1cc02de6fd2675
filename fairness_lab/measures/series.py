# SPDX-License-Identifier: Apache-2.0


"""Series of every round: by user, by node and, if asked, by VM."""

from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np

from fairness_lab.measures import files
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import exception
from nova_fairness.model import resources
from nova_fairness.shares import grouping


class SeriesWriter:
    """An observer that writes tables.

    :param cloud: that is simulated.
    :param directory: where to.
    :param kind: ``csv`` or ``parquet``.
    :param detail: whether every VM is written.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        directory: pathlib.Path,
        kind: str,
        *,
        detail: bool,
    ) -> None:
        table = files.TABLES[kind]
        self._cloud = cloud
        self._users = table(directory / 'users')
        self._nodes = table(directory / 'nodes')
        self._vms = table(directory / 'vms') if detail else None

    def see(self, moment: model.RoundMoment) -> None:
        """Write a round."""
        self._users.add(self._user_columns(moment))
        self._nodes.add(self._node_columns(moment))
        if self._vms is not None:
            self._vms.add(self._vm_columns(moment))

    def result(self) -> Mapping[str, Any]:
        """Close the files; the result gets no entry."""
        for table in (self._users, self._nodes, self._vms):
            if table is not None:
                table.close()
        return {}

    def _user_columns(
        self, moment: model.RoundMoment
    ) -> dict[str, files.Column]:
        rows = np.flatnonzero(moment.node != cloud_module.ABSENT)
        user = self._cloud.user_of_vm[rows]
        count = len(self._cloud.users)
        return {
            **_head(moment, count),
            'user': self._cloud.users,
            'instances': np.bincount(user, minlength=count),
            'heaviness': moment.user_heaviness,
            **_sums_by_group(user, rows, moment, count),
        }

    def _node_columns(
        self, moment: model.RoundMoment
    ) -> dict[str, files.Column]:
        rows = np.flatnonzero(moment.node != cloud_module.ABSENT)
        node = moment.node[rows]
        count = len(self._cloud.nodes)
        columns = enumerate(resources.RESOURCES.names)
        capacity = {
            f'{name}.capacity': moment.capacity[:, place]
            for place, name in columns
        }
        return {
            **_head(moment, count),
            'node': self._cloud.nodes,
            'instances': np.bincount(node, minlength=count),
            **_sums_by_group(node, rows, moment, count),
            **capacity,
        }

    def _vm_columns(
        self, moment: model.RoundMoment
    ) -> dict[str, files.Column]:
        rows = np.flatnonzero(moment.node != cloud_module.ABSENT)
        cloud = self._cloud
        weights = {
            f'{control.value}.weight': moment.weights[rows, place]
            for place, control in enumerate(resources.CONTROLS)
        }
        return {
            **_head(moment, len(rows)),
            'vm': [cloud.vms[row] for row in rows],
            'user': [cloud.users[user] for user in cloud.user_of_vm[rows]],
            'node': [cloud.nodes[node] for node in moment.node[rows]],
            'heaviness': moment.heaviness[rows],
            **weights,
            **_amounts(moment.demand[rows], moment.received[rows]),
        }


def _head(moment: model.RoundMoment, count: int) -> dict[str, files.Column]:
    return {
        'round': np.full(count, moment.round),
        'time_s': np.full(count, moment.time_s),
    }


def _sums_by_group(
    group: model.Indices,
    rows: model.Indices,
    moment: model.RoundMoment,
    count: int,
) -> dict[str, files.Column]:
    return _amounts(
        grouping.sum_by(group, moment.demand[rows], count),
        grouping.sum_by(group, moment.received[rows], count),
    )


def _amounts(
    demand: resources.Vector, received: resources.Vector
) -> dict[str, files.Column]:
    result: dict[str, files.Column] = {}
    for place, name in enumerate(resources.RESOURCES.names):
        result[f'{name}.demand'] = demand[:, place]
        result[f'{name}.received'] = received[:, place]
    return result


Row = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Series:
    """Recorded values of a run, round by round.

    :ivar ideals: of users: round, time_s, user, share, ideal, bounded_ideal,
        and ``<resource>.part`` of the quota for each resource.
    :ivar weights: of VMs: round, time_s, vm, user, and one per control.
    :ivar measures: of the cloud: round, time_s, worst_bounded ...
    """

    ideals: Sequence[Row]
    weights: Sequence[Row]
    measures: Sequence[Row]


NOTHING = Series((), (), ())
"""The series of a run that wrote nothing."""


def read(directory: pathlib.Path) -> Series:
    """Read the series of a run.

    :raises BadSeries: if a file cannot be read; names it.
    """
    return Series(
        *(
            rows(directory / f'{field.name}.csv')
            for field in dataclasses.fields(Series)
        )
    )


def rows(path: pathlib.Path) -> Sequence[Row]:
    """Rows of a table; none if there is no such file.

    :raises BadSeries: if it cannot be read; names it.
    """
    if not path.exists():
        return ()
    try:
        with path.open(encoding='utf-8', newline='') as stream:
            return tuple(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise exception.BadSeries(
            f'{path}: {error}; expected comma-separated values'
        ) from error


def curve(
    rows: Sequence[Row], quantity: str, **wanted: str
) -> tuple[list[float], list[float]]:
    """Rounds and values of a quantity; NaN where it is unknown.

    :param wanted: what the other columns must say.
    """
    chosen = [
        row
        for row in rows
        if all(row.get(name) == value for name, value in wanted.items())
    ]
    return (
        [float(row['round']) for row in chosen],
        [number(row.get(quantity)) for row in chosen],
    )


def names(rows: Sequence[Row], column: str) -> list[str]:
    """Different entries of a column in their first order."""
    return list(dict.fromkeys(row[column] for row in rows))


def number(text: str | None) -> float:
    """A number from an entry of a table; NaN if it is empty."""
    try:
        return float(text) if text else math.nan
    except ValueError:
        return math.nan
