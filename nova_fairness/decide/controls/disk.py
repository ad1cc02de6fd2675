# SPDX-License-Identifier: Apache-2.0

"""Disk: VMs that wait for the same device, and kernel values for weights.

The kernel gets weights of block I/O, or rate limits (throttles) if the device
ignores weights.
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
"""Default value of each file of a control group, in the kernel."""

SMALLEST: Mapping[str, int] = types.MappingProxyType({'blkio.weight': 10})
"""Smallest value that a file accepts; 1 for files that are not listed."""

LARGEST = 1000
"""Largest value of all files. ``io.weight`` accepts 10,000, but with one scale
for all files VMs can be compared whose disks are on devices of both kinds."""

THESIS = (100, 1000)

LOWEST_RATE = 1 << 20
"""Smallest rate limit, bytes per second: a guest that cannot write its log is
not slow, it is broken."""

BUSY = 0.9
"""Part of an interval in which a device processed requests. A device below
this is not saturated: a disk with idle time serves all."""

DEPTH = 2.0
"""Mean number of requests in progress or in the queue. A device below this is
not saturated: a single request at a time keeps a device busy, and is served at
once. Requests of guests that use queues (Linux AIO, io_uring) count, too; the
kernel's pressure stall information lacks them, because no thread waits."""

USED = 0.02
"""Part of the traffic of all VMs. The VMs with the least traffic, up to this
part together, are no rivals on a saturated device: a guest that writes its log
is no rival, but fifty guests with a fiftieth of the traffic each are."""


def file_units(weight: float, file: str, preset: policy.Preset) -> int:
    """Return the value of a control file for a weight.

    :param weight: finite, > 0.
    :param file: name of the file, a key of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.units(legacy_priority.place_of(weight), *THESIS)
    value = round(BASES[file] * weight)
    return min(LARGEST, max(SMALLEST.get(file, 1), value))


def file_weight(value: int, file: str, preset: policy.Preset) -> float:
    """Return the weight for the value of a file: inverts :func:`file_units`.

    :param value: > 0.
    :param file: name of the file, a key of :data:`BASES`.
    """
    if preset is policy.Preset.THESIS:
        return legacy_priority.weight_of(
            legacy_priority.place_at(value, *THESIS)
        )
    return value / BASES[file]


@dataclasses.dataclass(frozen=True, eq=False)
class DiskTraffic:
    """Traffic of VMs on one device in an interval, one row per VM.

    :ivar read: (n,) bytes per second, >= 0.
    :ivar written: (n,) bytes per second, >= 0.
    """

    read: usage_model.Scalars
    written: usage_model.Scalars


Rates = tuple[int, int]
"""Largest rates of reading and of writing, bytes per second."""

HEADROOM = 0.05
"""Part by which the sum of the limits exceeds the rate of the last interval.

