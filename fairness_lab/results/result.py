# SPDX-License-Identifier: Apache-2.0

"""From a recording to the content of ``result.json``.

The fields are an interface: ``result_schema.json`` describes them, and
:data:`VERSION` changes when a reader of the old one would be misled.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
import statistics
from typing import Any

from fairness_lab.results import disk_result
from fairness_lab.results import network_windows
from fairness_lab.results import peers
from fairness_lab.results import phases
from fairness_lab.results import recording as recording_module
from fairness_lab.results import reference
from fairness_lab.results import timeline
from nova_fairness.model import defaults

SETTLED_TOLERANCE = 0.03
"""Largest distance of a user's part from the max-min part."""

SETTLED_SPAN_S = 10.0
"""A user's part at a moment is that of the seconds before it."""

SETTLED_SPANS = 12
"""In a short run the span is this part of it."""


def settling_times_s(line: timeline.Timeline) -> dict[str, float | None]:
    """Moment from which each user's part stays within tolerance.

    :returns: seconds since the load began, by user; ``None`` for a user
        whose part was not within tolerance at the end.
    """
    first: dict[str, float | None] = dict.fromkeys(line.users)
    for t_s, distance in _distances(line):
        for user, value in distance.items():
            if value > SETTLED_TOLERANCE:
                first[user] = None
            elif first[user] is None:
                first[user] = t_s
    return first


def _distances(
    line: timeline.Timeline,
) -> Iterator[tuple[float, dict[str, float]]]:
    span_s = min(SETTLED_SPAN_S, line.duration_s / SETTLED_SPANS)
    step_s = span_s / 5
    count = round((line.duration_s - span_s) / step_s)
    for number in range(count + 1):
        from_s = number * step_s
        to_s = from_s + span_s
        got = timeline.parts(line.by_user(line.received_cpu_s(from_s, to_s)))
        fair = timeline.parts(line.by_user(line.fair_cpu_s(from_s, to_s)))
        yield to_s, {user: abs(got[user] - fair[user]) for user in got}


VERSION = 1

STEADY_ROUNDS = 30
"""Rounds over which the steadiness of a weight is judged."""

Json = dict[str, Any]


def build(recording: recording_module.Recording) -> Json:
    """Evaluate a recording.

    :returns: what ``result.json`` holds, without the checks.
    :raises LabError: if the recording lacks something or contradicts itself.
    """
    line = timeline.Timeline(recording)
    options = recording.meta['options']
    from_s, to_s = line.duration_s / 2, line.duration_s
    users = _users(line, from_s, to_s)
    return {
        'version': VERSION,
        'scenario': recording.meta['name'],
        'backend': recording.meta['backend'],
        'agents': bool(options['agents']),
        'metric': options['metric'],
        'policy': options['policy'],
        'interval_s': float(options['interval_s']),
        'duration_s': line.duration_s,
        'max_weight_ratio': _max_weight_ratio(recording),
        'package_version': recording.meta.get('version', ''),
        'machine': recording.meta.get('machine', {}),
        'started': recording.meta.get('wall_start'),
        'rounds': max(map(len, recording.rounds.values()), default=0),
        'window': {'from_s': from_s, 'to_s': to_s},
        'users': users,
        'instances': _instances(line, from_s, to_s),
        'nodes': peers.nodes(line, from_s, to_s),
        'jain': {'cpu': _jain_of_users(line, users, from_s, to_s)},
        'events': [
            {'t_s': item.t_s, 'event': item.event, 'subject': item.subject}
            for item in recording.events
        ],
        'windows': list(phases.windows(line)),
        'healings': list(peers.healing_results(line)),
        'lone': list(phases.single_vm_phases(line)),
        'uncontended': phases.uncontended_work(line),
        'network': list(network_windows.windows(line)),
        'disk': disk_result.disk_use(line, from_s, to_s),
        'latency': disk_result.latency(line, from_s, to_s),
        'reference': _comparison_with_reference(recording),
    }


def _max_weight_ratio(recording: recording_module.Recording) -> float:
    given = recording.meta['options'].get('max_weight_ratio')
    return defaults.MAX_WEIGHT_RATIO if given is None else float(given)


def jain(values: Sequence[float]) -> float | None:
    """Jain's index of fairness.

    :param values: >= 0.
    :returns: 1/n (one has all) to 1 (all have the same); ``None`` if all have
        0.
    """
    squares = math.fsum(value * value for value in values)
    if squares <= 0:
        return None
    return math.fsum(values) ** 2 / (len(values) * squares)


