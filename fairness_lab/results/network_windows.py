# SPDX-License-Identifier: Apache-2.0

"""Traffic of VMs between changes of the load.

A VM's sent traffic is the amount that arrived at the far end of its node's
uplink. Its received traffic is the amount that its own programs got. Both are
payload without headers, and without dropped packets.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import itertools
import statistics
from typing import Any

from fairness_lab.results import phases
from fairness_lab.results import timeline

SHORTEST_WINDOW_S = 15.0
"""A window between two changes that is shorter says nothing."""

RIVAL = 0.05
"""Part of the link from which a VM counts in a direction."""

PAYLOAD_PART = 1448 / 1514
"""Part of what passes a link that is payload: of TCP over IPv4 with time
stamps in whole frames, which carries least of what the laboratory sends."""

DIRECTIONS: Mapping[str, str] = {
    'sent': 'arrived_bytes',
    'received': 'received_bytes',
}
"""Column of the recording by direction."""

Json = dict[str, Any]


def windows(line: timeline.Timeline) -> Iterator[Json]:
    """Yield the traffic of each direction; nothing without uplinks.

    The last 60 % of each window counts, after the weights have settled.
    """
    scenario = line.recording.meta['scenario']
    changes = [
        float(t_s)
        for t_s in scenario.get('network_changes_s', ())
        if t_s < line.duration_s
    ]
    moved = {column: _counters(line, column) for column in DIRECTIONS.values()}
    if not is_loaded(line):
        return
    edges = [*changes, line.duration_s]
    for from_s, to_s in itertools.pairwise(edges):
        if to_s - from_s < SHORTEST_WINDOW_S:
            continue
        settled_s = from_s + 0.4 * (to_s - from_s)
        for node, told in scenario['nodes'].items():
            for direction, column in DIRECTIONS.items():
                window = _traffic_of_vms(
                    line, node, moved[column], settled_s, to_s
                )
                yield {
                    'node': node,
                    'direction': direction,
                    'from_s': from_s,
                    'settled_from_s': settled_s,
                    'to_s': to_s,
                    'link_mbit_s': float(told['network_mbit_s']),
                    **_class_comparison(window, float(told['network_mbit_s'])),
                }


def rates(
    line: timeline.Timeline, step_s: float
) -> Iterator[tuple[float, str, str, float]]:
    """Yield end of a step, VM, direction, and payload in Mbit/s.

    :param step_s: seconds, > 0.
    """
    for direction, column in DIRECTIONS.items():
        for vm, found in _counters(line, column).items():
            for number in range(int(line.duration_s / step_s)):
                from_s, to_s = number * step_s, (number + 1) * step_s
                passed = found.over(from_s, to_s) * 8e-6 / step_s
                yield to_s, vm, direction, passed


def is_loaded(line: timeline.Timeline) -> bool:
    """Whether guests were ordered to load the network over an uplink."""
    scenario = line.recording.meta['scenario']
    return bool(scenario.get('network_changes_s')) and any(
        DIRECTIONS['sent'] in row.more for row in line.recording.readings
    )


def _counters(
    line: timeline.Timeline, column: str
) -> dict[str, timeline.Counter]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in line.recording.readings:
        value = row.more.get(column)
        if value is not None:
            points.setdefault(row.vm, []).append((row.t_s, value))
    return {vm: timeline.Counter(found) for vm, found in points.items()}


def _traffic_of_vms(
    line: timeline.Timeline,
    node: str,
    moved: Mapping[str, timeline.Counter],
    from_s: float,
    to_s: float,
) -> dict[str, Json]:
    """Payload in Mbit/s and mean class of each VM of a node."""
    found: dict[str, Json] = {}
    for vm in line.vms_on(node, from_s):
        if vm not in moved:
            continue
        rates = [
            float(row['applied']['network'])
            for t_s, row in phases.vm_rounds(line, vm)
            if from_s <= t_s <= to_s
            and (row.get('applied') or {}).get('network')
        ]
        passed = moved[vm].over(from_s, to_s)
        found[vm] = {
            'mbit_s': passed * 8e-6 / (to_s - from_s),
            'class_mbit_s': statistics.fmean(rates) * 8e-6 if rates else None,
        }
    return found


def _class_comparison(window: dict[str, Json], link_mbit_s: float) -> Json:
    """Compare the traffic of competing VMs with their classes."""
    rivals = {
        vm: entry
        for vm, entry in window.items()
        if entry['mbit_s'] >= RIVAL * link_mbit_s
    }
    passed = sum(entry['mbit_s'] for entry in rivals.values())
    classes = [entry['class_mbit_s'] for entry in rivals.values()]
    known = bool(classes) and None not in classes
    for entry in rivals.values():
        entry['share'] = entry['mbit_s'] / passed
        entry['class_share'] = (
            entry['class_mbit_s'] / sum(classes) if known else None
        )
    off = [
        abs(entry['share'] / entry['class_share'] - 1)
        for entry in rivals.values()
        if entry['class_share']
    ]
    return {
        'instances': window,
        'rivals': len(rivals),
        'link_part': passed / link_mbit_s / PAYLOAD_PART,
        'off_by': max(off) if len(off) > 1 else None,
    }
