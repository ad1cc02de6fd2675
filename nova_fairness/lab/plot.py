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

import io
from typing import Any

from nova_fairness.lab import bars
from nova_fairness.lab import panel


def run(side: panel.Side) -> bytes:
    """Draw one run: parts over time, weights over time, settled parts.

    :returns: a PNG image.
    """
    figure = _figure(11, 8.2)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    left, right = lower.subgridspec(1, 2, width_ratios=(3, 2))
    shares = figure.add_subplot(upper)
    panel.draw_shares(shares, side)
    panel.title(shares, 'Part of the CPU that each user (thick) and VM got')
    panel.draw_weights(figure.add_subplot(left), side)
    if side.result['uncontended']:
        bars.draw_pairs(figure.add_subplot(right), side.result['uncontended'])
    else:
        bars.draw_settled(figure.add_subplot(right), side.result)
    _headline(figure, side.title)
    return _png(figure)


def comparison(first: panel.Side, second: panel.Side) -> bytes:
    """Draw two runs side by side on the same axes, and before and after.

    :returns: a PNG image.
    """
    figure = _figure(13, 8.4)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=(5, 4))
    axes = None
    for place, name, side in zip(
        upper.subgridspec(1, 2), 'AB', (first, second), strict=True
    ):
        axes = figure.add_subplot(place, sharex=axes, sharey=axes)
        panel.draw_shares(axes, side, explain=side is first)
        panel.title(axes, f'{name}: {side.title}')
    left, right = lower.subgridspec(1, 2, width_ratios=(2, 3))
    for place, kind in ((left, 'users'), (right, 'instances')):
        bars.draw_before_after(
            figure.add_subplot(place), first.result, second.result, kind
        )
    _headline(
        figure,
        f'{first.result["scenario"]}: part of the CPU that each user (thick) '
        f'and VM got ({first.result["backend"]})',
    )
    return _png(figure)


def _figure(width: float, height: float) -> Any:
    # Imported here, so that the other commands do without the second it
    # takes; the object interface needs no display and no global state.
    from matplotlib import figure
    from matplotlib import layout_engine
    from matplotlib.backends import backend_agg

    drawn = figure.Figure(
        figsize=(width, height),
        layout=layout_engine.ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1),
    )
    backend_agg.FigureCanvasAgg(drawn)
    return drawn


def _headline(figure: Any, text: str) -> None:
    figure.suptitle(text, x=0.012, ha='left', fontsize=13, fontweight='bold')


def _png(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format='png', dpi=120, facecolor='white')
    return stream.getvalue()
