# SPDX-License-Identifier: Apache-2.0

"""Use of accounts, decayed: the longer ago, the less it counts."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '4_ledger'
down_revision = '3_history'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = changes.long_text()
    changes.create_table(
        'ledger',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('at', sa.Double, nullable=False),
        sa.Column('used', text, nullable=False),
        row={'id': 1, 'version': 0, 'at': 0.0, 'used': '{}'},
    )
