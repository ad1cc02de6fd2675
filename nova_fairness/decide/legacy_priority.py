# SPDX-License-Identifier: Apache-2.0

"""Weights that are a place in a range, as the original used them.

The original turns a priority -50 (best) .. 50 (worst) into a whole number of
kernel units between two ends. The place ``50 - priority`` runs from 0 to 100;
as a weight it is ``(place + 1) / 101``, so that it is above zero and comes
back exactly.
"""

PLACES = 100
"""The highest place; the lowest is 0."""


def weight_of(place: int) -> float:
    """The weight, in (0, 1], that stands for a place.

    :param place: 0..100.
    """
    return (place + 1) / (PLACES + 1)


def place_of(weight: float) -> int:
    """The place, 0..100, nearest to a weight; beyond the ends, the end.

    :param weight: finite.
    """
    return min(PLACES, max(0, round(weight * (PLACES + 1)) - 1))


def units(place: int, smallest: int, largest: int) -> int:
    """Kernel units at a place of a range, rounded down.

    :param place: 0..100.
    """
    value = place * (largest - smallest) // PLACES + smallest
    return min(largest, max(smallest, value))


def place_at(value: int, smallest: int, largest: int) -> int:
    """The highest place whose units are at most ``value``, else 0."""
    fitting = (
        place
        for place in range(PLACES, -1, -1)
        if units(place, smallest, largest) <= value
    )
    return next(fitting, 0)
