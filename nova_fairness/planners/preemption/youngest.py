# SPDX-License-Identifier: Apache-2.0

"""Plugin that chooses the youngest servers as victims."""

from collections.abc import Iterator

import numpy as np

from nova_fairness.planners.preemption import candidates
from nova_fairness.planners.preemption import victims


class Youngest(victims.OneByOne):
    """Chooses the youngest servers of the cloud, until a host has room."""

    description = 'The youngest servers, until there is room on some host.'

    def one(
        self,
        piece: candidates.Piece,
        rows: candidates.Marks,
        may: candidates.Marks,
        pool: candidates.FreeCapacity,
    ) -> victims.Found | None:
        """Remove servers one after another until a host has room; victims
        on other hosts are kept.
        """
        since = pool.field.since
        order = sorted(
            np.flatnonzero(may).tolist(), key=lambda v: (-since[v], v)
        )
        return first_fit(piece, rows, iter(order), pool)


def first_fit(
    piece: candidates.Piece,
    rows: candidates.Marks,
    order: Iterator[int],
    pool: candidates.FreeCapacity,
) -> victims.Found | None:
    """Add victims until a host has room; victims that are not needed are
    kept.
    """
    tried, gone = pool.copy(), []
    for v in order:
        tried.leave(v)
        gone.append(v)
        free = tried.fits(piece, rows)
        if len(free):
            row = int(free[0])
            tried.place(piece, row)
            return row, [v for v in reversed(gone) if not tried.put_back(v)]
    return None
