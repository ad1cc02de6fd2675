# SPDX-License-Identifier: Apache-2.0

"""Shares of a batch system that make up for what groups use of the cloud.

A batch system knows its own use alone. Its fair share goes by ``s / b`` of a
group (Slurm's fair tree) or ``2^(-b / s)`` (its classic factor), with share
``s`` and use ``b``. With use ``c`` of the cloud and pledge ``p`` it should go
by ``p / (b + c)``. Both are the same for ``s = p b / (b + c)``: who used the
cloud alone gets least of the batch system, who did not use it at all the whole
pledge.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST = 0.01
"""Part of its pledge that a group keeps in the batch system."""


def adjusted(
    pledges: Floats, batch: Floats, cloud: Floats, least: float = LEAST
) -> Floats:
    """Parts of the batch system's shares, (g,), which add up to 1.

    :param pledges: (g,) parts of both sides together, >= 0.
    :param batch: (g,) decayed use of the batch system, >= 0.
    :param cloud: (g,) the same of the cloud, in the same unit.
    :param least: part of its pledge that is left to a group that used the
        cloud alone, above 0 to 1.
    """
    both = batch + cloud
    kept = np.divide(batch, both, out=np.ones(len(both)), where=both > 0)
    shares: Floats = pledges * np.clip(kept, least, 1.0)
    shares /= max(float(shares.sum()), 1e-300)
    return shares


def whole(parts: Floats, total: int) -> Whole:
    """Numbers that add up to a total, (g,), each at least 1 (Hamilton).

    The rest goes to the largest remainders; of equals, to the first.

    :param parts: (g,) that add up to 1.
    :param total: at least one for each.
    """
    exact = parts * max(total - len(parts), 0)
    floors: Whole = np.floor(exact).astype(np.int64)
    left = max(total - len(parts), 0) - int(floors.sum())
    first = np.argsort(floors - exact, kind='stable')[:left]
    floors[first] += 1
    return floors + 1


def reduced(
    shares: Floats, slots: float, cloud: Floats, exempt: Mask | None = None
) -> Whole:
    """Shares of LSF by slots that groups have in the cloud, (g,).

    Partition Director: ``(round(share T / sum) - reduction) / d``, rounded,
    with ``d = T / sum``. There ``T`` is a constant of the program, and a group
    with more slots in the cloud than were pledged gets a share below 0; here
    it is an argument, and 0 is the least.

    :param shares: (g,) >= 0, at least one above 0.
    :param slots: ``T`` of both sides together, > 0.
    :param cloud: (g,) slots of the cloud, >= 0.
    :param exempt: (g,) groups that keep the share that they have. There they
        are on a list in the program, which gives each of them 9631.
    """
    each = slots / shares.sum()
    left = np.rint(np.rint(shares * each) - cloud)
    found: Whole = np.rint(left.clip(0.0) / each).astype(np.int64)
    if exempt is not None:
        found[exempt] = np.rint(shares[exempt])
    return found
