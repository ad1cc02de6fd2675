# SPDX-License-Identifier: Apache-2.0

"""Charts as SVG, drawn on the server. Browsers need no script."""

from collections.abc import Sequence
from typing import Any

from django.utils import html
from django.utils import safestring

_WIDTH, _HEIGHT = 240, 14
_LINE_HEIGHT = 60


def bar_chart(part: float, whole: float, label: Any) -> safestring.SafeString:
    """Return a bar chart of a used amount.

    :param part: the used amount, >= 0.
    :param whole: the amount that the bar is compared with, such as a ceiling.
    :param label: the text for screen readers.
    """
    most = max(part, whole, 1e-9)
    return html.format_html(
        '<svg class="fairness-bar" role="img" aria-label="{}" width="{}"'
        ' height="{}" viewBox="0 0 {} {}">'
        '<rect width="{}" height="{}" fill="#e6e6e6"/>'
        '<rect width="{}" height="{}" fill="{}"/>'
        '<rect x="{}" width="2" height="{}" fill="#222"/></svg>',
        label, _WIDTH, _HEIGHT, _WIDTH, _HEIGHT, _WIDTH, _HEIGHT,
        round((_WIDTH - 2) * part / most, 1), _HEIGHT,
        '#b35900' if part > whole else '#2a6496',
        round((_WIDTH - 2) * whole / most, 1), _HEIGHT,
    )  # fmt: skip


def line_chart(values: Sequence[float], label: Any) -> safestring.SafeString:
    """Return a line chart over time; empty for fewer than two values.

    :param values: the oldest first.
    :param label: the text for screen readers.
    """
    if len(values) < 2:
        return safestring.SafeString('')
    most = max(*values, 1e-9)
    step = _WIDTH / (len(values) - 1)
    points = ' '.join(
        f'{step * number:.1f},{_LINE_HEIGHT * (1 - value / most):.1f}'
        for number, value in enumerate(values)
    )
    return html.format_html(
        '<svg class="fairness-line" role="img" aria-label="{}" width="{}"'
        ' height="{}" viewBox="0 -2 {} {}"><polyline points="{}" fill="none"'
        ' stroke="#2a6496" stroke-width="2"/></svg>',
        label, _WIDTH, _LINE_HEIGHT, _WIDTH, _LINE_HEIGHT + 4, points,
    )  # fmt: skip
