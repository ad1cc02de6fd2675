# SPDX-License-Identifier: Apache-2.0

"""Weights to weights of block I/O, and to throttles where no weight works."""

from collections.abc import Mapping
import dataclasses
import types

import numpy as np

from nova_fairness.decide import places
from nova_fairness.decide import policy
from nova_fairness.model import usage as usage_model

BASES: Mapping[str, int] = types.MappingProxyType(
    {
        'blkio.bfq.weight': 100,
        'blkio.weight': 500,
        'io.bfq.weight': 100,
        'io.weight': 100,
    }
)
"""What each file of a control group says of a VM that nobody ever set."""

SMALLEST: Mapping[str, int] = types.MappingProxyType({'blkio.weight': 10})
"""Least value that a file takes; 1 where it is not named."""

LARGEST = 1000
"""``io.weight`` takes ten times that; one scale for all lets VMs be compared
whose disks are on devices of both kinds."""

THESIS = (100, 1000)

LOWEST_RATE = 1 << 20
"""Bytes per second below which nobody is ever throttled: a guest that cannot
write its log is not slow, it is broken."""


def units(weight: float, file: str, preset: policy.Preset) -> int:
    """Give what a file gets for a weight.

    :param weight: finite, > 0.
    :param file: one of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return places.units(places.place_of(weight), *THESIS)
    value = round(BASES[file] * weight)
    return min(LARGEST, max(SMALLEST.get(file, 1), value))


def weight_of(value: int, file: str, preset: policy.Preset) -> float:
    """Give the weight that stands for what a file holds: undoes units.

    :param value: > 0.
    :param file: one of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return places.weight_of(places.place_at(value, *THESIS))
    return value / BASES[file]


@dataclasses.dataclass(frozen=True, eq=False)
class Traffic:
    """What VMs moved on one device in an interval; rows as the VMs'.

    :ivar read: (n,) bytes per second, >= 0.
    :ivar written: (n,) bytes per second, >= 0.
    """

    read: usage_model.Scalars
    written: usage_model.Scalars


Rates = tuple[int, int]
"""Bytes per second that may be read, and written."""


def throttles(
    weights: usage_model.Scalars,
    traffic: Traffic,
    wanting: usage_model.Indices,
    headroom: float = 0.05,
) -> Mapping[int, Rates]:
    """Divide what a saturated device just delivered in proportion to weights.

    The measure is what the device did in the last interval, reading and
    writing apart, plus some headroom, so that limits never become the reason
    why a device does less. A VM that used less than its part is not
    throttled, and what it leaves the others share; neither is the one with
    the largest weight, so that the device always has somebody to serve.

    :param weights: (n,) finite, > 0.
    :param wanting: rows of the VMs that compete for the device; fewer than
        two have nobody to be throttled for.
    :param headroom: part of the delivered rate, >= 0.
    :returns: rates by row, only of VMs that must give way.
    """
    if len(wanting) < 2:
        return {}
    chosen = weights[wanting]
    parts = [
        _parts(chosen, moved[wanting], headroom)
        for moved in (traffic.read, traffic.written)
    ]
    largest = chosen.max()
    return {
        int(row): (_rate(parts[0][place]), _rate(parts[1][place]))
        for place, row in enumerate(wanting)
        if chosen[place] < largest
    }


def _parts(
    weights: usage_model.Scalars, moved: usage_model.Scalars, headroom: float
) -> usage_model.Scalars:
    """Give each VM's part of a rate that may grow a little."""
    whole = float(moved.sum()) * (1 + headroom)
    return np.asarray(whole * weights / weights.sum())


def _rate(part: float) -> int:
    return max(LOWEST_RATE, round(part))
