# SPDX-License-Identifier: Apache-2.0

"""The share that a user could have without harm to poorer users.

The ideal can jump: it raises the users with least as far as possible, however
little that is, and may take much from the next ones for it. An allocation
without that jump is far from the ideal, though no user in it could be helped.
So this asks of one user in one allocation: up to which share can weights raise
the user, if every other user keeps what they have, or as much as that share?
"""

from collections.abc import Callable

import numpy as np

from fairness_lab.ideal import bounded
from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import filling
from fairness_lab.ideal import highs
from fairness_lab.ideal import program as program_module

Floats = program_module.Floats

_ROUNDED = 1e-4
"""Part of what they have that all users may lose: simulated kernels and the
solver round."""

_HALVINGS = 14
"""Of the range in which a share is sought: to 0.01 % of it."""


def harmless_shares(
    wishes: columns_module.Wishes,
    received: Floats,
    ratio: float,
    solver: filling.Solver = highs.LinearProgram,
) -> tuple[Floats, Floats]:
    """Dominant shares, and the shares users could have without harm to poorer.

    :param wishes: in which no VM uses resources together.
    :param received: (n, r) what each VM has, given by weights.
    :param ratio: of the largest to the smallest weight, >= 1.
    :returns: (u,) and (u,), the latter infinite where it is not known: the
        program does not reach what users have.
    """
    found = columns_module.columns(wishes, alike=True)
    progress = columns_module.progress(wishes, received)
    parts = columns_module.quota_entries(found, wishes.quota).times(
        progress, wishes.quota.size
    )
    parts = parts.reshape(wishes.quota.shape)
    counts = np.eye(wishes.quota.shape[1])[parts.argmax(axis=1)]
    program = filling.program_of_shares(
        bounded.program_around(wishes, found, progress, ratio), counts
    )
    reaches = filling.reach_test(program, solver)
    had = parts.max(axis=1)
    kept = had * (1 - _ROUNDED)
    if not reaches(kept):
        return had, np.full(len(had), np.inf)
    most = program.most()
    raised = [
        _largest_harmless_share(reaches, kept, user, most[user])
        for user in range(len(had))
    ]
    return had, np.maximum(had, raised)


def _largest_harmless_share(
    reaches: Callable[[Floats], bool], kept: Floats, user: int, most: float
) -> float:
    """Find the largest harmless share of a user by bisection."""
    low, high = float(kept[user]), float(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        goal = np.minimum(kept, middle)
        goal[user] = middle
        low, high = (middle, high) if reaches(goal) else (low, middle)
    return low
