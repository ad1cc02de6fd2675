# SPDX-License-Identifier: Apache-2.0

"""Disk: who waits for the same device, and what its weights become.

Weights become those of block I/O, or throttles where no such weight works.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import types

import numpy as np

from nova_fairness.decide import contention
from nova_fairness.decide import legacy_priority
from nova_fairness.decide import policy
from nova_fairness.decide.controls import scale
from nova_fairness.model import pressure as pressure_model
from nova_fairness.model import resources
from nova_fairness.model import usage as usage_model

BASES: Mapping[str, int] = types.MappingProxyType(
    {
        'blkio.bfq.weight': 100,
        'blkio.weight': 500,
        'io.bfq.weight': 100,
        'io.weight': 100,
    }
)
"""Value of each file of a control group for a VM that was never set."""

SMALLEST: Mapping[str, int] = types.MappingProxyType({'blkio.weight': 10})
"""Least value that a file takes; 1 where it is not named."""

LARGEST = 1000
"""``io.weight`` takes ten times that; one scale for all lets VMs be compared
whose disks are on devices of both kinds."""

THESIS = (100, 1000)

LOWEST_RATE = 1 << 20
"""Bytes per second below which no VM is ever throttled: a guest that cannot
write its log is not slow, it is broken."""

BUSY = 0.9
"""Part of an interval with a request under way, from which a device may be
saturated: a disk with idle time serves all."""

DEPTH = 2.0
"""... if besides so many requests are under way or wait, on average. A lone
request at a time keeps a device busy, too, and is served at once. This counts
requests of guests that use queues (Linux AIO, io_uring), whose waiting the
kernel's pressure stall information does not see, since no thread waits."""

USED = 0.02
"""Part of what all VMs moved that those who moved least, all together, may
have moved without using a saturated device: a guest that writes its log is no
rival, fifty that each move a fiftieth are."""


def file_units(weight: float, file: str, preset: policy.Preset) -> int:
    """Value of a file for a weight.

    :param weight: finite, > 0.
    :param file: one of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.units(legacy_priority.place_of(weight), *THESIS)
    value = round(BASES[file] * weight)
    return min(LARGEST, max(SMALLEST.get(file, 1), value))


def file_weight(value: int, file: str, preset: policy.Preset) -> float:
    """The weight that stands for what a file holds: undoes :func:`file_units`.

    :param value: > 0.
    :param file: one of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.weight_of(
            legacy_priority.place_at(value, *THESIS)
        )
    return value / BASES[file]


@dataclasses.dataclass(frozen=True, eq=False)
class DiskTraffic:
    """Traffic of VMs on one device in an interval; rows as the VMs'.

    :ivar read: (n,) bytes per second, >= 0.
    :ivar written: (n,) bytes per second, >= 0.
    """

    read: usage_model.Scalars
    written: usage_model.Scalars


Rates = tuple[int, int]
"""Bytes per second that may be read, and written."""

HEADROOM = 0.05
"""Part by which limits together exceed what a device delivered.

Without it a device that was slow for one interval would stay slow.
"""


def throttles(
    weights: usage_model.Scalars,
    traffic: DiskTraffic,
    wanting: usage_model.Indices,
) -> Mapping[int, Rates]:
    """Divide the recent rate of a saturated device in proportion to weights.

    The measure is the rate of the device in the last interval, reading and
    writing apart, plus some headroom, so that throttles never become the
    reason why a device does less. A VM that used less than its part is not
    throttled, and the others share the rest of its part. The VM with the
    largest weight is not throttled either, so that the device always has a VM
    to serve.

    :param weights: (n,) finite, > 0.
    :param wanting: rows of the VMs that compete for the device; one alone is
        never throttled.
    :returns: rates by row, only of VMs that must give way.
    """
    if len(wanting) < 2:
        return {}
    chosen = weights[wanting]
    parts = [
        _parts(chosen, moved[wanting])
        for moved in (traffic.read, traffic.written)
    ]
    largest = chosen.max()
    return {
        int(row): (_rate(parts[0][place]), _rate(parts[1][place]))
        for place, row in enumerate(wanting)
        if chosen[place] < largest
    }


def _parts(
    weights: usage_model.Scalars, moved: usage_model.Scalars
) -> usage_model.Scalars:
    """Each VM's part of a rate that may grow a little."""
    whole = float(moved.sum()) * (1 + HEADROOM)
    return np.asarray(whole * weights / weights.sum())


def _rate(part: float) -> int:
    return max(LOWEST_RATE, round(part))


