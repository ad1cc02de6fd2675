# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs with disks: CPU and disk beside each other, by node."""

from fairness_lab.figures import labels
from fairness_lab.figures import panel

_COLUMNS = (
    ('cpu_share', 'CPU', 'weight'),
    ('disk_share', 'disk', 'blkio_weight'),
)

HEIGHT = 3.4
"""Inches of one row."""


def draw(figure: panel.Axes, side: panel.Side) -> None:
    """Draw what each VM got of CPU and disk of its node, and its weights.

    :param figure: of matplotlib, empty.
    """
    nodes = list(side.result['nodes'])
    grid = figure.add_gridspec(len(nodes) + 1, len(_COLUMNS))
    for column, (quantity, what, weight) in enumerate(_COLUMNS):
        for row, node in enumerate(nodes):
            axes = figure.add_subplot(grid[row, column])
            panel.title(axes, f'Part of the {what} of {node}')
            _draw_parts(axes, side, node, quantity)
        axes = figure.add_subplot(grid[len(nodes), column])
        panel.title(axes, f'Weight of the {what} that each VM has')
        _draw_weights(axes, side, weight)


def rows(side: panel.Side) -> int:
    """Give the number of rows that :func:`draw` fills."""
    return len(side.result['nodes']) + 1


def _draw_parts(
    axes: panel.Axes, side: panel.Side, node: str, quantity: str
) -> None:
    axes.set_ylim(-2, 103)
    axes.set_xlim(0, side.result['duration_s'])
    shades = panel.colours(side.result)
    names = []
    for name, vm in side.result['instances'].items():
        if vm['node'] != node:
            continue
        x, y = side.percent('instance', name, quantity)
        shade = shades[vm['user']]
        axes.plot(x, y, color=shade, lw=2.2, alpha=0.85)
        if x:
            text = f'{name} ({vm["user"]})'
            names.append(labels.Label.at_end(y, text, shade, panel.SMALL))
    panel.mark_events(axes, side.result, named=False)
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('part [%]')
    panel.tidy(axes)


def _draw_weights(axes: panel.Axes, side: panel.Side, quantity: str) -> None:
    axes.set_xlim(0, side.result['duration_s'])
    shades = panel.colours(side.result)
    names = []
    for name, vm in side.result['instances'].items():
        x, y = side.curve('instance', name, quantity)
        shade = shades[vm['user']]
        axes.step(x, y, where='post', color=shade, lw=1.6)
        if x:
            names.append(labels.Label.at_end(y, name, shade, panel.SMALL))
    if not names:
        panel.say(axes, 'no agents, no weights')
        return
    axes.set_ylim(0, axes.get_ylim()[1])
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('weight')
    panel.tidy(axes)
