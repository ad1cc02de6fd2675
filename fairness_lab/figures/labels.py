# SPDX-License-Identifier: Apache-2.0

"""Names at the ends of curves, apart from each other."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any

END_POINTS = 5
"""A name stands beside the mean of so many last points."""

LINES = 22
"""Names that fit above each other."""


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """The name of a curve.

    :ivar place: where the curve ends, units of the axis.
    :ivar text: to write.
    :ivar colour: of the curve.
    :ivar size: of the letters, points.
    """

    place: float
    text: str
    colour: str
    size: int

    @classmethod
    def at_end(
        cls, values: Sequence[float], text: str, colour: str, size: int
    ) -> 'Label':
        """Label of a curve with these values."""
        return cls(mean(values[-END_POINTS:]), text, colour, size)


def mean(values: Sequence[float]) -> float:
    """Mean; 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def name_curves(axes: Any, labels: Iterable[Label]) -> None:
    """Write names at the right edge; neighbours of a kind share a line."""
    axes.get_ylim()  # whatever was drawn last is within the limits now
    scale = axes.transData - axes.transAxes
    # Parts of the height, whatever the scale of the axis.
    placed = [
        dataclasses.replace(
            label, place=float(scale.transform((1, label.place))[1])
        )
        for label in labels
    ]
    joined = join_overlapping(placed, 1 / LINES)
    places = spread_places([label.place for label in joined], 1 / LINES)
    for place, label in zip(places, joined, strict=True):
        axes.annotate(
            label.text,
            (1, place),
            xycoords='axes fraction',
            xytext=(6, 0),
            textcoords='offset points',
            va='center',
            color=label.colour,
            fontsize=label.size,
            fontweight='bold' if label.size > 10 else 'normal',
            annotation_clip=False,
        )


def join_overlapping(labels: Iterable[Label], gap: float) -> list[Label]:
    """Put labels of one look that would overlap into one.

    :param gap: distance below which two would.
    :returns: ascending by place.
    """
    ordered = sorted(
        labels, key=lambda item: (item.colour, item.size, item.place)
    )
    groups: list[list[Label]] = []
    for label in ordered:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (last.colour, last.size) == (label.colour, label.size)
            and label.place - last.place < gap / 2
        ):
            groups[-1].append(label)
        else:
            groups.append([label])
    return sorted(map(_join_group, groups), key=lambda item: item.place)


def _join_group(group: Sequence[Label]) -> Label:
    return dataclasses.replace(
        group[0],
        place=mean([label.place for label in group]),
        text=', '.join(sorted(label.text for label in group)),
    )


def spread_places(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending places until none is closer than a gap to the next.

    Those that would overlap stand around their common middle.
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _do_overlap(groups[-2], groups[-1], gap):
            last = groups.pop()
            groups[-1].extend(last)
    return list(
        itertools.chain(*(_spread_group(group, gap) for group in groups))
    )


def _spread_group(group: Sequence[float], gap: float) -> list[float]:
    bottom = mean(group) - gap * (len(group) - 1) / 2
    return [bottom + gap * number for number in range(len(group))]


def _do_overlap(
    lower: Sequence[float], upper: Sequence[float], gap: float
) -> bool:
    return _spread_group(upper, gap)[0] - _spread_group(lower, gap)[-1] < gap
