# SPDX-License-Identifier: Apache-2.0

"""Curves of runs with several nodes: one pair of axes for each."""

from collections.abc import Sequence

from fairness_lab.figures import labels
from fairness_lab.figures import panel

MARKS = ('-', '--', ':', '-.')
"""Lines of nodes, which have no colour of their own."""

THICKEST = 4.6
THINNEST = 1.4
"""Width of the first and of the last curve: equal ones lie on each other."""


def draw_shares(
    axes: panel.Axes, side: panel.Side, node: str, *, explain: bool = True
) -> None:
    """Draw what each VM got of its node, and what was fair.

    :param node: whose VMs are drawn, while they are there.
    :param explain: say above the axes what is dashed.
    """
    axes.set_ylim(-2, 103)
    axes.set_xlim(0, side.result['duration_s'])
    shades = panel.colours(side.result)
    names: list[labels.Label] = []
    drawn = 0
    for name, vm in side.result['instances'].items():
        shade = shades[vm['user']]
        x, y = _while_there(side, name, node, 'cpu_share')
        if not x:
            continue
        width = max(THINNEST, THICKEST - 1.6 * drawn)
        drawn += 1
        axes.plot(x, y, color=shade, lw=width, alpha=0.8)
        axes.step(
            *_while_there(side, name, node, 'max_min_share'),
            where='pre',
            color=shade,
            lw=1.2,
            ls=panel.DASHES,
        )
        if vm['node'] == node:
            text = f'{name} ({vm["user"]})'
            names.append(labels.Label.at_end(y, text, shade, panel.SMALL + 1))
    if explain:
        panel.note(axes, 'dashed: max-min fair')
    panel.mark_events(axes, side.result)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel(f'part of {node} [%]')
    panel.tidy(axes)


def _while_there(
    side: panel.Side, name: str, node: str, quantity: str
) -> tuple[list[float], list[float]]:
    """Give the part of a VM in percent while it is on a node."""
    stays = side.result['instances'][name]['stays']
    chosen = [
        (t_s, value)
        for t_s, value in zip(
            *side.percent('instance', name, quantity), strict=True
        )
        if _node_at(stays, t_s) == node
    ]
    return [t_s for t_s, _ in chosen], [value for _, value in chosen]


def _node_at(stays: Sequence[panel.Result], t_s: float) -> str:
    found = [stay['node'] for stay in stays if stay['from_s'] < t_s]
    return str(found[-1] if found else stays[0]['node'])


def draw_known(axes: panel.Axes, side: panel.Side) -> None:
    """Draw what part of all CPUs each agent reckoned with."""
    panel.title(axes, 'Part of all CPUs that each agent knows of')
    axes.set_xlim(0, side.result['duration_s'])
    axes.set_ylim(-2, 108)
    names = []
    for number, node in enumerate(side.result['nodes']):
        x, y = side.percent('node', node, 'known_part')
        mark = MARKS[number % len(MARKS)]
        axes.step(x, y, where='post', color=panel.FAIR, lw=1.6, ls=mark)
        if x:
            names.append(labels.Label.at_end(y, node, panel.FAIR, panel.SMALL))
    if not names:
        panel.say(axes, 'no agents, nobody knows')
        return
    panel.mark_events(axes, side.result, named=False)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('part [%]')
    panel.tidy(axes)
