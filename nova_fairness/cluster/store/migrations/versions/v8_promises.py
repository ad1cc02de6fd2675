# SPDX-License-Identifier: Apache-2.0

"""Estimated starts that owners were told, and their outcomes."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '8_promises'
down_revision = '7_leaves'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = changes.long_text()
    nothing = '{"promises":{},"past":[]}'
    changes.create_table(
        'promises',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        row={'id': 1, 'version': 0, 'kept': nothing},
    )
