# SPDX-License-Identifier: Apache-2.0


"""The standard set x metrics x policies and references."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib
from typing import Any

import numpy as np

from benchmarks.policies import runs
from fairness_lab.figures import compare_simulated
from fairness_lab.figures import page
from fairness_lab.figures import simulated
from fairness_lab.ideal import ideal
from fairness_lab.measures import running
from fairness_lab.measures import series as series_module
from fairness_lab.node_sim import references
from fairness_lab.scenario import cloud as cloud_module
from fairness_lab.scenario import experiment
from fairness_lab.scenario import programs
from nova_fairness.model import resources

POLICIES = ('foresight', 'feedback', 'thesis')

ONLY = {'GreedinessMetric': ('thesis',)}
"""Metrics that are for some policies; ``defaults`` has the other pairs."""

BAR = ('foresight', 'thesis')
"""The default policy, and the one it is compared with."""

DRAWN = ('foresight DominantShare', 'thesis DominantShare', 'none')

FEW_CHANGES = 12
"""Up to so many rounds with new demand, every resource's ideal is sought."""

FEW_IDEALS = {'heterogeneous': 12}
"""Scenarios whose ideals take long, and for how many rounds they are found."""

HALF = 0.5
"""Of what the worst user lacks with ``thesis``, he may lack by default ..."""

NOTHING = 0.01
"""... where that is more than this: two digits of kernel units."""

Result = Mapping[str, Any]


def table(out: pathlib.Path, only: str, *, more: bool) -> None:
    """Run the standard set, small clouds first, a file for each scenario.

    :param more: keep what was found for other metrics and policies.
    """
    names = [name for name in programs.SIMULATOR.names() if only in name]
    found = [experiment.find(name) for name in names]
    for scenario in sorted(found, key=lambda item: len(item.cloud.vms)):
        path = out / 'table' / f'{scenario.name}.json'
        known = read_results(path) if more and path.exists() else {}
        results = []
        for choice in columns():
            found = known.get((choice.metric, choice.policy))
            results.append(found or row_of(scenario, choice))
        runs.write(path, results)


def read_results(path: pathlib.Path) -> dict[tuple[str, str], Result]:
    """Content of a file, by metric and policy."""
    results = json.loads(path.read_text(encoding='utf-8'))['results']
    return {(item['metric'], item['policy']): item for item in results}


def row_of(
    scenario: cloud_module.Experiment, choice: running.RunOptions
) -> Result:
    few = FEW_IDEALS.get(scenario.name)
    found = runs.simulate(scenario, choice, shares_of(scenario), few=few)
    runs.print_result(found)
    return found


def columns() -> Iterable[running.RunOptions]:
    for metric in runs.METRICS:
        for policy in ONLY.get(metric, POLICIES):
            yield running.RunOptions(metric=metric, policy=policy)
    for reference in references.names():
        yield running.RunOptions(metric=runs.METRICS[0], policy=reference)


def shares_of(scenario: cloud_module.Experiment) -> tuple[str, ...]:
    """Say which shares count beside the dominant one.

    Where several resources are wanted: their sum, and each alone.
    """
    changes = scenario.cloud.changes
    wanted = (changes.demand > 0).any(axis=0)
    wanted &= resources.RESOURCES.time_shared
    if wanted.sum() < 2:
        return ()
    if len(np.unique(changes.round)) > FEW_CHANGES:
        return (ideal.ASSET,)
    names = np.array(resources.RESOURCES.names)[wanted]
    return (ideal.ASSET, *map(str, names))


def write_summaries(out: pathlib.Path) -> None:
    """Write what all files of scenarios say as tables and as a picture."""
    results = read(out)
    steered = [run for run in results if run['policy'] in POLICIES]
    others = [run for run in results if run['policy'] not in POLICIES]
    for name, chosen in (('table', steered), ('references', others)):
        for when, item in (
            ('settled', compare_simulated.QUANTITIES[0]),
            ('mean', compare_simulated.QUANTITIES[1]),
        ):
            runs.write_csv(
                out / f'{name}-{when}.csv', cross_table(chosen, item)
            )
    runs.write_csv(out / 'bars.csv', bars(results))
    runs.write_csv(out / 'bars-set.csv', whole_set(results))
    chosen = [run for run in results if column_of(run) in DRAWN]
    (out / 'table.png').write_bytes(
        compare_simulated.compare([to_drawable_run(run) for run in chosen])
    )


