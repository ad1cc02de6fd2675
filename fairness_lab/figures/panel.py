# SPDX-License-Identifier: Apache-2.0

"""Curves over time: the parts that users and VMs got, and the weights."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from fairness_lab.figures import labels
from fairness_lab.figures import style
from fairness_lab.results import series

PALETTE = style.PALETTE
FAIR = style.FAIR
QUIET = style.QUIET
DASHES = style.DASHES
SMALL = style.SMALL
LARGE = style.LARGE

write_title = style.write_title
remove_ornaments = style.remove_ornaments
write_note = style.write_note
write_reason = style.write_reason

FEW = 8
"""More VMs than this are drawn, but not named one by one."""

MANY_EVENTS = 12
"""More events than this are marked, but not named one by one."""

MOST_EVENTS = 60
"""More events than this would hide the curves, and are not marked."""

Axes = style.Axes

Result = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class PanelSide:
    """A run that is drawn.

    :ivar title: what to write above it.
    :ivar result: content of its ``result.json``.
    :ivar points: content of its ``series.csv``.
    """

    title: str
    result: Result
    points: Sequence[series.SeriesPoint]

    def curve(
        self, kind: str, name: str, quantity: str
    ) -> tuple[list[float], list[float]]:
        """Times in seconds and values of one thing, under load."""
        wanted = (kind, name, quantity)
        end_s = self.result['duration_s']
        chosen = [
            (point.t_s, point.value)
            for point in self.points
            if (point.kind, point.name, point.quantity) == wanted
            and point.t_s <= end_s
        ]
        return [t_s for t_s, _ in chosen], [value for _, value in chosen]

    def percent(
        self, kind: str, name: str, quantity: str
    ) -> tuple[list[float], list[float]]:
        """Times in seconds and parts in percent."""
        times, values = self.curve(kind, name, quantity)
        return times, [100 * value for value in values]


def colours(result: Result) -> dict[str, str]:
    """Each user a colour, the same in every picture of a scenario."""
    return style.colours(list(result['users']))


def draw_shares(axes: Axes, side: PanelSide, *, explain: bool = True) -> None:
    """Draw users thick, their VMs thin, the max-min parts dashed.

    :param explain: say above the axes what is dashed.
    """
    axes.set_ylim(-2, 103)
    axes.set_xlim(0, side.result['duration_s'])
    names = [*_draw_vms(axes, side), *_draw_users(axes, side)]
    for from_s, to_s, value in _fair_periods(side):
        axes.plot(
            (from_s, to_s), (value, value), color=FAIR, lw=1.2, ls=DASHES
        )
    if explain:
        write_note(axes, 'dashed: max-min fair part of each user')
    mark_events(axes, side.result)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('part of the CPU [%]')
    remove_ornaments(axes)


def _draw_vms(axes: Axes, side: PanelSide) -> list[labels.Label]:
    """Draw the VMs of users who have several."""
    shades = colours(side.result)
    owners = [vm['user'] for vm in side.result['instances'].values()]
    names = []
    for name, vm in side.result['instances'].items():
        if owners.count(vm['user']) == 1:
            continue
        x, y = side.percent('instance', name, 'cpu_share')
        shade = shades[vm['user']]
        axes.plot(x, y, color=shade, lw=0.9, alpha=0.8, zorder=2.5)
        if len(owners) <= FEW:
            names.append(labels.Label.at_end(y, name, shade, SMALL))
    return names


def _draw_users(axes: Axes, side: PanelSide) -> list[labels.Label]:
    names = []
    for user, shade in colours(side.result).items():
        x, y = side.percent('user', user, 'cpu_share')
        axes.plot(x, y, color=shade, lw=2.8, alpha=0.9)
        owned = [
            name
            for name, vm in side.result['instances'].items()
            if vm['user'] == user
        ]
        text = f'{user} ({owned[0]})' if len(owned) == 1 else user
        names.append(labels.Label.at_end(y, text, shade, LARGE))
    return names


def _fair_periods(side: PanelSide) -> list[tuple[float, float, float]]:
    """Begin, end and value of the stretches in which a part is fair.

    Users with the same part share a stretch: dashes upon dashes would look
    like a solid line.
    """
    stretches: list[tuple[float, float, float]] = []
    open_since: dict[float, float] = {}
    start_s = 0.0
    for t_s, values in sorted(_fair_values(side).items()):
        stretches += [
            (open_since.pop(value), start_s, value)
            for value in set(open_since) - values
        ]
        for value in values - set(open_since):
            open_since[value] = start_s
        start_s = t_s
    stretches += [(since, start_s, v) for v, since in open_since.items()]
    return sorted(stretches)


def _fair_values(side: PanelSide) -> dict[float, set[float]]:
    values: dict[float, set[float]] = {}
    for user in side.result['users']:
        for t_s, part in zip(
            *side.percent('user', user, 'max_min_share'), strict=True
        ):
            values.setdefault(t_s, set()).add(round(part, 1))
    return values


def mark_events(axes: Axes, result: Result, *, named: bool = True) -> None:
    """Mark what happened; names only where there is room for them."""
    inside = [
        event
        for event in result['events']
        if 0 < event['t_s'] < result['duration_s']
    ]
    if len(inside) > MOST_EVENTS:
        return
    for event in inside:
        axes.axvline(event['t_s'], color=QUIET, lw=0.8, ls=':', zorder=0)
        if not named or len(inside) > MANY_EVENTS:
            continue
        text = f'{event["event"]} {event["subject"]}'.replace('_', ' ')
        axes.annotate(
            text.strip(),
            (event['t_s'], 1.0),
            xycoords=('data', 'axes fraction'),
            xytext=(3, -3),
            textcoords='offset points',
            rotation=90,
            va='top',
            color=QUIET,
            fontsize=SMALL,
        )


def draw_weights(axes: Axes, side: PanelSide) -> None:
    """Draw the weight of each VM, round by round."""
    write_title(axes, 'Weight that the agent gave each VM')
    axes.set_xlim(0, side.result['duration_s'])
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('weight (higher: more CPU)')
    remove_ornaments(axes)
    names = []
    for name, vm in side.result['instances'].items():
        x, y = side.curve('instance', name, 'weight')
        shade = colours(side.result)[vm['user']]
        axes.step(x, y, where='post', color=shade, lw=1.4)
        if x:
            names.append(labels.Label.at_end(y, name, shade, SMALL))
    if not names:
        write_reason(axes, 'no agents, no weights')
        return
    axes.set_ylim(0, axes.get_ylim()[1])
    mark_events(axes, side.result, named=False)
    if len(names) <= FEW:
        labels.name_curves(axes, names)


MARKS = ('-', '--', ':', '-.')
"""Lines of nodes, which have no colour of their own."""

THICKEST = 4.6
THINNEST = 1.4
"""Width of the first and of the last curve: equal ones lie on each other."""


def draw_node_shares(
    axes: Axes, side: PanelSide, node: str, *, explain: bool = True
) -> None:
    """Draw what each VM got of its node, and what was fair.

    :param node: whose VMs are drawn, while they are there.
    :param explain: say above the axes what is dashed.
    """
    axes.set_ylim(-2, 103)
    axes.set_xlim(0, side.result['duration_s'])
    shades = colours(side.result)
    names: list[labels.Label] = []
    drawn = 0
    for name, vm in side.result['instances'].items():
        shade = shades[vm['user']]
        x, y = _curve_on_node(side, name, node, 'cpu_share')
        if not x:
            continue
        width = max(THINNEST, THICKEST - 1.6 * drawn)
        drawn += 1
        axes.plot(x, y, color=shade, lw=width, alpha=0.8)
        axes.step(
            *_curve_on_node(side, name, node, 'max_min_share'),
            where='pre',
            color=shade,
            lw=1.2,
            ls=DASHES,
        )
        if vm['node'] == node:
            text = f'{name} ({vm["user"]})'
            names.append(labels.Label.at_end(y, text, shade, SMALL + 1))
    if explain:
        write_note(axes, 'dashed: max-min fair')
    mark_events(axes, side.result)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel(f'part of {node} [%]')
    remove_ornaments(axes)


def _curve_on_node(
    side: PanelSide, name: str, node: str, quantity: str
) -> tuple[list[float], list[float]]:
    """Part of a VM in percent while it is on a node."""
    stays = side.result['instances'][name]['stays']
    chosen = [
        (t_s, value)
        for t_s, value in zip(
            *side.percent('instance', name, quantity), strict=True
        )
        if _node_at(stays, t_s) == node
    ]
    return [t_s for t_s, _ in chosen], [value for _, value in chosen]


def _node_at(stays: Sequence[Result], t_s: float) -> str:
    found = [stay['node'] for stay in stays if stay['from_s'] < t_s]
    return str(found[-1] if found else stays[0]['node'])


def draw_known(axes: Axes, side: PanelSide) -> None:
    """Draw what part of all CPUs each agent reckoned with."""
    write_title(axes, 'Part of all CPUs that each agent knows of')
    axes.set_xlim(0, side.result['duration_s'])
    axes.set_ylim(-2, 108)
    names = []
    for number, node in enumerate(side.result['nodes']):
        x, y = side.percent('node', node, 'known_part')
        mark = MARKS[number % len(MARKS)]
        axes.step(x, y, where='post', color=FAIR, lw=1.6, ls=mark)
        if x:
            names.append(labels.Label.at_end(y, node, FAIR, SMALL))
    if not names:
        write_reason(axes, 'no agents, nothing known')
        return
    mark_events(axes, side.result, named=False)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('part [%]')
    remove_ornaments(axes)
