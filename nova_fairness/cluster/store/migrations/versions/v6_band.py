# SPDX-License-Identifier: Apache-2.0

"""Requests remember the band of priority that they came with."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '6_band'
down_revision = '5_shares'


def upgrade() -> None:
    """Older ones have no value: they are normal."""
    changes.add_column('requests', sa.Column('band', sa.String(16)))