Otherwise a device that was slow for one interval would stay slow.
"""


def throttle_rates(
    weights: usage_model.Scalars,
    traffic: DiskTraffic,
    wanting: usage_model.Indices,
) -> Mapping[int, Rates]:
    """Divide the recent rate of a saturated device in proportion to weights.

    The sums of the limits for reading and for writing are the rates of the
    device in the last interval plus some headroom, so that limits never make a
    device slower. The VM with the largest weight is not throttled, so that the
    device always has a VM to serve.

    :param weights: (n,) finite, > 0.
    :param wanting: rows of the VMs that compete for the device; a single VM
        is never throttled.
    :returns: rates by row, only of throttled VMs.
    """
    if len(wanting) < 2:
        return {}
    chosen = weights[wanting]
    parts = [
        _rates_by_weight(chosen, moved[wanting])
        for moved in (traffic.read, traffic.written)
    ]
    largest = chosen.max()
    return {
        int(row): (
            _bounded_rate(parts[0][place]),
            _bounded_rate(parts[1][place]),
        )
        for place, row in enumerate(wanting)
        if chosen[place] < largest
    }


def _rates_by_weight(
    weights: usage_model.Scalars, moved: usage_model.Scalars
) -> usage_model.Scalars:
    """Divide the sum of rates, plus :data:`HEADROOM`, by weights, (n,)."""
    whole = float(moved.sum()) * (1 + HEADROOM)
    return np.asarray(whole * weights / weights.sum())


def _bounded_rate(part: float) -> int:
    return max(LOWEST_RATE, round(part))


def saturated_devices(
    devices: Mapping[str, pressure_model.DeviceLoad],
) -> set[str]:
    """Return the devices at which requests wait for each other.

    :returns: ``major:minor``.
    """
    return {
        number
        for number, load in devices.items()
        if load.busy >= BUSY and load.depth >= DEPTH
    }


def competitors_by_device(
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
    active = running & has_much_traffic(here, moved, 1)
    for number in sorted(saturated_devices(pressure.devices)):
        uses = np.array(
            [_is_on_device(disks, number) for disks in pressure.disks],
            dtype=np.bool_,
        )
        rows = np.flatnonzero(uses & active)
        if len(rows) > 1:
            yield number, rows


def judge(
    pressure: pressure_model.Pressure, moved: usage_model.Scalars
) -> tuple[bool, resources.Mask]:
    """Return whether VMs of one node compete for a disk, and which ones.

    :param moved: (n,) bytes that each VM read and wrote in the interval.
    :returns: whether VMs compete, and (n,) whether each wants more; rows as
        in ``pressure``.
    """
    wanting = np.zeros(len(pressure.incarnations), dtype=np.bool_)
    for _, rows in competitors_by_device(pressure, moved):
        wanting[rows] = True
    return bool(wanting.any()), wanting


def judge_load(
    load: contention.ContentionLoad, _weights: usage_model.Scalars
) -> contention.ContentionMasks:
    """Return contention for the disks of many nodes with one device each.

    The load does not show which users of a device wait, so all of them count
    as wanting more.
    """
    column = resources.CONTROLS.index(resources.ResourceControl.DISK)
    steered = resources.RESOURCES.steered_by(resources.ResourceControl.DISK)
    node, nodes = load.node, len(load.supply)
    moved = load.used[:, steered].sum(axis=1)
    active = load.ready & has_much_traffic(node, moved, nodes)
    # Requests wait for each other only where somebody gets too little.
    waits = np.nan_to_num(load.stall[:, column]) > 0
    queued = np.bincount(node[waits], minlength=nodes) > 0
    several = np.bincount(node[active], minlength=nodes) > 1
    saturated = queued & (load.busy[:, column] >= BUSY) & several
    return saturated, active & saturated[node]


def has_much_traffic(
    node: usage_model.Indices, moved: usage_model.Scalars, nodes: int
) -> resources.Mask:
    """Return which VMs have more than negligible traffic, (n,).

    The VMs of a node with the least traffic, up to :data:`USED` together, are
    negligible.
    """
    order = np.lexsort((moved, node))
    place, ascending = node[order], moved[order]
    total = np.bincount(node, moved, nodes)
    before = np.append(0.0, np.cumsum(total))[place]
    much = np.cumsum(ascending) - before > USED * total[place]
    least = np.full(nodes, np.inf)
    np.minimum.at(least, place[much], ascending[much])
    return np.asarray(moved >= least[node])


def _is_on_device(
    disks: tuple[pressure_model.DiskPath, ...], number: str
) -> bool:
    return any(number in disk.devices for disk in disks)


class DiskScale(scale.Scale):
    """Kernel units of block I/O: the same base for every VM.

    :param file_of: returns the name of the control file of a VM, by key; see
        :data:`BASES`.
    """

    control = resources.ResourceControl.DISK

    def __init__(self, file_of: Callable[[str], str]) -> None:
        self._file_of = file_of

    def judge(self, facts: scale.ScaleFacts) -> scale.Judgement | None:
        """Return which VMs compete for a saturated disk."""
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
        """Return the values of the VMs' control files."""
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
        """Return the weight for the value of a control file."""
        if held <= 0:
            return 1.0
        file = self._file_of(facts.vms[row].key)
        return file_weight(held, file, facts.preset)
