# SPDX-License-Identifier: Apache-2.0

"""Plans of moves."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '16_plans'
down_revision = '15_market'


def upgrade() -> None:
    """One row for each plan, with its moves."""
    text = changes.long_text()
    changes.create_table(
        'plans',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('goal', sa.String(16), nullable=False),
        sa.Column('subject', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('is_open', sa.Boolean, nullable=False),
        sa.Column('made_at', sa.Double, nullable=False),
        sa.Column('changed_at', sa.Double, nullable=False),
        sa.Column('until', sa.Double, nullable=False),
        sa.Column('cause', sa.String(32), nullable=False),
        sa.Column('explanation', sa.Text, nullable=False),
        sa.Column('moves', text, nullable=False),
        sa.Column('empties', text, nullable=False),
        sa.Column('promised', sa.Text, nullable=False),
        sa.Column('won', sa.Text),
        sa.Column('version', sa.Integer, nullable=False),
    )
    changes.create_index('ix_plans_is_open', 'plans', ['is_open'])
    changes.create_index('ix_plans_made_at', 'plans', ['made_at', 'uuid'])
