# SPDX-License-Identifier: Apache-2.0

"""Servers that are told that they are at risk."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '17_risks'
down_revision = '16_plans'


def upgrade() -> None:
    """Add the table. No owner has a warning yet."""
    changes.create_table(
        'risks',
        sa.Column('server', sa.String(36), primary_key=True),
        sa.Column('project', sa.String(255), nullable=False),
        sa.Column('owner', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('since', sa.Double, nullable=False),
        sa.Column('changed_at', sa.Double, nullable=False),
        sa.Column('is_written', sa.Boolean, nullable=False),
        sa.Column('reason', sa.String(64), nullable=False),
        sa.Column('subject', sa.String(255), nullable=False),
        sa.Column('numbers', sa.Text, nullable=False),
    )
