# SPDX-License-Identifier: Apache-2.0

"""Values over time, for ``series.csv`` and the pictures."""

from collections.abc import Iterator
import csv
import dataclasses
import io

from fairness_lab.results import disk_result
from fairness_lab.results import network_windows
from fairness_lab.results import peers
from fairness_lab.results import phases
from fairness_lab.results import timeline

COLUMNS = ('t_s', 'kind', 'name', 'quantity', 'value')

POINTS = 80
"""About so many points a curve, but never closer than readings are."""

SHORTEST_STEP_S = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One value of one thing at one moment; see the reference page."""

    t_s: float
    kind: str
    name: str
    quantity: str
    value: float


def points(line: timeline.Timeline) -> Iterator[SeriesPoint]:
    """Yield the parts in steps, then the weights round by round."""
    step_s = max(SHORTEST_STEP_S, line.duration_s / POINTS)
    for number in range(int(line.duration_s / step_s)):
        yield from _parts(line, number * step_s, (number + 1) * step_s)
    if network_windows.is_loaded(line):
        for to_s, vm, direction, value in network_windows.rates(line, step_s):
            yield SeriesPoint(
                to_s, 'instance', vm, f'{direction}_mbit_s', value
            )
    for vm in line.places:
        yield from _rounds_of(line, vm)
    for node in line.capacity:
        for t_s, part in peers.known_cpu_fractions(line, node):
            yield SeriesPoint(t_s, 'node', node, 'known_part', part)


def _rounds_of(line: timeline.Timeline, vm: str) -> Iterator[SeriesPoint]:
    """Yield the weights that the agent gave a VM, round by round."""
    for t_s, row in phases.vm_rounds(line, vm):
        weights, applied = (
            row.get(field) or {} for field in ('weights', 'applied')
        )
        found = {
            'weight': weights.get('cpu'),
            'applied': applied.get('cpu'),
            'blkio_weight': weights.get('blkio'),
        }
        if rate := applied.get('network'):
            found['class_mbit_s'] = rate * 8e-6
        for quantity, value in found.items():
            if value is not None:
                yield SeriesPoint(t_s, 'instance', vm, quantity, value)


def _parts(
    line: timeline.Timeline, from_s: float, to_s: float
) -> Iterator[SeriesPoint]:
    for quantity, amounts in (
        ('cpu_share', line.received_cpu_s(from_s, to_s)),
        ('max_min_share', line.fair_cpu_s(from_s, to_s)),
    ):
        users = timeline.parts(line.by_user(amounts))
        for name, value in users.items():
            yield SeriesPoint(to_s, 'user', name, quantity, value)
        for name, value in line.node_parts(amounts, to_s).items():
            yield SeriesPoint(to_s, 'instance', name, quantity, value)
    moved = disk_result.bytes_moved(line, from_s, to_s)
    if any(moved.values()):
        for name, value in line.node_parts(moved, to_s).items():
            yield SeriesPoint(to_s, 'instance', name, 'disk_share', value)


def to_csv(line: timeline.Timeline) -> str:
    """Content of ``series.csv``."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator='\n')
    writer.writerow(COLUMNS)
    for point in points(line):
        writer.writerow(
            (
                round(point.t_s, 3),
                point.kind,
                point.name,
                point.quantity,
                round(point.value, 6),
            )
        )
    return stream.getvalue()
