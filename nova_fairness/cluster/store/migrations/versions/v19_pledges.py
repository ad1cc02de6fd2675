# SPDX-License-Identifier: Apache-2.0

"""Memory of groups with pledges for both sides of the border."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '19_pledges'
down_revision = '18_prices'


def upgrade() -> None:
    """One row, which is there from now on: it is only changed."""
    text = changes.long_text()
    nothing = '{"at":0,"use":{},"found":{},"given":{}}'
    changes.create_table(
        'pledges',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('kept', text, nullable=False),
        row={'id': 1, 'version': 0, 'kept': nothing},
    )
