# SPDX-License-Identifier: Apache-2.0

"""Priorities of the original system as weights: places in a range of units.

The original system converts a priority from -50 (best) to 50 (worst) to whole
kernel units between two bounds. The place ``50 - priority`` is from 0 to 100.
As a weight it is ``(place + 1) / 101``, so that weights are above zero, and
the place can be computed exactly from the weight.
"""

PLACES = 100
"""The highest place; the lowest is 0."""


def weight_of(place: int) -> float:
    """Return the weight of a place, in (0, 1].

    :param place: 0..100.
    """
    return (place + 1) / (PLACES + 1)


def place_of(weight: float) -> int:
    """Return the place, 0..100, whose weight is nearest to a weight.

    :param weight: finite.
    """
    return min(PLACES, max(0, round(weight * (PLACES + 1)) - 1))


def units(place: int, smallest: int, largest: int) -> int:
    """Return the kernel units of a place in a range, rounded down.

    :param place: 0..100.
    """
    value = place * (largest - smallest) // PLACES + smallest
    return min(largest, max(smallest, value))


def place_at(value: int, smallest: int, largest: int) -> int:
    """Return the highest place with at most ``value`` units; 0 if none."""
    fitting = (
        place
        for place in range(PLACES, -1, -1)
        if units(place, smallest, largest) <= value
    )
    return next(fitting, 0)
