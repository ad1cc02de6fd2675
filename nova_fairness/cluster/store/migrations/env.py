# SPDX-License-Identifier: Apache-2.0

"""Runs the scripts for alembic, on the connection of the caller."""

from alembic import context

from nova_fairness.cluster.store import tables

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=tables.METADATA,
)
with context.begin_transaction():
    context.run_migrations()
