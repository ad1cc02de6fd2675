# SPDX-License-Identifier: Apache-2.0

"""How far users are from their ideal, and for how long: formulas.

All take shares over rounds, (k, u), and what would be ideal in the same
shape; NaN rows of the ideal are rounds for which it is not known.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nova_fairness.shares import jain

Floats = npt.NDArray[np.float64]

NEGLIGIBLE = 1e-9
"""A share below this is none."""

WITHIN = 0.05
"""Part of the ideal; users who lack less are as they should be."""

LONG_ENOUGH = 10
"""Rounds of constant demand from which it is told how steady they end."""

SWING_ROUNDS = 30
"""Rounds over which weights should rest after settling."""


def lacks_of_users(share: Floats, ideal: Floats) -> Floats:
    """Fraction of the ideal that each user lacks, (k, u).

    :returns: (k, u) 0..1; 0 for users who could have nothing, or have more.
    """
    some = ideal > NEGLIGIBLE
    part = (ideal - share) / np.where(some, ideal, 1.0)
    below = np.where(some, np.maximum(part, 0.0), 0.0)
    return np.asarray(np.where(np.isnan(ideal), np.nan, below))


def largest_lack(share: Floats, ideal: Floats) -> Floats:
    """Fraction of the ideal that the worst-off user lacks, (k,)."""
    return np.asarray(lacks_of_users(share, ideal).max(axis=1, initial=0.0))


def distance(share: Floats, ideal: Floats) -> Floats:
    """Amount to redistribute, as a fraction of all shares, (k,).

    Half of the sum of differences, because what one lacks another has.
    """
    total = ideal.sum(axis=1)
    apart = np.abs(share - ideal).sum(axis=1) / 2
    return np.asarray(
        np.where(total > NEGLIGIBLE, apart / np.where(total > 0, total, 1), 0)
        + np.where(np.isnan(total), np.nan, 0.0)
    )


def jain_indices(share: Floats, ideal: Floats) -> Floats:
    """Jain's index of share / ideal over users who can have any, (k,).

    It is 1 where all have the same part of their ideal. Plain shares would
    blame those who want little.
    """
    result = np.full(len(share), np.nan)
    for row, (had, best) in enumerate(zip(share, ideal, strict=True)):
        some = best > NEGLIGIBLE
        if some.any():
            result[row] = jain.jain_index(had[some] / best[some])
        elif not np.isnan(best).any():
            result[row] = 1.0
    return result


def rounds_until(lacking: Floats, within: float = WITHIN) -> int | None:
    """Rounds until the worst-off user is close to the ideal and stays so.

    :param lacking: (k,) of :func:`largest_lack`, while demand is constant.
    :returns: 0 if from the first on; ``None`` if the last round is too far.
    """
    far = np.flatnonzero(~(lacking <= within))
    if not len(far):
        return 0
    last = int(far[-1])
    return last + 1 if last + 1 < len(lacking) else None


def overshoot(share: Floats, ideal: Floats) -> float:
    """Largest distance of a user beyond their ideal.

    Only the excess counts on the other side of the ideal from where the
    stretch began, and only users who began further off than :data:`WITHIN`. It
    is a part of the ideal, or of the way to it where that was longer.
    """
    some = ideal[0] > NEGLIGIBLE
    if not some.any():
        return 0.0
    off = share[:, some] - ideal[:, some]
    scale = np.maximum(ideal[0, some], np.abs(off[0]))
    began = np.abs(off[0]) > WITHIN * ideal[0, some]
    beyond = -off * np.sign(off[0]) / scale
    return float(beyond[:, began].max(initial=0.0))


def oscillation(share: Floats) -> float:
    """Largest peak to peak of a user's share, as part of its mean."""
    mean = share.mean(axis=0)
    some = mean > NEGLIGIBLE
    swing = share.max(axis=0) - share.min(axis=0)
    return float((swing[some] / mean[some]).max(initial=0.0))


def largest_weight_swing(weights: Floats) -> float:
    """Largest peak-to-peak change of a weight, relative to its mean.

    :param weights: (k, n) > 0.
    """
    if not weights.size:
        return 0.0
    part = weights.max(axis=0) / weights.min(axis=0) - 1
    return float(part.max(initial=0.0))


def periods_of_constant_demand(
    changed: Sequence[bool],
) -> list[tuple[int, int]]:
    """Begin and end of each period of rounds with constant demand.

    :param changed: whether demand differs from the round before.
    """
    starts = [0, *(k for k, new in enumerate(changed) if new and k)]
    return list(zip(starts, [*starts[1:], len(changed)], strict=True))


def exponent(sizes: Sequence[float], rounds: Sequence[float]) -> float:
    """Exponent p of ``rounds ~ size ** p``: least squares of logs.

    :param sizes: > 0, two different ones at least.
    :param rounds: > 0.
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(rounds, float))
    x = x - x.mean()
    return float((x @ (y - y.mean())) / (x @ x))
