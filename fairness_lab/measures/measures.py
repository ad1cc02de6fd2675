# SPDX-License-Identifier: Apache-2.0

"""Measures of a simulated run: an observer that compares with ideals."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal as ideal_module
from fairness_lab.measures import distance
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness.measure import quota
from nova_fairness.model import resources
from nova_fairness.shares import grouping

Floats = distance.Floats
Table = Mapping[str, Any]
"""``columns`` (names) and ``rows``."""

SHOWN_USERS = 60
SHOWN_VMS = 60
"""Number that is written round by round, spread evenly over all."""

_Rows = list[Floats]


@dataclasses.dataclass
class RecordedRounds:
    """Recorded values of each round, one list entry per round.

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


def evenly_chosen_places(count: int, most: int) -> list[int]:
    """Choose places evenly from the first to the last."""
    if count <= most:
        return list(range(count))
    return [int(place) for place in np.linspace(0, count - 1, most).round()]


def number(value: Any) -> float | None:
    """A number for JSON; ``None`` for NaN."""
    return float(value) if np.isfinite(value) else None


def tables(
    cloud: cloud_module.Cloud, seen: RecordedRounds
) -> Mapping[str, Table]:
    """Tables of a run, by name."""
    return {
        'measures': _measures_table(seen),
        'ideals': _ideals_table(cloud, seen),
        'weights': _weights_table(cloud, seen),
    }


