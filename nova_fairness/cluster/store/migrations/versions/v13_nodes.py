# SPDX-License-Identifier: Apache-2.0

"""Hosts between a batch system and the cloud."""

import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes

revision = '13_nodes'
down_revision = '12_turns'


def upgrade() -> None:
    """Where a host stands is looked for; one row says what is aimed at."""
    text = changes.long_text()
    changes.create_table(
        'nodes',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('batch', sa.String(255), nullable=False),
        sa.Column('cloud', sa.String(255), nullable=False),
        sa.Column('cores', sa.Double, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('since', sa.Double, nullable=False),
        sa.Column('until', sa.Double),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('history', text, nullable=False),
    )
    changes.create_table(
        'border',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('hosts', sa.Integer),
        row={'id': 1, 'version': 0, 'hosts': None},
    )
