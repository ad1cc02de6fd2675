# SPDX-License-Identifier: Apache-2.0

"""What accounts used of their budgets."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '9_budgets'
down_revision = '8_promises'


def upgrade() -> None:
    """Of what was used before nobody has spent anything."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    op.add_column(
        'ledger',
        sa.Column('since', sa.Double, nullable=False, server_default='0'),
    )
    op.add_column('ledger', sa.Column('spent', text))
