# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs of the queue: who waited, how fair it was, how full."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np

from fairness_lab.figures import labels
from fairness_lab.figures import style
from fairness_lab.measures import series

Result = Mapping[str, Any]

WITHIN = 0.05
"""Error of shares that is small: the dotted line."""

HOUR_S = 3600.0
DAY_S = 86400.0

_COLUMNS = 3
_BARS = 20
"""More bars than that are chosen evenly, from who waited least to most."""

_LETTERS = 45
"""Names of bars are straight if they have fewer letters together."""

_PALE = 0.4


@dataclasses.dataclass(frozen=True)
class QueueRun:
    """A run that is drawn.

    :ivar title: names it beside others.
    :ivar result: content of its ``result.json``.
    :ivar looks: rows of its ``series.csv``.
    :ivar projects: rows of its ``projects.csv``.
    :ivar users: rows of its ``users.csv``.
    :ivar sizes: rows of its ``sizes.csv``.
    """

    title: str
    result: Result
    looks: Sequence[series.Row]
    projects: Sequence[series.Row]
    users: Sequence[series.Row]
    sizes: Sequence[series.Row]


def read(title: str, result: Result, directory: pathlib.Path) -> QueueRun:
    """A run, with the tables beside its result.

    :raises BadSeries: if one cannot be read; names it.
    """
    names = ('series', 'projects', 'users', 'sizes')
    tables = [series.rows(directory / f'{name}.csv') for name in names]
    return QueueRun(title, result, *tables)


def run(side: QueueRun) -> bytes:
    """Draw one run: fairness and use over time, waits, parts of projects.

    :returns: a PNG image.
    """
    drawn = style.figure(15, 9)
    places = drawn.add_gridspec(2, 3)
    _draw_errors(drawn.add_subplot(places[0, 0]), side)
    _draw_use(drawn.add_subplot(places[0, 1]), side)
    _draw_fairness(drawn.add_subplot(places[0, 2]), side)
    lower = [drawn.add_subplot(places[1, column]) for column in range(3)]
    _draw_waits(lower[0], side.users, ('project', 'user'))
    _draw_waits(lower[1], side.sizes, ('size',))
    _draw_projects(lower[2], side)
    style.write_headline(drawn, f'{side.result["scenario"]}, {side.title}')
    return style.to_png(drawn)


def compare(sides: Sequence[QueueRun]) -> bytes:
    """Draw the errors of all runs over time, and bars of their results.

    :returns: a PNG image.
    """
    clouds = list(dict.fromkeys(side.result['scenario'] for side in sides))
    shades = style.colours(list({side.title: None for side in sides}))
    bars = [bar for bar in _COMPARED if any(map(bar.of, sides))]
    columns = min(_COLUMNS, len(clouds))
    rows = math.ceil(len(clouds) / columns)
    drawn = style.figure(max(11.0, 5.0 * columns), 3 * (rows + len(bars)))
    upper, lower = drawn.add_gridspec(2, 1, height_ratios=(rows, len(bars)))
    grid = upper.subgridspec(rows, columns)
    for number, cloud in enumerate(clouds):
        axes = drawn.add_subplot(grid[divmod(number, columns)])
        those = [each for each in sides if each.result['scenario'] == cloud]
        _draw_orders(axes, cloud, those, shades)
    grid = lower.subgridspec(len(bars), 1)
    for number, bar in enumerate(bars):
        axes = drawn.add_subplot(grid[number, 0])
        _draw_bars_by_cloud(axes, bar, sides, shades)
    style.write_headline(
        drawn, 'Error of shares over time, and results of runs'
    )
    return style.to_png(drawn)


@dataclasses.dataclass(frozen=True)
class _Bar:
    """A number of each run that is drawn as a bar.

    :ivar says: its name and unit.
    :ivar of: its value of a run; NaN where there is none.
    :ivar line: where a dotted line is drawn.
    """

    says: str
    of: Callable[[QueueRun], float]
    line: float | None = None


