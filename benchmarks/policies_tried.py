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

"""What policies could do that know more of the other nodes."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import pathlib

import numpy as np
import numpy.typing as npt
import policies_graphs
import policies_informed
import policies_joined as joined
import policies_runs as runs

from nova_fairness.decide.policies import feedback
from nova_fairness.sim import engine
from nova_fairness.sim import ideal
from nova_fairness.sim import measures
from nova_fairness.sim import model
from nova_fairness.sim import recipes
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module
from nova_fairness.sim import scenario_file

Floats = npt.NDArray[np.float64]
Make = Callable[[model.Cloud, model.Setup], model.Setup]

SCENARIOS = ('unequal-quotas', 'chain', 'star', 'crowd', 'idle', 'bursty')
"""Of the standard set: the CPU alone is scarce, and no VM comes or goes."""

SIZES = (10, 30, 100)


def _plain(_cloud: model.Cloud, setup: model.Setup) -> model.Setup:
    policy = feedback.FeedbackPolicy()
    policy.momentum = 0.0
    return dataclasses.replace(setup, policy_plugin=policy)


def _level(_cloud: model.Cloud, setup: model.Setup) -> model.Setup:
    return dataclasses.replace(setup, policy_plugin=policies_informed.Level())


def _level_both(_cloud: model.Cloud, setup: model.Setup) -> model.Setup:
    policy = policies_informed.Level()
    policy.both = True
    return dataclasses.replace(setup, policy_plugin=policy)


def _foresight(cloud: model.Cloud, setup: model.Setup) -> model.Setup:
    """Without smoothing: what VMs used in the newest interval counts."""
    seeing = policies_informed.Seeing()
    return dataclasses.replace(
        setup,
        metric_plugin=seeing,
        decay_factor=1.0,
        policy_plugin=policies_informed.Foresight(cloud, setup, seeing),
    )


VARIANTS: Mapping[str, Make] = {
    'default': lambda _cloud, setup: setup,
    'plain': _plain,
    'level': _level,
    'level, both ways': _level_both,
    'foresight': _foresight,
}


def informed(out: pathlib.Path) -> None:
    """Run them on small clouds, larger graphs and the standard set."""
    _of_small(out / 'informed-small.csv')
    _of_grown(out / 'informed-graphs.csv')
    rows = map(_of_scenario, SCENARIOS)
    head = ['scenario', 'whole run %', 'settled %']
    runs.write_csv(out / 'informed-set.csv', [head, *rows])


def _of_small(path: pathlib.Path) -> None:
    rows = []
    kinds = joined.small()
    for name, make in VARIANTS.items():
        for graph, clouds in kinds.items():
            rows.append(
                [name, graph.value, *joined.of_many(clouds.judged(make))]
            )
            print(rows[-1], flush=True)
    runs.write_csv(path, [['policy', 'graph', *joined.MANY], *rows])


def _of_grown(path: pathlib.Path) -> None:
    rows = []
    for graph in recipes.Graph:
        clouds = [policies_graphs.grown(graph, nodes) for nodes in SIZES]
        for name in ('default', 'foresight'):
            found = joined.Joined(clouds).judged(VARIANTS[name])
            rounds = [runs.late(item.rounds) for item in found]
            rows.append([graph.value, name, *rounds])
            print(rows[-1], flush=True)
    head = ['graph', 'policy', *(f'{nodes} nodes' for nodes in SIZES)]
    runs.write_csv(path, [head, *rows])


def _of_scenario(name: str) -> list[str]:
    found = worst(scenario_file.find(name))
    print(name, found, flush=True)
    return [name, runs.percent(found['mean']), runs.percent(found['settled'])]


def worst(
    scenario: scenario_module.Scenario, make: Make = _foresight
) -> Mapping[str, float]:
    """Say what the worst user lacks, by default with foresight."""
    plain = running.setup(scenario, running.Choice(metric=runs.METRICS[0]))
    judge = measures.Measures(scenario.cloud, plain)
    setup = make(scenario.cloud, plain)
    running.observe(scenario.cloud, setup, [judge])
    return dict(judge.result()['bounded']['worst'])


def ideals(scenario: scenario_module.Scenario, setup: model.Setup) -> Floats:
    """Give the bounded ideal of every round, (k, u)."""
    judge = measures.Measures(scenario.cloud, setup)
    find = ideal.remembered(ideal.DOMINANT, setup.max_weight_ratio)
    return np.array(
        [
            find(judge.wishes(moment)).share
            for moment in engine.simulate(scenario.cloud, setup)
        ]
    )
