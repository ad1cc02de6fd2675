# SPDX-License-Identifier: Apache-2.0

"""How owners want their servers to make room."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '14_choices'
down_revision = '13_nodes'


def upgrade() -> None:
    """Add the column. Earlier requests have no choice of an action."""
    changes.add_column('requests', sa.Column('leaves_by', sa.String(32)))
