# SPDX-License-Identifier: Apache-2.0

"""How alembic runs the scripts: on the connection it is given."""

from alembic import context

from nova_fairness.cluster.store import tables

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=tables.METADATA,
)
with context.begin_transaction():
    context.run_migrations()
