# SPDX-License-Identifier: Apache-2.0

"""Groups of servers with spending rates, and what was charged for them."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '15_market'
down_revision = '14_choices'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = changes.long_text()
    nothing = '{"groups":[],"spent":{},"meters":{}}'
    changes.create_table(
        'market',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        row={'id': 1, 'version': 0, 'kept': nothing},
    )
