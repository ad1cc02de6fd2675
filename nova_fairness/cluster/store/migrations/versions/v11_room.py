# SPDX-License-Identifier: Apache-2.0

"""Room that is promised to requests, and for whom servers leave."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '11_room'
down_revision = '10_charges'


def upgrade() -> None:
    """To none that is there already room was promised."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    op.add_column('requests', sa.Column('room', text))
    op.add_column('leaves', sa.Column('request', sa.String(36)))
    op.add_column('leaves', sa.Column('asked_at', sa.Double))
