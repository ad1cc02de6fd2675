# SPDX-License-Identifier: Apache-2.0

"""How pictures look: colours, sizes, axes without ornament."""

from collections.abc import Sequence
import io
from typing import Any

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
DASHES = (0, (4, 3))
SMALL = 8
LARGE = 11

Axes = Any
"""Axes of matplotlib, which has no types for them that mypy could use."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """Each name a colour, the same wherever the names are the same."""
    return {
        name: PALETTE[place % len(PALETTE)]
        for place, name in enumerate(sorted(names))
    }


def write_title(axes: Axes, text: str) -> None:
    """Write a title at the left, where reading begins."""
    axes.set_title(text, loc='left', fontsize=LARGE)


def remove_ornaments(axes: Axes) -> None:
    """Leave nothing on the axes that does not help to read a value."""
    axes.spines[['top', 'right']].set_visible(False)
    axes.grid(axis='y', color='#dddddd', lw=0.7)
    axes.set_axisbelow(True)


def write_note(axes: Axes, text: str) -> None:
    """Write a remark at the right above the axes."""
    axes.annotate(
        text,
        (1, 1),
        xycoords='axes fraction',
        xytext=(0, 6),
        textcoords='offset points',
        ha='right',
        fontsize=SMALL + 1,
        color=FAIR,
    )


def write_reason(axes: Axes, text: str) -> None:
    """Write why there is nothing to draw."""
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha='center', color=QUIET
    )


def figure(width: float, height: float) -> Any:
    """Make an empty picture.

    :param width: inches.
    :param height: inches.
    """
    # Imported here, so that commands that draw nothing do without the second
    # it takes; the object interface needs no display and no global state.
    from matplotlib import figure as figure_module
    from matplotlib import layout_engine
    from matplotlib.backends import backend_agg

    drawn = figure_module.Figure(
        figsize=(width, height),
        layout=layout_engine.ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1),
    )
    backend_agg.FigureCanvasAgg(drawn)
    return drawn


def write_headline(drawn: Any, text: str) -> None:
    """Write what the whole picture shows, at its left."""
    drawn.suptitle(text, x=0.012, ha='left', fontsize=13, fontweight='bold')


def to_png(drawn: Any) -> bytes:
    """Picture as a PNG image."""
    stream = io.BytesIO()
    drawn.savefig(stream, format='png', dpi=120, facecolor='white')
    return stream.getvalue()
