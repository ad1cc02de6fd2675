# SPDX-License-Identifier: Apache-2.0

"""Results of a run with several nodes: rounds, and effects of healing."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import math
from typing import Any

from fairness_lab.results import recording
from fairness_lab.results import timeline

ROUNDS_TO_HEAL = 3
"""Rounds after which all should be as before, once something was healed."""

ROUNDS_JUDGED = 3
"""The VMs' parts are judged over this many rounds after those."""

HEALING = frozenset(
    {
        'start-agent',
        'restart-agent',
        'thaw-agent',
        'heal',
        'start-redis',
        'thaw-redis',
        'flush-redis',
    }
)
"""Events after which agents have to find each other again."""

BEGINNING = frozenset({'start-agent', 'restart-agent'})
"""Those after which an agent first has to come up."""

INTERRUPTING = frozenset({'kill-agent', 'freeze-agent', 'agents_stopped'})
"""Events after which an agent makes no rounds, together with the above."""

_KNOWN = 0.99
"""Part of the supply from which all nodes are known."""

Json = dict[str, Any]
Rounds = Sequence[Mapping[str, Any]]


def nodes(
    line: timeline.Timeline, from_s: float, to_s: float
) -> dict[str, Json]:
    """Results of each node: its use, and the rounds of its agent.

    :param from_s: begin of the settled part, seconds.
    :param to_s: its end.
    """
    got = line.received_cpu_s(from_s, to_s)
    result = {}
    for node, cpus in line.capacity.items():
        rounds = line.recording.rounds.get(node, ())
        used_s = math.fsum(got[vm] for vm in line.vms_on(node, to_s))
        known = [part for _, part in known_cpu_fractions(line, node)]
        result[node] = {
            'cpus': cpus,
            'cpu_used': used_s / cpus / (to_s - from_s),
            'rounds': len(rounds),
            'rounds_without_weights': _count_rounds_without_weight(rounds),
            'longest_gap_s': _longest_gap_s(line, node),
            'known_part': known[-1] if known else None,
        }
    return result


def known_cpu_fractions(
    line: timeline.Timeline, node: str
) -> Iterator[tuple[float, float]]:
    """Yield the fraction of all CPUs that an agent knew of, by round.

    :returns: time in seconds since the load began, and the part.
    """
    whole = math.fsum(line.capacity.values())
    for entry in line.recording.rounds.get(node, ()):
        known = _known_cpus(entry)
        if known is not None:
            yield _elapsed_s(line, entry), known / whole


def healing_results(line: timeline.Timeline) -> Iterator[Json]:
    """Yield the result of each event that healed a link or an agent."""
    if not line.recording.meta['options']['agents']:
        return
    interval_s = float(line.recording.meta['options']['interval_s'])
    for event in line.recording.events:
        if event.event not in HEALING:
            continue
        since_s = _reachable_since_s(line, event)
        entry = {
            't_s': event.t_s,
            'event': event.event,
            'subject': event.subject,
            'since_s': since_s,
            'rounds_until_known': None,
            'from_s': None,
            'to_s': None,
            'instances': {},
        }
        if since_s is not None:
            entry['rounds_until_known'] = _rounds_until_known(line, since_s)
            from_s = since_s + ROUNDS_TO_HEAL * interval_s
            entry |= _comparison_with_fair(
                line, from_s, ROUNDS_JUDGED * interval_s
            )
        yield entry


def _reachable_since_s(
    line: timeline.Timeline, event: recording.EventRow
) -> float | None:
    """When an agent can be heard again; ``None`` if it never was.

    One that starts is heard from the first round on in which it has an
    interval to tell of.
    """
    if event.event not in BEGINNING:
        return event.t_s
    rounds = line.recording.rounds.get(event.subject, ())
    lives = [entry for entry in rounds if _elapsed_s(line, entry) >= event.t_s]
    if event.event == 'restart-agent':
        # the old life may still make rounds until it has ended
        first = (n for n, entry in enumerate(lives) if entry['round'] == 1)
        lives = lives[next(first, len(lives)) :]
    told = (_elapsed_s(line, entry) for entry in lives if 'supply' in entry)
    return next(told, None)


def _comparison_with_fair(
    line: timeline.Timeline, from_s: float, length_s: float
) -> Json:
    """Compare CPU use with the fair use, up to the next event."""
    later = [e.t_s for e in line.recording.events if e.t_s > from_s]
    to_s = min([from_s + length_s, line.duration_s, *later])
    if to_s - from_s < length_s / ROUNDS_JUDGED:
        return {}
    got = line.node_parts(line.received_cpu_s(from_s, to_s), to_s)
    fair = line.node_parts(line.fair_cpu_s(from_s, to_s), to_s)
    return {
        'from_s': from_s,
        'to_s': to_s,
        'instances': {
            vm: {
                'cpu_share': got[vm],
                'max_min_share': fair[vm],
                'distance': abs(got[vm] - fair[vm]),
            }
            for vm in line.places
            if line.runs(vm, to_s)
        },
    }


def _rounds_until_known(line: timeline.Timeline, since_s: float) -> int | None:
    """Number of rounds until the last agent knew all reachable nodes.

    :returns: 1 for the first round after ``since_s``; ``None`` if one agent
        never did.
    """
    group = max(line.reach.groups(since_s), key=len)
    whole = math.fsum(line.capacity[node] for node in group)
    slowest = 0
    for node in group:
        rounds = [
            entry
            for entry in line.recording.rounds.get(node, ())
            if _elapsed_s(line, entry) >= since_s
        ]
        known = (
            number
            for number, entry in enumerate(rounds, start=1)
            if (_known_cpus(entry) or 0.0) >= _KNOWN * whole
        )
        number = next(known, None)
        if number is None:
            return None
        slowest = max(slowest, number)
    return slowest


def _elapsed_s(line: timeline.Timeline, entry: Mapping[str, Any]) -> float:
    start_s = float(line.recording.meta['monotonic_start_s'])
    return float(entry['time_s']) - start_s


def _known_cpus(entry: Mapping[str, Any]) -> float | None:
    """How many CPUs like its own an agent reckoned with."""
    supply_s = (entry.get('supply') or {}).get('cpu_time')
    own_s = entry['node']['speed_factor'] * entry.get('interval_s', 0.0)
    return supply_s / own_s if supply_s and own_s else None


def _count_rounds_without_weight(rounds: Rounds) -> int:
    """Count rounds in which a VM that was there before has no weight."""
    count = 0
    for before, entry in itertools.pairwise(rounds):
        if entry['round'] <= before['round']:
            continue
        seen = {vm['uuid'] for vm in before['instances']}
        count += any(
            vm['uuid'] in seen and 'cpu' not in vm.get('weights', {})
            for vm in entry['instances']
        )
    return count


def _longest_gap_s(line: timeline.Timeline, node: str) -> float | None:
    """Longest time between two rounds of an agent that runs."""
    ends = [
        event.t_s
        for event in line.recording.events
        if event.event in INTERRUPTING | BEGINNING
        and event.subject in {node, ''}
    ]
    rounds = line.recording.rounds.get(node, ())
    times = [_elapsed_s(line, entry) for entry in rounds]
    if times and times[-1] < line.duration_s:
        times.append(line.duration_s)
    gaps = [
        after - before
        for before, after in itertools.pairwise(times)
        if after > 0 and not any(before < end_s <= after for end_s in ends)
    ]
    return max(gaps, default=None)
