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

"""Metrics x policies x references over the standard set, in the simulator.

    python benchmarks/policies.py table --out benchmarks/results/sim
    python benchmarks/policies.py graphs --out benchmarks/results/sim
    python benchmarks/policies.py sweep --out benchmarks/results/sim
    python benchmarks/policies.py robust --out benchmarks/results/sim

``table`` runs every scenario with every metric and policy and with the
references of the field, and writes ``table.json`` and ``table.png``.
``graphs`` grows chains, stars and random graphs, and writes how many rounds
each policy needs. ``sweep`` tries the numbers of the default policy.
``robust`` makes reports late and lost, nodes slow and one node deaf.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import itertools
import json
import pathlib
import statistics
import sys
from typing import Any

from nova_fairness import version
from nova_fairness.sim import comparison
from nova_fairness.sim import distance
from nova_fairness.sim import generators
from nova_fairness.sim import measures
from nova_fairness.sim import model
from nova_fairness.sim import pictures
from nova_fairness.sim import recipes
from nova_fairness.sim import report
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module
from nova_fairness.sim import scenario_file
from nova_fairness.sim import series_file
from nova_fairness.sim.references import allocators

METRICS = ('DominantShareMetric', 'GreedinessMetric', 'AssetFairnessMetric')
POLICIES = ('feedback', 'thesis')
MANY = 20
"""Beyond so many nodes, one metric and no allocators are tried."""

DRAWN = ('feedback DominantShare', 'thesis DominantShare', 'none')

PLAIN = {'momentum': 0.0}
"""Multiplicative feedback without momentum, to compare with."""

SWEEP = {
    'gain': (0.6, 0.85, 1.1),
    'momentum': (0.0, 0.8, 0.95),
    'fading': (0.0, 0.3),
}
SWEPT = ('one-node', 'two-nodes', 'unequal-quotas', 'chain', 'star', 'crowd')
"""Scenarios of the sweep."""

ROUNDS = 'rounds_to_within_5_percent'
LATE = 100
"""Counted where a run does not get there."""


@dataclasses.dataclass(frozen=True)
class Tried:
    """A run: what it says, and its series for pictures."""

    result: Mapping[str, Any]
    series: series_file.Series


def tried(scenario: scenario_module.Scenario, choice: running.Choice) -> Tried:
    """Run a scenario without files."""
    made = running.setup(scenario, choice)
    judge = measures.Measures(scenario.cloud, made, choice.share)
    running.observe(scenario.cloud, made, [judge])
    found = dict(judge.result())
    tables = found.pop('series')
    rows = {
        name: tuple(
            {
                column: '' if value is None else str(value)
                for column, value in zip(table['columns'], row, strict=True)
            }
            for row in table['rows']
        )
        for name, table in tables.items()
    }
    return Tried(
        {
            'scenario': scenario.name,
            'nodes': len(scenario.cloud.nodes),
            'users': len(scenario.cloud.users),
            'vms': len(scenario.cloud.vms),
            'metric': made.metric,
            'policy': made.policy,
            'parameters': dict(choice.parameters),
            'measures': found,
        },
        series_file.Series(**rows),
    )


def write(path: pathlib.Path, results: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        'package_version': version.release(),
        'command': ' '.join(['python', *sys.argv]),
        'results': list(results),
    }
    path.write_text(json.dumps(content, indent=1) + '\n', encoding='utf-8')
    print(path)


def write_csv(path: pathlib.Path, rows: Sequence[Sequence[Any]]) -> None:
    with path.open('w', encoding='utf-8', newline='') as stream:
        csv.writer(stream, lineterminator='\n').writerows(rows)
    print(path)


def percent(value: float | None) -> str:
    return '-' if value is None else f'{100 * value:.1f}'


def standard_set(only: str) -> Iterable[scenario_module.Scenario]:
    names = [name for name in scenario_file.names() if only in name]
    return (scenario_file.find(name) for name in names)


def columns(nodes: int) -> Iterable[running.Choice]:
    few = nodes <= MANY
    for metric in METRICS if few else METRICS[:1]:
        for policy in POLICIES:
            yield running.Choice(metric=metric, policy=policy)
    for reference in allocators.names() if few else ('none',):
        yield running.Choice(metric=METRICS[0], policy=reference)


def table(out: pathlib.Path, only: str, *, few: bool) -> None:
    """Run the standard set, small clouds first.

    :param few: only what is drawn: one metric, and no control.
    """
    runs: list[Tried] = []
    ordered = sorted(standard_set(only), key=lambda item: len(item.cloud.vms))
    for scenario in ordered:
        nodes = len(scenario.cloud.nodes)
        for choice in columns(MANY + 1 if few else nodes):
            runs.append(tried(scenario, choice))
            show(runs[-1])
        # After each scenario, so that what is there is whole at any time.
        write_table(out, runs)


def write_table(out: pathlib.Path, runs: Sequence[Tried]) -> None:
    write(out / 'table.json', (run.result for run in runs))
    for name, item in (
        ('settled', comparison.QUANTITIES[0]),
        ('mean', comparison.QUANTITIES[1]),
    ):
        write_csv(out / f'table-{name}.csv', crossed(runs, item))
    chosen = [
        pictures.Run(report.name_of(run.result), run.result, run.series)
        for run in runs
        if column_of(run.result) in DRAWN
    ]
    (out / 'table.png').write_bytes(comparison.compare(chosen))


def crossed(
    runs: Sequence[Tried], item: comparison.Quantity
) -> list[list[str]]:
    """Give a row per scenario and a column per policy and metric, in %."""
    names = list(dict.fromkeys(column_of(run.result) for run in runs))
    scenarios = list(dict.fromkeys(run.result['scenario'] for run in runs))
    found = {
        (run.result['scenario'], column_of(run.result)): item.of(run.result)
        for run in runs
    }
    return [
        ['scenario', *names],
        *(
            [
                scenario,
                *(percent(found.get((scenario, name))) for name in names),
            ]
            for scenario in scenarios
        ),
    ]


def column_of(result: Mapping[str, Any]) -> str:
    if result['policy'] in allocators.names():
        return str(result['policy'])
    metric = result['metric'].removesuffix('Metric')
    return f'{result["policy"]} {metric}'


def show(run: Tried) -> None:
    values = [
        '-' if value is None else item.form.format(value)
        for item in comparison.QUANTITIES
        for value in [item.of(run.result)]
    ]
    print(run.result['scenario'], report.name_of(run.result), *values)
    sys.stdout.flush()


def grown(
    graph: recipes.Graph,
    nodes: int,
    speeds: tuple[float, ...] = (1.0,),
) -> model.Cloud:
    recipe = recipes.Recipe(
        graph=graph,
        nodes=nodes,
        users=nodes,
        degree=3,
        vms_per_node=4,
        node_cpus=(1.0, 2.0, 4.0),
        node_speeds=speeds,
        vcpus=(4.0,),
        seed=nodes,
    )
    rounds = 200 if nodes < 100 else 400
    return generators.generate(
        recipe, f'{graph.value}-{nodes}', 'grown', 10.0, rounds
    )


def graphs(out: pathlib.Path, sizes: Iterable[int]) -> None:
    results = []
    for graph in recipes.Graph:
        for name, parameters in (('plain', PLAIN), ('feedback', {})):
            points = []
            for nodes in sizes:
                cloud = grown(graph, nodes)
                run = tried(
                    scenario_module.Scenario(
                        cloud, scenario_module.AgentSpec()
                    ),
                    running.Choice(
                        metric=METRICS[0],
                        policy='feedback',
                        share='cpu_time',
                        parameters=parameters,
                    ),
                )
                points.append({'nodes': nodes, **run.result['measures']})
                print(graph.value, name, nodes, points[-1][ROUNDS])
            results.append(
                {
                    'graph': graph.value,
                    'policy': name,
                    'exponent': exponent(points),
                    'points': points,
                }
            )
            write_graphs(out, results, sizes)


def write_graphs(
    out: pathlib.Path,
    results: Sequence[Mapping[str, Any]],
    sizes: Iterable[int],
) -> None:
    write(out / 'graphs.json', results)
    write_csv(
        out / 'graphs.csv',
        [
            ['graph', 'policy', *(f'{size} nodes' for size in sizes), 'p'],
            *(
                [
                    item['graph'],
                    item['policy'],
                    *(late(point[ROUNDS]) for point in item['points']),
                    '-'
                    if item['exponent'] is None
                    else f'{item["exponent"]:.2f}',
                ]
                for item in results
            ),
        ],
    )


def late(rounds: int | None) -> str:
    return 'later' if rounds is None else str(rounds)


def exponent(points: Iterable[Mapping[str, Any]]) -> float | None:
    known = [
        (point['nodes'], max(1, point[ROUNDS]))
        for point in points
        if point[ROUNDS] is not None
    ]
    if len(known) < 2:
        return None
    return distance.exponent(*zip(*known, strict=True))


def swept(out: pathlib.Path) -> None:
    """Try the numbers of the default policy on all small scenarios."""
    results = []
    scenarios = [scenario_file.find(name) for name in SWEPT]
    for gain, momentum, fading in itertools.product(*SWEEP.values()):
        if momentum == 0.0 and fading > 0.0:
            continue
        parameters = {'gain': gain, 'momentum': momentum, 'fading': fading}
        runs = [
            tried(
                scenario,
                running.Choice(
                    metric=METRICS[0],
                    policy='feedback',
                    parameters=parameters,
                ),
            ).result
            for scenario in scenarios
        ]
        results.append({'parameters': parameters, **summed(runs)})
        print(results[-1])
        sys.stdout.flush()
    write(out / 'sweep.json', results)
    keys = [
        'mean_rounds',
        'mean_worst',
        'settled_worst',
        'largest_overshoot',
        'largest_weight_swing',
    ]
    write_csv(
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


def summed(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up runs of several scenarios with one policy."""
    found = [run['measures'] for run in runs]
    rounds = [
        LATE if item[ROUNDS] is None else item[ROUNDS]
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
                'rounds': item[ROUNDS],
                'settled_worst': item['bounded']['worst']['settled'],
                'mean_worst': item['bounded']['worst']['mean'],
                'overshoot': item['overshoot'],
            }
            for run, item in zip(runs, found, strict=True)
        },
    }


