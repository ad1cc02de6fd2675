# SPDX-License-Identifier: Apache-2.0

"""Bounds that are rounded off, so that what moves at them moves smoothly."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def smaller(one: Floats, other: Floats, blur: float) -> tuple[Floats, Floats]:
    """The smaller of two, rounded off, and how it follows the first."""
    apart = (one - other) / blur
    part = np.exp(-np.abs(apart))
    least = np.minimum(one, other) - blur * np.log1p(part)
    return least, np.where(apart > 0, part, 1.0) / (1 + part)
