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


"""Chains, stars and random graphs that grow; reports that get lost."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib
import statistics
import time
from typing import Any

import policies_runs as runs

from nova_fairness.sim import distance
from nova_fairness.sim import generators
from nova_fairness.sim import model
from nova_fairness.sim import recipes
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module

PLAIN = {'momentum': 0.0}
"""Multiplicative feedback without momentum, to compare with."""

TRIED = (('plain', PLAIN), ('feedback', {}))

SIZES = (2, 3, 4, 5, 10, 30, 100, 300)

SEEDS = range(1, 9)
"""Of small clouds."""

LONG = 100
"""From so many nodes on, runs have twice the rounds ..."""

LARGE = 1000
"""... and from so many on half of them, and the default policy only, ..."""

LARGE_GRAPHS = (recipes.Graph.CHAIN, recipes.Graph.STAR)
"""... on graphs whose bounded ideal takes less than ten minutes."""

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


def grown(
    graph: recipes.Graph,
    nodes: int,
    speeds: tuple[float, ...] = (1.0,),
    seed: int | None = None,
) -> model.Cloud:
    recipe = recipes.Recipe(
        graph=graph,
        nodes=nodes,
        users=nodes,
        degree=min(3, nodes),
        vms_per_node=4,
        node_cpus=(1.0, 2.0, 4.0),
        node_speeds=speeds,
        vcpus=(4.0,),
        seed=nodes if seed is None else seed,
    )
    rounds = 200 if nodes < LONG else 400 if nodes < LARGE else 100
    return generators.generate(
        recipe, f'{graph.value}-{nodes}', 'grown', 10.0, rounds
    )


def graphs(out: pathlib.Path, sizes: Iterable[int], *, more: bool) -> None:
    """Say how many rounds each policy needs, by size.

    :param more: keep what was found for other sizes.
    """
    results: dict[tuple[str, str], list[Mapping[str, Any]]] = {
        (graph.value, name): [] for graph in recipes.Graph for name, _ in TRIED
    }
    if more:
        text = (out / 'graphs.json').read_text(encoding='utf-8')
        for item in json.loads(text)['results']:
            results[item['graph'], item['policy']] = item['points']
    for nodes in sizes:
        for graph in recipes.Graph if nodes < LARGE else LARGE_GRAPHS:
            cloud = grown(graph, nodes)
            for name, parameters in TRIED if nodes < LARGE else TRIED[1:]:
                point = _point(cloud, parameters)
                results[graph.value, name].append(point)
                print(graph.value, name, nodes, point[runs.ROUNDS], flush=True)
        write_graphs(out, results)


def _point(
    cloud: model.Cloud, parameters: Mapping[str, float]
) -> Mapping[str, Any]:
    began_s = time.process_time()
    found = runs.tried(
        scenario_module.Scenario(cloud, scenario_module.AgentSpec()),
        running.Choice(
            metric=runs.METRICS[0],
            policy='feedback',
            share='cpu_time',
            parameters=parameters,
        ),
    )
    return {
        'nodes': len(cloud.nodes),
        'cpu_s': time.process_time() - began_s,
        **found['measures'],
    }


def write_graphs(
    out: pathlib.Path,
    results: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
) -> None:
    runs.write(
        out / 'graphs.json',
        [
            {
                'graph': graph,
                'policy': policy,
                'exponent': exponent(points),
                'points': points,
            }
            for (graph, policy), points in results.items()
        ],
    )
    for name, quantity in (
        ('graphs', lambda point: runs.late(point[runs.ROUNDS])),
        ('graphs-overshoot', lambda point: runs.percent(point['overshoot'])),
        (
            'graphs-settled',
            lambda point: runs.percent(point['bounded']['worst']['settled']),
        ),
    ):
        rows = _by_size(results, quantity)
        if name == 'graphs':
            powers = ['p', *map(_power, map(exponent, results.values()))]
            rows = [[*row, p] for row, p in zip(rows, powers, strict=True)]
        runs.write_csv(out / f'{name}.csv', rows)


def _by_size(
    results: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
    quantity: Callable[[Mapping[str, Any]], str],
) -> list[list[str]]:
    """Give a row for each graph and policy, a column for each size."""
    sizes = sorted(
        {point['nodes'] for points in results.values() for point in points}
    )
    rows = []
    for key, points in results.items():
        said = {point['nodes']: quantity(point) for point in points}
        rows.append([*key, *(said.get(size, '-') for size in sizes)])
    head = ['graph', 'policy', *(f'{size} nodes' for size in sizes)]
    return [head, *rows]


def exponent(points: Iterable[Mapping[str, Any]]) -> float | None:
    """Give p of ``rounds ~ nodes ** p``, of those that got there."""
    known = [
        (point['nodes'], max(1, point[runs.ROUNDS]))
        for point in points
        if point[runs.ROUNDS] is not None
    ]
    if len(known) < 2:
        return None
    return distance.exponent(*zip(*known, strict=True))


def _power(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f}'


def small(out: pathlib.Path) -> None:
    """Draw many clouds of up to five nodes, for the default policy."""
    results = []
    for graph in recipes.Graph:
        for nodes in range(2, 6):
            points = [
                _point(grown(graph, nodes, seed=seed), {}) for seed in SEEDS
            ]
            results.append(
                {'graph': graph.value, 'nodes': nodes, 'points': points}
            )
            print(graph.value, nodes, [p[runs.ROUNDS] for p in points])
    runs.write(out / 'small.json', results)
    runs.write_csv(
        out / 'small.csv',
        [
            [
                'graph',
                'nodes',
                'clouds',
                'most rounds',
                'largest distance settled %',
                'median overshoot %',
                'largest overshoot %',
            ],
            *(_of_many(item) for item in results),
        ],
    )


def _of_many(item: Mapping[str, Any]) -> list[str]:
    points = item['points']
    rounds = [point[runs.ROUNDS] for point in points]
    overshoots = [point['overshoot'] or 0.0 for point in points]
    settled = max(point['bounded']['worst']['settled'] for point in points)
    return [
        item['graph'],
        str(item['nodes']),
        str(len(points)),
        runs.late(None if None in rounds else max(rounds)),
        runs.percent(settled),
        runs.percent(statistics.median(overshoots)),
        runs.percent(max(overshoots)),
    ]


def robust(out: pathlib.Path) -> None:
    """Make reports late and lost, nodes slow, and one node deaf."""
    results = []
    for name, agents in AGENTS.items():
        for graph, nodes in (
            (recipes.Graph.CHAIN, 5),
            (recipes.Graph.RANDOM, 10),
        ):
            found = runs.tried(
                scenario_module.Scenario(
                    grown(graph, nodes, speeds=(0.7, 1.0, 1.4)), agents
                ),
                running.Choice(
                    metric=runs.METRICS[0], policy='feedback', share='cpu_time'
                ),
            )
            results.append({'reports': name, **found})
            print(name, end=' ')
            runs.show(found)
    runs.write(out / 'robust.json', results)
    runs.write_csv(
        out / 'robust.csv',
        [
            ['reports', 'graph', 'rounds', 'settled %', 'overshoot %'],
            *(
                [
                    item['reports'],
                    item['scenario'],
                    runs.late(item['measures'][runs.ROUNDS]),
                    runs.percent(
                        item['measures']['bounded']['worst']['settled']
                    ),
                    runs.percent(item['measures']['overshoot']),
                ]
                for item in results
            ),
        ],
    )