def read(out: pathlib.Path) -> list[Result]:
    """Read the results of all scenarios, small clouds first."""
    files = [
        json.loads(path.read_text(encoding='utf-8'))['results']
        for path in sorted((out / 'table').glob('*.json'))
    ]
    files.sort(key=lambda results: results[0]['vms'])
    return [item for results in files for item in results]


def to_drawable_run(result: Result) -> simulated.SimulatedRun:
    """Make a run of what was recorded; rounds without an ideal are no gap."""
    rows = tuple(
        {'round': str(k), 'worst_bounded': str(value)}
        for k, value in enumerate(result['worst_bounded'])
        if value is not None
    )
    series = series_module.Series((), (), rows)
    return simulated.SimulatedRun(page.name_of(result), result, series)


def cross_table(
    results: Sequence[Result], item: compare_simulated.Quantity
) -> list[list[str]]:
    """A row per scenario and a column per policy and metric, in %."""
    names = list(dict.fromkeys(map(column_of, results)))
    scenarios = list(dict.fromkeys(run['scenario'] for run in results))
    found = {
        (run['scenario'], column_of(run)): item.of(run) for run in results
    }
    return [
        ['scenario', *names],
        *(
            [
                scenario,
                *(runs.percent(found.get((scenario, name))) for name in names),
            ]
            for scenario in scenarios
        ),
    ]


def column_of(result: Result) -> str:
    if result['policy'] in references.names():
        return str(result['policy'])
    metric = result['metric'].removesuffix('Metric')
    return f'{result["policy"]} {metric}'


def bars(results: Sequence[Result]) -> list[list[str]]:
    """Compare the default policy with ``thesis``, settled worst users.

    A row for each scenario and share; metrics that make a share equal are
    compared by it.
    """
    return [
        ['scenario', 'share', 'metric', *BAR, 'part', 'holds'],
        *(
            [
                *key,
                *map(runs.percent, both.values()),
                *bar_result(key[1], both),
            ]
            for key, both in lacks_of_both_policies(results).items()
        ),
    ]


def whole_set(results: Sequence[Result]) -> list[list[str]]:
    """Compare both on the set as a whole: means, and where one is worse.

    A row for each share that counts several resources.
    """
    found: dict[tuple[str, str], dict[str, Mapping[str, float]]] = {}
    for (scenario, share, metric), both in lacks_of_both_policies(
        results
    ).items():
        if share not in resources.RESOURCES.names:
            found.setdefault((share, metric), {})[scenario] = both
    return [
        ['share', 'metric', 'scenarios', *BAR, 'part', 'worse in'],
        *([*key, *comparison_row(rows)] for key, rows in found.items()),
    ]


def comparison_row(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Number of scenarios, the means, the part, and where worse."""
    own, other = (
        float(np.mean([both[policy] for both in rows.values()]))
        for policy in BAR
    )
    worse = [
        scenario
        for scenario, both in rows.items()
        if both[BAR[0]] > both[BAR[1]] + NOTHING
    ]
    return [
        str(len(rows)),
        runs.percent(own),
        runs.percent(other),
        f'{own / other:.2f}',
        ' '.join(worse) or 'none',
    ]


def lacks_of_both_policies(
    results: Sequence[Result],
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Lack of the settled worst user with both policies.

    By scenario, share and the metric that asks for the share to be equal.
    """
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for result in results:
        if result['policy'] not in BAR:
            continue
        every = {result['measures']['share']: result['measures']}
        for share, measures in {**every, **result['by_share']}.items():
            value = measures['bounded']['worst']['settled']
            key = (result['scenario'], share, result['metric'])
            found.setdefault(key, {})[result['policy']] = value
    return {
        key: both
        for key, both in found.items()
        if len(both) == len(BAR) and fits(key[1], key[2])
    }


def fits(share: str, metric: str) -> bool:
    """Tell whether a metric asks for a share to be equal, or nearly does."""
    if share == ideal.ASSET:
        return metric == 'AssetFairnessMetric'
    return metric == 'DominantShareMetric'


def bar_result(share: str, both: Mapping[str, float]) -> tuple[str, str]:
    """Part, and whether the bar holds.

    There is none for a single resource out of several: no metric asks for it.
    """
    own, other = (both[policy] for policy in BAR)
    part = f'{own / other:.2f}' if other > NOTHING else '-'
    if share in resources.RESOURCES.names:
        return part, '-'
    return part, 'yes' if own <= max(HALF * other, NOTHING) else 'no'