def _jain_of_users(
    line: timeline.Timeline,
    users: Mapping[str, Json],
    from_s: float,
    to_s: float,
) -> float | None:
    wanted = line.by_user(line.fair_cpu_s(from_s, to_s))
    return jain(
        [
            entry['cpu_share'] / entry['weight']
            for name, entry in users.items()
            if wanted[name] > 0
        ]
    )


def _users(
    line: timeline.Timeline, from_s: float, to_s: float
) -> dict[str, Json]:
    got = timeline.parts(line.by_user(line.received_cpu_s(from_s, to_s)))
    fair_s = line.by_user(line.fair_cpu_s(from_s, to_s))
    fair = timeline.parts(fair_s)
    most = line.bounded(from_s, to_s, _max_weight_ratio(line.recording))
    whole = math.fsum(fair_s.values())
    first = settling_times_s(line)
    return {
        user: {
            'weight': line.user_weight.get(user, 1.0),
            'cpu_share': got[user],
            'max_min_share': fair[user],
            'bounded_share': most[user] / whole if whole else 0.0,
            'first_within_s': first[user],
        }
        for user in line.users
    }


def _instances(
    line: timeline.Timeline, from_s: float, to_s: float
) -> dict[str, Json]:
    got_s = line.received_cpu_s(from_s, to_s)
    got = line.node_parts(got_s, to_s)
    fair = line.node_parts(line.fair_cpu_s(from_s, to_s), to_s)
    result: dict[str, Json] = {}
    for vm, place in line.places.items():
        whole = list(phases.vm_rounds(line, vm))
        rows = [row for t_s, row in whole if from_s <= t_s <= to_s]
        everything = _values_by_control([row for _, row in whole], 'weights')
        weights = _values_by_control(rows, 'weights')
        result[vm] = {
            'user': place.user,
            'node': line.node_of(vm, to_s),
            'stays': [
                {'from_s': since_s, 'node': node}
                for since_s, node in line.nodes_over_time(vm)
            ],
            'vcpus': place.vcpus,
            'cpu_share': got[vm],
            'max_min_share': fair[vm],
            'cpu_s': got_s[vm],
            'demand_cpu_s': line.demanded_s(vm, from_s, to_s),
            'waited_part': _waited_part(line, vm, from_s, to_s),
            'work_per_s': line.work(vm, from_s, to_s) / (to_s - from_s),
            'weights': weights,
            'weights_applied': _values_by_control(rows, 'applied'),
            'weight_range': {
                control: [min(values), max(values)]
                for control, values in everything.items()
            },
            'peak_to_peak': {
                control: peak_to_peak(values[-STEADY_ROUNDS:])
                for control, values in weights.items()
            },
        }
    return result


def _waited_part(
    line: timeline.Timeline, vm: str, from_s: float, to_s: float
) -> float | None:
    if line.last(vm, 'wait_s') is None:
        return None
    return line.growth(vm, 'wait_s', from_s, to_s) / (to_s - from_s)


def _values_by_control(
    rows: Sequence[Mapping[str, Any]], field: str
) -> dict[str, list[float]]:
    """Collect values of the controls that are steered."""
    values: dict[str, list[float]] = {}
    for row in rows:
        found = row.get(field) or {}
        for control in row.get('wanted') or {}:
            if found.get(control) is not None:
                values.setdefault(control, []).append(found[control])
    return values


def peak_to_peak(values: Sequence[float]) -> float:
    """Range of values relative to their mean; 0 for no values."""
    mean = statistics.fmean(values) if values else 0.0
    return (max(values) - min(values)) / mean if mean else 0.0


def _comparison_with_reference(
    recording: recording_module.Recording,
) -> Json | None:
    """Compare the recorded shares with an independent evaluation."""
    options = recording.meta['options']
    chosen = (options['metric'], options['policy'])
    alone = len(recording.meta['scenario']['nodes']) == 1
    if chosen != ('GreedinessMetric', 'thesis') or not alone:
        return None
    if not recording.rounds:
        return None
    differences = []
    for rounds in recording.rounds.values():
        expected = reference.cpu_shares(rounds)
        for entry, shares in zip(rounds, expected, strict=True):
            for row in entry['instances']:
                wanted = (row.get('wanted') or {}).get('cpu')
                if row['uuid'] in shares and wanted is not None:
                    differences.append(abs(wanted - shares[row['uuid']]))
    return {
        'compared': len(differences),
        'largest_difference': max(differences, default=None),
    }
