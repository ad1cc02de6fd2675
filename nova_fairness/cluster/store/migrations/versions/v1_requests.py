# SPDX-License-Identifier: Apache-2.0

"""The first tables: messages, requests and leaders."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from nova_fairness.cluster.store.migrations import changes

revision = '1_requests'
down_revision = None


def upgrade() -> None:
    """Make them. The columns are written out: tables.py moves on."""
    _messages()
    _requests()
    changes.create_table(
        'leaders',
        sa.Column('epoch', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('holder', sa.String(255), nullable=False),
        sa.Column('since', sa.Double, nullable=False),
    )


def _messages() -> None:
    many = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')
    changes.create_table(
        'casts',
        sa.Column('uuid', sa.String(64), primary_key=True),
        sa.Column('method', sa.String(64), nullable=False),
        sa.Column('received_at', sa.Double, nullable=False),
        sa.Column('sealed', many),
    )


def _requests() -> None:
    text = changes.long_text()
    changes.create_table(
        'requests',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('cast_uuid', sa.String(64), nullable=False, unique=True),
        sa.Column('project', sa.String(255), nullable=False),
        sa.Column('owner', sa.String(255), nullable=False),
        sa.Column('asked_at', sa.Double, nullable=False),
        sa.Column('expires_at', sa.Double),
        sa.Column('origin', sa.String(64), nullable=False),
        sa.Column('wanted', text, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('version', sa.Integer, nullable=False),
        sa.Column('changed_at', sa.Double, nullable=False),
        sa.Column('reason', sa.String(64), nullable=False),
        sa.Column('subject', sa.String(255), nullable=False),
        sa.Column('numbers', sa.Text, nullable=False),
    )
    changes.create_index('ix_requests_state', 'requests', ['state'])
