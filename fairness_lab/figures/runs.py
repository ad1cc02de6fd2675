# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs, for people: who got how much, and what was fair."""

import math
from typing import Any

from fairness_lab.figures import bars
from fairness_lab.figures import disk_plot
from fairness_lab.figures import network_plot
from fairness_lab.figures import node_panel
from fairness_lab.figures import panel
from fairness_lab.figures import style

COLUMNS = 2
"""Nodes beside each other in the picture of one run."""


def run(side: panel.Side) -> bytes:
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
    panel.title(shares, 'Part of the CPU that each user (thick) and VM got')
    panel.draw_weights(figure.add_subplot(left), side)
    bars.draw_settled(figure.add_subplot(right), side.result)
    style.headline(figure, side.title)
    return style.png(figure)


def disks(side: panel.Side) -> bytes:
    """Draw CPU and disk of each node of one run, and the weights of both.

    :returns: a PNG image.
    """
    figure = style.figure(13, disk_plot.HEIGHT * disk_plot.rows(side))
    disk_plot.draw(figure, side)
    style.headline(figure, side.title)
    return style.png(figure)


def network(side: panel.Side) -> bytes:
    """Draw what VMs of one run sent and received, and their classes.

    :returns: a PNG image.
    """
    figure = style.figure(13, 5)
    network_plot.draw(figure, side)
    style.headline(figure, side.title)
    return style.png(figure)


def _has_nodes(side: panel.Side) -> bool:
    """Whether there are several; results of old say nothing of nodes."""
    return len(side.result.get('nodes', ())) > 1


def _run_of_pairs(side: panel.Side) -> bytes:
    """Draw what counts where agents change nothing but the work of guests."""
    figure = style.figure(11, 5.5)
    axes = figure.add_subplot()
    bars.draw_pairs(axes, side.result['uncontended'])
    style.headline(figure, side.title)
    return style.png(figure)


def _run_of_nodes(side: panel.Side) -> bytes:
    """Draw one run: parts of each node over time, weights, who knew whom."""
    nodes = list(side.result['nodes'])
    rows = math.ceil(len(nodes) / COLUMNS)
    figure = style.figure(13, 4.4 + 4 * rows)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(4 * rows, 4))
    places = upper.subgridspec(rows, COLUMNS)
    for number, node in enumerate(nodes):
        axes = figure.add_subplot(places[divmod(number, COLUMNS)])
        node_panel.draw_shares(axes, side, node, explain=not number)
        panel.title(axes, f'Part of {node} that each VM got')
    left, middle, right = lower.subgridspec(1, 3, width_ratios=(4, 4, 4))
    panel.draw_weights(figure.add_subplot(left), side)
    node_panel.draw_known(figure.add_subplot(middle), side)
    bars.draw_settled_vms(figure.add_subplot(right), side.result)
    style.headline(figure, side.title)
    return style.png(figure)


def _comparison_of_nodes(first: panel.Side, second: panel.Side) -> bytes:
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
            node_panel.draw_shares(axes, side, node, explain=explain)
            if not row:
                panel.title(axes, f'{name}: {side.title}')
    _draw_before_after(figure, lower, first, second)
    style.headline(
        figure,
        f'{first.result["scenario"]}: part of each node that each VM got '
        f'({first.result["backend"]})',
    )
    return style.png(figure)


def _draw_before_after(
    figure: Any, place: Any, first: panel.Side, second: panel.Side
) -> None:
    left, right = place.subgridspec(1, 2, width_ratios=(2, 3))
    for part, kind in ((left, 'users'), (right, 'instances')):
        bars.draw_before_after(
            figure.add_subplot(part), first.result, second.result, kind
        )


def comparison(first: panel.Side, second: panel.Side) -> bytes:
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
        panel.title(axes, f'{name}: {side.title}')
    _draw_before_after(figure, lower, first, second)
    style.headline(
        figure,
        f'{first.result["scenario"]}: part of the CPU that each user (thick) '
        f'and VM got ({first.result["backend"]})',
    )
    return style.png(figure)
