# SPDX-License-Identifier: Apache-2.0

"""Phases of a run that the checks of a scenario use."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import statistics
from typing import Any

from fairness_lab.results import timeline

T_975 = (
    (1, 12.706),
    (2, 4.303),
    (3, 3.182),
    (4, 2.776),
    (5, 2.571),
    (6, 2.447),
    (7, 2.365),
    (8, 2.306),
    (9, 2.262),
    (10, 2.228),
    (11, 2.201),
    (12, 2.179),
    (13, 2.160),
    (14, 2.145),
    (15, 2.131),
    (16, 2.120),
    (17, 2.110),
    (18, 2.101),
    (19, 2.093),
    (20, 2.086),
    (25, 2.060),
    (30, 2.042),
    (40, 2.021),
    (60, 2.000),
    (120, 1.980),
)
"""0.975 quantile of Student's t distribution by degrees of freedom."""


@dataclasses.dataclass(frozen=True, slots=True)
class PhasePair:
    """Work per second in two neighbouring phases.

    :ivar work_without_agent: without the agent, > 0.
    :ivar work_with_agent: work per second with the agent.
    """

    work_without_agent: float
    work_with_agent: float

    @property
    def difference(self) -> float:
        """Relative change that came with the agent; -0.01 is 1 % less."""
        return self.work_with_agent / self.work_without_agent - 1.0


def t_quantile(freedom: int) -> float:
    """0.975 quantile of the t distribution.

    :param freedom: degrees of freedom, >= 1; between two rows of the table
        the one with fewer counts, which makes an interval wider, never
        narrower.
    """
    return max(
        (row for row in T_975 if row[0] <= freedom), key=lambda row: row[0]
    )[1]


def confidence(differences: Sequence[float]) -> tuple[float, float] | None:
    """95 % confidence interval of a mean.

    :returns: both ends, or ``None`` for fewer than two values.
    """
    count = len(differences)
    if count < 2:
        return None
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(count)
    reach = t_quantile(count - 1) * error
    return mean - reach, mean + reach


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
        for node in {node for _, node in line.nodes_over_time(vm)}
        for entry in line.recording.rounds.get(node, ())
    ]
    for entry in sorted(rounds, key=lambda entry: entry['time_s']):
        for row in entry['instances']:
            if vm in {row.get('name'), row.get('domain'), row.get('uuid')}:
                yield entry['time_s'] - start_s, row


def windows(line: timeline.Timeline) -> Iterator[Json]:
    """Yield the CPU use of VMs between events and changes of load.

    The second half of each window counts, after the weights have settled.
    """
    for from_s, to_s in line.pieces_of_constant_demand(0.0, line.duration_s):
        if to_s - from_s < SHORTEST_WINDOW_S:
            continue
        middle = (from_s + to_s) / 2
        got = line.node_parts(line.received_cpu_s(middle, to_s), middle)
        fair = line.node_parts(line.fair_cpu_s(middle, to_s), middle)
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


def single_vm_phases(line: timeline.Timeline) -> Iterator[Json]:
    """Yield the phases in which one VM alone wants its whole node."""
    for from_s, to_s in line.pieces_of_constant_demand(0.0, line.duration_s):
        if to_s - from_s < SHORTEST_WINDOW_S:
            continue
        middle_s = (from_s + to_s) / 2
        demand = line.demand(middle_s)
        for node, cpus in line.capacity.items():
            busy = [vm for vm in line.vms_on(node, middle_s) if demand[vm] > 0]
            if len(busy) == 1 and demand[busy[0]] >= cpus:
                yield _single_vm_phase(line, busy[0], cpus, from_s, to_s)


def _single_vm_phase(
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


def uncontended_work(line: timeline.Timeline) -> Json | None:
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
        PhasePair(without, with_agent)
        for without, with_agent in zip(
            phases[False][1:], phases[True][1:], strict=False
        )
        if without > 0
    ]
    if not pairs:
        return None
    differences = [pair.difference for pair in pairs]
    interval = confidence(differences)
    return {
        'pairs': [
            {
                'work_per_s_without': pair.work_without_agent,
                'work_per_s_with': pair.work_with_agent,
                'difference': pair.difference,
            }
            for pair in pairs
        ],
        'mean_difference': statistics.fmean(differences),
        'confidence_95': list(interval) if interval else None,
    }
