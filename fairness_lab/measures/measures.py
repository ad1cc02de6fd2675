# SPDX-License-Identifier: Apache-2.0

"""What a simulated run is judged by: an observer that compares with ideals."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal as ideal_module
from fairness_lab.measures import distance
from fairness_lab.measures import idle
from fairness_lab.measures import measures_series
from fairness_lab.simulator import model
from nova_fairness.measure import quota

Floats = distance.Floats

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
        cloud: model.Cloud,
        setup: model.Setup,
        share: str = ideal_module.DOMINANT,
        *,
        few: int | None = None,
    ) -> None:
        self._cloud = cloud
        self._share = ideal_module.checked(share)
        # Per second, like everything in a moment.
        self._quota = quota.quotas(
            cloud.capacity.sum(axis=0), cloud.user_weight
        )
        self._free = ideal_module.remembered(share, None)
        self._bounded = ideal_module.remembered(share, setup.max_weight_ratio)
        if few is None and len(cloud.vms) > MANY_VMS:
            few = FEW_IDEALS
        self._rounds = None if few is None else _rounds_with_ideal(cloud, few)
        self._seen = measures_series.Seen(
            measures_series.spread(len(cloud.vms), measures_series.SHOWN_VMS)
        )

    def see(self, moment: model.Moment) -> None:
        """Look at a round."""
        seen = self._seen
        seen.time_s.append(moment.time_s)
        seen.changed.append(bool(moment.changed))
        parts = self._parts(moment)
        seen.parts.append(parts)
        seen.share.append(ideal_module.share_of(parts, self._share))
        seen.idle.append(idle.idle_while_wanted(moment, self._cloud.coupled))
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

    def wishes(self, moment: model.Moment) -> columns.Wishes:
        """Say who wants how much of what in a round."""
        return columns.Wishes(
            capacity=moment.capacity,
            demand=moment.demand,
            node=moment.node,
            user=self._cloud.user_of_vm,
            coupled=self._cloud.coupled,
            size=moment.neutral,
            quota=self._quota,
        )

    def _parts(self, moment: model.Moment) -> Floats:
        there = moment.node >= 0
        user, users = self._cloud.user_of_vm[there], len(self._cloud.users)
        used = np.stack(
            [
                np.bincount(user, column, users)
                for column in moment.received[there].T
            ],
            axis=1,
        )
        entitled = self._quota > 0
        return np.where(
            entitled, used / np.where(entitled, self._quota, 1.0), 0.0
        )

    def result(self) -> Mapping[str, Any]:
        """Sum up; see ``measures_schema.json``."""
        seen = self._seen
        share, free = np.array(seen.share), np.array(seen.free)
        bounded = np.array(seen.bounded)
        return {
            'share': self._share,
            'users': len(self._cloud.users),
            'free': _against(share, free),
            'bounded': _against(share, bounded),
            'jain': _over_time(distance.jain_indices(share, free)),
            'idle_while_wanted': _over_time(
                np.array(seen.idle).max(axis=1, initial=0.0)
            ),
            **_steadiness(seen, share, bounded),
            'series': measures_series.series(self._cloud, seen),
        }


def _rounds_with_ideal(cloud: model.Cloud, few: int) -> frozenset[int] | None:
    """Say for which changes the ideal is found; ``None`` is for all."""
    changed = np.unique(cloud.changes.round)
    if len(changed) <= few:
        return None
    return frozenset(
        int(changed[place])
        for place in measures_series.spread(len(changed), few)
    )


def _against(share: Floats, ideal: Floats) -> Mapping[str, Any]:
    return {
        'distance': _over_time(distance.distance(share, ideal)),
        'worst': _over_time(distance.worst(share, ideal)),
    }


def _over_time(values: Floats) -> Mapping[str, float | None]:
    """Sum up a quantity of every round; settled is the second half."""
    known = values[np.isfinite(values)]
    later = values[len(values) // 2 :]
    settled = later[np.isfinite(later)]
    return {
        'mean': measures_series.number(known.mean()) if len(known) else None,
        'settled': measures_series.number(settled.mean())
        if len(settled)
        else None,
        'largest': measures_series.number(known.max()) if len(known) else None,
        'last': measures_series.number(values[-1]) if len(values) else None,
    }


def _steadiness(
    seen: measures_series.Seen, share: Floats, bounded: Floats
) -> Mapping[str, Any]:
    """Judge each stretch of constant demand by itself."""
    lacking = distance.worst(share, bounded)
    weights = np.array(seen.weights)
    needed: list[int | None] = []
    swings, oscillations, overshoots = [], [], []
    for begin, end in distance.stretches(seen.changed):
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
            distance.swing(weights[late:end].reshape(end - late, -1))
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
