# SPDX-License-Identifier: Apache-2.0

"""Pictures of simulated runs: who got how much, and what is best."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import numpy as np

from fairness_lab.figures import labels
from fairness_lab.figures import style
from fairness_lab.measures import distance
from fairness_lab.measures import series as series_module
from nova_fairness.model import resources

FEW_WEIGHTS = 6
"""More users than this have one colour."""

NAMED = 10
"""Where there are more VMs than this, curves have the names of users."""

_TICKS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def draw_weights(axes: style.Axes, series: series_module.Series) -> None:
    """Draw the weights of VMs, on a scale of factors."""
    rows = series.weights
    moved = _name_of_steered_control(rows)
    style.write_title(axes, f'Weights of VMs ({moved or "all controls"})')
    shades = style.colours(series_module.names(rows, 'user'))
    vms = {row['vm']: row['user'] for row in rows}
    plain = len(set(vms.values())) > FEW_WEIGHTS
    ends: dict[tuple[str, str], list[float]] = {}
    for vm, user in vms.items():
        x, y = series_module.curve(rows, moved or 'cpu', vm=vm)
        axes.step(
            x,
            y,
            where='post',
            color=style.PALETTE[0] if plain else shades[user],
            lw=1.6 if len(vms) <= FEW_WEIGHTS else 0.9,
            alpha=0.45 if plain else 0.9,
        )
        name = vm if len(vms) <= NAMED else user
        last = [value for value in y if math.isfinite(value)]
        last = last[-labels.END_POINTS :]
        ends.setdefault((name, shades[user]), []).extend(last)
    axes.set_yscale('log')
    low, high = axes.get_ylim()
    axes.set_yticks(_TICKS, [f'{tick:g}' for tick in _TICKS])
    axes.minorticks_off()
    axes.set_ylim(min(low, 0.45), max(high, 2.2))
    axes.set_xlabel('round')
    axes.set_ylabel('weight (1: neutral)')
    style.remove_ornaments(axes)
    if not plain:
        labels.name_curves(axes, _end_labels(ends))
    if not moved:
        style.write_note(axes, 'no weight was ever moved')
    elif plain:
        style.write_note(axes, 'a curve per VM')


def _end_labels(
    values: Mapping[tuple[str, str], Sequence[float]],
) -> list[labels.Label]:
    """Names beside the middle of where their curves end.

    :param values: weights by name and colour.
    """
    return [
        labels.Label(
            math.exp(labels.mean([math.log(value) for value in last])),
            name,
            shade,
            style.SMALL + 1,
        )
        for (name, shade), last in values.items()
        if last
    ]


def _name_of_steered_control(rows: Sequence[series_module.Row]) -> str:
    """Name the control whose weights were moved most; empty if none was."""
    most, found = 0.0, ''
    for control in resources.CONTROLS:
        values = [float(row.get(control.value) or 1) for row in rows]
        spread = max(values, default=1.0) / min(values, default=1.0) - 1
        if spread > most:
            most, found = spread, control.value
    return found


FEW = FEW_WEIGHTS
"""More users than this have small axes of their own each."""

MOST = 24
"""Users that are drawn, spread evenly from the poorest to the richest."""

BARS = 12

IDEAL = 'dashed: ideal within the weights; dotted: ideal without bounds'


@dataclasses.dataclass(frozen=True)
class SimulatedRun:
    """A run that is drawn.

    :ivar title: what to write above it.
    :ivar result: content of its ``result.json``.
    :ivar series: what was written round by round.
    """

    title: str
    result: Mapping[str, Any]
    series: series_module.Series


def run(side: SimulatedRun) -> bytes:
    """Draw one run: users against ideals, weights, distances, resources.

    :returns: a PNG image.
    """
    users = _users_to_draw(side.series)
    many = len(users) > FEW
    rows = math.ceil(len(users) / 6) if many else 1
    height = 1.7 * rows + 0.4 if many else 4.4
    drawn = style.figure(13, height + 4.3)
    upper, lower = drawn.add_gridspec(2, 1, height_ratios=(height, 3.9))
    if many:
        _draw_small_multiples(drawn, upper.subgridspec(rows, 6), side, users)
    else:
        _draw_users(drawn.add_subplot(upper), side, users)
    left, middle, right = lower.subgridspec(1, 3)
    draw_distance(drawn.add_subplot(left), side)
    draw_weights(drawn.add_subplot(middle), side.series)
    draw_resources(drawn.add_subplot(right), side, users)
    style.write_headline(drawn, side.title)
    return style.to_png(drawn)


def _users_to_draw(series: series_module.Series) -> list[str]:
    """Choose users, in the order of what would be ideal for them."""
    best: dict[str, float] = {}
    for row in series.ideals:
        value = float(row['bounded_ideal'] or row['ideal'] or 0)
        best[row['user']] = best.get(row['user'], 0.0) + value
    users = sorted(best, key=lambda user: (best[user], user))
    if len(users) <= MOST:
        return users
    places = np.linspace(0, len(users) - 1, MOST).round()
    return [users[int(place)] for place in places]


def _draw_users(
    axes: style.Axes, side: SimulatedRun, users: Sequence[str]
) -> None:
    share = side.result.get('measures', {}).get('share', 'dominant')
    style.write_title(
        axes, f'Share of each user ({share}; 1 is a whole quota)'
    )
    style.write_note(axes, IDEAL)
    shades = style.colours(users)
    names = []
    for user in users:
        x, y = series_module.curve(side.series.ideals, 'share', user=user)
        axes.plot(x, y, color=shades[user], lw=2.6, alpha=0.9)
        _draw_ideals(axes, side.series, user, shades[user])
        names.append(labels.Label.at_end(y, user, shades[user], style.LARGE))
    _finish(axes, 'share')
    labels.name_curves(axes, names)


def _draw_ideals(
    axes: style.Axes, series: series_module.Series, user: str, shade: str
) -> None:
    for quantity, line, width in (
        ('ideal', ':', 1.6),
        ('bounded_ideal', style.DASHES, 1.3),
    ):
        x, y = series_module.curve(series.ideals, quantity, user=user)
        axes.step(x, y, where='mid', color=shade, lw=width, ls=line)


def _draw_small_multiples(
    drawn: Any, places: Any, side: SimulatedRun, users: Sequence[str]
) -> None:
    """Draw small multiples: one user each, all on the same scale."""
    first = None
    for number, user in enumerate(users):
        axes = drawn.add_subplot(
            places[divmod(number, 6)], sharex=first, sharey=first
        )
        first = first or axes
        x, y = series_module.curve(side.series.ideals, 'share', user=user)
        shade = style.PALETTE[0]
        axes.plot(x, y, color=shade, lw=1.8)
        _draw_ideals(axes, side.series, user, style.FAIR)
        axes.set_title(user, loc='left', fontsize=style.SMALL)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=style.SMALL)
        axes.label_outer()
        style.remove_ornaments(axes)
    if first is not None:
        first.annotate(
            'share of ' + _count_text(side, users) + '; ' + IDEAL,
            (0, 1),
            xycoords='axes fraction',
            xytext=(0, 20),
            textcoords='offset points',
            fontsize=style.SMALL + 1,
            annotation_clip=False,
        )


def _count_text(side: SimulatedRun, users: Sequence[str]) -> str:
    total = int(side.result.get('measures', {}).get('users', len(users)))
    if total > len(users):
        return f'{len(users)} of {total} users, poorest ideal first'
    return f'{total} users, poorest ideal first'


def draw_distance(axes: style.Axes, side: SimulatedRun) -> None:
    """Draw how far users are from the bounded ideal, round by round."""
    style.write_title(axes, 'Distance from the ideal within the weights')
    names = []
    for quantity, text, shade in (
        ('worst_bounded', 'worst user', style.PALETTE[1]),
        ('distance_bounded', 'all users', style.PALETTE[0]),
        ('idle_while_wanted', 'idle though wanted', style.PALETTE[7]),
    ):
        x, y = series_module.curve(side.series.measures, quantity)
        percent = [100 * value for value in y]
        axes.plot(x, percent, color=shade, lw=1.8)
        names.append(
            labels.Label.at_end(
                _known_values(percent), text, shade, style.SMALL + 1
            )
        )
    axes.axhline(100 * distance.WITHIN, color=style.QUIET, lw=0.9, ls=':')
    _finish(axes, 'part of the ideal that users lack [%]')
    labels.name_curves(axes, names)


def draw_resources(
    axes: style.Axes, side: SimulatedRun, users: Sequence[str]
) -> None:
    """Draw what users had of each resource in the second half."""
    style.write_title(axes, 'Parts of the quota by resource, settled')
    chosen = list(users)
    if len(chosen) > BARS:
        places = np.linspace(0, len(chosen) - 1, BARS).round()
        chosen = [chosen[int(place)] for place in places]
    parts = _settled_parts(side.series, chosen)
    used = [
        name for name, values in parts.items() if max(values, default=0.0) > 0
    ]
    if not used:
        style.write_reason(axes, 'no resource was recorded')
        return
    width = 0.8 / len(used)
    for number, name in enumerate(used):
        place = resources.RESOURCES.index(name)
        axes.bar(
            [x - 0.4 + width * (number + 0.5) for x in range(len(chosen))],
            parts[name],
            width,
            color=style.PALETTE[place % len(style.PALETTE)],
            label=name.replace('_', ' '),
        )
    axes.set_xticks(range(len(chosen)), chosen, fontsize=style.SMALL)
    if len(chosen) > FEW:
        axes.tick_params(axis='x', rotation=60)
    axes.tick_params(axis='x', length=0)
    axes.set_ylabel('part of the quota')
    axes.legend(fontsize=style.SMALL, frameon=False, ncols=2)
    axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
    style.remove_ornaments(axes)


def _settled_parts(
    series: series_module.Series, users: Sequence[str]
) -> dict[str, list[float]]:
    """Mean parts of the quota in the second half, by resource."""
    rounds = [float(row['round']) for row in series.ideals]
    middle = max(rounds, default=0.0) / 2
    result: dict[str, list[float]] = {}
    for name in resources.RESOURCES.names:
        result[name] = []
        for user in users:
            x, y = series_module.curve(
                series.ideals, f'{name}.part', user=user
            )
            late = [
                value
                for at, value in zip(x, y, strict=True)
                if at >= middle and math.isfinite(value)
            ]
            result[name].append(labels.mean(late))
    return result


def _finish(axes: style.Axes, text: str) -> None:
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.set_xlabel('round')
    axes.set_ylabel(text)
    style.remove_ornaments(axes)


def _known_values(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]
