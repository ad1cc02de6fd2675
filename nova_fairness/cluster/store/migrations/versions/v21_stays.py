# SPDX-License-Identifier: Apache-2.0

"""Servers that stay on a host that is to be emptied."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '21_stays'
down_revision = '20_holds'


def upgrade() -> None:
    """Of plans that are there already nothing is known."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    op.add_column('plans', sa.Column('stays', text))
