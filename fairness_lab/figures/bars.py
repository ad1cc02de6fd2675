# SPDX-License-Identifier: Apache-2.0

"""Bars: settled parts of users and VMs beside what is fair."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from fairness_lab.figures import panel

PALE = 0.35
"""Opacity of the bars of the first of two runs."""

WIDE = 5
"""Up to so many bars have room for a decimal and a sign."""

LINE = 36
"""More letters than that do not fit side by side."""


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    :ivar x: its middle.
    :ivar width: on the same axis.
    :ivar part: its height, 0..1.
    :ivar colour: of its user.
    :ivar pale: whether it belongs to the first of two runs.
    """

    x: float
    width: float
    part: float
    colour: str
    pale: bool = False


def draw_settled(axes: panel.Axes, result: panel.Result) -> None:
    """Draw what each user got in the settled half."""
    window = result['window']
    panel.write_title(
        axes, f'Settled, {window["from_s"]:g} to {window["to_s"]:g} s'
    )
    shades = panel.colours(result)
    text = '{:.1f} %' if len(shades) <= WIDE else '{:.0f}'
    for x, (user, shade) in enumerate(shades.items()):
        entry = result['users'][user]
        _draw(axes, Bar(x, 0.6, entry['cpu_share'], shade), text)
        _draw_fair(axes, x, entry['max_min_share'])
    _finish(axes, list(shades))


def draw_settled_vms(axes: panel.Axes, result: panel.Result) -> None:
    """Draw what each VM got of its node in the settled half."""
    window = result['window']
    panel.write_title(
        axes, f'Settled, {window["from_s"]:g} to {window["to_s"]:g} s'
    )
    shades = panel.colours(result)
    vms = result['instances']
    names = sorted(vms, key=lambda name: (vms[name]['node'], name))
    text = '{:.0f}' if len(names) <= panel.FEW else ''
    for x, name in enumerate(names):
        vm = vms[name]
        _draw(axes, Bar(x, 0.7, vm['cpu_share'], shades[vm['user']]), text)
        _draw_fair(axes, x, vm['max_min_share'])
    shown = [f'{name}\n{vms[name]["node"]}' for name in names]
    _finish(axes, shown if text else _names_of_owners(vms, names))
    axes.set_ylabel('part of its node [%]')


def draw_before_after(
    axes: panel.Axes,
    first: panel.Result,
    second: panel.Result,
    kind: str,
) -> None:
    """Draw pale bars for the first run, full ones for the second.

    :param kind: ``users`` or ``instances``.
    """
    what = 'Users' if kind == 'users' else 'VMs'
    panel.write_title(axes, f'{what}, settled: A pale, B full')
    shades = panel.colours(first)
    names = [name for name in first[kind] if name in second[kind]]
    names.sort(key=lambda name: (first[kind][name].get('user', name), name))
    text = '{:.1f}' if len(names) <= panel.FEW else ''
    for x, name in enumerate(names):
        before, after = first[kind][name], second[kind][name]
        shade = shades[before.get('user', name)]
        for bar in (
            Bar(x - 0.2, 0.36, before['cpu_share'], shade, pale=True),
            Bar(x + 0.2, 0.36, after['cpu_share'], shade),
        ):
            _draw(axes, bar, text)
        _draw_fair(axes, x, after['max_min_share'])
    _finish(axes, names if text else _names_of_owners(first[kind], names))


def draw_pairs(axes: panel.Axes, found: Mapping[str, Any]) -> None:
    """Draw how the work changed in each pair of phases, and the mean.

    :param found: ``uncontended`` of a result.
    """
    panel.write_title(axes, 'Change of the work')
    changes = [100 * pair['difference'] for pair in found['pairs']]
    numbers = range(1, len(changes) + 1)
    if found['confidence_95']:
        low, high = (100 * end for end in found['confidence_95'])
        axes.axhspan(low, high, color=panel.PALETTE[0], alpha=0.25, lw=0)
        panel.write_note(axes, 'band: 95 % confidence')
    axes.axhline(0, color=panel.FAIR, lw=1)
    size = 6 if len(changes) <= 2 * panel.MANY_EVENTS else 3
    axes.plot(numbers, changes, 'o', ms=size, color=panel.PALETTE[0])
    reach = max(2.0, *(1.2 * abs(change) for change in changes))
    axes.set_ylim(-reach, reach)
    axes.locator_params(axis='x', nbins=10, integer=True)
    axes.set_xlabel('pair of phases')
    axes.set_ylabel('with the agent against without [%]')
    panel.remove_ornaments(axes)


def _names_of_owners(
    vms: Mapping[str, Mapping[str, Any]], names: Sequence[str]
) -> list[str]:
    """Owner's name in the middle of each owner's many VMs."""
    owners = [vms[name].get('user', name) for name in names]
    texts = [''] * len(names)
    for owner in dict.fromkeys(owners):
        count = owners.count(owner)
        plural = 's' if count > 1 else ''
        text = f'{count} VM{plural} of {owner}'
        texts[owners.index(owner) + count // 2] = text
    return texts


def _draw(axes: panel.Axes, bar: Bar, text: str) -> None:
    height = 100 * bar.part
    axes.bar(
        bar.x,
        height,
        bar.width,
        color=bar.colour,
        alpha=PALE if bar.pale else 1.0,
    )
    if text:
        axes.annotate(
            text.format(height),
            (bar.x, 0),
            xytext=(0, 4),
            textcoords='offset points',
            ha='center',
            fontsize=panel.SMALL + 1,
            color='black' if bar.pale else 'white',
            fontweight='normal' if bar.pale else 'bold',
        )


def _draw_fair(axes: panel.Axes, x: float, part: float) -> None:
    axes.plot(
        [x - 0.44, x + 0.44],
        [100 * part] * 2,
        color=panel.FAIR,
        lw=1.8,
        ls=panel.DASHES,
    )


def _finish(axes: panel.Axes, names: Sequence[str]) -> None:
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis='x', length=0)
    first = [name.partition('\n')[0] for name in names if name]
    if sum(len(line) + 1 for line in first) > LINE:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha='right', rotation_mode='anchor')
    axes.set_ylim(0, 1.12 * axes.get_ylim()[1])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel('part of the CPU [%]')
    panel.write_note(axes, 'dashed: max-min fair')
    panel.remove_ornaments(axes)
