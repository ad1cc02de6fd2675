# SPDX-License-Identifier: Apache-2.0

"""Groups of servers with spending rates, and what was charged for them."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '15_market'
down_revision = '14_choices'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    made = op.create_table(
        'market',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
    nothing = '{"groups":[],"spent":{},"meters":{}}'
    op.bulk_insert(made, [{'id': 1, 'version': 0, 'kept': nothing}])
