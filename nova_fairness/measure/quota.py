# SPDX-License-Identifier: Apache-2.0

"""The part of the supply that each user is entitled to."""

import numpy as np
import numpy.typing as npt

from nova_fairness.model import resources


def divide_by_weights(
    supply: resources.Vector, weights: npt.NDArray[np.float64]
) -> resources.Vector:
    """Divide the supply among the users (paper, section 4.2).

    :param supply: (r,) of all known nodes, without overcommit, >= 0.
    :param weights: (u,) finite, > 0; only their proportions matter.
    :returns: (u, r); the sum of each column is the supply.
    :raises ValueError: if a weight is not > 0; names the user's index.
    """
    weights = np.asarray(weights, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        raise ValueError(
            f'quota weight of user {bad[0]} must be finite and > 0, '
            f'got {weights[bad[0]]}'
        )
    return np.outer(weights / weights.sum(), supply)


def with_overcommit(
    supply: resources.Vector, factors: resources.Vector
) -> resources.Vector:
    """Multiply the supply by the overcommit factors.

    :param supply: (..., r) >= 0.
    :param factors: (r,) finite, > 0; 1 means no overcommit.
    :returns: (..., r).
    :raises ValueError: if a factor is not > 0; names the resource's index.
    """
    bad = np.flatnonzero(~(np.isfinite(factors) & (factors > 0)))
    if bad.size:
        raise ValueError(
            f'overcommit factor of resource {bad[0]} must be finite and '
            f'> 0, got {factors[bad[0]]}'
        )
    return supply * factors
