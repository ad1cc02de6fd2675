# SPDX-License-Identifier: Apache-2.0


"""Chains, stars and random graphs: many small ones, and ones that grow."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib
import time
from typing import Any

from benchmarks.policies import runs
from fairness_lab.measures import distance
from fairness_lab.measures import running
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import generate
from fairness_lab.scenario import recipes
from fairness_lab.scenario import values as scenario_module

Point = Mapping[str, Any]
Results = dict[tuple[str, str], list[Point]]
"""Points of every graph and label, in the order in which they are written."""

PLAIN = {'momentum': 0.0}
"""Multiplicative feedback without momentum, to compare with."""

COMPARED = ('feedback', 'foresight')
"""The policy that the default policy builds on, and the default policy."""

TRIED: Sequence[tuple[str, str, Mapping[str, float]]] = (
    ('plain', 'feedback', PLAIN),
    ('feedback', 'feedback', {}),
    ('foresight', 'foresight', {}),
)
"""Name, policy and its parameters; the default policy is last."""

SIZES = (2, 3, 4, 5, 10, 30, 100, 300)

SEEDS = range(1, 9)
"""Of small clouds."""

LONG = 100
"""From so many nodes on, runs have twice the rounds ..."""

LARGE = 1000
"""... and from so many on half of them, and the default policy only, ..."""

LARGE_GRAPHS = (recipes.Graph.CHAIN, recipes.Graph.STAR)
"""... on graphs whose bounded ideal takes less than ten minutes."""


def draw_graph(
    graph: recipes.Graph,
    nodes: int,
    speeds: tuple[float, ...] = (1.0,),
    seed: int | None = None,
) -> cloud_module.Cloud:
    recipe = recipes.CloudRecipe(
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
    return generate.generate(
        recipe, f'{graph.value}-{nodes}', 'grown', 10.0, rounds
    )


def graphs(out: pathlib.Path, sizes: Iterable[int], *, more: bool) -> None:
    """Say how many rounds each policy needs, by size.

    :param more: keep what was found, and run only what is missing.
    """
    results: Results = {
        (graph.value, label): []
        for graph in recipes.Graph
        for label, _, _ in TRIED
    }
    if more:
        results |= _recorded(out / 'graphs.json')
    for nodes in sizes:
        for graph in recipes.Graph if nodes < LARGE else LARGE_GRAPHS:
            _add_missing(results, graph, nodes)
        write_graphs(out, results)


def _recorded(path: pathlib.Path) -> Results:
    """Content of a file."""
    items = json.loads(path.read_text(encoding='utf-8'))['results']
    return {(item['graph'], item['policy']): item['points'] for item in items}


def _add_missing(results: Results, graph: recipes.Graph, nodes: int) -> None:
    """Run one graph with all policies that have no point yet."""
    missing = [
        item
        for item in (TRIED if nodes < LARGE else TRIED[-1:])
        if nodes not in _sizes(results[graph.value, item[0]])
    ]
    if not missing:
        return
    cloud = draw_graph(graph, nodes)
    for label, policy, parameters in missing:
        points = results[graph.value, label]
        points.append(_point(cloud, policy, parameters))
        print(graph.value, label, nodes, points[-1][runs.ROUNDS], flush=True)
        points.sort(key=lambda point: int(point['nodes']))


def _sizes(points: Iterable[Point]) -> set[int]:
    return {point['nodes'] for point in points}


def _point(
    cloud: cloud_module.Cloud, policy: str, parameters: Mapping[str, float]
) -> Point:
    began_s = time.process_time()
    found = runs.simulate(
        cloud_module.Experiment(cloud, scenario_module.AgentSpec()),
        running.RunOptions(
            metric=runs.METRICS[0],
            policy=policy,
            share='cpu_time',
            parameters=parameters,
        ),
    )
    return {
        'nodes': len(cloud.nodes),
        'cpu_s': time.process_time() - began_s,
        **found['measures'],
    }


def write_graphs(out: pathlib.Path, results: Results) -> None:
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
        ('graphs', lambda point: runs.round_text(point[runs.ROUNDS])),
        ('graphs-overshoot', lambda point: runs.percent(point['overshoot'])),
        (
            'graphs-settled',
            lambda point: runs.percent(point['bounded']['worst']['settled']),
        ),
    ):
        rows = _rows_by_size(results, quantity)
        if name == 'graphs':
            powers = ['p', *map(_power_text, map(exponent, results.values()))]
            rows = [[*row, p] for row, p in zip(rows, powers, strict=True)]
        runs.write_csv(out / f'{name}.csv', rows)


def _rows_by_size(
    results: Results, quantity: Callable[[Point], str]
) -> list[list[str]]:
    """A row for each graph and policy, a column for each size."""
    sizes = sorted(set().union(*map(_sizes, results.values())))
    rows = []
    for key, points in results.items():
        said = {point['nodes']: quantity(point) for point in points}
        rows.append([*key, *(said.get(size, '-') for size in sizes)])
    head = ['graph', 'policy', *(f'{size} nodes' for size in sizes)]
    return [head, *rows]


def exponent(points: Iterable[Point]) -> float | None:
    """Exponent p of ``rounds ~ nodes ** p``, of those that got there."""
    known = [
        (point['nodes'], max(1, point[runs.ROUNDS]))
        for point in points
        if point[runs.ROUNDS] is not None
    ]
    if len(known) < 2:
        return None
    return distance.exponent(*zip(*known, strict=True))


def _power_text(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f}'


def draw_small_graphs(out: pathlib.Path) -> None:
    """Draw many clouds of up to five nodes."""
    results = [
        _run_small_clouds(policy, graph, nodes)
        for policy in COMPARED
        for graph in recipes.Graph
        for nodes in range(2, 6)
    ]
    runs.write(out / 'small.json', results)
    runs.write_csv(
        out / 'small.csv',
        [
            [
                'policy',
                'graph',
                'nodes',
                'clouds',
                'most rounds',
                'largest distance settled %',
                'median overshoot %',
                'largest overshoot %',
            ],
            *(_summary_row(item) for item in results),
        ],
    )


def _run_small_clouds(policy: str, graph: recipes.Graph, nodes: int) -> Point:
    """Run a policy on all small clouds of one size."""
    points = [
        _point(draw_graph(graph, nodes, seed=seed), policy, {})
        for seed in SEEDS
    ]
    rounds = [point[runs.ROUNDS] for point in points]
    print(policy, graph.value, nodes, rounds, flush=True)
    return {
        'policy': policy,
        'graph': graph.value,
        'nodes': nodes,
        'points': points,
    }


def _summary_row(item: Mapping[str, Any]) -> list[str]:
    points = item['points']
    return [
        item['policy'],
        item['graph'],
        str(item['nodes']),
        str(len(points)),
        *runs.summary_of_runs(points),
    ]
