# SPDX-License-Identifier: Apache-2.0

"""What accounts used of their budgets."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '9_budgets'
down_revision = '8_promises'


def upgrade() -> None:
    """Of what was used before nobody has spent anything."""
    text = changes.long_text()
    changes.add_column(
        'ledger',
        sa.Column('since', sa.Double, nullable=False, server_default='0'),
    )
    changes.add_column('ledger', sa.Column('spent', text))
