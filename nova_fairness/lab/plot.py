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

"""Pictures of runs, for people: who got how much, and what was fair."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import io
from typing import Any

from nova_fairness.lab import series

PALETTE = (
    '#0072B2',
    '#D55E00',
    '#009E73',
    '#CC79A7',
    '#E69F00',
    '#56B4E9',
    '#7A5C00',
    '#5A5A5A',
)
"""Colours of Okabe and Ito, which colour-blind people can tell apart."""

FAIR = '#222222'
QUIET = '#777777'

SMALL = 8

END_POINTS = 8
"""The name of a curve stands beside the mean of so many last points."""

MANY_EVENTS = 12
"""More events than this are marked, but not named one by one."""

FEW = 8
"""More VMs than this are drawn, but not named one by one."""

Result = Mapping[str, Any]
Points = Sequence[series.Point]


@dataclasses.dataclass(frozen=True)
class Side:
    """One of two runs that are shown side by side.

    :ivar title: what was different about it.
    :ivar result: content of its ``result.json``.
    :ivar points: content of its ``series.csv``.
    """

    title: str
    result: Result
    points: Points


def run(result: Result, points: Points) -> bytes:
    """Draw one run: parts over time, weights over time, settled parts.

    :returns: a PNG image.
    """
    figure = _figure(11, 8.2)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    left, right = lower.subgridspec(1, 2, width_ratios=(3, 2))
    shares = figure.add_subplot(upper)
    weights = figure.add_subplot(left)
    bars = figure.add_subplot(right)
    side = Side('', result, points)
    _draw_shares(shares, side)
    shares.set_title('Part of the CPU that each user and each VM got')
    _draw_weights(weights, side)
    _draw_settled(bars, result)
    figure.suptitle(_headline(result), x=0.01, ha='left', fontsize=13)
    return _png(figure)


def comparison(first: Side, second: Side) -> bytes:
    """Draw two runs side by side on the same axes, and before and after.

    :returns: a PNG image.
    """
    figure = _figure(13, 8.4)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    places = upper.subgridspec(1, 2)
    panel = None
    for place, name, side in zip(places, 'AB', (first, second), strict=True):
        panel = figure.add_subplot(place, sharex=panel, sharey=panel)
        _draw_shares(panel, side)
        panel.set_title(f'{name}  {side.title}')
    left, right = lower.subgridspec(1, 2, width_ratios=(2, 3))
    _draw_before_after(
        figure.add_subplot(left), first, second, 'users', 'Users, settled'
    )
    _draw_before_after(
        figure.add_subplot(right), first, second, 'instances', 'VMs, settled'
    )
    figure.suptitle(
        f'{first.result["scenario"]}: part of the CPU, '
        f'A {first.title}, B {second.title}',
        x=0.01,
        ha='left',
        fontsize=13,
    )
    return _png(figure)


def _figure(width: float, height: float) -> Any:
    # The object interface needs no global backend and no display.
    from matplotlib import figure
    from matplotlib.backends import backend_agg

    drawn = figure.Figure(figsize=(width, height), layout='constrained')
    backend_agg.FigureCanvasAgg(drawn)
    return drawn


def _png(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format='png', dpi=120, facecolor='white')
    return stream.getvalue()


def _headline(result: Result) -> str:
    if not result['agents']:
        return f'{result["scenario"]}: without agents ({result["backend"]})'
    return (
        f'{result["scenario"]}: with agents ({result["backend"]}), '
        f'{result["metric"]}, policy {result["policy"]}, '
        f'a round every {result["interval_s"]:g} s'
    )


def _colours(result: Result) -> dict[str, str]:
    return {
        user: PALETTE[place % len(PALETTE)]
        for place, user in enumerate(sorted(result['users']))
    }


def _curve(
    points: Points, kind: str, name: str, quantity: str
) -> tuple[list[float], list[float]]:
    chosen = [
        (point.t_s, point.value)
        for point in points
        if (point.kind, point.name, point.quantity) == (kind, name, quantity)
    ]
    return [t_s for t_s, _ in chosen], [value for _, value in chosen]


def _draw_shares(axes: Any, side: Side) -> None:
    """Draw users thick, their VMs thin, the max-min parts dashed."""
    result, points = side.result, side.points
    colours = _colours(result)
    labels = []
    owners = [vm['user'] for vm in result['instances'].values()]
    for name, vm in result['instances'].items():
        if owners.count(vm['user']) == 1:
            continue
        colour = colours[vm['user']]
        x, y = _curve(points, 'instance', name, 'cpu_share')
        axes.plot(x, _percent(y), color=colour, lw=0.9, alpha=0.6)
        if len(owners) <= FEW:
            labels.append((y, name, colour, SMALL))
    for user, colour in colours.items():
        x, y = _curve(points, 'user', user, 'max_min_share')
        axes.plot(x, _percent(y), color=FAIR, lw=1.1, ls=(0, (4, 3)), zorder=1)
        x, y = _curve(points, 'user', user, 'cpu_share')
        axes.plot(x, _percent(y), color=colour, lw=2.8)
        labels.append((y, user, colour, 11))
    axes.set_ylim(-2, 103)
    _mark_events(axes, result)
    _name_curves(axes, labels, result['duration_s'])
    axes.set_xlim(0, result['duration_s'])
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('part of the CPU [%]')
    _tidy(axes)


def _percent(values: Sequence[float]) -> list[float]:
    return [100 * value for value in values]


def _name_curves(
    axes: Any,
    labels: Sequence[tuple[Sequence[float], str, str, int]],
    x: float,
) -> None:
    """Write names at the right ends, apart from each other."""
    named = sorted(
        (100 * _mean(values[-END_POINTS:]), name, colour, size)
        for values, name, colour, size in labels
    )
    low, high = axes.get_ylim()
    places = apart([item[0] for item in named], (high - low) / 22)
    for place, (_, name, colour, size) in zip(places, named, strict=True):
        axes.annotate(
            name,
            (x, place),
            xytext=(6, 0),
            textcoords='offset points',
            va='center',
            color=colour,
            fontsize=size,
            fontweight='bold' if size > SMALL else 'normal',
            annotation_clip=False,
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending places until none is closer than a gap to the next.

    Those that would overlap stand around their common middle.
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], gap):
            last = groups.pop()
            groups[-1].extend(last)
    return [
        _mean(group) + gap * (number - (len(group) - 1) / 2)
        for group in groups
        for number in range(len(group))
    ]


def _overlap(
    lower: Sequence[float], upper: Sequence[float], gap: float
) -> bool:
    top = _mean(lower) + gap * (len(lower) - 1) / 2
    bottom = _mean(upper) - gap * (len(upper) - 1) / 2
    return bottom - top < gap


def _mark_events(axes: Any, result: Result) -> None:
    """Mark what happened; names only where there is room for them."""
    events = [
        event
        for event in result['events']
        if 0 < event['t_s'] < result['duration_s']
    ]
    for event in events:
        axes.axvline(event['t_s'], color=QUIET, lw=0.8, ls=':', zorder=0)
        if len(events) > MANY_EVENTS:
            continue
        axes.annotate(
            f'{event["event"]} {event["subject"]}'.replace('_', ' ').strip(),
            (event['t_s'], 1.0),
            xycoords=('data', 'axes fraction'),
            xytext=(3, -3),
            textcoords='offset points',
            rotation=90,
            va='top',
            color=QUIET,
            fontsize=SMALL,
        )


def _draw_weights(axes: Any, side: Side) -> None:
    """Draw the weight of each VM, round by round."""
    result, colours = side.result, _colours(side.result)
    axes.set_title('Weight that the agent gave each VM')
    _tidy(axes)
    labels = []
    for name, vm in result['instances'].items():
        x, y = _curve(side.points, 'instance', name, 'weight')
        if x:
            colour = colours[vm['user']]
            axes.step(x, y, where='post', color=colour, lw=1.4)
            labels.append(([v / 100 for v in y], name, colour, SMALL))
    axes.set_xlim(0, result['duration_s'])
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('weight (higher: more CPU)')
    if not labels:
        _say(axes, 'no agents, no weights')
        return
    axes.set_ylim(bottom=0)
    axes.margins(y=0.1)
    _mark_events(axes, {**result, 'events': _bare(result['events'])})
    if len(labels) <= FEW:
        _name_curves(axes, labels, result['duration_s'])


def _bare(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, 'event': '', 'subject': ''} for event in events]


def _say(axes: Any, text: str) -> None:
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha='center', color=QUIET
    )


def _draw_settled(axes: Any, result: Result) -> None:
    """Draw what each user got in the settled half, and the fair part."""
    window = result['window']
    colours = _colours(result)
    for place, (user, colour) in enumerate(colours.items()):
        entry = result['users'][user]
        _bar(axes, place, entry['cpu_share'], colour, 0.62)
        _fair_line(axes, place, entry['max_min_share'], 0.8)
    axes.set_xticks(range(len(colours)), list(colours))
    _tidy(axes)
    _part_axis(axes)
    axes.set_title(
        f'Settled parts ({window["from_s"]:g} to {window["to_s"]:g} s)'
    )
    _explain_fair(axes)


def _bar(
    axes: Any,
    x: float,
    part: float,
    colour: str,
    width: float,
    *,
    pale: bool = False,
    named: bool = True,
) -> None:
    axes.bar(
        x,
        100 * part,
        width,
        color=colour,
        alpha=0.35 if pale else 1.0,
    )
    if named:
        axes.annotate(
            f'{100 * part:.1f}',
            (x, 100 * part),
            xytext=(0, 3),
            textcoords='offset points',
            ha='center',
            fontsize=SMALL + 1,
        )


def _fair_line(axes: Any, x: float, part: float, width: float) -> None:
    axes.plot(
        [x - width / 2, x + width / 2],
        [100 * part] * 2,
        color=FAIR,
        lw=1.6,
        ls=(0, (4, 3)),
    )


def _explain_fair(axes: Any) -> None:
    axes.text(
        1.0,
        1.0,
        '- - -  max-min fair part',
        transform=axes.transAxes,
        ha='right',
        va='top',
        color=FAIR,
        fontsize=SMALL + 1,
    )


def _part_axis(axes: Any) -> None:
    axes.set_ylim(bottom=0)
    axes.margins(y=0.18)
    axes.set_ylabel('part of the CPU [%]')


def _tidy(axes: Any) -> None:
    axes.spines[['top', 'right']].set_visible(False)
    axes.grid(axis='y', color='#dddddd', lw=0.7)
    axes.set_axisbelow(True)


def _draw_before_after(
    axes: Any,
    first: Side,
    second: Side,
    kind: str,
    title: str,
) -> None:
    """Draw pale bars for the first run, full ones for the second."""
    colours = _colours(first.result)
    names = [n for n in sorted(first.result[kind]) if n in second.result[kind]]
    named = len(names) <= FEW
    for place, name in enumerate(names):
        before, after = first.result[kind][name], second.result[kind][name]
        colour = colours[before.get('user', name)]
        _bar(
            axes,
            place - 0.2,
            before['cpu_share'],
            colour,
            0.36,
            pale=True,
            named=named,
        )
        _bar(axes, place + 0.2, after['cpu_share'], colour, 0.36, named=named)
        _fair_line(axes, place, after['max_min_share'], 0.86)
    if named:
        axes.set_xticks(range(len(names)), names)
    else:
        axes.set_xticks([])
        axes.set_xlabel(f'{len(names)} VMs')
    _tidy(axes)
    _part_axis(axes)
    axes.set_title(f'{title}: A pale, B full')
    _explain_fair(axes)
