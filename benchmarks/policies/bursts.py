# SPDX-License-Identifier: Apache-2.0

"""Demand in bursts: what foresight gives, or else a shorter memory of usage.

Foresight goes by the newest interval, however usage is smoothed. Feedback is
run with several decay factors, and what these cost it where demand is steady
is of feedback alone.
"""

from collections.abc import Mapping
import dataclasses
import pathlib
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.policies import runs
from fairness_lab.ideal import ideal
from fairness_lab.measures import distance
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.node_sim import engine
from fairness_lab.node_sim import model
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment

SEEDS = (5, 1, 2, 3)
"""Of ``bursty``; the first is that of the standard set."""

DECAY = (0.5, 0.6, 0.75, 1.0)
"""Of feedback: as agents smooth by default, and others."""

STEADY = ('one-node', 'two-nodes', 'unequal-quotas', 'chain', 'star', 'crowd')
"""Scenarios without bursts."""

LATE = 100
"""Counted where a run does not get there."""


def bursts(out: pathlib.Path) -> None:
    """Write what the worst user lacks in bursts, and in steady runs.

    The latter of feedback, whose decay factor it is about.
    """
    found = [_of_seed(seed) for seed in SEEDS]
    rows = [list(map(str, row.values())) for row in found]
    runs.write_csv(out / 'bursts.csv', [list(found[0]), *rows])
    steady = [_of_steady(decay) for decay in DECAY]
    head = ['decay factor of feedback', 'mean rounds', 'settled %']
    runs.write_csv(
        out / 'bursts-steady.csv', [[*head, 'overshoot %'], *steady]
    )


def _of_seed(seed: int) -> Mapping[str, str]:
    scenario = experiment.find('bursty', {'seed': str(seed)})
    thesis, foresight = (
        _settled(scenario, policy, DECAY[0])
        for policy in ('thesis', 'foresight')
    )
    feedback = {
        f'feedback {decay}': _settled(scenario, 'feedback', decay)
        for decay in DECAY
    }
    result = {
        'seed': str(seed),
        'thesis': runs.percent(thesis),
        **{name: runs.percent(value) for name, value in feedback.items()},
        'foresight': runs.percent(foresight),
        'part': f'{foresight / thesis:.2f}',
        'the ideal of the round before': runs.percent(_late(scenario)),
    }
    print(result, flush=True)
    return result


def _settled(
    scenario: cloud_module.Experiment, policy: str, decay: float
) -> float:
    found = _result(scenario, policy, decay)
    return float(found['bounded']['worst']['settled'])


def _result(
    scenario: cloud_module.Experiment, policy: str, decay: float
) -> Mapping[str, Any]:
    choice = running.RunOptions(metric=runs.METRICS[0], policy=policy)
    made = running.setup(scenario, choice)
    made = dataclasses.replace(made, decay_factor=decay)
    judge = measures.Measures(scenario.cloud, made)
    running.observe(scenario.cloud, made, [judge])
    return judge.result()


def _late(scenario: cloud_module.Experiment) -> float:
    """Say what is lacking with the ideal of one round in the next one."""
    made = running.setup(scenario, running.RunOptions(policy='none'))
    best = _ideals(scenario, made)
    lacking = distance.largest_lack(best[:-1], best[1:])
    return float(lacking[(len(best) + 1) // 2 - 1 :].mean())


def _ideals(
    scenario: cloud_module.Experiment, setup: model.Setup
) -> npt.NDArray[np.float64]:
    """Bounded ideal of every round, (k, u)."""
    judge = measures.Measures(scenario.cloud, setup)
    find = ideal.cached_ideal(ideal.DOMINANT, setup.max_weight_ratio)
    return np.array(
        [
            find(judge.wishes(moment)).share
            for moment in engine.simulate(scenario.cloud, setup)
        ]
    )


def _of_steady(decay: float) -> list[str]:
    found = [
        _result(experiment.find(name), 'feedback', decay) for name in STEADY
    ]
    rounds = [
        LATE if item[runs.ROUNDS] is None else item[runs.ROUNDS]
        for item in found
    ]
    settled = [item['bounded']['worst']['settled'] for item in found]
    row = [
        str(decay),
        f'{statistics.fmean(rounds):.1f}',
        runs.percent(statistics.fmean(settled)),
        runs.percent(max(item['overshoot'] or 0.0 for item in found)),
    ]
    print(row, flush=True)
    return row