def robust(out: pathlib.Path) -> None:
    """Make reports late and lost, nodes slow, and one node deaf."""
    results = []
    for name, agents in AGENTS.items():
        for graph, nodes in (
            (recipes.Graph.CHAIN, 5),
            (recipes.Graph.RANDOM, 10),
        ):
            run = tried(
                scenario_module.Scenario(
                    grown(graph, nodes, speeds=(0.7, 1.0, 1.4)), agents
                ),
                running.Choice(
                    metric=METRICS[0], policy='feedback', share='cpu_time'
                ),
            )
            results.append({'reports': name, **run.result})
            print(name, end=' ')
            show(run)
    write(out / 'robust.json', results)
    write_csv(
        out / 'robust.csv',
        [
            ['reports', 'graph', 'rounds', 'settled %', 'overshoot %'],
            *(
                [
                    item['reports'],
                    item['scenario'],
                    late(item['measures'][ROUNDS]),
                    percent(item['measures']['bounded']['worst']['settled']),
                    percent(item['measures']['overshoot']),
                ]
                for item in results
            ),
        ],
    )


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=['table', 'graphs', 'sweep', 'robust'])
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--only', default='', help='part of scenario names')
    parser.add_argument(
        '--few', action='store_true', help='one metric and no allocators'
    )
    parser.add_argument(
        '--sizes', type=int, nargs='+', default=[3, 5, 10, 30, 100]
    )
    options = parser.parse_args()
    {
        'table': lambda: table(options.out, options.only, few=options.few),
        'graphs': lambda: graphs(options.out, options.sizes),
        'sweep': lambda: swept(options.out),
        'robust': lambda: robust(options.out),
    }[options.what]()


if __name__ == '__main__':
    main()
