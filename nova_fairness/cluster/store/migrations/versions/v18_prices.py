# SPDX-License-Identifier: Apache-2.0

"""Prices of hosts in the past."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '18_prices'
down_revision = '17_risks'


def upgrade() -> None:
    """A row where the price of a host changed."""
    changes.create_table(
        'prices',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('resource_class', sa.String(255), primary_key=True),
        sa.Column('at', sa.Double, primary_key=True, autoincrement=False),
        sa.Column('price', sa.Double, nullable=False),
        sa.Column('capacity', sa.Double, nullable=False),
    )
    changes.create_index('ix_prices_at', 'prices', ['at'])
