# SPDX-License-Identifier: Apache-2.0

"""Bounds that are rounded off, so that what moves at them moves smoothly."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def smooth_minimum(
    one: Floats, other: Floats, blur: float
) -> tuple[Floats, Floats]:
    """The smaller of two, rounded off, and how it follows the first."""
    # In place: this is most of the CPU time of a search.
    apart = one - other
    apart /= blur
    part = np.abs(apart)
    np.exp(np.negative(part, out=part), out=part)
    least = np.log1p(part)
    least *= blur
    np.subtract(np.minimum(one, other), least, out=least)
    follows = np.where(apart > 0, part, 1.0)
    part += 1
    follows /= part
    return least, follows
