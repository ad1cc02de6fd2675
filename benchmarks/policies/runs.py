# SPDX-License-Identifier: Apache-2.0


"""Common parts of the benchmarks of policies: runs, and their files."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import json
import pathlib
import statistics
import sys
from typing import Any

from fairness_lab.figures import compare_simulated
from fairness_lab.figures import page
from fairness_lab.measures import measures
from fairness_lab.measures import running
from fairness_lab.scenario import cloud as cloud_module
from nova_fairness import version

METRICS = ('DominantShareMetric', 'GreedinessMetric', 'AssetFairnessMetric')

ROUNDS = 'rounds_to_within_5_percent'

DIGITS = 6
"""Significant digits that are written."""


def simulate(
    scenario: cloud_module.Experiment,
    choice: running.RunOptions,
    shares: Iterable[str] = (),
    *,
    few: int | None = None,
) -> dict[str, Any]:
    """Run a scenario without files.

    :param shares: that are compared with their ideals beside
        ``choice.share``, in the same run.
    :param few: for so many rounds at most ideals are found.
    """
    made = running.setup(scenario, choice)
    judges = {
        share: measures.Measures(scenario.cloud, made, share, few=few)
        for share in (choice.share, *shares)
    }
    running.observe(scenario.cloud, made, judges.values())
    found = {share: dict(judge.result()) for share, judge in judges.items()}
    tables = {share: item.pop('series') for share, item in found.items()}
    return {
        'scenario': scenario.name,
        'nodes': len(scenario.cloud.nodes),
        'users': len(scenario.cloud.users),
        'vms': len(scenario.cloud.vms),
        'metric': made.metric,
        'policy': made.policy,
        'parameters': dict(choice.parameters),
        'measures': found.pop(choice.share),
        'by_share': found,
        'worst_bounded': _column(
            tables[choice.share]['measures'], 'worst_bounded'
        ),
    }


def _column(table: Mapping[str, Any], name: str) -> list[float | None]:
    place = table['columns'].index(name)
    return [row[place] for row in table['rows']]


def with_short_numbers(value: Any) -> Any:
    """Write numbers as short as they mean something."""
    if isinstance(value, Mapping):
        return {key: with_short_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_short_numbers(item) for item in value]
    if isinstance(value, float):
        return float(f'{value:.{DIGITS}g}')
    return value


def write(path: pathlib.Path, results: Iterable[Any]) -> None:
    """Write results, one in a line, and how they were made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ',\n'.join(
        json.dumps(with_short_numbers(item)) for item in results
    )
    head = {
        'package_version': version.release(),
        'command': ' '.join(['python', *sys.orig_argv[1:]]),
    }
    begin = json.dumps(head)[:-1]
    path.write_text(f'{begin},\n"results": [\n{lines}\n]}}\n', 'utf-8')
    print(path)


def write_csv(path: pathlib.Path, rows: Sequence[Sequence[Any]]) -> None:
    with path.open('w', encoding='utf-8', newline='') as stream:
        csv.writer(stream, lineterminator='\n').writerows(rows)
    print(path)


def percent(value: float | None) -> str:
    return '-' if value is None else f'{100 * value:.1f}'


def round_text(rounds: int | None) -> str:
    return 'later' if rounds is None else str(rounds)


def summary_of_runs(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sum up measures of many runs.

    :returns: most rounds, largest settled distance, and the overshoot: the
        median and the largest.
    """
    rounds = [item[ROUNDS] for item in found]
    overshoots = [item['overshoot'] or 0.0 for item in found]
    settled = max(item['bounded']['worst']['settled'] for item in found)
    return [
        round_text(None if None in rounds else max(rounds)),
        percent(settled),
        percent(statistics.median(overshoots)),
        percent(max(overshoots)),
    ]


def print_result(result: Mapping[str, Any]) -> None:
    values = [
        '-' if value is None else item.form.format(value)
        for item in compare_simulated.QUANTITIES
        for value in [item.of(result)]
    ]
    print(result['scenario'], page.name_of(result), *values)
    sys.stdout.flush()
