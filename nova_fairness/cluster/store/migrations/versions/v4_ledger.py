# SPDX-License-Identifier: Apache-2.0

"""What accounts used, the longer ago the less it counts."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '4_ledger'
down_revision = '3_history'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    made = op.create_table(
        'ledger',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('at', sa.Double, nullable=False),
        sa.Column('used', text, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
    op.bulk_insert(made, [{'id': 1, 'version': 0, 'at': 0.0, 'used': '{}'}])
