# SPDX-License-Identifier: Apache-2.0

"""Shares that were set while the service ran."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '5_shares'
down_revision = '4_ledger'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = changes.long_text()
    changes.create_table(
        'shares',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('given', text, nullable=False),
        row={'id': 1, 'version': 0, 'given': '{}'},
    )
