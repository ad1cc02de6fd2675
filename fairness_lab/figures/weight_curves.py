# SPDX-License-Identifier: Apache-2.0

"""The picture of the weights of VMs, round by round."""

from collections.abc import Mapping
from collections.abc import Sequence
import math

from fairness_lab.figures import labels
from fairness_lab.figures import style
from fairness_lab.measures import series_file
from nova_fairness.model import resources

FEW = 6
"""More users than this have one colour."""

NAMED = 10
"""Where there are more VMs than this, curves have the names of users."""

_TICKS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def draw(axes: style.Axes, series: series_file.Series) -> None:
    """Draw the weights of VMs, on a scale of factors."""
    rows = series.weights
    moved = _moved_control(rows)
    style.title(axes, f'Weights of VMs ({moved or "all controls"})')
    shades = style.colours(series_file.names(rows, 'user'))
    vms = {row['vm']: row['user'] for row in rows}
    plain = len(set(vms.values())) > FEW
    ends: dict[tuple[str, str], list[float]] = {}
    for vm, user in vms.items():
        x, y = series_file.curve(rows, moved or 'cpu', vm=vm)
        axes.step(
            x,
            y,
            where='post',
            color=style.PALETTE[0] if plain else shades[user],
            lw=1.6 if len(vms) <= FEW else 0.9,
            alpha=0.45 if plain else 0.9,
        )
        name = vm if len(vms) <= NAMED else user
        last = [value for value in y if math.isfinite(value)]
        last = last[-labels.END_POINTS :]
        ends.setdefault((name, shades[user]), []).extend(last)
    axes.set_yscale('log')
    low, high = axes.get_ylim()
    axes.set_yticks(_TICKS, [f'{tick:g}' for tick in _TICKS])
    axes.minorticks_off()
    axes.set_ylim(min(low, 0.45), max(high, 2.2))
    axes.set_xlabel('round')
    axes.set_ylabel('weight (1: neutral)')
    style.tidy(axes)
    if not plain:
        labels.name_curves(axes, _ends(ends))
    if not moved:
        style.note(axes, 'no weight was ever moved')
    elif plain:
        style.note(axes, 'a curve per VM')


def _ends(
    values: Mapping[tuple[str, str], Sequence[float]],
) -> list[labels.Label]:
    """Names beside the middle of where their curves end.

    :param values: weights by name and colour.
    """
    return [
        labels.Label(
            math.exp(labels.mean([math.log(value) for value in last])),
            name,
            shade,
            style.SMALL + 1,
        )
        for (name, shade), last in values.items()
        if last
    ]


def _moved_control(rows: Sequence[series_file.Row]) -> str:
    """Name the control whose weights were moved most; empty if none was."""
    most, found = 0.0, ''
    for control in resources.CONTROLS:
        values = [float(row.get(control.value) or 1) for row in rows]
        spread = max(values, default=1.0) / min(values, default=1.0) - 1
        if spread > most:
            most, found = spread, control.value
    return found
