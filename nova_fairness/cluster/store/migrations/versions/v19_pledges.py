# SPDX-License-Identifier: Apache-2.0

"""Memory of groups with pledges for both sides of the border."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '19_pledges'
down_revision = '18_prices'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    made = op.create_table(
        'pledges',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        mysql_engine='InnoDB',
        mysql_charset='utf8mb4',
    )
    nothing = '{"at":0,"use":{},"found":{},"given":{}}'
    op.bulk_insert(made, [{'id': 1, 'version': 0, 'kept': nothing}])