def _measures_table(seen: RecordedRounds) -> Table:
    share, free = np.array(seen.share), np.array(seen.free)
    bounded = np.array(seen.bounded)
    quantities: Mapping[str, Sequence[float] | Floats] = {
        'time_s': seen.time_s,
        'distance_free': distance.distance(share, free),
        'worst_free': distance.largest_lack(share, free),
        'distance_bounded': distance.distance(share, bounded),
        'worst_bounded': distance.largest_lack(share, bounded),
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


def _ideals_table(cloud: cloud_module.Cloud, seen: RecordedRounds) -> Table:
    chosen = evenly_chosen_places(len(cloud.users), SHOWN_USERS)
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


def _weights_table(cloud: cloud_module.Cloud, seen: RecordedRounds) -> Table:
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


_LITTLE_ROOM = 1e-6


def idle_while_wanted(
    moment: model.RoundMoment, coupled: resources.Mask
) -> resources.Vector:
    """Fraction of all capacity that was idle although it was wanted, (r,).

    A VM that uses resources together wants more of one only where there is
    more of all of them.

    :param coupled: (n, r) as in :class:`.model.Cloud`.
    :returns: (r,) 0..1; zero for space-shared resources.
    """
    there = moment.node >= 0
    node, nodes = moment.node[there], len(moment.capacity)
    received, demand = moment.received[there], moment.demand[there]
    used = grouping.sum_by(node, received, nodes)
    left = np.maximum(moment.capacity - used, 0.0)
    some = left > _LITTLE_ROOM * moment.capacity
    usable = np.all(some[node] | ~coupled[there], axis=1, keepdims=True)
    unmet = np.where(
        coupled[there] & ~usable,
        0.0,
        np.maximum(demand - received, 0.0),
    )
    wasted = np.minimum(left, grouping.sum_by(node, unmet, nodes)).sum(axis=0)
    total = moment.capacity.sum(axis=0)
    part = np.where(total > 0, wasted / np.where(total > 0, total, 1), 0.0)
    return np.where(resources.RESOURCES.time_shared, part, 0.0)


MANY_VMS = 5000
"""Beyond so many VMs an ideal takes seconds, ..."""

FEW_IDEALS = 6
"""... and is found for so many rounds only where demand always changes."""


class Measures:
    """Compares every round with the free and with the bounded ideal.

    :param cloud: that is simulated.
    :param setup: of its agents; the bound is their ``max_weight_ratio``.
    :param share: which share is compared; see :mod:`.ideal`.
    :param few: for so many rounds at most ideals are found; ``None``: for
        :data:`FEW_IDEALS` where there are more than :data:`MANY_VMS`, for
        all elsewhere.
    :raises UnknownShare: if there is no such share.
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        setup: model.Setup,
        share: str = ideal_module.DOMINANT,
        *,
        few: int | None = None,
    ) -> None:
        self._cloud = cloud
        self._share = ideal_module.check_share(share)
        # Per second, like everything in a moment.
        self._quota = quota.divide_by_weights(
            cloud.capacity.sum(axis=0), cloud.user_weight
        )
        self._free = ideal_module.cached_ideal(share, None)
        self._bounded = ideal_module.cached_ideal(
            share, setup.max_weight_ratio
        )
        if few is None and len(cloud.vms) > MANY_VMS:
            few = FEW_IDEALS
        self._rounds = None if few is None else _rounds_with_ideal(cloud, few)
        self._seen = RecordedRounds(
            evenly_chosen_places(len(cloud.vms), SHOWN_VMS)
        )

    def see(self, moment: model.RoundMoment) -> None:
        """Compare a round with the ideals."""
        seen = self._seen
        seen.time_s.append(moment.time_s)
        seen.changed.append(bool(moment.changed))
        parts = self._parts(moment)
        seen.parts.append(parts)
        seen.share.append(ideal_module.share_of(parts, self._share))
        seen.idle.append(idle_while_wanted(moment, self._cloud.coupled))
        seen.weights.append(moment.weights[self._seen.vms].copy())
        if not moment.changed and seen.free:
            seen.free.append(seen.free[-1])
            seen.bounded.append(seen.bounded[-1])
            return
        known = self._rounds is None or moment.round in self._rounds
        wishes = self.wishes(moment) if known else None
        for rows, find in (
            (seen.free, self._free),
            (seen.bounded, self._bounded),
        ):
            rows.append(
                np.full(len(self._cloud.users), np.nan)
                if wishes is None
                else find(wishes).share
            )

    def wishes(self, moment: model.RoundMoment) -> columns.Wishes:
        """Wants of VMs in a round, as input of the ideals."""
        return columns.Wishes(
            capacity=moment.capacity,
            demand=moment.demand,
            node=moment.node,
            user=self._cloud.user_of_vm,
            coupled=self._cloud.coupled,
            size=moment.neutral,
            quota=self._quota,
            exempt=self._cloud.exempt_vms,
        )

    def _parts(self, moment: model.RoundMoment) -> Floats:
        there = moment.node >= 0
        user, users = self._cloud.user_of_vm[there], len(self._cloud.users)
        used = np.stack(
            [
                np.bincount(user, column, users)
                for column in moment.received[there].T
            ],
            axis=1,
        )
        return columns.fractions_of_quota(self._quota, used)

    def result(self) -> Mapping[str, Any]:
        """Sum up; see ``measures_schema.json``."""
        seen = self._seen
        share, free = np.array(seen.share), np.array(seen.free)
        bounded = np.array(seen.bounded)
        return {
            'share': self._share,
            'users': len(self._cloud.users),
            'free': _compare_with_ideal(share, free),
            'bounded': _compare_with_ideal(share, bounded),
            'jain': _summarise_over_time(distance.jain_indices(share, free)),
            'idle_while_wanted': _summarise_over_time(
                np.array(seen.idle).max(axis=1, initial=0.0)
            ),
            **_measure_steadiness(seen, share, bounded),
            'series': tables(self._cloud, seen),
        }


def _rounds_with_ideal(
    cloud: cloud_module.Cloud, few: int
) -> frozenset[int] | None:
    """Rounds whose ideal is computed; ``None`` for all."""
    changed = np.unique(cloud.changes.round)
    if len(changed) <= few:
        return None
    return frozenset(
        int(changed[place])
        for place in evenly_chosen_places(len(changed), few)
    )


def _compare_with_ideal(share: Floats, ideal: Floats) -> Mapping[str, Any]:
    return {
        'distance': _summarise_over_time(distance.distance(share, ideal)),
        'worst': _summarise_over_time(distance.largest_lack(share, ideal)),
    }


def _summarise_over_time(values: Floats) -> Mapping[str, float | None]:
    """Sum up a quantity of every round; settled is the second half."""
    known = values[np.isfinite(values)]
    later = values[len(values) // 2 :]
    settled = later[np.isfinite(later)]
    return {
        'mean': number(known.mean()) if len(known) else None,
        'settled': number(settled.mean()) if len(settled) else None,
        'largest': number(known.max()) if len(known) else None,
        'last': number(values[-1]) if len(values) else None,
    }


def _measure_steadiness(
    seen: RecordedRounds, share: Floats, bounded: Floats
) -> Mapping[str, Any]:
    """Measure how steady shares are in each period of constant demand."""
    lacking = distance.largest_lack(share, bounded)
    weights = np.array(seen.weights)
    needed: list[int | None] = []
    swings, oscillations, overshoots = [], [], []
    for begin, end in distance.periods_of_constant_demand(seen.changed):
        long_enough = end - begin >= distance.LONG_ENOUGH
        if not long_enough or np.isnan(lacking[begin]):
            continue
        needed.append(distance.rounds_until(lacking[begin:end]))
        overshoots.append(
            distance.overshoot(share[begin:end], bounded[begin:end])
        )
        late = max(begin + (end - begin) // 2, end - distance.SWING_ROUNDS)
        oscillations.append(distance.oscillation(share[late:end]))
        swings.append(
            distance.largest_weight_swing(
                weights[late:end].reshape(end - late, -1)
            )
        )
    reached = [rounds for rounds in needed if rounds is not None]
    return {
        'stretches': len(needed),
        'not_within_5_percent': len(needed) - len(reached),
        'rounds_to_within_5_percent': max(reached, default=None),
        'overshoot': max(overshoots, default=None),
        'oscillation': max(oscillations, default=None),
        'weight_swing': max(swings, default=None),
    }
