# SPDX-License-Identifier: Apache-2.0

"""What is kept of each round of a simulated run, and written of it."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from fairness_lab.measures import distance
from fairness_lab.simulator import model
from nova_fairness.model import resources

Floats = distance.Floats
Table = Mapping[str, Any]
"""``columns`` (names) and ``rows``."""

SHOWN_USERS = 60
SHOWN_VMS = 60
"""So many are written round by round, spread evenly over all."""

_Rows = list[Floats]


@dataclasses.dataclass
class Seen:
    """What is kept of each round, a list entry per round.

    :ivar vms: whose weights are kept.
    :ivar time_s: end of the round.
    :ivar changed: whether demand is new.
    :ivar share: (u,) the compared share.
    :ivar parts: (u, r) of the quotas.
    :ivar free: (u,) ideal without bounds; NaN where it is not known.
    :ivar bounded: (u,) ideal within the weights' bounds.
    :ivar idle: (r,) idle though wanted.
    :ivar weights: (n, c) of the VMs that are kept.
    """

    vms: list[int]
    time_s: list[float] = dataclasses.field(default_factory=list)
    changed: list[bool] = dataclasses.field(default_factory=list)
    share: _Rows = dataclasses.field(default_factory=list)
    parts: _Rows = dataclasses.field(default_factory=list)
    free: _Rows = dataclasses.field(default_factory=list)
    bounded: _Rows = dataclasses.field(default_factory=list)
    idle: _Rows = dataclasses.field(default_factory=list)
    weights: _Rows = dataclasses.field(default_factory=list)


def spread(count: int, most: int) -> list[int]:
    """Choose places evenly from the first to the last."""
    if count <= most:
        return list(range(count))
    return [int(place) for place in np.linspace(0, count - 1, most).round()]


def number(value: Any) -> float | None:
    """JSON has no NaN: what is not known is null."""
    return float(value) if np.isfinite(value) else None


def series(cloud: model.Cloud, seen: Seen) -> Mapping[str, Table]:
    """Give the tables of a run, by name."""
    return {
        'measures': _measures(seen),
        'ideals': _ideals(cloud, seen),
        'weights': _weights(cloud, seen),
    }


def _measures(seen: Seen) -> Table:
    share, free = np.array(seen.share), np.array(seen.free)
    bounded = np.array(seen.bounded)
    quantities: Mapping[str, Sequence[float] | Floats] = {
        'time_s': seen.time_s,
        'distance_free': distance.distance(share, free),
        'worst_free': distance.worst(share, free),
        'distance_bounded': distance.distance(share, bounded),
        'worst_bounded': distance.worst(share, bounded),
        'jain': distance.jain_indices(share, free),
        'idle_while_wanted': np.array(seen.idle).max(axis=1, initial=0.0),
    }
    return {
        'columns': ['round', *quantities],
        'rows': [
            [place, *map(number, values)]
            for place, values in enumerate(
                zip(*quantities.values(), strict=True)
            )
        ],
    }


def _ideals(cloud: model.Cloud, seen: Seen) -> Table:
    chosen = spread(len(cloud.users), SHOWN_USERS)
    parts = [f'{name}.part' for name in resources.RESOURCES.names]
    return {
        'columns': [
            'round',
            'time_s',
            'user',
            'share',
            'ideal',
            'bounded_ideal',
            *parts,
        ],
        'rows': [
            [
                place,
                time_s,
                cloud.users[user],
                number(seen.share[place][user]),
                number(seen.free[place][user]),
                number(seen.bounded[place][user]),
                *map(number, seen.parts[place][user]),
            ]
            for place, time_s in enumerate(seen.time_s)
            for user in chosen
        ],
    }


def _weights(cloud: model.Cloud, seen: Seen) -> Table:
    return {
        'columns': [
            'round',
            'time_s',
            'vm',
            'user',
            *(control.value for control in resources.CONTROLS),
        ],
        'rows': [
            [
                place,
                time_s,
                cloud.vms[vm],
                cloud.users[cloud.user_of_vm[vm]],
                *map(float, weights[row]),
            ]
            for place, (time_s, weights) in enumerate(
                zip(seen.time_s, seen.weights, strict=True)
            )
            for row, vm in enumerate(seen.vms)
        ],
    }
