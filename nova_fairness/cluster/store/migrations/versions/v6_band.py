# SPDX-License-Identifier: Apache-2.0

"""Requests remember the band of priority that they came with."""

from alembic import op
import sqlalchemy as sa

revision = '6_band'
down_revision = '5_shares'


def upgrade() -> None:
    """Older ones have no value: they are normal."""
    op.add_column('requests', sa.Column('band', sa.String(16)))
