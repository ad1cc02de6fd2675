# SPDX-License-Identifier: Apache-2.0

"""Pictures of runs with network load: what each VM sent and received."""

from fairness_lab.figures import labels
from fairness_lab.figures import panel

_COLUMNS = (
    ('sent_mbit_s', 'sent, as it arrived'),
    ('received_mbit_s', 'received'),
)


def draw(figure: panel.Axes, side: panel.Side) -> None:
    """Draw what passed each way, solid, and the classes, dashed.

    :param figure: of matplotlib, empty.
    """
    grid = figure.add_gridspec(1, len(_COLUMNS))
    axes = None
    for column, (quantity, what) in enumerate(_COLUMNS):
        axes = figure.add_subplot(grid[0, column], sharex=axes, sharey=axes)
        panel.title(axes, f'What each VM {what}')
        panel.note(axes, 'dashed: rate of its class')
        _draw_rates(axes, side, quantity)


def _draw_rates(axes: panel.Axes, side: panel.Side, quantity: str) -> None:
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
    panel.tidy(axes)
