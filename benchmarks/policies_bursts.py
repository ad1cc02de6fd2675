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

"""Demand in bursts: what a shorter memory of usage would give, and cost."""

from collections.abc import Mapping
import dataclasses
import pathlib
import statistics

import policies_runs as runs
import policies_tried

from nova_fairness.sim import distance
from nova_fairness.sim import measures
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module
from nova_fairness.sim import scenario_file

SEEDS = (5, 1, 2, 3)
"""Of ``bursty``; the first is that of the standard set."""

DECAY = (0.5, 0.6, 0.75, 1.0)
"""The default, and others."""

STEADY = ('one-node', 'two-nodes', 'unequal-quotas', 'chain', 'star', 'crowd')
"""Scenarios without bursts."""

LATE = 100
"""Counted where a run does not get there."""


def bursts(out: pathlib.Path) -> None:
    """Write what the worst user lacks in bursts, and what steady runs cost."""
    found = [_of_seed(seed) for seed in SEEDS]
    rows = [list(map(str, row.values())) for row in found]
    runs.write_csv(out / 'bursts.csv', [list(found[0]), *rows])
    runs.write_csv(
        out / 'bursts-steady.csv',
        [
            ['decay factor', 'mean rounds', 'settled %', 'overshoot %'],
            *map(_of_steady, DECAY),
        ],
    )


def _of_seed(seed: int) -> Mapping[str, str]:
    scenario = scenario_file.find('bursty', {'seed': str(seed)})
    judge = {
        'thesis': _settled(scenario, 'thesis', 0.5),
        **{
            f'feedback {decay}': _settled(scenario, 'feedback', decay)
            for decay in DECAY
        },
    }
    own, thesis = judge[f'feedback {DECAY[0]}'], judge['thesis']
    result = {
        'seed': str(seed),
        **{name: runs.percent(value) for name, value in judge.items()},
        'foresight': runs.percent(_foresight(scenario)),
        'part': f'{own / thesis:.2f}',
        'the ideal of the round before': runs.percent(_late(scenario)),
    }
    print(result, flush=True)
    return result


def _settled(
    scenario: scenario_module.Scenario, policy: str, decay: float
) -> float:
    choice = running.Choice(metric=runs.METRICS[0], policy=policy)
    made = running.setup(scenario, choice)
    made = dataclasses.replace(made, decay_factor=decay)
    judge = measures.Measures(scenario.cloud, made)
    running.observe(scenario.cloud, made, [judge])
    return float(judge.result()['bounded']['worst']['settled'])


def _foresight(scenario: scenario_module.Scenario) -> float:
    return float(policies_tried.worst(scenario)['settled'])


def _late(scenario: scenario_module.Scenario) -> float:
    """Say what is lacking with the ideal of one round in the next one."""
    made = running.setup(scenario, running.Choice(policy='none'))
    best = policies_tried.ideals(scenario, made)
    lacking = distance.worst(best[:-1], best[1:])
    return float(lacking[(len(best) + 1) // 2 - 1 :].mean())


def _of_steady(decay: float) -> list[str]:
    found = []
    for name in STEADY:
        scenario = scenario_file.find(name)
        made = running.setup(scenario, running.Choice(metric=runs.METRICS[0]))
        made = dataclasses.replace(made, decay_factor=decay)
        judge = measures.Measures(scenario.cloud, made)
        running.observe(scenario.cloud, made, [judge])
        found.append(judge.result())
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
