# SPDX-License-Identifier: Apache-2.0

"""A plan whose moves have gone as a test says."""

from nova_fairness.model import plans as model


def move(server, source='h1', state=model.MoveState.PENDING, cause=None):
    return model.Move(server, source, 'h9', 1, 100, state, cause)


def plan(goal, moves=(), subject='', empties=()):
    return model.MigrationPlan(
        'p1', goal, subject, 1.0, 1.0, 9.0, tuple(moves), empties
    )
