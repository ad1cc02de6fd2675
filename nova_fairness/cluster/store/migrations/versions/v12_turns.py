# SPDX-License-Identifier: Apache-2.0

"""Each time that a server was to leave, and when what happened."""

from alembic import op
import sqlalchemy as sa

from nova_fairness.cluster.store.migrations import changes
from nova_fairness.model import eviction

revision = '12_turns'
down_revision = '11_room'


def upgrade() -> None:
    """Of those that are there it is known that they were chosen."""
    text = sa.String(36)
    changes.rename_column('leaves', 'server', 'uuid', text)
    for column in (
        sa.Column('server', text, nullable=False, server_default=''),
        sa.Column('turn', sa.Integer, nullable=False, server_default='0'),
        sa.Column('vcpus', sa.Integer, nullable=False, server_default='0'),
        sa.Column('began_at', sa.Double),
        sa.Column('chosen_at', sa.Double, nullable=False, server_default='0'),
        sa.Column('told_at', sa.Double),
        sa.Column('acted_at', sa.Double),
        sa.Column('gone_at', sa.Double),
        sa.Column('returned_at', sa.Double),
    ):
        changes.add_column('leaves', column)
    _name()
    changes.create_index('ix_leaves_server_turn', 'leaves', ['server', 'turn'])
    changes.create_index('ix_leaves_chosen_at', 'leaves', ['chosen_at'])


def _name() -> None:
    """Rows had the name of their server, and none of their own."""
    leaves = sa.table(
        'leaves',
        *map(sa.column, ('uuid', 'server', 'changed_at', 'chosen_at')),
    )
    bind = op.get_bind()
    nameless = sa.select(leaves.c.uuid).where(leaves.c.server == '')
    for (server,) in bind.execute(nameless).all():
        bind.execute(
            sa.update(leaves)
            .where(leaves.c.uuid == server)
            .values(
                uuid=eviction.name_of(server, 0),
                server=server,
                chosen_at=leaves.c.changed_at,
            )
        )
