# SPDX-License-Identifier: Apache-2.0

"""Reports that are late or lost, slow nodes, and one node that is deaf."""

from collections.abc import Mapping
import itertools
import pathlib
from typing import Any

from benchmarks.policies import graphs
from benchmarks.policies import runs
from fairness_lab.measures import running
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import recipes
from fairness_lab.scenario import values as scenario_module

GROWN = ((recipes.Graph.CHAIN, 5), (recipes.Graph.RANDOM, 10))
"""Graphs, and their nodes ..."""

SPEEDS = (0.7, 1.0, 1.4)
"""... which are not equally fast."""

AGENTS = {
    'prompt': scenario_module.AgentSpec(),
    'one round late': scenario_module.AgentSpec(
        links=scenario_module.LinkSpec(delay=1.0)
    ),
    'a third lost': scenario_module.AgentSpec(
        links=scenario_module.LinkSpec(loss=1 / 3)
    ),
    'a third lost, up to two rounds late, at different times': (
        scenario_module.AgentSpec(
            ticks=4,
            spread=True,
            view_max_age=6.0,
            links=scenario_module.LinkSpec(loss=1 / 3, jitter=2.0),
        )
    ),
    'one node three rounds old': scenario_module.AgentSpec(
        view_max_age=6.0,
        links=scenario_module.LinkSpec(of=(('node0', 3.0, 0.0),)),
    ),
}


def robust(out: pathlib.Path) -> None:
    """Run the default policy, and what it builds on, with such reports."""
    results = [
        _run(name, graph, nodes, policy)
        for name, (graph, nodes), policy in itertools.product(
            AGENTS, GROWN, graphs.COMPARED
        )
    ]
    runs.write(out / 'robust.json', results)
    head = ['reports', 'graph', 'policy', 'rounds', 'settled %', 'overshoot %']
    runs.write_csv(out / 'robust.csv', [head, *map(_row, results)])


def _run(
    name: str, graph: recipes.Graph, nodes: int, policy: str
) -> Mapping[str, Any]:
    cloud = graphs.draw_graph(graph, nodes, speeds=SPEEDS)
    found = runs.simulate(
        cloud_module.Experiment(cloud, AGENTS[name]),
        running.RunOptions(
            metric=runs.METRICS[0], policy=policy, share='cpu_time'
        ),
    )
    print(name, end=' ')
    runs.print_result(found)
    return {'reports': name, **found}


def _row(item: Mapping[str, Any]) -> list[str]:
    found = item['measures']
    return [
        item['reports'],
        item['scenario'],
        item['policy'],
        runs.round_text(found[runs.ROUNDS]),
        runs.percent(found['bounded']['worst']['settled']),
        runs.percent(found['overshoot']),
    ]
