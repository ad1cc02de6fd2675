# SPDX-License-Identifier: Apache-2.0

"""What was charged when."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '10_charges'
down_revision = '9_budgets'


def upgrade() -> None:
    """What was charged before is known by the ledger alone."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    op.create_table(
        'charges',
        sa.Column(
            'version', sa.Integer, primary_key=True, autoincrement=False
        ),
        sa.Column('begins', sa.Double, nullable=False),
        sa.Column('ends', sa.Double, nullable=False),
        sa.Column('capacity', sa.Text, nullable=False),
        sa.Column('changed', text, nullable=False),
        sa.Column('opening', text),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
