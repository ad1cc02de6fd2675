# SPDX-License-Identifier: Apache-2.0

"""Servers that stay on a host that is to be emptied."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '21_stays'
down_revision = '20_holds'


def upgrade() -> None:
    """Of plans that are there already nothing is known."""
    changes.add_column('plans', sa.Column('stays', changes.long_text()))
