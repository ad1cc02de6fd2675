# SPDX-License-Identifier: Apache-2.0

"""Use of the nodes' disks by guests, and the latency of guests."""

from collections.abc import Mapping
import math
from typing import Any

from fairness_lab.results import phases
from fairness_lab.results import timeline

Json = dict[str, Any]

_MIB = 1 << 20
_MOVED = ('read_bytes', 'written_bytes')


def bytes_moved(
    line: timeline.Timeline, from_s: float, to_s: float
) -> dict[str, float]:
    """Bytes that each VM read and wrote, as its guest counted."""
    return {
        vm: math.fsum(line.growth(vm, name, from_s, to_s) for name in _MOVED)
        for vm in line.places
    }


def disk_use(
    line: timeline.Timeline, from_s: float, to_s: float
) -> Json | None:
    """Data that each VM moved in a stretch of time.

    :returns: by VM; ``None`` if no VM moved anything.
    """
    length_s = to_s - from_s
    amounts = bytes_moved(line, from_s, to_s)
    if not any(amounts.values()):
        return None
    parts = line.node_parts(amounts, to_s)
    fio = _fio_fractions(line)
    return {
        vm: {
            'bytes_per_s': amounts[vm] / length_s,
            'share': parts[vm],
            'device_part': _fraction_of_device(
                line, vm, amounts[vm] / length_s
            ),
            'kernel_weight': line.last(vm, 'io_weight'),
            'weights': _weights(line, vm, from_s, to_s),
            'fio_share': fio.get(vm),
        }
        for vm in line.places
    }


def _fio_fractions(line: timeline.Timeline) -> Mapping[str, float]:
    """Fraction of its node's disk that fio moved in place of each VM."""
    got = {
        vm: values['bytes_per_s'] for vm, values in line.recording.fio.items()
    }
    result: dict[str, float] = {}
    for node in line.capacity:
        here = {vm: got[vm] for vm in got if line.places[vm].node == node}
        result.update(timeline.parts(here))
    return result


def _fraction_of_device(
    line: timeline.Timeline, vm: str, bytes_per_s: float
) -> float | None:
    """Compare with the rate of the node's own disk, if it has one."""
    nodes = line.recording.meta['scenario']['nodes']
    node = nodes[line.places[vm].node] if isinstance(nodes, dict) else {}
    if not node.get('disk_scheduler'):
        return None
    return bytes_per_s / (float(node['disk_mib_s']) * _MIB)


def _weights(
    line: timeline.Timeline, vm: str, from_s: float, to_s: float
) -> list[float]:
    return [
        row['weights']['blkio']
        for t_s, row in phases.vm_rounds(line, vm)
        if from_s <= t_s <= to_s and 'blkio' in (row.get('wanted') or {})
    ]


def latency(
    line: timeline.Timeline, from_s: float, to_s: float
) -> Json | None:
    """How late programs in guests woke up, and how long they waited.

    :returns: by VM that measured it; ``None`` if none did.
    """
    found: Json = {}
    for vm in line.places:
        wakes = line.growth(vm, 'wakes', from_s, to_s)
        if wakes > 0:
            late_us = line.growth(vm, 'late_us', from_s, to_s)
            very_late = line.growth(vm, 'late_20ms', from_s, to_s)
            waited_s = line.growth(vm, 'wait_s', from_s, to_s)
            found[vm] = {
                'wakes_per_s': wakes / (to_s - from_s),
                'mean_late_ms': late_us / wakes / 1000,
                'late_20ms_part': very_late / wakes,
                'steal_part': waited_s / (to_s - from_s),
            }
    return found or None