def saturated(
    devices: Mapping[str, pressure_model.DeviceLoad],
) -> set[str]:
    """The devices at which requests wait for each other.

    :returns: ``major:minor``.
    """
    return {
        number
        for number, load in devices.items()
        if load.busy >= BUSY and load.depth >= DEPTH
    }


def rivals(
    pressure: pressure_model.Pressure, moved: usage_model.Scalars
) -> Iterator[tuple[str, usage_model.Indices]]:
    """Yield each saturated device with the VMs that compete for it.

    :param moved: (n,) bytes that each VM read and wrote, >= 0; rows as in
        ``pressure``.
    :returns: ``major:minor``, and rows of at least two VMs.
    """
    running = np.array(
        [not item.paused for item in pressure.incarnations], dtype=np.bool_
    )
    here = np.zeros(len(moved), dtype=np.intp)
    active = running & uses_much(here, moved, 1)
    for number in sorted(saturated(pressure.devices)):
        uses = np.array(
            [_uses(disks, number) for disks in pressure.disks], dtype=np.bool_
        )
        rows = np.flatnonzero(uses & active)
        if len(rows) > 1:
            yield number, rows


def judge(
    pressure: pressure_model.Pressure, moved: usage_model.Scalars
) -> tuple[bool, resources.Mask]:
    """Judge who wants more of a disk of one node.

    :param moved: (n,) bytes that each VM read and wrote in the interval.
    :returns: whether VMs compete, and (n,) who wants more; rows as in
        ``pressure``.
    """
    wanting = np.zeros(len(pressure.incarnations), dtype=np.bool_)
    for _, rows in rivals(pressure, moved):
        wanting[rows] = True
    return bool(wanting.any()), wanting


def judged(
    load: contention.ContentionLoad, _weights: usage_model.Scalars
) -> contention.Judged:
    """Judge the disks of many nodes, a device for each.

    It cannot be seen which of its users wait: all of them want more.
    """
    column = resources.CONTROLS.index(resources.ResourceControl.DISK)
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.DISK)
    node, nodes = load.node, len(load.supply)
    moved = load.used[:, steered].sum(axis=1)
    active = load.ready & uses_much(node, moved, nodes)
    # Requests wait for each other only where somebody gets too little.
    waits = np.nan_to_num(load.stall[:, column]) > 0
    queued = np.bincount(node[waits], minlength=nodes) > 0
    several = np.bincount(node[active], minlength=nodes) > 1
    saturated = queued & (load.busy[:, column] >= BUSY) & several
    return saturated, active & saturated[node]


def uses_much(
    node: usage_model.Indices, moved: usage_model.Scalars, nodes: int
) -> resources.Mask:
    """Leave out those who together moved next to nothing, (n,)."""
    order = np.lexsort((moved, node))
    place, ascending = node[order], moved[order]
    total = np.bincount(node, moved, nodes)
    before = np.append(0.0, np.cumsum(total))[place]
    much = np.cumsum(ascending) - before > USED * total[place]
    least = np.full(nodes, np.inf)
    np.minimum.at(least, place[much], ascending[much])
    return np.asarray(moved >= least[node])


def _uses(disks: tuple[pressure_model.DiskPath, ...], number: str) -> bool:
    return any(number in disk.devices for disk in disks)


class DiskScale(scale.Scale):
    """Weights of block I/O: the same base for every VM.

    :param file_of: gives the file of a VM, by key; see
        :data:`BASES`.
    """

    control = resources.ResourceControl.DISK

    def __init__(self, file_of: Callable[[str], str]) -> None:
        self._file_of = file_of

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Say who competes for a saturated disk."""
        if facts.pressure is None:
            return None
        steered = resources.RESOURCES.steered_by(self.control)
        moved = facts.usage.amounts[:, steered].sum(axis=1)
        return judge(facts.pressure, moved)

    def units(
        self,
        weights: usage_model.Scalars,
        rows: Sequence[int],
        facts: scale.ScaleFacts,
    ) -> Sequence[int]:
        """Weights of the VMs' files."""
        return [
            file_units(
                float(weights[row]),
                self._file_of(facts.vms[row].key),
                facts.preset,
            )
            for row in rows
        ]

    def weight(
        self,
        held: int,
        row: int,
        last: scale.LastDecision | None,
        facts: scale.ScaleFacts,
    ) -> float:
        """The weight that units of the kernel stand for."""
        if held <= 0:
            return 1.0
        file = self._file_of(facts.vms[row].key)
        return file_weight(held, file, facts.preset)
