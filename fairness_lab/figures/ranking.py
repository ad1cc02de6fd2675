# SPDX-License-Identifier: Apache-2.0

"""Sentences about the order that leads, its lead, and whether it is noise."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import operator
from typing import Any

from fairness_lab.measures import paired
from nova_fairness.model import wording

Cloud = Mapping[str, Any]
"""An entry of ``clouds`` of ``spread.json``."""

_HOUR_S = 3600.0


def _points(times: float, digits: int) -> Callable[[float], str]:
    return lambda number: f'{times * number:.{digits}f}'


_COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    'share_error': ('share error %', _points(100, 1)),
    'share_error_wanting': ('who waits %', _points(100, 1)),
    'utilisation': ('used %', _points(100, 1)),
    'jain': ('jain %', _points(100, 1)),
    'wait_mean_s': ('waiting h', _points(1 / _HOUR_S, 2)),
    'wait_p95_s': ('p95 h', _points(1 / _HOUR_S, 2)),
    'expired': ('expired', _points(1, 0)),
    'servers_left': ('left', _points(1, 0)),
    'work_lost': ('work lost %', _points(100, 2)),
    'follows_share': ('follows share', _points(1, 2)),
}
"""Title and form of each column of means."""

_TOLD = {'share_error': 'error of shares', 'work_lost': 'work lost'}
"""Measures that sentences are about; less is better."""


def table(clouds: Sequence[Cloud]) -> str:
    """Means over seeds, with standard deviations, aligned."""
    known = {
        measure
        for cloud in clouds
        for run in cloud['runs']
        for measure in run['measures']
    }
    shown = {key: each for key, each in _COLUMNS.items() if key in known}
    titles = [title for title, _ in shown.values()]
    lines = [['scenario', 'run', *titles]]
    for cloud in clouds:
        for run in cloud['runs']:
            cells = [
                _cell(run['measures'].get(key), form)
                for key, (_, form) in shown.items()
            ]
            lines.append([cloud['scenario'], run['name'], *cells])
    return wording.format_table(lines, [False, False] + [True] * len(shown))


def _cell(
    found: Mapping[str, Any] | None, form: Callable[[float], str]
) -> str:
    if found is None or found['mean'] is None:
        return '-'
    if found['sd'] is None:
        return form(found['mean'])
    return f'{form(found["mean"])} ± {form(found["sd"])}'


def sentences(clouds: Sequence[Cloud]) -> Iterator[str]:
    """Say which run leads on each cloud, and whether that is noise."""
    for cloud in clouds:
        for measure, says in _TOLD.items():
            found = _values(cloud, measure)
            if len(found) > 1:
                yield f'{cloud["scenario"]}: {_told(says, found)}'


def _values(cloud: Cloud, measure: str) -> dict[str, list[float]]:
    """Numbers of each seed by run, the least mean first."""
    measured = {
        run['name']: run['measures'][measure]
        for run in cloud['runs']
        if measure in run['measures']
    }
    whole = {
        name: (each['mean'], each['values'])
        for name, each in measured.items()
        if each['mean'] is not None
    }
    ordered = sorted(whole.items(), key=operator.itemgetter(1))
    return {name: values for name, (_, values) in ordered}


def _told(says: str, found: Mapping[str, Sequence[float]]) -> str:
    first, *others = found
    seeds = len(found[first])
    least = f'{_mean(found[first]):.2%}'
    if seeds < paired.FEWEST:
        apart = _mean(found[others[0]]) - _mean(found[first])
        return (
            f'{says} is least with {first} ({least}), {100 * apart:.2f} points'
            f' below {others[0]}; one seed does not tell whether that is'
            ' noise, --seeds 10 does'
        )
    beyond = {
        name: paired.difference(found[name], found[first]) for name in others
    }
    near = [name for name, apart in beyond.items() if apart.is_noise]
    if near:
        names = ', '.join(near)
        rest = len(others) - len(near)
        more = (
            f'; {wording.counted(rest, "other")} beyond noise' if rest else ''
        )
        return (
            f'{says} is least with {first} ({least}), but the difference from'
            f' {names} is noise ({seeds} seeds){more}'
        )
    name, lead = min(beyond.items(), key=lambda each: each[1].mean)
    return (
        f'{says} is least with {first} ({least}), {100 * lead.mean:.2f}'
        f' points below {name} (95 % interval {100 * lead.low:.2f} to'
        f' {100 * lead.high:.2f}, {seeds} seeds): not noise'
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