def _number_of_run(
    times: float, group: str, name: str
) -> Callable[[QueueRun], float]:
    def of(side: QueueRun) -> float:
        found = (side.result.get(group) or {}).get(name)
        return 0.0 if found is None else times * float(found)

    return of


_COMPARED = (
    _Bar(
        'Error of shares, mean [%]',
        _number_of_run(100, 'share_error', 'mean'),
        100 * WITHIN,
    ),
    _Bar(
        'Utilisation [%]', _number_of_run(100, 'utilisation', 'settled_mean')
    ),
    _Bar('Wait, p95 [h]', _number_of_run(1 / HOUR_S, 'waiting', 'p95_s')),
    _Bar('Work lost [%]', _number_of_run(100, 'made_room', 'lost_part')),
)
"""Measures that runs are compared by; those that are 0 for all are left
out."""


def _curve(
    side: QueueRun, name: str, times: float = 100.0
) -> tuple[list[float], list[float]]:
    """Days and values of a column of the series."""
    return (
        [series.number(row['time_s']) / DAY_S for row in side.looks],
        [times * series.number(row.get(name)) for row in side.looks],
    )


def _draw_curves(
    axes: style.Axes, side: QueueRun, curves: Mapping[str, str]
) -> None:
    """Draw columns in percent, named at their ends."""
    names = []
    for place, (column, text) in enumerate(curves.items()):
        x, y = _curve(side, column)
        shade = style.PALETTE[place]
        axes.plot(x, y, color=shade, lw=1.8)
        names.append(labels.Label.at_end(y, text, shade, style.SMALL + 1))
    _shade_begin(axes, side)
    _finish(axes)
    labels.name_curves(axes, names)


def _shade_begin(axes: style.Axes, side: QueueRun) -> None:
    """Mark what does not count."""
    settled = side.result['settled_s'] / DAY_S
    axes.axvspan(0, settled, color=style.QUIET, alpha=0.12, lw=0)


