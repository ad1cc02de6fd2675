# SPDX-License-Identifier: Apache-2.0


"""The numbers of the default policy and of feedback, tried out."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import pathlib
import statistics
from typing import Any

from benchmarks.policies import runs
from fairness_lab.measures import running
from fairness_lab.scenario import experiment

SMALL = ('two-nodes', 'unequal-quotas', 'chain', 'star')
"""Scenarios of both sweeps."""

KEYS = (
    'mean_rounds',
    'mean_worst',
    'settled_worst',
    'largest_overshoot',
    'largest_weight_swing',
)
"""Columns of each, beside its numbers."""

LATE = 100
"""Counted where a run does not get there."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Numbers of a policy that are tried out.

    :ivar file: name of what is written, without its end.
    :ivar policy: its name.
    :ivar values: by parameter; all are combined.
    :ivar scenarios: names.
    """

    file: str
    policy: str
    values: Mapping[str, Sequence[float]]
    scenarios: Sequence[str]

    def combinations(self) -> Iterator[dict[str, float]]:
        """All parameters that differ in what they do."""
        for numbers in itertools.product(*self.values.values()):
            given = dict(zip(self.values, numbers, strict=True))
            # Without momentum none fades.
            if given.get('momentum') != 0.0 or given['fading'] == 0.0:
                yield given


SWEEPS = (
    Sweep(
        'sweep',
        'feedback',
        {
            'gain': (0.6, 0.85, 1.1),
            'momentum': (0.0, 0.8, 0.95),
            'fading': (0.0, 0.3),
        },
        ('one-node', *SMALL, 'crowd'),
    ),
    Sweep(
        'sweep-foresight',
        'foresight',
        {
            'part': (0.5, 0.7, 1.0),
            'correction': (0.25, 0.5, 1.0),
        },
        (*SMALL, 'idle', 'lost-reports'),
    ),
)


def run_sweeps(out: pathlib.Path, only: str = '') -> None:
    """Try the numbers of policies on small scenarios.

    :param only: part of the names of policies.
    """
    for sweep in SWEEPS:
        if only in sweep.policy:
            _write(out, sweep, _run_sweep(sweep))


def _run_sweep(sweep: Sweep) -> list[Mapping[str, Any]]:
    results: list[Mapping[str, Any]] = []
    scenarios = [experiment.find(name) for name in sweep.scenarios]
    for parameters in sweep.combinations():
        choice = running.RunOptions(
            metric=runs.METRICS[0],
            policy=sweep.policy,
            parameters=parameters,
        )
        found = [runs.simulate(scenario, choice) for scenario in scenarios]
        results.append({'parameters': parameters, **summary_of_runs(found)})
        print(results[-1], flush=True)
    return results


def _write(
    out: pathlib.Path, sweep: Sweep, results: Sequence[Mapping[str, Any]]
) -> None:
    runs.write(out / f'{sweep.file}.json', results)
    head = [*sweep.values, *(key.replace('_', ' ') for key in KEYS)]
    rows = [
        [*item['parameters'].values(), *(f'{item[key]:.3g}' for key in KEYS)]
        for item in results
    ]
    runs.write_csv(out / f'{sweep.file}.csv', [head, *rows])


def summary_of_runs(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up runs of several scenarios with one policy."""
    found = [result['measures'] for result in results]
    rounds = [
        LATE if item[runs.ROUNDS] is None else item[runs.ROUNDS]
        for item in found
        if item['stretches']
    ]
    overshoot = [item['overshoot'] or 0.0 for item in found]
    return {
        'mean_worst': statistics.fmean(
            item['bounded']['worst']['mean'] for item in found
        ),
        'settled_worst': statistics.fmean(
            item['bounded']['worst']['settled'] for item in found
        ),
        'mean_rounds': statistics.fmean(rounds),
        'largest_overshoot': max(overshoot),
        'largest_weight_swing': max(
            item['weight_swing'] or 0.0 for item in found
        ),
        'scenarios': {
            run['scenario']: {
                'rounds': item[runs.ROUNDS],
                'settled_worst': item['bounded']['worst']['settled'],
                'mean_worst': item['bounded']['worst']['mean'],
                'overshoot': item['overshoot'],
            }
            for run, item in zip(results, found, strict=True)
        },
    }
