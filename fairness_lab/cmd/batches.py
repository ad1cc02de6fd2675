# SPDX-License-Identifier: Apache-2.0


"""Many runs: all pairs of scenario, metric and policy, or a sweep."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import pathlib
from typing import Any

from fairness_lab.figures import compare_simulated
from fairness_lab.figures import page
from fairness_lab.measures import files
from fairness_lab.measures import running
from fairness_lab.node_sim import references
from fairness_lab.scenario import experiment
from nova_fairness.model import wording

VERSION = 1
"""Of ``compare.json`` and ``sweep.json``."""

POLICY = 'policy.'
"""Prefix of what is swept in a policy; all else is a scenario's key."""

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ComparedRuns:
    """The runs that are compared.

    :ivar scenarios: names or paths.
    :ivar metrics: names; empty for what each scenario says.
    :ivar policies: names of policies and references; empty for what each
        scenario says.
    :ivar overrides: YAML by key of the scenarios.
    :ivar choice: what else is asked of every run.
    """

    scenarios: Sequence[str]
    metrics: Sequence[str]
    policies: Sequence[str]
    overrides: Mapping[str, str]
    choice: running.RunOptions


def compare(
    asked: ComparedRuns,
    directory: pathlib.Path,
    meter: running.ProgressMeter | None,
) -> Json:
    """Run all pairs; write runs, ``compare.json`` and the report.

    :param directory: that exists.
    :returns: what ``compare.json`` holds.
    """
    results, places = [], []
    for choice, name in _pairs(asked):
        scenario = experiment.find(name, asked.overrides)
        made = running.setup(scenario, choice)
        place = pathlib.Path('runs', scenario.name, made.metric, made.policy)
        (directory / place).mkdir(parents=True)
        result = running.run(scenario, choice, directory / place, meter)
        results.append(result)
        places.append(place)
    content = {
        'version': VERSION,
        'runs': [
            {**compared_values(result), 'directory': place.as_posix()}
            for result, place in zip(results, places, strict=True)
        ],
    }
    files.write_json(directory / 'compare.json', content)
    page.write_compare(
        directory, results, [directory / place for place in places]
    )
    return content


def _pairs(asked: ComparedRuns) -> Iterator[tuple[running.RunOptions, str]]:
    metrics: Sequence[str | None] = asked.metrics or [None]
    policies: Sequence[str | None] = asked.policies or [None]
    for name, metric, policy in itertools.product(
        asked.scenarios, metrics, policies
    ):
        # Where nobody steers, no metric makes a difference.
        if policy in references.WITHOUT_AGENTS and metric != metrics[0]:
            continue
        yield (
            dataclasses.replace(asked.choice, metric=metric, policy=policy),
            name,
        )


def check_scenarios_and_plugins(asked: ComparedRuns) -> None:
    """Read everything once, so that nothing fails after hours.

    :raises BadScenario: if a scenario is wrong.
    :raises UnknownPlugin: if there is no such metric, policy or reference.
    """
    for choice, name in _pairs(asked):
        running.setup(experiment.find(name, asked.overrides), choice)


def sweep(
    asked: ComparedRuns,
    grid: Mapping[str, Sequence[str]],
    directory: pathlib.Path,
    meter: running.ProgressMeter | None,
) -> Json:
    """Run all combinations; write ``sweep.json`` and ``sweep.csv``.

    :param grid: values by key: of the scenario, or with :data:`POLICY`.
    :param directory: that exists.
    :returns: what ``sweep.json`` holds.
    """
    runs: list[Json] = []
    for place in sweep_points(asked, grid):
        for choice, name in _pairs(place.asked):
            scenario = experiment.find(name, place.asked.overrides)
            result = running.run(
                scenario,
                choice,
                _numbered_directory(directory, len(runs)),
                meter,
            )
            runs.append({'set': place.values, **compared_values(result)})
    content = {'version': VERSION, 'swept': list(grid), 'runs': runs}
    files.write_json(directory / 'sweep.json', content)
    _write_table(directory, grid, runs)
    return content


def _numbered_directory(directory: pathlib.Path, number: int) -> pathlib.Path:
    made = directory / 'runs' / f'{number + 1:04d}'
    made.mkdir(parents=True)
    return made


@dataclasses.dataclass(frozen=True)
class SweepPoint:
    """One combination of a sweep.

    :ivar values: by key.
    :ivar asked: what is run there.
    """

    values: Mapping[str, str]
    asked: ComparedRuns


def sweep_points(
    asked: ComparedRuns, grid: Mapping[str, Sequence[str]]
) -> Iterator[SweepPoint]:
    """All combinations, the last key fastest."""
    for chosen in itertools.product(*grid.values()):
        values = dict(zip(grid, chosen, strict=True))
        overrides = {
            key: value
            for key, value in values.items()
            if not key.startswith(POLICY)
        }
        parameters = {
            key.removeprefix(POLICY): float(value)
            for key, value in values.items()
            if key.startswith(POLICY)
        }
        choice = dataclasses.replace(
            asked.choice, parameters=parameters, tables=False
        )
        yield SweepPoint(
            values,
            dataclasses.replace(
                asked,
                overrides={**asked.overrides, **overrides},
                choice=choice,
            ),
        )


def compared_values(result: Mapping[str, Any]) -> Json:
    """Values of a run that are compared."""
    return {
        'scenario': result['scenario'],
        'metric': result['metric'],
        'policy': result['policy'],
        'reference': result['reference'],
        'quantities': {
            item.says: item.of(result) for item in compare_simulated.QUANTITIES
        },
    }


def _write_table(
    directory: pathlib.Path,
    grid: Mapping[str, Sequence[str]],
    runs: Sequence[Json],
) -> None:
    columns: dict[str, list[str]] = {
        key: [str(run['set'][key]) for run in runs] for key in grid
    }
    for key in ('scenario', 'metric', 'policy'):
        columns[key] = [str(run[key]) for run in runs]
    for item in compare_simulated.QUANTITIES:
        found = [run['quantities'][item.says] for run in runs]
        columns[item.says] = [
            '' if value is None else f'{value:.9g}' for value in found
        ]
    table = files.CsvTable(directory / 'sweep')
    table.add(columns)
    table.close()


def runs_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Write runs as a table for people."""
    shown = compare_simulated.QUANTITIES
    head = ['scenario', 'metric', 'policy', *(item.says for item in shown)]
    lines = [head]
    for run in runs:
        said = [
            '-' if value is None else item.form.format(value)
            for item, value in zip(
                shown, run['quantities'].values(), strict=True
            )
        ]
        swept = ', '.join(f'{k}={v}' for k, v in run.get('set', {}).items())
        name = f'{run["scenario"]} {swept}'.strip()
        lines.append([name, run['metric'], run['policy'], *said])
    numeric = [False] * 3 + [True] * len(shown)
    return wording.format_table(lines, numeric)
