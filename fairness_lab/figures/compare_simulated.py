# SPDX-License-Identifier: Apache-2.0

"""Runs side by side: what they are compared by, and the picture of it."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import Any

from fairness_lab.figures import labels
from fairness_lab.figures import simulated
from fairness_lab.figures import style
from fairness_lab.measures import distance
from fairness_lab.measures import series

COLUMNS = 3
"""Scenarios beside each other."""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number by which runs are compared.

    :ivar says: its name for people.
    :ivar path: where it is in ``measures`` of a result.
    :ivar form: how it is written.
    :ivar good: up to this it is good; ``None`` where it is not judged.
    :ivar poor: above this it is poor.
    """

    says: str
    path: tuple[str, ...]
    form: str = '{:.1%}'
    good: float | None = None
    poor: float = math.inf

    def of(self, result: Mapping[str, Any]) -> float | None:
        """Number of a run, ``None`` if it is not known."""
        found: Any = result.get('measures', {})
        for name in self.path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return None if found is None else float(found)

    def judge(self, value: float | None) -> str:
        """``good``, ``poor`` or nothing."""
        if value is None or self.good is None:
            return ''
        if value <= self.good:
            return 'good'
        return 'poor' if value > self.poor else ''


QUANTITIES = (
    Quantity(
        'worst user lacks, settled',
        ('bounded', 'worst', 'settled'),
        good=distance.WITHIN,
        poor=0.25,
    ),
    Quantity(
        'worst user lacks, mean',
        ('bounded', 'worst', 'mean'),
    ),
    Quantity(
        'all users, settled',
        ('bounded', 'distance', 'settled'),
        good=distance.WITHIN,
        poor=0.25,
    ),
    Quantity('worst user, free ideal', ('free', 'worst', 'settled')),
    Quantity("Jain's index", ('jain', 'settled'), '{:.3f}'),
    Quantity(
        'rounds to 5 %', ('rounds_to_within_5_percent',), '{:.0f}', 10, 30
    ),
    Quantity('overshoot', ('overshoot',), good=0.1, poor=0.2),
    Quantity('oscillation', ('oscillation',), good=0.05, poor=0.1),
    Quantity('weight swing', ('weight_swing',), good=0.05, poor=0.2),
    Quantity(
        'idle though wanted',
        ('idle_while_wanted', 'mean'),
        '{:.2%}',
        0.001,
        0.01,
    ),
)


def compare(sides: Sequence[simulated.SimulatedRun]) -> bytes:
    """Draw the worst user of every run over time, one scenario per axes.

    Without series, only the bars of what is summed up are drawn.

    :returns: a PNG image.
    """
    scenarios = _by_scenario(sides)
    shades = style.colours(sorted({side.title for side in sides}))
    drawn_lines = any(side.series.measures for side in sides)
    columns = min(COLUMNS, len(scenarios))
    rows = math.ceil(len(scenarios) / columns) if drawn_lines else 0
    width = max(9.0, 4.6 * columns)
    drawn = style.figure(width, 2.9 * rows + 4.6)
    upper, lower = drawn.add_gridspec(
        2, 1, height_ratios=(max(2.9 * rows, 0.01), 4.2)
    )
    if drawn_lines:
        _draw_lines(drawn, upper.subgridspec(rows, columns), scenarios, shades)
    _draw_bars(drawn.add_subplot(lower), scenarios, shades)
    style.write_headline(
        drawn, 'Lack of the worst user below the ideal within the weights'
    )
    return style.to_png(drawn)


def _by_scenario(
    sides: Sequence[simulated.SimulatedRun],
) -> dict[str, list[simulated.SimulatedRun]]:
    found: dict[str, list[simulated.SimulatedRun]] = {}
    for side in sides:
        name = str(side.result.get('scenario'))
        found.setdefault(name, []).append(side)
    return found


def _draw_lines(
    drawn: Any,
    places: Any,
    scenarios: Mapping[str, Sequence[simulated.SimulatedRun]],
    shades: Mapping[str, str],
) -> None:
    for number, (name, sides) in enumerate(scenarios.items()):
        axes = drawn.add_subplot(places[divmod(number, places.ncols)])
        style.write_title(axes, name)
        for side in sides:
            x, y = series.curve(side.series.measures, 'worst_bounded')
            percent = [100 * value for value in y]
            axes.plot(x, percent, color=shades[side.title], lw=1.8)
        axes.axhline(100 * distance.WITHIN, color=style.QUIET, lw=0.9, ls=':')
        axes.set_ylim(0, 103)
        axes.set_xlim(left=0)
        axes.set_xlabel('round')
        if number % places.ncols == 0:
            axes.set_ylabel('worst user lacks [%]')
        style.remove_ornaments(axes)
        if len(scenarios) == 1:
            labels.name_curves(axes, _names(sides, shades))


def _names(
    sides: Sequence[simulated.SimulatedRun], shades: Mapping[str, str]
) -> list[labels.Label]:
    names = []
    for side in sides:
        _, y = series.curve(side.series.measures, 'worst_bounded')
        known = [100 * value for value in y if math.isfinite(value)]
        names.append(
            labels.Label.at_end(
                known, side.title, shades[side.title], style.SMALL + 1
            )
        )
    return names


def _draw_bars(
    axes: style.Axes,
    scenarios: Mapping[str, Sequence[simulated.SimulatedRun]],
    shades: Mapping[str, str],
) -> None:
    style.write_title(axes, 'Settled: what the worst user lacks')
    titles = list(shades)
    width = 0.8 / max(1, len(titles))
    for place, title in enumerate(titles):
        points = [
            (x, QUANTITIES[0].of(side.result))
            for x, sides in enumerate(scenarios.values())
            for side in sides
            if side.title == title
        ]
        known = [(x, value) for x, value in points if value is not None]
        axes.bar(
            [x - 0.4 + width * (place + 0.5) for x, _ in known],
            [max(0.4, 100 * value) for _, value in known],
            width * 0.9,
            color=shades[title],
            label=title,
        )
    axes.axhline(100 * distance.WITHIN, color=style.QUIET, lw=0.9, ls=':')
    axes.set_xticks(range(len(scenarios)), list(scenarios))
    if len(scenarios) > COLUMNS:
        axes.tick_params(axis='x', rotation=25)
    axes.tick_params(axis='x', length=0)
    axes.set_ylabel('lacking [%]')
    axes.legend(fontsize=style.SMALL, frameon=False, ncols=4)
    axes.set_ylim(0, 1.2 * max(5.0, axes.get_ylim()[1]))
    style.remove_ornaments(axes)
