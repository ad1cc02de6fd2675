# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs, for people: who got how much, and what was fair."""

import math
from typing import Any

from fairness_lab.figures import bars
from fairness_lab.figures import labels
from fairness_lab.figures import panel
from fairness_lab.figures import style

_NETWORK_COLUMNS = (
    ('sent_mbit_s', 'sent, as it arrived'),
    ('received_mbit_s', 'received'),
)


def _draw_network(figure: panel.Axes, side: panel.PanelSide) -> None:
    """Draw what passed each way, solid, and the classes, dashed.

    :param figure: of matplotlib, empty.
    """
    grid = figure.add_gridspec(1, len(_NETWORK_COLUMNS))
    axes = None
    for column, (quantity, what) in enumerate(_NETWORK_COLUMNS):
        axes = figure.add_subplot(grid[0, column], sharex=axes, sharey=axes)
        panel.write_title(axes, f'Each VM {what}')
        panel.write_note(axes, 'dashed: rate of its class')
        _draw_rates(axes, side, quantity)


def _draw_rates(
    axes: panel.Axes, side: panel.PanelSide, quantity: str
) -> None:
    shades = panel.colours(side.result)
    names = []
    for name, vm in side.result['instances'].items():
        shade = shades[vm['user']]
        x, y = side.curve('instance', name, quantity)
        axes.plot(x, y, color=shade, lw=2.2, alpha=0.85)
        if x:
            text = f'{name} ({vm["user"]})'
            names.append(labels.Label.at_end(y, text, shade, panel.SMALL))
        x, y = side.curve('instance', name, 'class_mbit_s')
        axes.step(x, y, where='post', color=shade, lw=1.2, ls=panel.DASHES)
    links = {item['link_mbit_s'] for item in side.result['network']}
    for link in links:
        axes.axhline(link, color=panel.QUIET, lw=0.8)
    axes.set_xlim(0, side.result['duration_s'])
    axes.set_ylim(0, 1.05 * max(links, default=1.0))
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('Mbit/s')
    panel.remove_ornaments(axes)


_DISK_COLUMNS = (
    ('cpu_share', 'CPU', 'weight'),
    ('disk_share', 'disk', 'blkio_weight'),
)

_DISK_ROW_INCHES = 3.4
"""Inches of one row."""


def _draw_disks(figure: panel.Axes, side: panel.PanelSide) -> None:
    """Draw what each VM got of CPU and disk of its node, and its weights.

    :param figure: of matplotlib, empty.
    """
    nodes = list(side.result['nodes'])
    grid = figure.add_gridspec(len(nodes) + 1, len(_DISK_COLUMNS))
    for column, (quantity, what, weight) in enumerate(_DISK_COLUMNS):
        for row, node in enumerate(nodes):
            axes = figure.add_subplot(grid[row, column])
            panel.write_title(axes, f'Part of the {what} of {node}')
            _draw_disk_parts(axes, side, node, quantity)
        axes = figure.add_subplot(grid[len(nodes), column])
        panel.write_title(axes, f'Weight of the {what} that each VM has')
        _draw_disk_weights(axes, side, weight)


def _disk_rows(side: panel.PanelSide) -> int:
    """Number of rows that :func:`draw` fills."""
    return len(side.result['nodes']) + 1


