# SPDX-License-Identifier: Apache-2.0

"""Requests that are held, and those that operators put first."""

from alembic import op
import sqlalchemy as sa

revision = '20_holds'
down_revision = '19_pledges'


def upgrade() -> None:
    """None that is there already is held or first."""
    op.add_column('requests', sa.Column('held_by', sa.String(16)))
    op.add_column('requests', sa.Column('held_at', sa.Double))
    op.add_column('requests', sa.Column('held_why', sa.String(255)))
    op.add_column('requests', sa.Column('first_turn', sa.Integer))
