# SPDX-License-Identifier: Apache-2.0

"""The stretches of a run that a criterion looks at."""

from collections.abc import Iterator
from collections.abc import Mapping
import statistics
from typing import Any

from fairness_lab.results import abtest
from fairness_lab.results import timeline

SHORTEST_WINDOW_S = 4.0
"""A window between two events that is shorter says nothing."""

AGENTS_STARTED = 'agents_started'
"""Event: from now on the agents run."""

AGENTS_STOPPED = 'agents_stopped'
"""Event: from now on they do not."""

Json = dict[str, Any]


def vm_rounds(
    line: timeline.Timeline, vm: str
) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the time in seconds and the record of a VM in each round."""
    start_s = float(line.recording.meta['monotonic_start_s'])
    rounds = [
        entry
        for node in {node for _, node in line.stays(vm)}
        for entry in line.recording.rounds.get(node, ())
    ]
    for entry in sorted(rounds, key=lambda entry: entry['time_s']):
        for row in entry['instances']:
            if vm in {row.get('name'), row.get('domain'), row.get('uuid')}:
                yield entry['time_s'] - start_s, row


def windows(line: timeline.Timeline) -> Iterator[Json]:
    """Yield what each VM got between events and changes of the load.

    The second half of each window counts, after the weights have settled.
    """
    for from_s, to_s in line.pieces(0.0, line.duration_s):
        if to_s - from_s < SHORTEST_WINDOW_S:
            continue
        middle = (from_s + to_s) / 2
        got = line.node_parts(line.got(middle, to_s), middle)
        fair = line.node_parts(line.fair(middle, to_s), middle)
        demand = line.demand(middle)
        yield {
            'from_s': from_s,
            'to_s': to_s,
            'settled_from_s': middle,
            'instances': {
                vm: {
                    'demand': demand[vm],
                    'cpu_share': got[vm],
                    'max_min_share': fair[vm],
                    'distance': abs(got[vm] - fair[vm]),
                }
                for vm in line.places
                if line.runs(vm, middle)
            },
        }


def lone(line: timeline.Timeline) -> Iterator[Json]:
    """Yield the stretches in which one VM alone wants its whole node."""
    for from_s, to_s in line.pieces(0.0, line.duration_s):
        if to_s - from_s < SHORTEST_WINDOW_S:
            continue
        middle_s = (from_s + to_s) / 2
        demand = line.demand(middle_s)
        for node, cpus in line.capacity.items():
            busy = [vm for vm in line.vms_on(node, middle_s) if demand[vm] > 0]
            if len(busy) == 1 and demand[busy[0]] >= cpus:
                yield _lone_entry(line, busy[0], cpus, from_s, to_s)


def _lone_entry(
    line: timeline.Timeline, vm: str, cpus: float, from_s: float, to_s: float
) -> Json:
    start_s = from_s + (to_s - from_s) / 4
    weights = {
        name: [
            row['weights']['cpu']
            for t_s, row in vm_rounds(line, name)
            if start_s <= t_s <= to_s and 'cpu' in row.get('weights', {})
        ]
        for name in line.vms_on(line.node_of(vm, start_s), start_s)
    }
    everybody = [value for values in weights.values() for value in values]
    return {
        'vm': vm,
        'from_s': from_s,
        'to_s': to_s,
        'settled_from_s': start_s,
        'cpu_part': line.cpu_s(vm, start_s, to_s) / cpus / (to_s - start_s),
        'lowest_weight': min(weights[vm], default=None),
        'highest_weight': max(weights[vm], default=None),
        'node_lowest_weight': min(everybody, default=None),
    }


def uncontended(line: timeline.Timeline) -> Json | None:
    """Compare the work of neighbouring phases without and with agents.

    The first pair is left out: at its beginning the guest has not begun to
    work, or its emulator still translates what it runs.

    :returns: ``None`` if the run has no such phases.
    """
    phases: dict[bool, list[float]] = {False: [], True: []}
    marks = [
        (event.t_s, event.event == AGENTS_STARTED)
        for event in line.recording.events
        if event.event in {AGENTS_STARTED, AGENTS_STOPPED}
    ]
    edges = [*(t_s for t_s, _ in marks[1:]), line.duration_s]
    for (from_s, agents), to_s in zip(marks, edges, strict=False):
        work = sum(line.work(vm, from_s, to_s) for vm in line.places)
        phases[agents].append(work / (to_s - from_s))
    pairs = [
        abtest.Pair(without, with_agent)
        for without, with_agent in zip(
            phases[False][1:], phases[True][1:], strict=False
        )
        if without > 0
    ]
    if not pairs:
        return None
    differences = [pair.difference for pair in pairs]
    interval = abtest.confidence(differences)
    return {
        'pairs': [
            {
                'work_per_s_without': pair.without,
                'work_per_s_with': pair.with_agent,
                'difference': pair.difference,
            }
            for pair in pairs
        ],
        'mean_difference': statistics.fmean(differences),
        'confidence_95': list(interval) if interval else None,
    }
