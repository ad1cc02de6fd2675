# SPDX-License-Identifier: Apache-2.0

"""Indexes that lead to what waits, past what is only remembered."""

from alembic import op
import sqlalchemy as sa

revision = '3_history'
down_revision = '2_hosts'


def upgrade() -> None:
    """The database works the column out, also for rows that are there."""
    # PostgreSQL stores it; SQLite cannot add a column that is stored.
    stored = op.get_bind().dialect.name == 'postgresql' or None
    computed = sa.Computed('sealed IS NOT NULL', persisted=stored)
    op.add_column('casts', sa.Column('kept', sa.Boolean, computed))
    op.create_index('ix_casts_kept', 'casts', ['kept', 'received_at'])
    op.create_index(
        'ix_requests_state_changed_at', 'requests', ['state', 'changed_at']
    )
    op.drop_index('ix_requests_state', 'requests')
