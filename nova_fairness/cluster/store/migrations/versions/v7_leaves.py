# SPDX-License-Identifier: Apache-2.0

"""Requests whose servers leave after some time, and servers that leave."""

import json

from alembic import op
import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '7_leaves'
down_revision = '6_band'


def upgrade() -> None:
    """Add time limits and evictions. Earlier requests have no end."""
    _shares()
    changes.add_column('requests', sa.Column('time_limit_s', sa.Double))
    changes.add_column(
        'requests',
        sa.Column('extended_s', sa.Double, nullable=False, server_default='0'),
    )
    changes.create_table(
        'leaves',
        sa.Column('server', sa.String(36), primary_key=True),
        sa.Column('project', sa.String(255), nullable=False),
        sa.Column('owner', sa.String(255), nullable=False),
        sa.Column('cause', sa.String(32), nullable=False),
        sa.Column('actions', sa.String(255), nullable=False),
        sa.Column('at', sa.Double, nullable=False),
        sa.Column('changed_at', sa.Double, nullable=False),
        sa.Column('tried', sa.Integer, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('reason', sa.String(64), nullable=False),
        sa.Column('subject', sa.String(255), nullable=False),
        sa.Column('numbers', sa.Text, nullable=False),
    )
    changes.create_index(
        'ix_leaves_state_changed_at', 'leaves', ['state', 'changed_at']
    )


def _shares() -> None:
    """Of an account more can be set than its share."""
    shares = sa.table('shares', sa.column('given', sa.Text))
    bind = op.get_bind()
    for (given,) in bind.execute(sa.select(shares.c.given)).all():
        accounts = {
            name: share if isinstance(share, dict) else {'share': share}
            for name, share in json.loads(given).items()
        }
        bind.execute(sa.update(shares).values(given=json.dumps(accounts)))
