# SPDX-License-Identifier: Apache-2.0

"""Shares of a batch system, corrected for the use of the cloud by groups.

A batch system knows its own use alone. It ranks a group by ``s / b`` (Slurm's
fair tree) or ``2^(-b / s)`` (its classic factor), with share ``s`` and use
``b``. With use ``c`` of the cloud and pledge ``p``, the rank should follow
``p / (b + c)``. Both ranks are the same for ``s = p b / (b + c)``. So a group
that used only the cloud gets the least share of the batch system. A group that
did not use the cloud gets its whole pledge.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST = 0.01
"""Least part of its pledge that a group has in the batch system."""


def adjusted_parts(
    pledges: Floats, batch: Floats, cloud: Floats, least: float = LEAST
) -> Floats:
    """Compute the shares of groups in the batch system, (g,); their sum is 1.

    :param pledges: (g,) pledges: fractions of batch system and cloud together,
        >= 0.
    :param batch: (g,) decayed use of the batch system, >= 0.
    :param cloud: (g,) decayed use of the cloud, >= 0, in the same unit.
    :param least: smallest share of a group, as a fraction of its pledge, above
        0 to 1. A group that used only the cloud has this share.
    """
    both = batch + cloud
    kept = np.divide(batch, both, out=np.ones(len(both)), where=both > 0)
    shares: Floats = pledges * np.clip(kept, least, 1.0)
    shares /= max(float(shares.sum()), 1e-300)
    return shares


def whole_shares(parts: Floats, total: int) -> Whole:
    """Round shares to integers, (g,), whose sum is a total (Hamilton).

    Each integer is at least 1. The largest remainders are rounded up; of equal
    remainders, the first.

    :param parts: (g,) shares whose sum is 1.
    :param total: the total, at least the number of parts.
    """
    exact = parts * max(total - len(parts), 0)
    floors: Whole = np.floor(exact).astype(np.int64)
    left = max(total - len(parts), 0) - int(floors.sum())
    first = np.argsort(floors - exact, kind='stable')[:left]
    floors[first] += 1
    return floors + 1


def reduced_shares(
    shares: Floats, slots: float, cloud: Floats, exempt: Mask | None = None
) -> Whole:
    """Reduce shares of LSF, (g,), by the slots of groups in the cloud.

    Partition Director uses ``(round(share T / sum) - reduction) / d``,
    rounded, with ``d = T / sum``. In Partition Director ``T`` is a constant of
    the program, and a group with more slots in the cloud than were pledged
    gets a share below 0. Here ``T`` is an argument, and the least share is 0.

    :param shares: (g,) shares, >= 0, at least one above 0.
    :param slots: ``T``, slots of both sides together, > 0.
    :param cloud: (g,) slots of the groups in the cloud, >= 0.
    :param exempt: (g,) groups that keep their share. Partition Director has a
        list of them in the program, and gives each of them 9631.
    """
    each = slots / shares.sum()
    left = np.rint(np.rint(shares * each) - cloud)
    found: Whole = np.rint(left.clip(0.0) / each).astype(np.int64)
    if exempt is not None:
        found[exempt] = np.rint(shares[exempt])
    return found