def _finish(axes: style.Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.set_xlabel('day')
    style.remove_ornaments(axes)


def _draw_errors(axes: style.Axes, side: QueueRun) -> None:
    style.write_title(axes, 'Error of shares')
    axes.axhline(100 * WITHIN, color=style.QUIET, lw=0.9, ls=':')
    _draw_curves(
        axes,
        side,
        {
            'share_error': 'all',
            'share_error_wanting': 'who waits',
        },
    )
    axes.set_ylabel('use in wrong hands [%]')


def _draw_use(axes: style.Axes, side: QueueRun) -> None:
    style.write_title(axes, 'Utilisation')
    _draw_curves(axes, side, {'utilisation': 'allocated'})
    axes.set_ylim(0, 103)
    axes.set_ylabel('of the cloud [%]')


def _draw_fairness(axes: style.Axes, side: QueueRun) -> None:
    style.write_title(axes, 'Fairness among users')
    _draw_curves(
        axes,
        side,
        {
            'jain': "Jain's index",
            'largest_dominant_share': 'largest\ndominant share',
        },
    )
    axes.set_ylim(0, 103)
    axes.set_ylabel('index; part of the cloud [%]')


def _draw_waits(
    axes: style.Axes, table: Sequence[series.Row], key: tuple[str, ...]
) -> None:
    """Draw mean and p95 of waits, from the shortest to the longest.

    :param key: columns that name a row.
    """
    found = sorted(
        (
            series.number(row['mean_s']) / HOUR_S,
            series.number(row['p95_s']) / HOUR_S,
            ' '.join(row[column] for column in key),
        )
        for row in table
        if row['mean_s']
    )
    style.write_title(axes, f'Waits by {key[-1]}')
    if not found:
        style.write_reason(axes, 'no request started')
        return
    chosen = _choose_evenly(found)
    if len(chosen) < len(found):
        style.write_note(axes, f'{len(chosen)} of {len(found)}')
    for shift, place, alpha, says in (
        (-0.2, 0, 1.0, 'mean'),
        (0.2, 1, _PALE, 'p95'),
    ):
        axes.bar(
            [x + shift for x in range(len(chosen))],
            [row[place] for row in chosen],
            0.36,
            color=style.PALETTE[0],
            alpha=alpha,
            label=says,
        )
    _name_bars(axes, [name for _, _, name in chosen])
    axes.set_ylabel('wait of those that started [h]')
    axes.legend(fontsize=style.SMALL, frameon=False)


def _choose_evenly(found: Sequence[Any]) -> list[Any]:
    """Entries of a list spread evenly, as many as fit."""
    places = np.linspace(0, len(found) - 1, min(_BARS, len(found))).round()
    return [found[int(place)] for place in places]


def _name_bars(axes: style.Axes, names: Sequence[str]) -> None:
    straight = sum(map(len, names)) < _LETTERS
    axes.set_xticks(
        range(len(names)),
        names,
        fontsize=style.SMALL,
        rotation=0 if straight else 60,
        ha='center' if straight else 'right',
        rotation_mode='anchor',
    )
    axes.tick_params(axis='x', length=0)
    style.remove_ornaments(axes)


def _draw_projects(axes: style.Axes, side: QueueRun) -> None:
    """Draw what projects had beside what they were entitled to."""
    style.write_title(axes, 'Parts of projects')
    found = sorted(
        (
            series.number(row['entitled_part']),
            series.number(row['held_part']),
            row['project'],
        )
        for row in side.projects
    )
    chosen = _choose_evenly(found)
    some = f'{len(chosen)} of {len(found)}; '
    few = len(chosen) == len(found)
    style.write_note(axes, ('' if few else some) + 'line: entitled to')
    for x, (entitled, held, _) in enumerate(chosen):
        axes.bar(x, 100 * held, 0.6, color=style.PALETTE[2])
        axes.plot(
            (x - 0.4, x + 0.4),
            (100 * entitled, 100 * entitled),
            color=style.FAIR,
            lw=1.6,
        )
    _name_bars(axes, [name for _, _, name in chosen])
    axes.set_ylabel('of the cloud [%]')


def _draw_orders(
    axes: style.Axes,
    cloud: str,
    sides: Sequence[QueueRun],
    shades: Mapping[str, str],
) -> None:
    style.write_title(axes, cloud)
    for side in sides:
        x, y = _curve(side, 'share_error')
        axes.plot(x, y, color=shades[side.title], lw=1.6, label=side.title)
    _shade_begin(axes, sides[0])
    axes.axhline(100 * WITHIN, color=style.QUIET, lw=0.9, ls=':')
    _finish(axes)
    axes.set_ylabel('error of shares [%]')


def _draw_bars_by_cloud(
    axes: style.Axes,
    bar: _Bar,
    sides: Sequence[QueueRun],
    shades: Mapping[str, str],
) -> None:
    """Draw a number of every run, clouds side by side."""
    style.write_title(axes, bar.says)
    clouds = list(dict.fromkeys(side.result['scenario'] for side in sides))
    width = 0.8 / len(shades)
    for place, (title, shade) in enumerate(shades.items()):
        those = [side for side in sides if side.title == title]
        axes.bar(
            [
                clouds.index(side.result['scenario'])
                - 0.4
                + width * (place + 0.5)
                for side in those
            ],
            [bar.of(side) for side in those],
            width * 0.9,
            color=shade,
            label=title,
        )
    if bar.line is not None:
        axes.axhline(bar.line, color=style.QUIET, lw=0.9, ls=':')
        axes.legend(
            fontsize=style.SMALL,
            frameon=False,
            ncols=len(shades),
            loc='lower right',
            bbox_to_anchor=(1, 1),
        )
    axes.set_xticks(range(len(clouds)), clouds)
    axes.tick_params(axis='x', length=0)
    style.remove_ornaments(axes)