def _draw_disk_parts(
    axes: panel.Axes, side: panel.PanelSide, node: str, quantity: str
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
    panel.remove_ornaments(axes)


def _draw_disk_weights(
    axes: panel.Axes, side: panel.PanelSide, quantity: str
) -> None:
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
        panel.write_reason(axes, 'no agents, no weights')
        return
    axes.set_ylim(0, axes.get_ylim()[1])
    labels.name_curves(axes, names)
    axes.set_xlabel('time under load [s]')
    axes.set_ylabel('weight')
    panel.remove_ornaments(axes)


COLUMNS = 2
"""Nodes beside each other in the picture of one run."""


def run(side: panel.PanelSide) -> bytes:
    """Draw one run: parts over time, weights over time, settled parts.

    :returns: a PNG image.
    """
    if side.result['uncontended']:
        return _run_of_pairs(side)
    if _has_nodes(side):
        return _run_of_nodes(side)
    figure = style.figure(11, 8.2)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    left, right = lower.subgridspec(1, 2, width_ratios=(3, 2))
    shares = figure.add_subplot(upper)
    panel.draw_shares(shares, side)
    panel.write_title(
        shares, 'Part of the CPU that each user (thick) and VM got'
    )
    panel.draw_weights(figure.add_subplot(left), side)
    bars.draw_settled(figure.add_subplot(right), side.result)
    style.write_headline(figure, side.title)
    return style.to_png(figure)


def disks(side: panel.PanelSide) -> bytes:
    """Draw CPU and disk of each node of one run, and the weights of both.

    :returns: a PNG image.
    """
    figure = style.figure(13, _DISK_ROW_INCHES * _disk_rows(side))
    _draw_disks(figure, side)
    style.write_headline(figure, side.title)
    return style.to_png(figure)


def network(side: panel.PanelSide) -> bytes:
    """Draw what VMs of one run sent and received, and their classes.

    :returns: a PNG image.
    """
    figure = style.figure(13, 5)
    _draw_network(figure, side)
    style.write_headline(figure, side.title)
    return style.to_png(figure)


def _has_nodes(side: panel.PanelSide) -> bool:
    """Whether there are several; results of old say nothing of nodes."""
    return len(side.result.get('nodes', ())) > 1


def _run_of_pairs(side: panel.PanelSide) -> bytes:
    """Draw what counts where agents change nothing but the work of guests."""
    figure = style.figure(11, 5.5)
    axes = figure.add_subplot()
    bars.draw_pairs(axes, side.result['uncontended'])
    style.write_headline(figure, side.title)
    return style.to_png(figure)


def _run_of_nodes(side: panel.PanelSide) -> bytes:
    """Draw one run: parts of each node over time, weights, and knowledge."""
    nodes = list(side.result['nodes'])
    rows = math.ceil(len(nodes) / COLUMNS)
    figure = style.figure(13, 4.4 + 4 * rows)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(4 * rows, 4))
    places = upper.subgridspec(rows, COLUMNS)
    for number, node in enumerate(nodes):
        axes = figure.add_subplot(places[divmod(number, COLUMNS)])
        panel.draw_node_shares(axes, side, node, explain=not number)
        panel.write_title(axes, f'Part of {node} that each VM got')
    left, middle, right = lower.subgridspec(1, 3, width_ratios=(4, 4, 4))
    panel.draw_weights(figure.add_subplot(left), side)
    panel.draw_known(figure.add_subplot(middle), side)
    bars.draw_settled_vms(figure.add_subplot(right), side.result)
    style.write_headline(figure, side.title)
    return style.to_png(figure)


def _comparison_of_nodes(
    first: panel.PanelSide, second: panel.PanelSide
) -> bytes:
    """Draw two runs: each node in a row of its own."""
    nodes = list(first.result['nodes'])
    rows = len(nodes)
    figure = style.figure(13, 3.4 + 3.2 * rows)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(3 * rows, 3))
    places = upper.subgridspec(rows, 2)
    axes = None
    for row, node in enumerate(nodes):
        for column, (name, side) in enumerate(
            zip('AB', (first, second), strict=True)
        ):
            axes = figure.add_subplot(
                places[row, column], sharex=axes, sharey=axes
            )
            explain = not row and side is first
            panel.draw_node_shares(axes, side, node, explain=explain)
            if not row:
                panel.write_title(axes, f'{name}: {side.title}')
    _draw_before_after(figure, lower, first, second)
    style.write_headline(
        figure,
        f'{first.result["scenario"]}: part of each node that each VM got '
        f'({first.result["backend"]})',
    )
    return style.to_png(figure)


def _draw_before_after(
    figure: Any, place: Any, first: panel.PanelSide, second: panel.PanelSide
) -> None:
    left, right = place.subgridspec(1, 2, width_ratios=(2, 3))
    for part, kind in ((left, 'users'), (right, 'instances')):
        bars.draw_before_after(
            figure.add_subplot(part), first.result, second.result, kind
        )


def comparison(first: panel.PanelSide, second: panel.PanelSide) -> bytes:
    """Draw two runs side by side on the same axes, and before and after.

    :returns: a PNG image.
    """
    if _has_nodes(first) and _has_nodes(second):
        return _comparison_of_nodes(first, second)
    figure = style.figure(13, 8.4)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    axes = None
    for place, name, side in zip(
        upper.subgridspec(1, 2), 'AB', (first, second), strict=True
    ):
        axes = figure.add_subplot(place, sharex=axes, sharey=axes)
        panel.draw_shares(axes, side, explain=side is first)
        panel.write_title(axes, f'{name}: {side.title}')
    _draw_before_after(figure, lower, first, second)
    style.write_headline(
        figure,
        f'{first.result["scenario"]}: part of the CPU that each user (thick) '
        f'and VM got ({first.result["backend"]})',
    )
    return style.to_png(figure)
