# SPDX-License-Identifier: Apache-2.0

"""Charges of accounts, with their times."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '10_charges'
down_revision = '9_budgets'


def upgrade() -> None:
    """Add the table. The ledger alone knows earlier charges."""
    text = changes.long_text()
    changes.create_table(
        'charges',
        sa.Column(
            'version', sa.Integer, primary_key=True, autoincrement=False
        ),
        sa.Column('begins', sa.Double, nullable=False),
        sa.Column('ends', sa.Double, nullable=False),
        sa.Column('capacity', sa.Text, nullable=False),
        sa.Column('changed', text, nullable=False),
        sa.Column('opening', text),
    )
