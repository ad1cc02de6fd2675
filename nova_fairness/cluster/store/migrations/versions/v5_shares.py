# SPDX-License-Identifier: Apache-2.0

"""Shares that were set while the service ran."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '5_shares'
down_revision = '4_ledger'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    made = op.create_table(
        'shares',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('given', text, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
    op.bulk_insert(made, [{'id': 1, 'version': 0, 'given': '{}'}])
