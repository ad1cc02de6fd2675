# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""The numbers of the default policy, tried out."""

from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import pathlib
import statistics
from typing import Any

import policies_runs as runs

from nova_fairness.sim import running
from nova_fairness.sim import scenario_file

SWEEP = {
    'gain': (0.6, 0.85, 1.1),
    'momentum': (0.0, 0.8, 0.95),
    'fading': (0.0, 0.3),
}
SWEPT = ('one-node', 'two-nodes', 'unequal-quotas', 'chain', 'star', 'crowd')
"""Scenarios of the sweep."""

LATE = 100
"""Counted where a run does not get there."""


def swept(out: pathlib.Path) -> None:
    """Try the numbers of the default policy on all small scenarios."""
    results = []
    scenarios = [scenario_file.find(name) for name in SWEPT]
    for gain, momentum, fading in itertools.product(*SWEEP.values()):
        if momentum == 0.0 and fading > 0.0:
            continue
        parameters = {'gain': gain, 'momentum': momentum, 'fading': fading}
        found = [
            runs.tried(
                scenario,
                running.Choice(
                    metric=runs.METRICS[0],
                    policy='feedback',
                    parameters=parameters,
                ),
            )
            for scenario in scenarios
        ]
        results.append({'parameters': parameters, **summed(found)})
        print(results[-1], flush=True)
    runs.write(out / 'sweep.json', results)
    keys = [
        'mean_rounds',
        'mean_worst',
        'settled_worst',
        'largest_overshoot',
        'largest_weight_swing',
    ]
    runs.write_csv(
        out / 'sweep.csv',
        [
            [*SWEEP, *(key.replace('_', ' ') for key in keys)],
            *(
                [
                    *item['parameters'].values(),
                    *(f'{item[key]:.3g}' for key in keys),
                ]
                for item in results
            ),
        ],
    )


def summed(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
