# SPDX-License-Identifier: Apache-2.0

"""Spent parts of the budgets of accounts."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '9_budgets'
down_revision = '8_promises'


def upgrade() -> None:
    """Add the columns. Earlier use counts for no budget."""
    text = changes.long_text()
    changes.add_column(
        'ledger',
        sa.Column('since', sa.Double, nullable=False, server_default='0'),
    )
    changes.add_column('ledger', sa.Column('spent', text))
