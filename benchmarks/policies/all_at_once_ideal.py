# SPDX-License-Identifier: Apache-2.0

"""The best division of one node whose resources are all wanted at once.

The work of a VM costs a fixed amount of every resource: its use, divided by
its use of the resource that it has most of. A level per VM scales its use. The
supply of a resource is the sum that all VMs used: no kernel gives more than it
gave.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

import highspy
import numpy as np
import numpy.typing as npt

RESOURCES = ('cpu', 'disk', 'network', 'memory')
MEMORY = RESOURCES.index('memory')

Floats = npt.NDArray[np.float64]
Levels = Mapping[str, float]

SLACK = 1e-9
"""Loss of a user that a solver's rounding may cause."""

MORE = 1e-4
"""Least gain beside the others by which a user can still rise."""


def ideal_shares(
    used: Mapping[str, Floats], owner: Mapping[str, str]
) -> dict[str, float]:
    """Fill progressively: the smallest dominant share first.

    :param used: by VM, parts of the node's resources in the order of
        :data:`RESOURCES`, shape (4,), each 0..1.
    :param owner: of every VM.
    :returns: by user, the dominant share, 0..1: lexicographically max-min.
    """
    program = _Program.of(used, owner)
    users = list(dict.fromkeys(owner[vm] for vm in used))
    fixed: dict[str, float] = {}
    while len(fixed) < len(users):
        waiting = [user for user in users if user not in fixed]
        level = program.largest_common_share(fixed, waiting)
        shares = {user: fixed.get(user, level) for user in users}
        stuck = [u for u in waiting if program.is_limited(u, level, shares)]
        fixed.update(dict.fromkeys(stuck or waiting, level))
    return {user: fixed[user] for user in users}


@dataclasses.dataclass(frozen=True)
class _Program:
    """The linear program of one node.

    :ivar owner: of each VM, in the order of all that follows.
    :ivar most: (n,) that each used of the resource it has most of.
    :ivar holds: (n,) that hold memory: what they hold is all they want.
    :ivar rows: (4, n) parts of what is used of each resource.
    """

    owner: Sequence[str]
    most: Floats
    holds: npt.NDArray[np.bool_]
    rows: Floats

    @classmethod
    def of(
        cls, used: Mapping[str, Floats], owner: Mapping[str, str]
    ) -> '_Program':
        """Make it of what VMs used."""
        needed = np.array(list(used.values()), dtype=np.float64)
        main = needed.argmax(axis=1)
        # What a VM holds does not depend on what else it does.
        needed[main != MEMORY, MEMORY] = 0.0
        whole = needed.sum(axis=0)
        return cls(
            owner=[owner[vm] for vm in used],
            most=needed.max(axis=1),
            holds=main == MEMORY,
            rows=(needed / np.where(whole > 0, whole, 1.0)).T,
        )

    def largest_common_share(
        self, fixed: Levels, waiting: Sequence[str]
    ) -> float:
        """Find the largest share of some, when others have at least theirs."""
        model = highspy.Highs()
        model.silent()
        # All models of a process must have the same number.
        model.setOptionValue('threads', 1)
        level = model.addVariable(lb=0)
        scales = [
            model.addVariable(lb=0, ub=1 if holds else highspy.kHighsInf)
            for holds in self.holds
        ]
        for user in [*waiting, *fixed]:
            own = sum(
                float(most) * scale
                for most, scale, whose in zip(
                    self.most, scales, self.owner, strict=True
                )
                if whose == user
            )
            least = level if user in waiting else fixed[user] - SLACK
            model.addConstr(own >= least)
        for row in self.rows[self.rows.sum(axis=1) > 0]:
            taken = sum(
                float(part) * scale
                for part, scale in zip(row, scales, strict=True)
            )
            model.addConstr(taken <= 1 + SLACK)
        model.maximize(level)
        return float(model.val(level))

    def is_limited(self, user: str, level: float, shares: Levels) -> bool:
        """Tell whether a user cannot have more when others keep theirs."""
        others = {name: s for name, s in shares.items() if name != user}
        return self.largest_common_share(others, [user]) <= level + MORE
