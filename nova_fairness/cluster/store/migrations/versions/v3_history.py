# SPDX-License-Identifier: Apache-2.0

"""Indexes that lead to what waits, past what is only remembered."""

from alembic import op
import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '3_history'
down_revision = '2_hosts'


def upgrade() -> None:
    """The database works the column out, also for rows that are there."""
    # PostgreSQL stores it; SQLite cannot add a column that is stored.
    stored = op.get_bind().dialect.name == 'postgresql' or None
    computed = sa.Computed('sealed IS NOT NULL', persisted=stored)
    changes.add_column('casts', sa.Column('kept', sa.Boolean, computed))
    changes.create_index('ix_casts_kept', 'casts', ['kept', 'received_at'])
    changes.create_index(
        'ix_requests_state_changed_at', 'requests', ['state', 'changed_at']
    )
    changes.drop_index('ix_requests_state', 'requests')
