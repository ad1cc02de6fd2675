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

"""Foresight on the standard set, in bursts, and with reports that get lost."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import policies_foreseen as foreseen
import policies_foresight as foresight
import policies_graphs
import policies_joined as joined
import policies_runs as runs
import policies_table as tables
import policies_tried as tried

from nova_fairness.sim import ideal
from nova_fairness.sim import measures
from nova_fairness.sim import recipes
from nova_fairness.sim import running
from nova_fairness.sim import scenario as scenario_module
from nova_fairness.sim import scenario_file

Make = joined.Make

TOO_LARGE = ('heterogeneous', 'random-1000')
"""Scenarios whose ideals take many minutes."""

_METRIC = {
    ideal.DOMINANT: 'DominantShareMetric',
    ideal.ASSET: 'AssetFairnessMetric',
}


def standard(out: pathlib.Path) -> None:
    """Compare with the default policy and ``thesis`` on the standard set."""
    known = _known(out)
    head = ['scenario', 'share', 'metric', 'feedback', 'thesis', 'foresight']
    rows = [[*head, 'part', 'holds']]
    names = (name for name in scenario_file.names() if name not in TOO_LARGE)
    every = map(scenario_file.find, names)
    for scenario in sorted(every, key=_effort):
        several = tables.shares_of(scenario)
        kinds = (ideal.DOMINANT, ideal.ASSET) if several else (ideal.DOMINANT,)
        for kind in kinds:
            for share, lacking in _by_share(scenario, kind, several).items():
                key = (scenario.name, share, _METRIC[kind])
                rows.append(_row(key, known, lacking))
                print(rows[-1], flush=True)
        runs.write_csv(out / 'foresight-set.csv', rows)


def _effort(scenario: scenario_module.Scenario) -> tuple[bool, int]:
    return bool(tables.shares_of(scenario)), len(scenario.cloud.vms)


def _by_share(
    scenario: scenario_module.Scenario, kind: str, several: tuple[str, ...]
) -> Mapping[str, float]:
    """Say what the worst user lacks of each share that a metric is for."""
    shares = (kind, *(name for name in several if name != ideal.ASSET))
    if kind == ideal.ASSET:
        shares = (kind,)
    found = judged(
        scenario, foreseen.made(way=foresight.Way(share=kind)), shares
    )
    return {
        share: float(item['bounded']['worst']['settled'])
        for share, item in found.items()
    }


def judged(
    scenario: scenario_module.Scenario,
    make: Make,
    shares: tuple[str, ...] = (ideal.DOMINANT,),
) -> Mapping[str, Mapping[str, Any]]:
    """Run a scenario; give what is measured, by share."""
    metric = _METRIC.get(shares[0], runs.METRICS[0])
    plain = running.setup(scenario, running.Choice(metric=metric))
    judges = {
        share: measures.Measures(scenario.cloud, plain, share)
        for share in shares
    }
    setup = make(scenario.cloud, plain)
    running.observe(scenario.cloud, setup, judges.values())
    return {share: judge.result() for share, judge in judges.items()}


def _known(out: pathlib.Path) -> Mapping[tuple[str, str, str], list[str]]:
    """Read what was found for the default policy and ``thesis``."""
    rows = tables.bars(tables.read(out))
    return {(row[0], row[1], row[2]): [row[3], row[4]] for row in rows[1:]}


def _row(
    key: tuple[str, str, str],
    known: Mapping[tuple[str, str, str], list[str]],
    lacking: float,
) -> list[str]:
    own, thesis = known[key]
    both = {'feedback': lacking, 'thesis': float(thesis) / 100}
    return [
        *key,
        own,
        thesis,
        runs.percent(lacking),
        *tables.judged(key[1], both),
    ]


def bursts(out: pathlib.Path) -> None:
    """Run ``bursty`` with several seeds."""
    text = (out / 'bursts.csv').read_text(encoding='utf-8').splitlines()
    head, *lines = [line.split(',') for line in text]
    rows = []
    for line in lines:
        row = dict(zip(head, line, strict=True))
        scenario = scenario_file.find('bursty', {'seed': row['seed']})
        found = [tried.worst(scenario, make)['settled'] for make in _IN_BURSTS]
        thesis = float(row['thesis']) / 100
        parts = [f'{value / thesis:.2f}' for value in found]
        rows.append(
            [
                row['seed'],
                row['thesis'],
                row['feedback 0.5'],
                *map(runs.percent, found),
                *parts,
                row['the ideal of the round before'],
            ]
        )
        print(rows[-1], flush=True)
    runs.write_csv(
        out / 'foresight-bursts.csv',
        [
            [
                'seed',
                'thesis',
                'feedback',
                'foresight',
                'whole way',
                'part',
                'part, whole way',
                'the ideal of the round before',
            ],
            *rows,
        ],
    )


_IN_BURSTS = (
    foreseen.WAYS['foresight'],
    foreseen.WAYS['foresight, whole way'],
)


def robust(out: pathlib.Path) -> None:
    """Make reports late and lost, nodes slow, and one node deaf."""
    text = (out / 'robust.json').read_text(encoding='utf-8')
    before = json.loads(text)['results']
    rows, places = [], iter(before)
    for name, agents in policies_graphs.AGENTS.items():
        for graph, nodes in (
            (recipes.Graph.CHAIN, 5),
            (recipes.Graph.RANDOM, 10),
        ):
            cloud = policies_graphs.grown(graph, nodes, (0.7, 1.0, 1.4))
            scenario = scenario_module.Scenario(cloud, agents)
            found = judged(scenario, foreseen.made(), ('cpu_time',))[
                'cpu_time'
            ]
            rows.append(
                [
                    name,
                    cloud.name,
                    *_said(next(places)['measures']),
                    *_said(found),
                ]
            )
            print(rows[-1], flush=True)
    runs.write_csv(
        out / 'foresight-robust.csv',
        [
            [
                'reports',
                'graph',
                *(
                    f'{what}, {policy}'
                    for policy in ('default', 'foresight')
                    for what in ('rounds', 'settled %', 'overshoot %')
                ),
            ],
            *rows,
        ],
    )


def _said(found: Mapping[str, Any]) -> list[str]:
    return [
        runs.late(found[runs.ROUNDS]),
        runs.percent(found['bounded']['worst']['settled']),
        runs.percent(found['overshoot']),
    ]
