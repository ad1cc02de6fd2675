# SPDX-License-Identifier: Apache-2.0

"""Reservations of requests, and preemptors of servers that leave."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '11_room'
down_revision = '10_charges'


def upgrade() -> None:
    """To none that is there already room was promised."""
    text = changes.long_text()
    changes.add_column('requests', sa.Column('room', text))
    changes.add_column('leaves', sa.Column('request', sa.String(36)))
    changes.add_column('leaves', sa.Column('asked_at', sa.Double))
