# SPDX-License-Identifier: Apache-2.0

"""How owners want their servers to make room."""

from alembic import op
import sqlalchemy as sa

revision = '14_choices'
down_revision = '13_nodes'


def upgrade() -> None:
    """Of what was asked for before nobody said it."""
    op.add_column('requests', sa.Column('leaves_by', sa.String(32)))
