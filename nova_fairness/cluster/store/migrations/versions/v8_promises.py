# SPDX-License-Identifier: Apache-2.0

"""Starts that owners were told, and what became of them."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '8_promises'
down_revision = '7_leaves'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    made = op.create_table(
        'promises',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
    nothing = '{"promises":{},"past":[]}'
    op.bulk_insert(made, [{'id': 1, 'version': 0, 'kept': nothing}])
