# SPDX-License-Identifier: Apache-2.0

"""Solver of linear systems that are given as a product with a vector.

BiCGSTAB (H. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant
of Bi-CG for the solution of nonsymmetric linear systems", SIAM J. Sci. Stat.
Comput. 13 (2), 1992), preconditioned by the diagonal. Own code, because the
agents' only mathematical library is numpy, which has no iterative solvers.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_PRODUCTS = 100
CLOSE = 1e-2
"""Largest residual, as a part of the right side, of a solution."""

_TINY = 1e-300


def solve(
    product: Callable[[Floats], Floats], right: Floats, diagonal: Floats
) -> Floats:
    """Find x with ``product(x)`` near ``right``.

    :param product: a linear map, (k,) -> (k,).
    :param right: (k,) right side.
    :param diagonal: (k,) > 0, near the diagonal of the map.
    :returns: (k,) the x with the least residual that was found; for a Newton
        step it need not be exact.
    """
    found = np.zeros(len(right))
    rest = right.copy()
    best, least = found, float(np.abs(rest).max(initial=0.0))
    goal = CLOSE * least
    shadow = rest / diagonal
    direction, mapped = np.zeros_like(rest), np.zeros_like(rest)
    rho = alpha = omega = 1.0
    for _ in range(MOST_PRODUCTS // 2):
        if least <= goal:
            break
        before, rho = rho, float(shadow @ rest)
        if abs(rho) < _TINY or abs(omega) < _TINY:
            break
        beta = rho / before * alpha / omega
        direction = rest + beta * (direction - omega * mapped)
        half = direction / diagonal
        mapped = product(half)
        alpha = rho / (float(shadow @ mapped) or _TINY)
        middle = rest - alpha * mapped
        whole = middle / diagonal
        turned = product(whole)
        omega = float(turned @ middle) / (float(turned @ turned) or _TINY)
        found = found + alpha * half + omega * whole
        rest = middle - omega * turned
        size = float(np.abs(rest).max())
        if not np.isfinite(size):
            break
        if size < least:
            best, least = found, size
    return best
