# SPDX-License-Identifier: Apache-2.0

"""Each time that a server was to leave, and when what happened."""

from alembic import op
import sqlalchemy as sa

from nova_fairness.model import leaving

revision = '12_turns'
down_revision = '11_room'


def upgrade() -> None:
    """Of those that are there it is known that they were chosen."""
    text = sa.String(36)
    op.alter_column(
        'leaves',
        'server',
        new_column_name='uuid',
        existing_type=text,
        existing_nullable=False,
    )
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
        op.add_column('leaves', column)
    _name()
    op.create_index('ix_leaves_server_turn', 'leaves', ['server', 'turn'])
    op.create_index('ix_leaves_chosen_at', 'leaves', ['chosen_at'])


def _name() -> None:
    """Rows had the name of their server."""
    leaves = sa.table(
        'leaves',
        *map(sa.column, ('uuid', 'server', 'changed_at', 'chosen_at')),
    )
    bind = op.get_bind()
    for (server,) in bind.execute(sa.select(leaves.c.uuid)).all():
        bind.execute(
            sa.update(leaves)
            .where(leaves.c.uuid == server)
            .values(
                uuid=leaving.name_of(server, 0),
                server=server,
                chosen_at=leaves.c.changed_at,
            )
        )
