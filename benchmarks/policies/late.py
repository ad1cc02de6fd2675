# SPDX-License-Identifier: Apache-2.0

"""Wants that change every round: policies beside weights of true wants.

    python -m benchmarks.policies.policies late --out benchmarks/results/sim

Beside each policy stands what the worst user lacks with the best weights for
the *true* wants: of the same round, of the round before, and for the mean of
the last two and four. The first says what weights of this form can reach. The
second is a reference: a policy that knows how likely changes are may do
better. The second half of each run counts. ``--only`` runs one scenario, and
``--more`` keeps what was found.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import pathlib
from typing import Any

import numpy as np

from benchmarks.policies import runs
from fairness_lab.ideal import columns
from fairness_lab.ideal import ideal
from fairness_lab.ideal import late as late_module
from fairness_lab.measures import distance
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import model
from fairness_lab.scenario import experiment
from nova_fairness.model import resources

_TWO_ROUNDS = {'generate.on': '2', 'generate.off': '2'}

RUNS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ('bursty', 'bursty', {}),
    ('bursts of two rounds', 'bursty', _TWO_ROUNDS),
    ('heavy-tailed', 'heavy-tailed', {}),
)
"""Name, scenario, and what is other in it."""

POLICIES = ('foresight', 'feedback')
MEMORIES = (1, 2, 4)
"""Rounds over which true wants are averaged."""

SAME = 'wants of the same round'

_CPU = resources.RESOURCES.index('cpu_time')

Floats = columns.Floats


def late(out: pathlib.Path, only: str, *, more: bool) -> None:
    """Run all, and write ``late.json`` and ``late.csv``.

    :param only: part of names.
    :param more: keep what was found, and run only what is missing.
    """
    path = out / 'late.json'
    kept = json.loads(path.read_text('utf-8'))['results'] if more else []
    found = {row['scenario']: row for row in kept}
    for place, (name, _, _) in enumerate(RUNS):
        if only in name and name not in found:
            found[name] = tried(place)
    rows = [found[name] for name, _, _ in RUNS if name in found]
    runs.write(path, rows)
    head = [key for key in rows[0] if key != 'parameters']
    runs.write_csv(
        out / 'late.csv',
        [head, *([_shown(row[key]) for key in head] for row in rows)],
    )


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else runs.percent(value)


def tried(place: int) -> dict[str, Any]:
    """Lack of the worst user in one scenario, mean of its second half."""
    name, scenario, parameters = RUNS[place]
    found = experiment.find(scenario, parameters)
    made = running.setup(found, running.RunOptions(policy='none'))
    judge = measures.Measures(found.cloud, made)
    wishes = [
        _kept(judge.wishes(moment))
        for moment in engine.simulate(found.cloud, made)
    ]
    half = len(wishes) // 2
    find = ideal.cached_ideal(ideal.DOMINANT, made.max_weight_ratio)
    best = np.array([find(each).share for each in wishes[half:]])

    def lacks(given: Sequence[Floats]) -> float:
        return float(distance.largest_lack(np.array(given), best).mean())

    ratio = made.max_weight_ratio
    row: dict[str, Any] = {'scenario': name, 'parameters': dict(parameters)}
    for policy in POLICIES:
        choice = running.RunOptions(metric=runs.METRICS[0], policy=policy)
        setup = running.setup(found, choice)
        row[policy] = lacks(list(_shares(found.cloud, setup))[half:])
    for memory in (0, *MEMORIES):
        row[_name(memory)] = lacks(
            [
                given(wishes, number, memory, ratio)
                for number in range(half, len(wishes))
            ]
        )
    return row


def _name(memory: int) -> str:
    if not memory:
        return SAME
    return 'of the round before' if memory == 1 else f'of the last {memory}'


def given(
    wishes: Sequence[columns.Wishes], number: int, memory: int, ratio: float
) -> Floats:
    """Shares of a round, with the best weights for what is known.

    :param memory: rounds before this one whose mean wants are known; 0: what
        is wanted in this round.
    :returns: (u,).
    """
    now = wishes[number]
    known = wishes[number - memory : number] or [now]
    wanted = np.mean([each.demand[:, _CPU] for each in known], axis=0)
    weights = late_module.best_weights(now, wanted, ratio)
    return late_module.shares(now, weights)


def _kept(wishes: columns.Wishes) -> columns.Wishes:
    """The same, good after the next round."""
    return dataclasses.replace(
        wishes, demand=wishes.demand.copy(), node=wishes.node.copy()
    )


def _shares(cloud: Any, setup: model.Setup) -> list[Floats]:
    """Dominant shares of every round."""
    judge = measures.Measures(cloud, setup)
    found = []
    for moment in engine.simulate(cloud, setup):
        there = np.flatnonzero(moment.node >= 0)
        wishes = judge.wishes(moment)
        found.append(
            late_module.dominant_shares(wishes, there, moment.received[there])
        )
    return found
