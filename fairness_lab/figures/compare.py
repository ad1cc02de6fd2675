# SPDX-License-Identifier: Apache-2.0

"""Two runs of one scenario side by side, such as without and with agents."""

from collections.abc import Iterator
from collections.abc import Mapping
import csv
import pathlib
from typing import Any

from fairness_lab.figures import panel
from fairness_lab.figures import report
from fairness_lab.figures import runs
from fairness_lab.results import series
from nova_fairness import exception

VERSION = 1
COMPARISON = 'comparison.json'
PICTURE = 'comparison.png'

Json = dict[str, Any]


def compare(
    first_dir: pathlib.Path, second_dir: pathlib.Path, out_dir: pathlib.Path
) -> str:
    """Compare two results; write ``comparison.json`` and a picture.

    :param first_dir: holds the result to compare with.
    :param second_dir: holds the result that is compared.
    :param out_dir: is made if need be.
    :returns: a table for the terminal.
    :raises LabError: if a directory holds no result, or if the results are
        of different scenarios or backends.
    """
    first, second = report.load(first_dir), report.load(second_dir)
    for field in ('scenario', 'backend'):
        if first[field] != second[field]:
            raise exception.LabError(
                f'only runs of one {field} can be compared: '
                f'{first_dir} is of {first[field]}, '
                f'{second_dir} of {second[field]}'
            )
    content = build(first, second)
    sides = tuple(
        panel.PanelSide(title, result, _read_points(directory))
        for title, result, directory in (
            (content['first']['title'], first, first_dir),
            (content['second']['title'], second, second_dir),
        )
    )
    picture = runs.comparison(*sides)
    report.write_atomically(out_dir / PICTURE, picture)
    report.write_atomically(out_dir / COMPARISON, report.to_json(content))
    return table(content)


def build(first: Mapping[str, Any], second: Mapping[str, Any]) -> Json:
    """Content of ``comparison.json``."""
    titles = _titles(first, second)
    return {
        'version': VERSION,
        'scenario': first['scenario'],
        'backend': first['backend'],
        'first': _run_summary(titles[0], first),
        'second': _run_summary(titles[1], second),
        'users': _parts_in_both_runs(first['users'], second['users']),
        'instances': _parts_in_both_runs(
            first['instances'], second['instances']
        ),
    }


def _titles(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[str, str]:
    titles = tuple(
        f'with agents: {run["metric"]}, {run["policy"]}'
        if run['agents']
        else 'without agents'
        for run in (first, second)
    )
    if titles[0] != titles[1]:
        return titles[0], titles[1]
    return f'first run, {titles[0]}', f'second run, {titles[1]}'


def _run_summary(title: str, result: Mapping[str, Any]) -> Json:
    kept = ('agents', 'metric', 'policy', 'interval_s', 'duration_s', 'rounds')
    return {
        'title': title,
        **{field: result[field] for field in kept},
        'jain': result['jain'],
        'largest_distance': max(
            (
                abs(user['cpu_share'] - user['max_min_share'])
                for user in result['users'].values()
            ),
            default=None,
        ),
    }


def _parts_in_both_runs(
    first: Mapping[str, Json], second: Mapping[str, Json]
) -> dict[str, Json]:
    return {
        name: {
            'max_min_share': second[name]['max_min_share'],
            'first_cpu_share': first[name]['cpu_share'],
            'second_cpu_share': second[name]['cpu_share'],
            'change': second[name]['cpu_share'] - first[name]['cpu_share'],
        }
        for name in first
        if name in second
    }


def _read_points(directory: pathlib.Path) -> tuple[series.SeriesPoint, ...]:
    path = directory / report.SERIES
    try:
        with path.open(newline='') as stream:
            return tuple(
                series.SeriesPoint(
                    float(row['t_s']),
                    row['kind'],
                    row['name'],
                    row['quantity'],
                    float(row['value']),
                )
                for row in csv.DictReader(stream)
            )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise exception.LabError(f'{path} cannot be read: {error}') from None


def table(content: Mapping[str, Any]) -> str:
    """Comparison for the terminal."""
    return '\n'.join(_lines(content)) + '\n'


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    first, second = content['first'], content['second']
    yield f'{content["scenario"]}  ({content["backend"]})'
    yield f'A: {first["title"]}'
    yield f'B: {second["title"]}'
    yield ''
    yield f'{"part of the CPU":18}{"A":>8}{"B":>8}{"fair":>8}'
    for kind in ('users', 'instances'):
        for name, both in sorted(content[kind].items()):
            indent = '' if kind == 'users' else '  '
            yield (
                f'{indent + name:18}'
                f'{both["first_cpu_share"]:8.1%}'
                f'{both["second_cpu_share"]:8.1%}'
                f'{both["max_min_share"]:8.1%}'
            )
    index = [side['jain'].get('cpu') for side in (first, second)]
    shown = ['-' if value is None else f'{value:.3f}' for value in index]
    yield f'{"index of Jain":18}{shown[0]:>8}{shown[1]:>8}'
