# SPDX-License-Identifier: Apache-2.0

"""First guess of the users who have all they want where weights are bounded.

The agents' own method (:mod:`nova_fairness.shares.maxmin`) makes it.
"""

import numpy as np

from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import program as program_module
from nova_fairness.shares import maxmin

Floats = program_module.Floats
Bools = program_module.Bools
Columns = columns_module.Columns


def content(
    wishes: columns_module.Wishes,
    found: Columns,
    ratio: float,
    counts: Floats,
) -> tuple[Bools, Floats] | None:
    """Guess which columns have all they want, and what users have then.

    :returns: (c,) and (u, r) parts of the quotas; ``None`` where more than
        one resource is scarce, or VMs use several together: of these the
        agents' method knows nothing.
    """
    scarce = np.unique(found.resource[found.scarce])
    alone = np.bincount(found.column, minlength=len(found.node)) == 1
    if len(scarce) != 1 or not alone.all():
        return None
    (resource,) = scarce
    use = np.flatnonzero(found.resource == resource)
    use = use[np.argsort(found.place[use], kind='stable')]
    user, quota = found.user[found.column[use]], wishes.quota[:, resource]
    slope = counts[:, resource] / np.where(quota > 0, quota, 1.0)

    def weigh(got: Floats) -> tuple[Floats, Floats]:
        return slope * np.bincount(user, got, len(quota)), slope

    division = maxmin.divide(
        maxmin.Rows(
            node=found.place[use],
            owner=user,
            user=np.arange(len(quota)),
            wanted=found.amount[use],
            size=found.size[use],
            supply=wishes.capacity[:, resource],
        ),
        weigh,
        ratio,
    )
    progress = np.ones(len(found.node))
    progress[found.column[use]] = division.got / found.amount[use]
    shares = columns_module.shares(found, wishes.quota)
    parts = shares.times(progress, wishes.quota.size)
    return progress >= 1.0, parts.reshape(wishes.quota.shape)
