# SPDX-License-Identifier: Apache-2.0

"""Requests remember the hosts that they were sent to."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '2_hosts'
down_revision = '1_requests'


def upgrade() -> None:
    """Of what was sent before it is not known: no value is an empty list."""
    changes.add_column('requests', sa.Column('hosts', sa.Text))
