# SPDX-License-Identifier: Apache-2.0

"""Requests that are held, and those that operators put first."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '20_holds'
down_revision = '19_pledges'


def upgrade() -> None:
    """None that is there already is held or first."""
    changes.add_column('requests', sa.Column('held_by', sa.String(16)))
    changes.add_column('requests', sa.Column('held_at', sa.Double))
    changes.add_column('requests', sa.Column('held_why', sa.String(255)))
    changes.add_column('requests', sa.Column('first_turn', sa.Integer))
